package joincmd

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/base/clusterauth"
	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/base/reach"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/joinplan"
	"github.com/zedkube/zedkube/types"
)

const (
	longestWait = 6 * time.Second // for a member that says to come again
	mostOfList  = 32              // of a list that a member sends
)

// inquirer asks one node after another, from the own address.
type inquirer struct {
	asker
	own    joinplan.Own
	from   netip.Addr // zero where this device does not have its address
	ears   *reach.Listeners
	trying time.Duration // with one about the way back, which takes a member two seconds at most
}

func newInquirer(own joinplan.Own, peer func(netip.Addr) clusterauth.Peer, apiPort int, ears *reach.Listeners) inquirer {
	q := inquirer{own: own, ears: ears, trying: 5 * time.Second}
	has := func(i joinplan.Interface) bool { return i.Prefix.Addr().WithZone("") == own.Address.WithZone("") }
	if slices.ContainsFunc(own.Kernel, has) {
		q.from = own.Address
	}
	q.asker = newAsker(reach.Dialer(q.from), peer, apiPort, types.PortStatus)
	return q
}

// ask asks one node all there is to ask, at once. What it sends is bounded, and
// none of it is believed further than the plan says.
func (q inquirer) ask(ctx context.Context, ip netip.Addr) joinplan.Peer {
	p := joinplan.Peer{Address: ip}
	var api, status boundedhttp.Answer
	var failed error
	var work sync.WaitGroup
	work.Go(func() { api, _ = q.getAPI(ctx, ip) })
	work.Go(func() { status, failed = q.getStatus(ctx, ip.String(), url.URL{Path: "/status"}, "", maxStatusBody) })
	work.Go(func() {
		if q.own.Cluster != uuid.Nil {
			p.Status = q.askStatus(ctx, joinTarget{server: ip, cluster: q.own.Cluster})
		}
	})
	work.Go(func() { q.describe(ctx, &p) })
	work.Go(func() { q.back(ctx, &p) })
	work.Go(func() { q.there(ctx, &p) })
	work.Wait()
	readClock(&p, api, "the API server")
	readClock(&p, status, "the status server")
	p.ByTLS, p.ByHTTP = failed == nil && status.TLS, failed == nil && !status.TLS
	p.Heard = q.ears.Await(ctx, ip, p.Reach.Open())
	return p
}

func (q inquirer) describe(ctx context.Context, p *joinplan.Peer) {
	answer, err := q.getStatus(ctx, p.Address.String(), url.URL{Path: "/status"}, "application/json", maxExplanation)
	var said struct {
		Node   string
		Status struct{ KubernetesVersion string }
	}
	if err != nil || answer.Code != http.StatusOK || json.Unmarshal(answer.Body, &said) != nil {
		return // EVE's own zedkube says the plain answer
	}
	p.Node, p.Kubernetes = excerpt(said.Node), excerpt(said.Status.KubernetesVersion)
}

// back asks a node to try the way back, once more where it says to come again.
func (q inquirer) back(ctx context.Context, p *joinplan.Peer) {
	query := url.Values{}
	if q.own.Node != "" {
		query.Set("node", q.own.Node)
	}
	if q.own.Device != uuid.Nil {
		query.Set("device", q.own.Device.String())
	}
	page := url.URL{Path: "/reach", RawQuery: query.Encode()}
	q.patience = q.trying
	answer, err := q.getStatus(ctx, p.Address.String(), page, "", maxExplanation)
	if wait, busy := askAgain(answer); err == nil && busy {
		later := time.NewTimer(wait)
		defer later.Stop()
		select {
		case <-later.C:
			answer, err = q.getStatus(ctx, p.Address.String(), page, "", maxExplanation)
		case <-ctx.Done():
		}
	}
	if err != nil {
		p.NoReach = failure(err, "Reach", "its status server", q.trying).Why + "."
		return
	}
	p.Reach, p.NoReach = readReach(answer)
}

