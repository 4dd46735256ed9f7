package statusserver

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/base/proof"
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
	key, _ := proof.Key(withToken(token))
	signed := func(path string) http.Header {
		return http.Header{proof.Header: {proof.Ask{Method: http.MethodPost, Host: host, Path: path}.Sign(key, time.Now())}}
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
