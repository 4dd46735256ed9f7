package statusserver

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pkg/base/reach"
	"github.com/zedkube/zedkube/types"
)

// heading is the head of an answer.
type heading struct {
	StatusCode int
	Header     http.Header
}

// asks sends a request to 127.12.34.1 from an address of this machine.
func (d *device) asks(from, method, path string, headers ...string) (heading, string) {
	d.Helper()
	transport := &http.Transport{DialContext: reach.Dialer(netip.MustParseAddr(from)).DialContext, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(d.Context(), method, "http://"+d.at("127.12.34.1")+path, nil)
	if err != nil {
		d.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	r.Host = r.Header.Get("Host")
	out, err := (&http.Client{Transport: transport, Timeout: 20 * time.Second}).Do(r)
	if err != nil {
		d.Error(err)
		return heading{}, ""
	}
	defer out.Body.Close()
	body, err := io.ReadAll(out.Body)
	if err != nil {
		d.Error(err)
	}
	return heading{out.StatusCode, out.Header}, string(body)
}

// listening are the cluster's ports of an address.
func listening(t *testing.T, at string) *reach.Listeners {
	ears := reach.Listen(t.Context(), netip.MustParseAddr(at), reach.Ports())
	t.Cleanup(ears.Close)
	return ears
}

func reachable(t *testing.T) *device {
	d := boot(t)
	d.ready("127.12.34.1/28")
	d.listens("127.12.34.1", true)
	return d
}

func TestOnlyWhoAsksIsTriedAndOnlyAtTheClustersPorts(t *testing.T) {
	d := reachable(t)
	evictable := listening(t, "127.12.34.6")
	ears := listening(t, "127.12.34.5")
	if len(ears.Failed)+len(evictable.Failed) > 0 {
		t.Fatalf("%v, %v", ears.Failed, evictable.Failed)
	}
	other, err := net.Listen("tcp", "127.12.34.5:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	came := make(chan struct{}, 1)
	go func() {
		if conn, err := other.Accept(); err == nil {
			conn.Close()
			came <- struct{}{}
		}
	}()
	_, port, _ := net.SplitHostPort(other.Addr().String())
	out, body := d.asks("127.12.34.5", "GET", "/reach?from=127.12.34.6&address=127.12.34.6&port="+port+"&ports="+port,
		"X-Forwarded-For", "127.12.34.6", "X-Real-Ip", "127.12.34.6", "Forwarded", "for=127.12.34.6", "Host", "127.12.34.6:12346")
	var got types.Reach
	if err := json.Unmarshal([]byte(body), &got); err != nil || out.StatusCode != http.StatusOK || out.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%d %s: %v", out.StatusCode, body, err)
	}
	want := types.Reach{Node: "n1", From: "127.12.34.5", At: got.At, Cluster: &types.ReachCluster{
		Nodes: 2, Members: 1, Ready: 1, Addresses: []string{}, Kubelets: []string{"v1.34.1+k3s1"},
	}}
	for _, p := range reach.Ports() {
		want.Ports = append(want.Ports, types.ReachPort{Port: p, Outcome: types.ReachOpen})
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error("want -, got +\n" + d)
	}
	if time.Since(got.At).Abs() > time.Minute {
		t.Errorf("its clock says %s", got.At)
	}
	sorted := slices.Sorted(slices.Values(reach.Ports()))
	for end := time.Now().Add(time.Minute); len(ears.Heard(netip.MustParseAddr("127.12.34.1"))) < 5 && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	if heard := ears.Heard(netip.MustParseAddr("127.12.34.1")); !slices.Equal(heard, sorted) {
		t.Errorf("it came to %v", heard)
	}
	if heard := evictable.Heard(netip.MustParseAddr("127.12.34.1")); len(heard) > 0 {
		t.Errorf("it went to ports %v of an address that did not ask", heard)
	}
	select {
	case <-came:
		t.Error("it went to a port that is none of the cluster's")
	default:
	}
}

func TestAPortThatNobodyServesIsRefused(t *testing.T) {
	d := reachable(t)
	_, body := d.asks("127.12.34.7", "GET", "/reach")
	if n := strings.Count(body, `"refused"`); n != 5 {
		t.Errorf("%d are refused in %s", n, body)
	}
}

func TestWhoMayNotAskIsNotTried(t *testing.T) {
	d := reachable(t)
	ears, outside := listening(t, "127.12.34.8"), listening(t, "127.99.34.8")
	for _, c := range []struct {
		from, method, path string
		want               int
	}{
		{"127.99.34.8", "GET", "/reach", 403}, // outside the cluster's network
		{"127.0.0.1", "GET", "/reach", 403},
		{"127.12.34.8", "HEAD", "/reach", 405},
		{"127.12.34.8", "POST", "/reach", 405},
		{"127.12.34.8", "DELETE", "/reach", 405},
		{"127.12.34.8", "GET", "/reach/", 404},
		{"127.12.34.8", "GET", "/reach/6443", 404},
		{"127.12.34.8", "GET", "/reach?device=plant-7", 400},
		{"127.12.34.8", "GET", "/reach?node=%zz", 400},
		{"127.12.34.8", "GET", "/reach?node=" + strings.Repeat("n", 254), 400},
	} {
		if out, body := d.asks(c.from, c.method, c.path); out.StatusCode != c.want {
			t.Errorf("%s %s from %s: %d %s", c.method, c.path, c.from, out.StatusCode, body)
		}
	}
	server := netip.MustParseAddr("127.12.34.1")
	if heard := append(ears.Heard(server), outside.Heard(server)...); len(heard) > 0 {
		t.Errorf("it came to %v", heard)
	}
}

func TestAFloodOfQuestionsIsTriedOnce(t *testing.T) {
	d := reachable(t)
	var mu sync.Mutex
	codes := map[int]int{}
	var flood sync.WaitGroup
	for range 20 { // of one address, each on a connection of its own
		flood.Go(func() {
			out, _ := d.asks("127.12.34.9", "GET", "/reach")
			mu.Lock()
			defer mu.Unlock()
			codes[out.StatusCode]++
			if out.StatusCode == http.StatusTooManyRequests && out.Header.Get("Retry-After") == "" {
				t.Error("nobody says when to come again")
			}
		})
	}
	flood.Wait()
	if codes[200] != 1 || codes[429] != 19 {
		t.Errorf("got %v", codes)
	}
	if out, _ := d.asks("127.12.34.10", "GET", "/reach"); out.StatusCode != http.StatusOK {
		t.Errorf("another address gets %d", out.StatusCode)
	}
	if out, _ := d.asks("127.12.34.9", "GET", "/status"); out.StatusCode != http.StatusOK {
		t.Errorf("its next /status gets %d", out.StatusCode)
	}
}

func TestTriesAreFewAndComeWithAPause(t *testing.T) {
	var b reaches
	at := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(n / 250), byte(n % 250)}) }
	for i := range maxReaches {
		if wait := b.enter(at(i), noon); wait != 0 {
			t.Errorf("%d has to wait %s", i, wait)
		}
	}
	if b.enter(at(9), noon) == 0 || b.enter(at(0), noon) == 0 {
		t.Error("more are let in, or one twice")
	}
	b.leave(at(0), noon)
	if b.enter(at(9), noon) != 0 {
		t.Error("the free place is not given")
	}
	b.leave(at(9), noon)
	if wait := b.enter(at(0), noon.Add(time.Second)); wait != reachPause-time.Second {
		t.Errorf("the next time is in %s", wait)
	}
	if b.enter(at(0), noon.Add(reachPause)) != 0 {
		t.Error("it may not come again after the pause")
	}
	b.leave(at(0), noon.Add(reachPause))
	for i := range maxReached {
		if b.enter(at(10+i), noon.Add(reachPause)) == 0 {
			b.leave(at(10+i), noon.Add(reachPause))
		}
	}
	if len(b.next) != maxReached {
		t.Errorf("%d are remembered", len(b.next))
	}
	if b.enter(netip.MustParseAddr("fd00::1"), noon.Add(reachPause)) == 0 || len(b.next) > maxReached {
		t.Errorf("%d are remembered", len(b.next))
	}
	if b.enter(netip.MustParseAddr("fd00::1"), noon.Add(2*reachPause)) != 0 || len(b.next) > maxReaches {
		t.Errorf("%d are remembered after the pause", len(b.next))
	}
}

