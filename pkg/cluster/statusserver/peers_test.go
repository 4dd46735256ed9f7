package statusserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pkg/base/proof"
	"github.com/zedkube/zedkube/types"
)

// valueOf is what /cluster-app gives, by hostname: "" for a report, else the error.
func valueOf(t *testing.T, body string) (names []string, faults map[string]string) {
	t.Helper()
	var got struct {
		Key   string
		Value []struct {
			Hostname, Errors string
			AppInfo          []json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil || got.Key != "cluster-app" {
		t.Fatalf("%v in %s", err, body)
	}
	faults = map[string]string{}
	for _, v := range got.Value {
		names = append(names, v.Hostname)
		if faults[v.Hostname] = v.Errors; v.Errors == "" && len(v.AppInfo) == 0 {
			t.Errorf("%s says nothing", v.Hostname)
		}
	}
	return names, faults
}

// player answers on ip as a peer would not.
func player(t *testing.T, ip string, port int, h http.HandlerFunc) {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(ip, fmt.Sprint(port)))
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-done })
}

func TestRoundOfQuestionsHearsAllPeersAndBelievesNone(t *testing.T) {
	bad := map[string]http.HandlerFunc{
		"127.12.34.11": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"hostname":"x"},{"evil":1`) },
		"127.12.34.12": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+strangerIP+"/", http.StatusTemporaryRedirect)
		},
		"127.12.34.13": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"hostname":"`+strings.Repeat("x", maxPeerAnswer)+`"}`)
		},
		"127.12.34.15": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) },
		"127.12.34.16": func(w http.ResponseWriter, r *http.Request) { // EVE's
			if r.Method != http.MethodPost || r.URL.Path != "/app/b3e2f" {
				t.Errorf("a peer is asked %s %s", r.Method, r.URL.Path)
			}
			_, _ = io.WriteString(w, `{"hostname":"eve","collectTime":"now","appInfo":[{"key":"k3s-install.log","value":{"Content":"`+token+`","Activated":"none"}}],"more":1}`)
		},
	}
	var others []types.Node
	for ip := range bad {
		others = append(others, types.Node{Name: ip, InternalIP: ip})
	}
	others = append(others, types.Node{Name: "off", InternalIP: "127.12.34.17"}, types.Node{Name: "new"})
	first, _ := pair(t, others...)
	for ip, h := range bad {
		player(t, ip, first.port, h)
	}
	code, body := from(t, firstIP, first.at(firstIP), http.MethodGet, "/cluster-app/B3E2F", nil)
	if code != 200 {
		t.Errorf("got %d", code)
	}
	if strings.Contains(body, token) {
		t.Error("a peer's answer brings the token along")
	}
	names, faults := valueOf(t, body)
	if want := []string{"First", "Second", "127.12.34.11", "127.12.34.12", "127.12.34.13", "127.12.34.15", "eve", "127.12.34.17"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	for name, want := range map[string]string{
		"First": "", "Second": "", "eve": "",
		"127.12.34.11": "not a valid report", "127.12.34.12": "HTTP 307", "127.12.34.13": "too long",
		"127.12.34.15": "HTTP 500", "127.12.34.17": "refused",
	} {
		if got := faults[name]; (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s says %q, want %q", name, got, want)
		}
	}
}