// readReach reads what a node says about the way back, or why it says nothing.
func readReach(answer boundedhttp.Answer) (*types.Reach, string) {
	switch {
	case answer.Code == http.StatusNotFound:
		return nil, "EVE's own zedkube or an older version runs there, which cannot test this direction."
	case answer.Code != http.StatusOK:
		return nil, fmt.Sprintf("it answers %d, %q.", answer.Code, excerpt(strings.TrimSpace(string(answer.Body))))
	case len(answer.Body) > maxExplanation:
		return nil, fmt.Sprintf("it answers with more than %d bytes.", maxExplanation)
	}
	var r types.Reach
	if err := json.Unmarshal(answer.Body, &r); err != nil {
		return nil, fmt.Sprintf("it answers %q, which is not a report.", excerpt(string(answer.Body)))
	}
	r.Node, r.Zedkube, r.From = excerpt(r.Node), excerpt(r.Zedkube), excerpt(r.From)
	r.Ports = r.Ports[:min(len(r.Ports), mostOfList)]
	if c := r.Cluster; c != nil {
		c.Addresses, c.Kubelets = c.Addresses[:min(len(c.Addresses), mostOfList)], c.Kubelets[:min(len(c.Kubelets), mostOfList)]
		for i, k := range c.Kubelets {
			c.Kubelets[i] = excerpt(k)
		}
		const most = 10000 // what is beyond is no cluster
		if min(c.Nodes, c.Members, c.Ready, c.Learners) < 0 || max(c.Nodes, c.Members, c.Ready, c.Learners) > most {
			return nil, "it reports an implausible number of nodes."
		}
	}
	return &r, ""
}

// there tries the ports of a node, and whether those that are open speak TLS.
func (q inquirer) there(ctx context.Context, p *joinplan.Peer) {
	ctx, cancel := context.WithTimeout(ctx, 2*q.patience)
	defer cancel()
	first, done := context.WithTimeout(ctx, q.patience)
	defer done()
	ports := reach.Ports()
	ports[0] = q.apiPort
	p.Tries = reach.Try(first, q.from, p.Address, ports)
	silent := make([]bool, len(ports))
	var hellos errgroup.Group
	for i, try := range p.Tries {
		if try.Outcome == types.ReachOpen && try.Port != types.PortStatus {
			hellos.Go(func() error {
				silent[i] = reach.Hello(ctx, q.from, p.Address, try.Port) != nil
				return nil // it is noted
			})
		}
	}
	_ = hellos.Wait()
	p.Tries[0].Port = types.PortAPI // whatever stands for it in a test cluster
	for i, none := range silent {
		if none {
			p.NoTLS = append(p.NoTLS, p.Tries[i].Port)
		}
	}
}

// readClock reads the time of an answer. It was written somewhere between question
// and answer, and its second is cut.
func readClock(p *joinplan.Peer, a boundedhttp.Answer, source string) {
	date, err := http.ParseTime(a.Header.Get("Date"))
	if err != nil {
		return // it does not say
	}
	const half = time.Second / 2
	here := a.Sent.Add(a.Took / 2)
	p.Clocks = append(p.Clocks, joinplan.Clock{Source: source, Ahead: date.Add(half).Sub(here), Within: half + a.Took/2})
}

// askAgain is after how long a server wants to be asked again.
func askAgain(a boundedhttp.Answer) (time.Duration, bool) {
	seconds, err := strconv.Atoi(a.Header.Get("Retry-After"))
	wait := time.Duration(seconds) * time.Second
	return wait, a.Code == http.StatusTooManyRequests && err == nil && seconds > 0 && seconds < 1000 && wait <= longestWait
}

// joinPatience is how long the kube container waits for one answer (docs/wire.md,
// "Kube container").
const joinPatience = 2 * time.Second

const (
	maxStatusBody  = 1 << 10  // "cluster:" and a UUID
	maxExplanation = 64 << 10 // what a server may say about itself, headers too
)

// asker asks servers of the cluster, first of all whether this node may join.
type asker struct {
	client     *http.Client        // of API servers
	status     *http.Client        // of status servers, each by its protocol
	knows      *clusterauth.Client // what that one goes by
	apiPort    int
	statusPort int
	patience   time.Duration
}

