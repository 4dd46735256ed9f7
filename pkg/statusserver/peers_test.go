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
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

const (
	firstIP, secondIP = "127.12.34.1", "127.12.34.2"
	strangerIP        = "127.12.34.9"
)

// joined is a device on ip, with a cluster token and the nodes of the cluster.
func joined(t *testing.T, port int, ip, name, token string, nodes map[string]types.Node) *device {
	t.Helper()
	run := t.TempDir()
	put(t, filepath.Join(run, "zedagent/EdgeNodeInfo/global.json"), `{"DeviceName":"`+name+`"}`)
	put(t, filepath.Join(run, "k3s-install.log"), "started with "+token+"\n")
	d := bootOn(t, port, run)
	for key, n := range nodes {
		_ = d.nodes.Publish(key, n)
	}
	s := status(ip+"/24", true)
	s.EncryptedClusterToken = token
	_ = d.status.Publish(types.Global, s)
	d.listens(ip, true)
	return d
}

// pair are two nodes of ours; the others are Nodes of the tables only.
func pair(t *testing.T, others ...types.Node) (first, second *device) {
	nodes := map[string]types.Node{
		"n1": {Name: "n1", UUID: deviceID, InternalIP: firstIP, Agent: &types.AgentStamp{}, ControlPlane: true, Etcd: true},
		"n2": {Name: "n2", InternalIP: secondIP, Agent: &types.AgentStamp{}},
	}
	for _, n := range others {
		nodes[n.Name] = n
	}
	port := freePort(t)
	return joined(t, port, firstIP, "First", token, nodes), joined(t, port, secondIP, "Second", token, nodes)
}

// from sends a request from an address of its own.
func from(t *testing.T, ip, to, method, path string, header http.Header) (int, string) {
	t.Helper()
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}).DialContext,
	}}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+to+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header.Clone()
	answer, err := client.Do(r)
	if err != nil {
		t.Fatalf("%s %s from %s: %v", method, path, ip, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func TestReportsAreForThisNodeAndItsCluster(t *testing.T) {
	first, _ := pair(t, types.Node{Name: "eve", InternalIP: "127.12.34.3"})
	to := first.at(firstIP)
	host := netip.MustParseAddrPort(to).String()
	key, _ := proofKey(withToken(token))
	signed := func(path string) http.Header {
		return http.Header{proofHeader: {ask{http.MethodPost, host, path}.sign(key, time.Now())}}
	}
	once := signed("/app/")
	rows := []struct {
		name, ip, path string
		header         http.Header
		want           int
	}{
		{"the node itself", firstIP, "/app", nil, 200},
		{"a member with a proof", secondIP, "/app/", once, 200},
		{"the same proof again", secondIP, "/app/", once, 403},
		{"a member without a proof", secondIP, "/app/", nil, 403},
		{"a member with a proof of something else", secondIP, "/app/b3e2f", signed("/app/"), 403},
		{"EVE's node", "127.12.34.3", "/app/", nil, 200},
		{"a stranger", strangerIP, "/app/", nil, 403},
		{"a stranger with a member's proof", strangerIP, "/app/", signed("/app/"), 403},
		{"a stranger who wants it of all", strangerIP, "/cluster-app/", nil, 403},
		{"a member who wants it of all", secondIP, "/cluster-app/", signed("/cluster-app/"), 200},
		{"no application", strangerIP, "/app/panel", nil, 404},
		{"a stranger who joins", strangerIP, "/readyz", nil, 405},
	}
	for _, r := range rows {
		got, body := from(t, r.ip, to, http.MethodPost, r.path, r.header)
		if got != r.want || got >= 400 && strings.Count(body, "\n") != 1 {
			t.Errorf("%s: got %d %q, want %d", r.name, got, body, r.want)
		}
		if strings.Contains(body, token) {
			t.Errorf("%s: the token is in %q", r.name, body)
		}
	}
	without := status(firstIP+"/24", true)
	_ = first.status.Publish(types.Global, without)
	if got, body := from(t, secondIP, to, http.MethodPost, "/app/", signed("/app/")); got != 403 || !strings.Contains(body, "no cluster token") {
		t.Errorf("without a token a proof is answered with %d %q", got, body)
	}
}

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
		"127.12.34.11": "no valid JSON", "127.12.34.12": "HTTP 307", "127.12.34.13": "too long",
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
	_, err := newAsker(status(firstIP+"/24", true), port).ask(ctx, netip.MustParseAddr(secondIP), "")
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
	fmt.Fprint(conn, "GET /cluster-app HTTP/1.1\r\nHost: x\r\n\r\n")
	<-asked
	if got, body := from(t, firstIP, first.at(firstIP), http.MethodGet, "/cluster-app", nil); got != 429 {
		t.Errorf("a second round: %d %q", got, body)
	}
	if got, _ := from(t, strangerIP, first.at(firstIP), http.MethodGet, "/status", nil); got != 200 {
		t.Errorf("/status during a round: %d", got)
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
	key, _ := proofKey(s)
	var seen proofs
	player(t, "::1", port, func(w http.ResponseWriter, r *http.Request) {
		local, _ := ends(r)
		a := ask{r.Method, local.String(), r.URL.EscapedPath()}
		if err := seen.check(a, r.Header.Get(proofHeader), key, time.Now()); err != nil {
			t.Errorf("the proof to %s: %v", local, err)
		}
		_, _ = io.WriteString(w, `{"hostname":"six"}`)
	})
	got, err := newAsker(s, port).ask(t.Context(), netip.MustParseAddr("::1"), "b3e2f")
	if err != nil || got.Hostname != "six" {
		t.Errorf("got %+v, %v", got, err)
	}
}
