package health

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/base/clusterauth"
	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

const (
	answerWithin = patience / 2 // for one answer of this device or of a neighbour
	socketWithin = patience / 8 // for one of the agent, which has it ready: an agent that hangs leaves time for the neighbours
	maxAnswer    = 4 << 10      // bounds what is read of an answer, of which a line is needed
	maxSmall     = 64 << 10
	maxPeers     = 8 // bounds how many nodes are asked for their clock
)

// readSmall reads a small file; a pipe is not waited for.
func readSmall(path string) (string, error) {
	raw, err := safefile.Read(path, maxSmall)
	return strings.TrimSpace(string(raw)), err
}

func askSocket(ctx context.Context, socket string) (status int, took time.Duration, err error) {
	start := time.Now()
	client := boundedhttp.NewSocketClient(socket)
	defer client.CloseIdleConnections()
	a := ask(ctx, client, "http://zedkube/api/nodes", "", 0)
	return a.status, time.Since(start), a.err
}

type answered struct {
	status int
	body   string
	date   time.Time // zero where it tells none
	sent   time.Time // half-way between question and answer, by the clock of this device
	byTLS  bool
	err    error
}

func ask(ctx context.Context, client *http.Client, url, accept string, within time.Duration) answered {
	return front(boundedhttp.Get(ctx, client, url, accept, maxAnswer, cmp.Or(within, answerWithin)))
}

func front(got boundedhttp.Answer, err error) answered {
	if got.Code == 0 {
		return answered{err: bare(err)}
	}
	a := answered{status: got.Code, body: string(got.Body), sent: got.Sent.Add(got.Took / 2), byTLS: got.TLS, err: err}
	if date, err := http.ParseTime(got.Header.Get("Date")); err == nil {
		a.date = date
	}
	return a
}

// bare is the reason without the request around it.
func bare(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return errors.New("no answer in time")
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		var op *net.OpError
		if errors.As(err, &op) {
			return op
		}
		err = inner
	}
	return err
}

func addressesOf(name string) ([]netip.Addr, error) {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	addrs, err := link.Addrs()
	return parsed(addrs), err
}

func parsed(addrs []net.Addr) (found []netip.Addr) {
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			found = append(found, p.Addr().Unmap())
		}
	}
	return found
}

// isHere reports that an address, a CIDR, is on any interface of this machine:
// else another would answer for it. Not to know is to ask.
func isHere(cluster string) bool {
	prefix, err := netip.ParsePrefix(cluster)
	if err != nil {
		return true
	}
	addrs, err := net.InterfaceAddrs()
	return err != nil || has(parsed(addrs), prefix.Addr().Unmap())
}

// statusAnswers is what port 12346 says of itself, and to joining nodes.
type statusAnswers struct {
	looked  bool
	health  answered
	plain   answered
	secure  answered // the same by TLS
	because answered // in JSON
}

// askStatus asks the status server at the cluster address, a CIDR, as nodes with an
// older and with a newer EVE do.
func (d *Device) askStatus(ctx context.Context, cluster string) (a statusAnswers) {
	prefix, err := netip.ParsePrefix(cluster)
	if err != nil {
		return statusAnswers{looked: true, health: answered{err: err}}
	}
	at := statusURL(prefix.Addr().Unmap())
	client := boundedhttp.NewClient(nil, nil, 0)
	byTLS := d.statusClient(ctx, func(netip.Addr) clusterauth.Peer { return clusterauth.Peer{Stamp: clusterauth.StampTLS} })
	var wait sync.WaitGroup
	wait.Go(func() { a.health = ask(ctx, client, at+"/healthz", "", d.within) })
	wait.Go(func() { a.plain = ask(ctx, client, at+"/status", "", d.within) })
	wait.Go(func() { a.secure = ask(ctx, byTLS, at+"/status", "", d.within) })
	wait.Go(func() { a.because = ask(ctx, client, at+"/status", "application/json", d.within) })
	wait.Wait()
	a.looked = true
	return a
}

func statusURL(ip netip.Addr) string {
	return "http://" + net.JoinHostPort(ip.String(), strconv.Itoa(types.PortStatus))
}

// statusClient asks status servers, each by its protocol, with this device's tokens and
// with what the agent has seen of them. Where either cannot be read there is none.
func (d *Device) statusClient(ctx context.Context, peer func(netip.Addr) clusterauth.Peer) *http.Client {
	c := clusterauth.Client{Keys: &clusterauth.Keyring{}, Memory: &clusterauth.Memory{}, Peer: peer, Dial: (&net.Dialer{}).DialContext}
	if s, _, err := overview.ReadFile[types.EdgeNodeClusterStatus](d.in("/run/zedkube/EdgeNodeClusterStatus/global.json")); err == nil {
		_ = c.Keys.Update(s.ClusterID.UUID, s.EncryptedClusterToken, time.Now())
		c.Keys.AskAgent(ctx, d.Socket, cmp.Or(d.within, socketWithin))
	}
	_ = c.Memory.Read(d.in(clusterauth.MemoryFile), time.Now())
	return c.HTTP()
}

