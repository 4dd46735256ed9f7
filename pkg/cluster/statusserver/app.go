package statusserver

import (
	"cmp"
	"context"
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
	"sync/atomic"
	"time"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/base/clusterauth"
	"github.com/zedkube/zedkube/pkg/base/keptfile"
	"github.com/zedkube/zedkube/pkg/base/proof"
	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/types"
)

const (
	appPath        = "/app"
	clusterAppPath = "/cluster-app"
	// reportTimeout leaves a peer, who gives us five seconds, an answer from a
	// disk that hangs.
	reportTimeout = 4 * time.Second
	maxAppID      = 36 // a UUID in letters
)

var errBusy = errors.New("too many reports are being made, try again soon")

func (c *Component) serveApp(w http.ResponseWriter, r *http.Request) {
	id, source, ok := c.admitted(w, r, appPath)
	if !ok {
		return
	}
	out, err := c.report(r.Context(), source, id)
	switch {
	case errors.Is(err, errBusy):
		http.Error(w, err.Error(), http.StatusTooManyRequests)
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		_ = writeJSON(w, out) // who asked is gone: nobody could act on it
	}
}

// admitted reads the application asked for and who asks; it refuses who may not.
func (c *Component) admitted(w http.ResponseWriter, r *http.Request, prefix string) (id string, source netip.Addr, ok bool) {
	// EVE's agents ask with POST, and change nothing by it.
	if !allowed(w, r, http.MethodPost) {
		return "", netip.Addr{}, false
	}
	id, ok = appID(r.URL.Path, prefix)
	if !ok {
		http.Error(w, "App not found", http.StatusNotFound)
		return "", netip.Addr{}, false
	}
	source, ok = c.member(w, r, c.judge)
	return id, source, ok
}

// member says who asks; it refuses who may not, by the word of judge.
func (c *Component) member(w http.ResponseWriter, r *http.Request, judge func(r *http.Request, remote, local netip.AddrPort) error) (source netip.Addr, ok bool) {
	local, remote := ends(r)
	if err := judge(r, remote, local); err != nil {
		http.Error(w, "not for "+plain(remote.Addr()).String()+": "+err.Error(), http.StatusForbidden)
		return netip.Addr{}, false
	}
	return plain(remote.Addr()), true
}

// ends are the two addresses of the connection that r came by.
func ends(r *http.Request) (local, remote netip.AddrPort) {
	if addr, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		local = addr.AddrPort()
	}
	remote, _ = netip.ParseAddrPort(r.RemoteAddr) // what cannot be read is no address of anyone's
	return local, remote
}

var errNotAMember = errors.New("only this node and the other nodes of its cluster may ask")

// judge says why r is not to be answered, nil if it is.
func (c *Component) judge(r *http.Request, remote, local netip.AddrPort) error {
	nodes := c.Nodes.All()
	if r.TLS != nil {
		// Agents ask for reports. What asks for anything else by TLS may be a command
		// of ours, or a program of a newer EVE, on a node whose agent knows no TLS.
		for _, n := range nodesAt(nodes, plain(remote.Addr())) {
			c.peers.Saw(clusterauth.PeerOf(n), time.Now())
		}
	}
	switch admit(remote.Addr(), local.Addr(), nodes, c.foreign, c.withoutProof()) {
	case free:
		return nil
	case denied:
		return errNotAMember
	}
	return c.proves(r, local)
}

// proves says why r does not show that who asks knows the cluster token, nil if it does.
func (c *Component) proves(r *http.Request, local netip.AddrPort) error {
	if r.TLS != nil {
		return nil // its bearer proves as much
	}
	status, _ := c.Status.Get(types.Global)
	return c.limits.proofs.CheckRequest(r, local, r.URL.EscapedPath(), status)
}

// appID is the application named in path below prefix, "" for none: its UUID or
// the front of one. ok is false for what can be no UUID.
func appID(path, prefix string) (id string, ok bool) {
	id = strings.TrimPrefix(strings.TrimPrefix(path, prefix), "/")
	if len(id) > maxAppID || strings.Trim(id, "0123456789abcdefABCDEF-") != "" {
		return "", false
	}
	return strings.ToLower(id), true
}