func TestAMemberSaysWhetherANameIsFree(t *testing.T) {
	d := reachable(t)
	_ = d.edges.Publish("edge-1", types.Node{Name: "edge-1"})
	const mine = "c3e2f1a0-1111-4222-8333-444455556666" // of n2
	for i, c := range []struct {
		query string
		want  types.ReachName
	}{
		{"node=n3", types.ReachNameFree},
		{"node=n1&device=" + mine, types.ReachNameTaken},
		{"node=n2&device=" + mine, types.ReachNameOwn},
		{"node=n3&device=" + mine, types.ReachNameOther},
		{"node=n2", types.ReachNameTaken},
		{"node=edge-1", types.ReachNameTaken},
		{"device=" + mine, ""},
	} {
		var got types.Reach
		_, body := d.asks("127.12.34."+[]string{"2", "3", "4", "11", "12", "15", "13"}[i], "GET", "/reach?"+c.query)
		if err := json.Unmarshal([]byte(body), &got); err != nil || got.Cluster == nil || got.Cluster.Name != c.want {
			t.Errorf("%s: %v %s", c.query, err, body)
		}
	}
	_ = d.api.Publish(types.Global, types.APIStatus{})
	var got types.Reach
	_, body := d.asks("127.12.34.14", "GET", "/reach?node=n1")
	if err := json.Unmarshal([]byte(body), &got); err != nil || got.Cluster != nil || got.Node != "n1" {
		t.Errorf("without the API's word: %v %s", err, body)
	}
}