// newAsker knows of the servers what peer says, nil for nothing.
func newAsker(from *net.Dialer, peer func(netip.Addr) clusterauth.Peer, apiPort, statusPort int) asker {
	knows := &clusterauth.Client{Keys: &clusterauth.Keyring{}, Memory: &clusterauth.Memory{}, Peer: peer, Dial: from.DialContext, Headers: maxExplanation}
	return asker{client: joinClient(from), status: knows.HTTP(), knows: knows, apiPort: apiPort, statusPort: statusPort, patience: joinPatience}
}

// take takes the token of a cluster as it is now. What cannot be used counts as none:
// a server that speaks TLS is then reported as one that cannot be checked.
func (q asker) take(cluster uuid.UUID, token string) {
	_ = q.knows.Keys.Update(cluster, token, time.Now())
}

// joinClient follows nobody elsewhere and asks no proxy: the answer has to
// come from the server itself. Its certificate cannot be verified by a node
// that has not joined: nothing secret is sent, and nothing rests on the answer
// but that there is one.
func joinClient(from *net.Dialer) *http.Client {
	return boundedhttp.NewClient(from.DialContext, &tls.Config{InsecureSkipVerify: true}, maxExplanation) //nolint:gosec // see above
}

// mayJoin asks the server once: its API first, which has to answer whatever it
// likes, then its status server.
func (q asker) mayJoin(ctx context.Context, t joinTarget) joinplan.Answer {
	_, err := q.getAPI(ctx, t.server)
	if err != nil {
		return failure(err, "API", fmt.Sprintf("the API server of %s, port %d,", t.server, q.apiPort), q.patience)
	}
	return q.askStatus(ctx, t)
}

func (q asker) askStatus(ctx context.Context, t joinTarget) joinplan.Answer {
	body, none := q.statusOf(ctx, t.server.String(), maxStatusBody)
	if none.Reason != "" {
		return none
	}
	plain := plainAnswer(body, t)
	if plain.Reason == notYet {
		plain.Why += q.explanation(ctx, t)
	}
	return plain
}

// statusOf is the plain answer of a status server, of which one byte more than limit
// is read; or why there is none.
func (q asker) statusOf(ctx context.Context, host string, limit int64) (body string, none joinplan.Answer) {
	server := fmt.Sprintf("the status server of %s, port %d,", terminal.Clean(host), q.statusPort)
	a, err := q.getStatus(ctx, host, url.URL{Path: "/status"}, "", limit)
	switch {
	case err != nil:
		return "", failure(err, "Status", server, q.patience)
	case a.Code/100 != 2:
		return "", joinplan.Answer{Reason: "StatusRefuses", Why: fmt.Sprintf("%s answers %s", server, terminal.Clean(strings.TrimSpace(strconv.Itoa(a.Code)+" "+http.StatusText(a.Code))))}
	}
	return string(a.Body), none
}

// notYet is the reason of a server that names no cluster.
const notYet = "NotYet"

// plainAnswer reads the plain answer of a status server.
func plainAnswer(body string, t joinTarget) joinplan.Answer {
	text := strings.TrimSpace(body)
	named, ok := strings.CutPrefix(text, "cluster:")
	named = strings.TrimSpace(named)
	id, err := uuid.Parse(named)
	switch {
	case len(body) > maxStatusBody:
		return joinplan.Answer{Reason: "StatusGarbage", Why: fmt.Sprintf("%s answers with more than %d bytes, which is not a status", t.server, maxStatusBody)}
	case text == "":
		return joinplan.Answer{Reason: notYet, Why: fmt.Sprintf("%s is not yet a working server of its cluster", t.server)}
	case ok && named == t.cluster.String():
		return joinplan.Answer{May: true, Reason: "MayJoin", Why: fmt.Sprintf("%s is a working server of cluster %s", t.server, t.cluster)}
	case ok && err == nil && id != t.cluster:
		return joinplan.Answer{Reason: "OtherCluster", Why: fmt.Sprintf("%s is a server of cluster %s, and this device belongs to %s: waiting does not help", t.server, id, t.cluster)}
	case text == "cluster":
		return joinplan.Answer{Reason: "OldServer", Why: fmt.Sprintf("%s runs an EVE from before October 2025, which does not report which cluster it is in", t.server)}
	}
	return joinplan.Answer{Reason: "StatusGarbage", Why: fmt.Sprintf("%s answers %q, which is not a status", t.server, excerpt(text))}
}