// report makes the report of this node beside the request, which a disk that
// hangs does not hold up: the report alone then keeps its place at the gate.
func (c *Component) report(ctx context.Context, source netip.Addr, id string) (report, error) {
	if !c.limits.reports.enter(source, maxReports, maxReportsEach) {
		return report{}, errBusy
	}
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	type outcome struct {
		report
		fault *boundedhttp.Fault
	}
	done := make(chan outcome, 1)
	c.making.Go(func() {
		defer c.limits.reports.leave(source)
		var o outcome
		o.fault = boundedhttp.Catch(func() { o.report = c.collect(ctx, id) })
		done <- o
	})
	var out outcome
	select {
	case out = <-done:
	case <-ctx.Done():
	}
	out.fault.Raise()
	if err := ctx.Err(); err != nil {
		return report{}, fmt.Errorf("read the files of the report: %w", err)
	}
	return out.report, nil
}

const (
	peerTimeout   = 5 * time.Second  // one peer's answer
	roundTimeout  = 12 * time.Second // all of them
	peersAtOnce   = 8
	maxPeers      = 32
	maxPeerAnswer = 512 << 10
	writeTimeout  = roundTimeout + requestTimeout // what is left of a request once the round is over
)

// round is the answer to /cluster-app.
type round struct {
	Key   string `json:"key"`
	Value []any  `json:"value"` // a report or a silence for each node, the own one first
}

// silence stands in for the report of a node that gave none.
type silence struct {
	Hostname string `json:"hostname"` // its address
	Errors   string `json:"errors"`
}

func (c *Component) serveClusterApp(w http.ResponseWriter, r *http.Request) {
	id, from, ok := c.admitted(w, r, clusterAppPath)
	if !ok {
		return
	}
	if !c.limits.rounds.enter(from, maxRounds, maxRoundsEach) {
		http.Error(w, "peers are already being queried, try again soon", http.StatusTooManyRequests)
		return
	}
	defer c.limits.rounds.leave(from)
	until := time.Now().Add(writeTimeout)
	control := http.NewResponseController(w)
	if err := errors.Join(control.SetReadDeadline(until), control.SetWriteDeadline(until)); err != nil {
		http.Error(w, "cannot extend the deadline for querying peers", http.StatusInternalServerError)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), roundTimeout)
	defer cancel()
	out := c.askAll(ctx, from, id)
	answerJSON(w, out)
}

func (c *Component) askAll(ctx context.Context, from netip.Addr, id string) round {
	status, _ := c.Status.Get(types.Global)
	own, _ := status.OwnAddress()
	asker := c.newAsker(ctx, status)
	ips := peers(own, c.Nodes.All())
	out := round{Key: "cluster-app", Value: make([]any, 1+len(ips))}
	var work boundedhttp.Group
	work.Go(func() {
		mine, err := c.report(ctx, from, id)
		out.Value[0] = reportOr(mine, err, own)
	})
	turns := make(chan struct{}, peersAtOnce)
	for i, ip := range ips {
		work.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			theirs, err := asker.ask(ctx, ip, id)
			out.Value[1+i] = reportOr(theirs, err, ip)
		})
	}
	work.Wait()
	return out
}

func reportOr(r report, err error, ip netip.Addr) any {
	if err != nil {
		return silence{Hostname: ip.String(), Errors: err.Error()}
	}
	return r
}

