package joincmd

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/base/reach"
	"github.com/zedkube/zedkube/pkg/operate/joinplan"
	"github.com/zedkube/zedkube/test/cmdtest/loopback"
	"github.com/zedkube/zedkube/types"
)

// member serves h as the status server of an address of this machine.
func member(t *testing.T, h http.HandlerFunc) netip.Addr {
	t.Helper()
	l := loopback.Listen(t, types.PortStatus)
	server := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return l.Addr().(*net.TCPAddr).AddrPort().Addr()
}

// asking is an inquirer at an address of this machine.
func asking(t *testing.T, from string) inquirer {
	own := joinplan.Own{Address: netip.MustParseAddr(from), Cluster: ourCluster, Node: "n 7"}
	own.Kernel = []joinplan.Interface{{Name: "lo", Prefix: netip.PrefixFrom(own.Address, 32)}}
	ears := reach.Listen(t.Context(), own.Address, nil)
	t.Cleanup(ears.Close)
	q := newInquirer(own, nil, 6443, ears)
	q.patience, q.trying = patient, patient
	t.Cleanup(q.client.CloseIdleConnections)
	return q
}

const goodReach = `{"node":"n1","zedkube":"1","at":"2026-05-03T12:00:00Z","from":"127.47.8.100","ports":[{"port":6443,"outcome":"open"}],
 "cluster":{"nodes":3,"etcdMembers":3,"etcdReady":3,"etcdLearners":0,"etcdAddresses":[],"kubelets":["v1.34.1"],"name":"free"}}`

func TestAMemberIsAskedFromTheOwnAddress(t *testing.T) {
	var asked atomic.Pointer[http.Request]
	ip := member(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/reach":
			asked.Store(r)
			_, _ = io.WriteString(w, goodReach)
		case r.Header.Get("Accept") == "application/json":
			_, _ = io.WriteString(w, `{"state":"ready","node":"n1","status":{"kubernetesVersion":"v1.34.1+k3s1"}}`)
		default:
			_, _ = io.WriteString(w, "cluster:"+ourCluster.String())
		}
	})
	p := asking(t, "127.47.8.100").ask(t.Context(), ip)
	if r := asked.Load(); r == nil || !strings.HasPrefix(r.RemoteAddr, "127.47.8.100:") || r.URL.RawQuery != "node=n+7" {
		t.Errorf("asked: %+v", r)
	}
	if !p.Status.May || p.Node != "n1" || p.Kubernetes != "v1.34.1+k3s1" || p.Reach == nil || p.Reach.Cluster.Members != 3 || len(p.Clocks) != 1 {
		t.Errorf("got %+v", p)
	}
	if c := p.Clocks[0]; c.Ahead.Abs() > c.Within+time.Second {
		t.Errorf("its clock is %+v", c)
	}
	for _, try := range p.Tries {
		if want := map[bool]types.ReachOutcome{true: types.ReachOpen, false: types.ReachRefused}[try.Port == 12346]; try.Outcome != want {
			t.Errorf("port %d is %s", try.Port, try.Outcome)
		}
	}
}

func TestABusyMemberIsAskedOnceMore(t *testing.T) {
	var asked atomic.Int32
	ip := member(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/reach" {
			return
		}
		if asked.Add(1) == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		_, _ = io.WriteString(w, goodReach)
	})
	if p := asking(t, "127.47.8.100").ask(t.Context(), ip); p.Reach == nil || asked.Load() != 2 {
		t.Errorf("asked %d times: %q", asked.Load(), p.NoReach)
	}
}

func TestADateThatIsNoneOrALieIsNoClock(t *testing.T) {
	var date atomic.Value
	date.Store("")
	ip := member(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Date"] = nil
		if text, _ := date.Load().(string); text != "" {
			w.Header().Set("Date", text)
		}
	})
	for _, text := range []string{"", "yesterday", "Mon, 99 Jan 2026 00:00:00 GMT", strings.Repeat("9", 4000)} {
		date.Store(text)
		if p := asking(t, "127.47.8.100").ask(t.Context(), ip); len(p.Clocks) != 0 {
			t.Errorf("%.40q: %+v", text, p.Clocks)
		}
	}
	for _, text := range []string{"Sun, 01 Jan 0001 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT"} {
		date.Store(text)
		q := asking(t, "127.47.8.100")
		p := q.ask(t.Context(), ip)
		plan := joinplan.Join(joinplan.Facts{Role: joinplan.Candidate, Own: q.own, Peers: []joinplan.Peer{p}})
		if !strings.Contains(fmt.Sprint(plan.Findings), "over 10 years") {
			t.Errorf("%s: %+v", text, plan.Findings)
		}
	}
}

func TestALongListOfAMemberIsCut(t *testing.T) {
	var ports, addresses []string
	for i := range 1000 {
		ports = append(ports, fmt.Sprintf(`{"port":%d,"outcome":"open"}`, i))
		addresses = append(addresses, fmt.Sprintf(`"127.47.9.%d"`, i%250))
	}
	r, why := readReach(boundedhttp.Answer{Code: 200, Body: []byte(`{"ports":[` + strings.Join(ports, ",") + `],"cluster":{"etcdAddresses":[` + strings.Join(addresses, ",") + `]}}`)})
	if r == nil || len(r.Ports) != mostOfList || len(r.Cluster.Addresses) != mostOfList {
		t.Fatalf("got %+v, %q", r, why)
	}
}

func TestOnlyAddressesOfTheOwnNetworkAreAskedOnAMembersWord(t *testing.T) {
	l := &joinLook{}
	l.facts.Role = joinplan.Candidate
	l.facts.Own = joinplan.Own{Address: netip.MustParseAddr("10.90.7.21"), Network: netip.MustParsePrefix("10.90.7.21/24")}
	l.facts.Peers = []joinplan.Peer{{Reach: &types.Reach{Cluster: &types.ReachCluster{Addresses: []string{
		"10.90.7.20", "10.90.7.21", "10.90.7.22", "10.90.7.22", "::ffff:10.90.7.23", "8.8.8.8", "127.0.0.1", "node-2", "", "10.90.8.1",
		"10.90.7.31", "10.90.7.32", "10.90.7.33", "10.90.7.34", "10.90.7.35", "10.90.7.36",
	}}}}}
	var got []string
	for _, ip := range l.others(netip.MustParseAddr("10.90.7.20")) {
		got = append(got, ip.String())
	}
	want := []string{"10.90.7.22", "10.90.7.23", "10.90.7.31", "10.90.7.32", "10.90.7.33", "10.90.7.34"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error("want -, got +\n" + d)
	}
	l.facts.Own.Worker = true
	if len(l.others(netip.MustParseAddr("10.90.7.20"))) > 0 {
		t.Error("a worker asks members of etcd")
	}
}