func excerpt(text string) string {
	return terminal.Clean(phrase.Cut(strings.ToValidUTF8(text, "?"), 60))
}

// explanation asks a server why it names no cluster. Nothing is decided by it.
func (q asker) explanation(ctx context.Context, t joinTarget) string {
	query := url.Values{"cluster": {t.cluster.String()}}.Encode()
	a, err := q.getStatus(ctx, t.server.String(), url.URL{Path: "/status", RawQuery: query}, "application/json", maxExplanation)
	if err != nil || a.Code/100 != 2 {
		return ""
	}
	var said map[string]any
	if json.Unmarshal(a.Body, &said) != nil || said == nil {
		return "; EVE's own zedkube runs there, which does not say why"
	}
	word := func(key string) string { s, _ := said[key].(string); return terminal.Clean(s) }
	why, reason, state := strings.TrimSuffix(word("why"), "."), word("reason"), word("state")
	if why == "" || state == "ready" { // it has become one in between
		return ""
	}
	text := "; it says: " + why
	if reason != "" {
		text += " (" + reason + ")"
	}
	if since, err := time.Parse(time.RFC3339, word("since")); err == nil {
		text += ", waiting since " + terminal.Timestamp(since)
	}
	return text
}

// getAPI asks an API server for anything, and reads nothing of it.
func (q asker) getAPI(ctx context.Context, server netip.Addr) (boundedhttp.Answer, error) {
	page := url.URL{Scheme: "https", Host: net.JoinHostPort(server.String(), strconv.Itoa(q.apiPort)), Path: "/"}
	return boundedhttp.Get(ctx, q.client, page.String(), "", 0, q.patience)
}

// getStatus asks a status server for one page and reads at most one byte more than limit of it.
func (q asker) getStatus(ctx context.Context, host string, page url.URL, accept string, limit int64) (boundedhttp.Answer, error) {
	page.Scheme, page.Host = "http", net.JoinHostPort(host, strconv.Itoa(q.statusPort)) // or TLS
	return boundedhttp.Get(ctx, q.status, page.String(), accept, limit, q.patience)
}

// failure says why a server gave no answer.
func failure(err error, of, who string, patience time.Duration) joinplan.Answer {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	switch timeout := net.Error(nil); {
	case errors.Is(err, syscall.ECONNREFUSED):
		return joinplan.Answer{Reason: of + "Refused", Why: who + " refuses connections: it is not running yet"}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return joinplan.Answer{Reason: of + "Silent", Why: fmt.Sprintf("%s does not answer within %s", who, patience)}
	}
	if reason, why := untrusted(err); reason != "" && of != "API" {
		return joinplan.Answer{Reason: of + reason, Why: who + " " + why}
	}
	return joinplan.Answer{Reason: of + "Unreachable", Why: fmt.Sprintf("%s does not answer: %s", who, terminal.Clean(err.Error()))}
}

// untrusted says what of the TLS of a status server is wrong; "" for nothing. The
// certificate is looked at first: only a server that has ours is sent the bearer.
func untrusted(err error) (reason, why string) {
	for _, kind := range []struct {
		is          error
		reason, why string
	}{
		{clusterauth.ErrOtherToken, "OtherToken", "presents the certificate of another cluster token: it and this device have different tokens, or belong to different clusters"},
		{clusterauth.ErrOtherServer, "OtherServer", "presents a certificate that is not that of a status server: another program has the port"},
		{clusterauth.ErrOtherBearer, "OtherBearer", "has the certificate of the cluster token and refuses the bearer that belongs to it (401)"},
		{clusterauth.ErrNoToken, "NoToken", "speaks TLS, and no cluster token is known here to check it with: --token-file"},
		{clusterauth.ErrDowngrade, "Downgrade", "does not speak TLS now, and did before or does by its stamp: it is not asked by plain HTTP"},
	} {
		if errors.Is(err, kind.is) {
			return kind.reason, kind.why
		}
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "remote error" { // an alert
		return "RefusesTLS", "refuses the TLS handshake: " + terminal.Clean(op.Err.Error())
	}
	return "", ""
}