func peers(own netip.Addr, nodes map[string]types.Node) []netip.Addr {
	var out []netip.Addr
	for _, n := range nodes {
		if ip, err := netip.ParseAddr(n.InternalIP); err == nil && plain(ip) != own {
			out = append(out, plain(ip))
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	out = slices.Compact(out)
	return out[:min(len(out), maxPeers)]
}

type asker struct {
	client *http.Client
	key    []byte // nil while there is no cluster token: EVE's peers answer anyway
	token  string // not to be passed on
	zone   string // of link-local addresses
	port   int
}

// newAsker asks from the cluster address, by which the peers know this node.
func (c *Component) newAsker(ctx context.Context, status types.EdgeNodeClusterStatus) *asker {
	a := &asker{token: status.EncryptedClusterToken, zone: status.ClusterInterface, port: cmp.Or(c.Port, types.PortStatus)}
	a.key, _ = proof.Key(status) // without one the question goes unsigned, and a peer that wants it signed says so
	dialer := &net.Dialer{}
	if own, ok := status.OwnAddress(); ok {
		dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(a.zoned(own), 0))
	}
	a.client = c.client(ctx, dialer).HTTP()
	return a
}

func (a *asker) zoned(ip netip.Addr) netip.Addr {
	if ip.Is6() && ip.IsLinkLocalUnicast() {
		return ip.WithZone(a.zone)
	}
	return ip
}

func (a *asker) ask(ctx context.Context, ip netip.Addr, id string) (report, error) {
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	body, err := a.send(ctx, http.MethodPost, ip, appPath+"/"+id, maxPeerAnswer)
	if err != nil {
		return report{}, err
	}
	return readReport(body, a.token)
}

// send asks a peer for path, and returns one byte more than most of a longer answer.
func (a *asker) send(ctx context.Context, method string, ip netip.Addr, path string, most int64) ([]byte, error) {
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(a.zoned(ip).String(), strconv.Itoa(a.port)), Path: path}
	r, err := http.NewRequestWithContext(ctx, method, u.String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("ask peer: %w", err)
	}
	if a.key != nil {
		to := proof.Ask{Method: r.Method, Host: netip.AddrPortFrom(ip, uint16(a.port)).String(), Path: u.EscapedPath()} //nolint:gosec // a port
		r.Header.Set(proof.Header, to.Sign(a.key, time.Now()))
	}
	answer, err := boundedhttp.Do(a.client, r, most)
	switch {
	case err != nil:
		return nil, fmt.Errorf("ask peer: %w", cause(err))
	case answer.Code != http.StatusOK:
		return nil, fmt.Errorf("ask peer: %w", errCode(answer.Code))
	}
	return answer.Body, nil
}

// errCode is an answer other than 200.
type errCode int

// Error implements error.
func (c errCode) Error() string { return fmt.Sprintf("HTTP %d %s", int(c), http.StatusText(int(c))) }

// readReport reads what a peer says. Nothing of it is believed to be in order:
// what is passed on is of the form of a report, of bounded size, and without
// the token.
func readReport(data []byte, token string) (report, error) {
	if len(data) > maxPeerAnswer {
		return report{}, errors.New("read peer's report: it is too long")
	}
	var out report
	if err := json.Unmarshal(data, &out); err != nil {
		return report{}, errors.New("read peer's report: it is not a valid report in JSON")
	}
	return out.redacted(token), nil
}

// cause is err without the URL, which the entry names already.
func cause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// proofRecord remembers which cluster was once seen with a zedkube of this kind on
// every Node. What is not atomic is touched by Step only.
type proofRecord struct {
	stamped time.Time   // since when the stamps of all Nodes have been seen fresh; zero for not now
	cluster string      // its UUID, "" for none
	isRead  bool        // the file was read
	kept    string      // what the file says
	all     atomic.Bool // it is the cluster of this node
}

// read returns the cluster, the first time from the file at path. One that cannot
// be read is as good as none: it is written again.
func (p *proofRecord) read(path string) string {
	if !p.isRead {
		content, err := safefile.Read(path, maxTopicFile)
		if err == nil {
			p.cluster, p.kept = string(content), string(content)
		}
		p.isRead = true
	}
	return p.cluster
}

// recordProved keeps in the file that all Nodes of a cluster have proofs, "" for
// that they have not. What cannot be written holds until the end of the process,
// and is tried again.
func (c *Component) recordProved(cluster string) error {
	c.proof.all.Store(cluster != "")
	if cluster == "" {
		return nil
	}
	if c.proof.cluster != cluster {
		c.proof.cluster = cluster
		c.Log.Info("every node runs a zedkube that can prove itself: reports now require a proof")
	}
	if c.proof.kept == cluster {
		return nil
	}
	file := keptfile.File{Path: c.ProversFile, Name: "the note that all nodes can prove themselves", MakeDir: true}
	did, err := file.Keep(keptfile.Desired{Do: keptfile.Write, Content: cluster})
	if err == nil && did != keptfile.Awaits {
		c.proof.kept = cluster
	}
	return err
}

// withoutProof reports whether a Node without a zedkube of this kind needs no proof.
func (c *Component) withoutProof() bool {
	return c.Reports == ReportsAlways || c.Reports != ReportsNever && !c.proof.all.Load()
}
