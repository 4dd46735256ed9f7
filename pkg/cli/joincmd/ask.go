package joincmd

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/base/reach"
	"github.com/zedkube/zedkube/pkg/operate/joinplan"
	"github.com/zedkube/zedkube/types"
)

const (
	longestWait = 6 * time.Second // for a member that says to come again
	mostOfList  = 32              // of a list that a member sends
)

// inquirer asks one node after another, from the own address.
type inquirer struct {
	own     joinplan.Own
	from    netip.Addr // zero where this device does not have its address
	ears    *reach.Listeners
	client  *http.Client
	apiPort int

	patience time.Duration // with one answer
	trying   time.Duration // with one about the way back, which takes a member two seconds at most
}

func newInquirer(own joinplan.Own, apiPort int, ears *reach.Listeners) inquirer {
	q := inquirer{own: own, ears: ears, apiPort: apiPort, patience: joinPatience, trying: 5 * time.Second}
	has := func(i joinplan.Interface) bool { return i.Prefix.Addr().WithZone("") == own.Address.WithZone("") }
	if slices.ContainsFunc(own.Kernel, has) {
		q.from = own.Address
	}
	q.client = joinClient(reach.Dialer(q.from))
	return q
}

// ask asks one node all there is to ask, at once. What it sends is bounded, and
// none of it is believed further than the plan says.
func (q inquirer) ask(ctx context.Context, ip netip.Addr) joinplan.Peer {
	p := joinplan.Peer{Address: ip}
	var api, status reply
	var work sync.WaitGroup
	work.Go(func() { api, _ = q.get(ctx, "https", ip, q.apiPort, &url.URL{Path: "/"}, "", 0, q.patience) })
	work.Go(func() {
		status, _ = q.get(ctx, "http", ip, types.PortStatus, &url.URL{Path: "/status"}, "", maxStatusBody, q.patience)
	})
	work.Go(func() {
		if q.own.Cluster == uuid.Nil {
			return
		}
		asker := asker{client: q.client, apiPort: q.apiPort, statusPort: types.PortStatus, patience: q.patience}
		a := asker.askStatus(ctx, joinTarget{server: ip, cluster: q.own.Cluster})
		p.Status = joinplan.Answer{May: a.may, Reason: a.reason, Why: a.why}
	})
	work.Go(func() { q.describe(ctx, &p) })
	work.Go(func() { q.back(ctx, &p) })
	work.Go(func() { q.there(ctx, &p) })
	work.Wait()
	api.clock(&p, "the API server")
	status.clock(&p, "the status server")
	p.Heard = q.ears.Heard(ip)
	return p
}

// describe asks a status server who it is.
func (q inquirer) describe(ctx context.Context, p *joinplan.Peer) {
	answer, err := q.get(ctx, "http", p.Address, types.PortStatus, &url.URL{Path: "/status"}, "application/json", maxExplanation, q.patience)
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
	page := func() *url.URL { return &url.URL{Path: "/reach", RawQuery: query.Encode()} }
	answer, err := q.get(ctx, "http", p.Address, types.PortStatus, page(), "", maxExplanation, q.trying)
	if wait, busy := answer.again(); err == nil && busy {
		later := time.NewTimer(wait)
		defer later.Stop()
		select {
		case <-later.C:
			answer, err = q.get(ctx, "http", p.Address, types.PortStatus, page(), "", maxExplanation, q.trying)
		case <-ctx.Done():
		}
	}
	if err != nil {
		p.NoReach = failure(err, "Reach", "its status server", q.trying).why + "."
		return
	}
	p.Reach, p.NoReach = readReach(answer)
}

// readReach reads what a node says about the way back, or why it says nothing.
func readReach(answer reply) (*types.Reach, string) {
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

// reply is one answer.
type reply struct{ boundedhttp.Answer }

// get asks for one page and reads at most one byte more than limit of it.
func (q inquirer) get(ctx context.Context, scheme string, ip netip.Addr, port int, at *url.URL, accept string, limit int64, patience time.Duration) (reply, error) {
	at.Scheme, at.Host = scheme, net.JoinHostPort(ip.String(), strconv.Itoa(port))
	a, err := boundedhttp.Get(ctx, q.client, at.String(), accept, limit, patience)
	return reply{a}, err
}

// clock reads the time of an answer. It was written somewhere between question
// and answer, and its second is cut.
func (a reply) clock(p *joinplan.Peer, source string) {
	date, err := http.ParseTime(a.Header.Get("Date"))
	if err != nil {
		return // it does not say
	}
	const half = time.Second / 2
	here := a.Sent.Add(a.Took / 2)
	p.Clocks = append(p.Clocks, joinplan.Clock{Source: source, Ahead: date.Add(half).Sub(here), Within: half + a.Took/2})
}

// again is after how long a server wants to be asked again.
func (a reply) again() (time.Duration, bool) {
	seconds, err := strconv.Atoi(a.Header.Get("Retry-After"))
	wait := time.Duration(seconds) * time.Second
	return wait, a.Code == http.StatusTooManyRequests && err == nil && seconds > 0 && seconds < 1000 && wait <= longestWait
}