func TestPeerThatHangsIsGivenUp(t *testing.T) {
	port := freePort(t)
	player(t, secondIP, port, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"hostname":`)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := asking(t, port).newAsker(ctx, status(firstIP+"/24", true)).ask(ctx, netip.MustParseAddr(secondIP), "")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestRoundHasTheFormOfTheWire(t *testing.T) {
	first, _ := pair(t, types.Node{Name: "off", InternalIP: "127.12.34.17"})
	_, body := from(t, firstIP, first.at(firstIP), http.MethodPost, "/cluster-app", nil)
	lines := strings.Split(strings.ReplaceAll(body, fmt.Sprint(first.port), "12346"), "\n")
	for i, line := range lines {
		if strings.Contains(line, `"collectTime"`) {
			lines[i] = `      "collectTime": "2026-05-03T06:07:00Z",`
		}
	}
	golden(t, "cluster-app.json", strings.Join(lines, "\n"))
}

func TestOneRoundAtATimeForOneSource(t *testing.T) {
	first, _ := pair(t, types.Node{Name: "slow", InternalIP: "127.12.34.14"})
	asked, goOn := make(chan struct{}, 1), make(chan struct{})
	player(t, "127.12.34.14", first.port, func(http.ResponseWriter, *http.Request) { asked <- struct{}{}; <-goOn })
	conn := dialFrom(t, firstIP, first.at(firstIP))
	defer conn.Close()
	fmt.Fprint(conn, "GET /cluster-app HTTP/1.1\r\nHost: x\r\n"+auth+"\r\n")
	<-asked
	if got, body := from(t, firstIP, first.at(firstIP), http.MethodGet, "/cluster-app", nil); got != 429 {
		t.Errorf("a second round: %d %q", got, body)
	}
	if got, _ := from(t, strangerIP, first.at(firstIP), http.MethodGet, "/status", nil); got != 200 {
		t.Errorf("/status during a round: %d", got)
	}
	for range 3 * maxOfOneSource { // anyone who waits for an answer keeps his connection
		defer dialFrom(t, firstIP, first.at(firstIP)).Close()
	}
	close(goOn)
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, " 200 ") {
		t.Errorf("the first round: %q, %v", line, err)
	}
	if got, body := from(t, firstIP, first.at(firstIP), http.MethodGet, "/cluster-app", nil); got != 200 {
		t.Errorf("a round after it: %d %q", got, body)
	}
}

func TestPeersAreTheOtherNodesEachOnce(t *testing.T) {
	nodes := map[string]types.Node{
		"a": {InternalIP: "10.0.0.3"}, "b": {InternalIP: "fd00::2"}, "c": {InternalIP: "10.0.0.3"},
		"own": {InternalIP: "10.0.0.1"}, "none": {}, "name": {InternalIP: "host"}, "d": {InternalIP: "10.0.0.20"},
	}
	var got []string
	for _, ip := range peers(netip.MustParseAddr("10.0.0.1"), nodes) {
		got = append(got, ip.String())
	}
	if diff := cmp.Diff([]string{"10.0.0.3", "10.0.0.20", "fd00::2"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i := range 5 * maxPeers {
		nodes[fmt.Sprint(i)] = types.Node{InternalIP: fmt.Sprintf("10.1.0.%d", i)}
	}
	if got := len(peers(netip.Addr{}, nodes)); got != maxPeers {
		t.Errorf("%d peers are asked", got)
	}
}

func TestPeerIsAskedByIPv6(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	s := status("::1/128", true)
	s.EncryptedClusterToken = token
	key, _ := proof.Key(s)
	var seen proof.Memory
	seen.Begin(time.Now().Add(-time.Minute))
	player(t, "::1", port, func(w http.ResponseWriter, r *http.Request) {
		local, _ := ends(r)
		a := proof.Ask{Method: r.Method, Host: local.String(), Path: r.URL.EscapedPath()}
		if err := seen.Check(a, r.Header.Get(proof.Header), key, time.Now()); err != nil {
			t.Errorf("the proof to %s: %v", local, err)
		}
		_, _ = io.WriteString(w, `{"hostname":"six"}`)
	})
	got, err := asking(t, port).newAsker(t.Context(), s).ask(t.Context(), netip.MustParseAddr("::1"), "b3e2f")
	if err != nil || got.Hostname != "six" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestPeersAreAskedAtOnceButNotAllOfThem(t *testing.T) {
	var others []types.Node
	for i := range peersAtOnce + 4 {
		ip := fmt.Sprintf("127.12.34.%d", 100+i)
		others = append(others, types.Node{Name: ip, InternalIP: ip})
	}
	first, second := pair(t, others...)
	second.stop()
	var inside atomic.Int32
	full := make(chan struct{})
	goOn := sync.OnceFunc(func() { close(full) })
	for _, n := range others {
		player(t, n.InternalIP, first.port, func(w http.ResponseWriter, r *http.Request) {
			switch now := inside.Add(1); {
			case now == peersAtOnce:
				time.AfterFunc(50*time.Millisecond, goOn) // one more would have come by then
			case now > peersAtOnce:
				t.Errorf("%d peers are asked at a time", now)
			}
			select {
			case <-full:
			case <-r.Context().Done():
			}
			inside.Add(-1)
			_, _ = io.WriteString(w, `{"hostname":"`+n.Name+`","appInfo":[{}]}`)
		})
	}
	_, body := from(t, firstIP, first.at(firstIP), http.MethodGet, "/cluster-app", nil)
	names, faults := valueOf(t, body)
	if len(names) != 2+len(others) {
		t.Errorf("got %v", names)
	}
	for _, n := range others {
		if fault, ok := faults[n.Name]; !ok || fault != "" {
			t.Errorf("%s: %q", n.Name, fault)
		}
	}
}
