package health

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

const (
	// answerWithin is for one answer of this device or of a neighbour.
	answerWithin = patience / 2
	// maxAnswer bounds what is read of an answer, of which a line is needed.
	maxAnswer = 4 << 10
	maxSmall  = 64 << 10
	// maxPeers bounds how many nodes are asked for their clock.
	maxPeers = 8
)

// readSmall reads a small file; a pipe is not waited for.
func readSmall(path string) (string, error) {
	raw, err := safefile.Read(path, maxSmall)
	return strings.TrimSpace(string(raw)), err
}

// askSocket asks the agent for anything on its socket.
func askSocket(ctx context.Context, socket string) (status int, took time.Duration, err error) {
	start := time.Now()
	client := boundedhttp.NewSocketClient(socket)
	defer client.CloseIdleConnections()
	a := ask(ctx, client, "http://zedkube/api/nodes", "")
	return a.status, time.Since(start), a.err
}

// answered is the front of an answer.
type answered struct {
	status int
	body   string
	date   time.Time // zero where it tells none
	sent   time.Time // half-way between question and answer, by the clock of this device
	err    error
}

// ask sends one request and reads the front of the answer.
func ask(ctx context.Context, client *http.Client, url, accept string) answered {
	got, err := boundedhttp.Get(ctx, client, url, accept, maxAnswer, answerWithin)
	if got.Code == 0 {
		return answered{err: bare(err)}
	}
	a := answered{status: got.Code, body: string(got.Body), sent: got.Sent.Add(got.Took / 2), err: err}
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

// addressesOf are the addresses of an interface of this machine.
func addressesOf(name string) ([]netip.Addr, error) {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	addrs, err := link.Addrs()
	var found []netip.Addr
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			found = append(found, p.Addr().Unmap())
		}
	}
	return found, err
}

// isHere reports that an address, a CIDR, is on any interface of this machine:
// else another would answer for it. Not to know is to ask.
func isHere(cluster string) bool {
	prefix, err := netip.ParsePrefix(cluster)
	if err != nil {
		return true
	}
	addrs, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(addrs, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr().Unmap() == prefix.Addr().Unmap()
	})
}

// statusAnswers is what port 12346 says of itself, and to joining nodes.
type statusAnswers struct {
	looked  bool
	health  answered
	plain   answered
	because answered // in JSON
}

// askStatus asks the status server at the cluster address, a CIDR.
func askStatus(ctx context.Context, cluster string) (a statusAnswers) {
	prefix, err := netip.ParsePrefix(cluster)
	if err != nil {
		return statusAnswers{looked: true, health: answered{err: err}}
	}
	at := "http://" + net.JoinHostPort(prefix.Addr().Unmap().String(), strconv.Itoa(types.PortStatus))
	client := boundedhttp.NewClient(nil, nil, 0)
	var wait sync.WaitGroup
	wait.Go(func() { a.health = ask(ctx, client, at+"/healthz", "") })
	wait.Go(func() { a.plain = ask(ctx, client, at+"/status", "") })
	wait.Go(func() { a.because = ask(ctx, client, at+"/status", "application/json") })
	wait.Wait()
	a.looked = true
	return a
}

// clock is how far another clock is ahead of this device's.
type clock struct {
	of    string
	ahead time.Duration
	here  bool // it is this device's own
}

// peerClocks asks the status servers of other nodes for the time.
func peerClocks(ctx context.Context, nodes []overview.ClusterNode) []clock {
	var mu sync.Mutex
	var wait sync.WaitGroup
	var clocks []clock
	asked := 0
	client := boundedhttp.NewClient(nil, nil, 0)
	for _, n := range nodes {
		addr, err := netip.ParseAddr(n.Address)
		if n.Own || err != nil || asked == maxPeers {
			continue
		}
		asked++
		wait.Go(func() {
			a := ask(ctx, client, "http://"+net.JoinHostPort(addr.String(), strconv.Itoa(types.PortStatus))+"/healthz", "")
			if a.err != nil || a.date.IsZero() {
				return // it is no check of reachability
			}
			mu.Lock()
			defer mu.Unlock()
			clocks = append(clocks, clock{of: "node " + n.Name, ahead: a.ahead()})
		})
	}
	wait.Wait()
	return clocks
}

// ahead is how far the other clock is ahead: its date is in whole seconds, so
// that half a second is what it lacks on average.
func (a answered) ahead() time.Duration {
	return a.date.Add(time.Second / 2).Sub(a.sent.Round(0)).Round(time.Second)
}