// peerAnswer is what the status server of another node answers.
type peerAnswer struct {
	node string
	answered
}

func (d *Device) askPeers(ctx context.Context, nodes []overview.ClusterNode) (peers []peerAnswer) {
	known, ips := map[netip.Addr][]types.Node{}, []netip.Addr{}
	for _, n := range nodes {
		ip, err := netip.ParseAddr(n.Address)
		if n.Own || err != nil || len(peers) == maxPeers {
			continue
		}
		row := types.Node{Name: n.Name, BootID: n.BootID, StampStale: n.AgentStale}
		if n.Agent != "" {
			row.Agent = &types.AgentStamp{TLS: n.StatusTLS}
		}
		bare := ip.Unmap().WithZone("")
		known[bare] = append(known[bare], row)
		peers, ips = append(peers, peerAnswer{node: n.Name}), append(ips, ip)
	}
	client := d.statusClient(ctx, func(ip netip.Addr) clusterauth.Peer { return clusterauth.PeerOf(known[ip]...) })
	var wait sync.WaitGroup
	for i, ip := range ips {
		wait.Go(func() { peers[i].answered = ask(ctx, client, statusURL(ip)+"/healthz", "", d.within) })
	}
	wait.Wait()
	return peers
}

type clock struct {
	of    string
	ahead time.Duration // of this device's
	here  bool          // it is this device's own
}

func clocksOf(peers []peerAnswer) (clocks []clock) {
	for _, p := range peers {
		if p.err == nil && !p.date.IsZero() { // it is no check of reachability
			clocks = append(clocks, clock{of: "node " + p.node, ahead: p.ahead()})
		}
	}
	return clocks
}

// ahead is how far the other clock is ahead: its date is in whole seconds, so
// that half a second is what it lacks on average.
func (a answered) ahead() time.Duration {
	return a.date.Add(time.Second / 2).Sub(a.sent.Round(0)).Round(time.Second)
}

type apiFacts struct {
	why     string // why it was not asked; "" where it was
	address string
	status  int
	err     error
	took    time.Duration
	server  *x509.Certificate // that it showed; nil for none
	dated   bool
	ahead   time.Duration // its clock
	here    bool          // it runs on this device
}

func askAPI(ctx context.Context, k kubeconfig) (f apiFacts) {
	if k.why != "" {
		return apiFacts{why: k.why}
	}
	u, err := url.Parse(k.Server)
	if err != nil || k.TLS == nil {
		return apiFacts{why: "the kubeconfig names no server"}
	}
	f.address = u.Host
	if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
		f.here = true
	}
	start := time.Now()
	a := front(k.get(ctx, "/version", &f))
	f.took, f.status, f.err = time.Since(start), a.status, a.err
	if f.err == nil && !a.date.IsZero() {
		f.dated, f.ahead = true, a.ahead()
	}
	return f
}

// get asks as the kubeconfig says and notes the certificate that the server shows,
// also one that is not trusted.
func (k kubeconfig) get(ctx context.Context, path string, f *apiFacts) (boundedhttp.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, k.Server+path, nil)
	if err != nil {
		return boundedhttp.Answer{}, err
	}
	if k.Token != "" {
		r.Header.Set("Authorization", "Bearer "+k.Token)
	}
	cfg := k.TLS.Clone()
	cfg.VerifyConnection = func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) > 0 {
			f.server = s.PeerCertificates[0]
		}
		return nil
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true}}
	answer, err := boundedhttp.Do(client, r, maxAnswer)
	if bad := (*tls.CertificateVerificationError)(nil); errors.As(err, &bad) && len(bad.UnverifiedCertificates) > 0 {
		f.server = bad.UnverifiedCertificates[0]
	}
	return answer, err
}

// Kubeconfig is what a kubeconfig leads to.
type Kubeconfig struct {
	Server      string              // a URL
	Authorities []*x509.Certificate // of the server; none for those of the system
	Client      *x509.Certificate   // nil for none
	Token       string              // "" for none
	TLS         *tls.Config         // trusts these, and shows Client; nil in a copy of a device
}

type kubeconfig struct {
	Kubeconfig
	path string
	why  string // why it cannot be used, a sentence; "" where it can
	gone bool   // it is not there
	mode fs.FileMode
}

func (d *Device) readKubeconfig() kubeconfig {
	k := kubeconfig{path: d.Kubeconfig}
	if info, err := os.Stat(k.path); err == nil {
		k.mode = info.Mode()
	}
	var err error
	switch k.Kubeconfig, err = d.ReadKubeconfig(k.path, !d.live()); {
	case errors.Is(err, fs.ErrNotExist):
		k.gone, k.why = true, "there is no kubeconfig "+k.path
	case err != nil:
		k.why = err.Error()
	}
	return k
}

// authority is the one that expires first; nil for none.
func (k kubeconfig) authority() (first *x509.Certificate) {
	for _, c := range k.Authorities {
		if first == nil || c.NotAfter.Before(first.NotAfter) {
			first = c
		}
	}
	return first
}
