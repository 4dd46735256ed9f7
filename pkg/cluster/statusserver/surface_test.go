package statusserver

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestStatusExplainsItselfInJSON(t *testing.T) {
	f := working(own(func(n *types.Node) { n.ReadySince = noon.Add(-20 * time.Second) }))
	f.marks = decide(f).marks
	for name, change := range map[string]func(*facts){
		"ready.json":   func(*facts) {},
		"waiting.json": own(func(n *types.Node) { n.Etcd = false }),
		"silent.json": func(f *facts) {
			f.nodes, f.info = nil, types.EdgeNodeInfo{DeviceName: "N1"}
			f.api = types.APIStatus{SilentSince: noon.Add(-time.Minute), Reason: "Get \"https://127.0.0.1:6443\": refused"}
		},
	} {
		g := f
		g.now = noon.Add(1500 * time.Millisecond)
		g.nodes = map[string]types.Node{"n1": f.nodes["n1"]}
		change(&g)
		var out strings.Builder
		if err := writeJSON(&out, describe(g, other)); err != nil {
			t.Fatal(err)
		}
		asked := out.String()
		out.Reset()
		if err := writeJSON(&out, describe(g, f.status.ClusterID.UUID)); err != nil {
			t.Fatal(err)
		}
		golden(t, "status-"+name, out.String()+asked)
	}
}

func TestSurfaceOfAServerThatWorksAndOfOneThatWaits(t *testing.T) {
	overBoth(t, func(t *testing.T, d *device) {
		d.ready("127.12.34.1/24")
		d.listens("127.12.34.1", true)
		rows := []struct {
			method, path, accept  string
			whenReady, whenSilent string // code, then part of the body
		}{
			{"GET", "/status", "", "200 cluster:" + clusterID, "200 "},
			{"GET", "/status", "*/*", "200 cluster:" + clusterID, "200 "},
			{"GET", "/status?cluster=" + other.String(), "", "200 cluster:" + clusterID, "200 "},
			{"GET", "/status?cluster=what", "", "200 cluster:" + clusterID, "200 "},
			{"GET", "/status", "application/json", `200 "cluster": "` + clusterID, `200 "reason": "APISilent"`},
			{"GET", "/status?cluster=" + clusterID, "application/json", `200 "reason": "Ready"`, `200 "reason": "APISilent"`},
			{"GET", "/status?cluster=" + other.String(), "application/json", `200 "reason": "OtherCluster"`, `200 "reason": "OtherCluster"`},
			{"GET", "/status?cluster=what", "application/json", "400 cluster", "400 cluster"},
			{"HEAD", "/status", "application/json", "405 ", "405 "},
			{"GET", "/healthz", "", "200 ok\n", "200 ok\n"},
			{"HEAD", "/healthz", "", "200 ", "200 "},
			{"POST", "/healthz", "", "405 ", "405 "},
			{"GET", "/readyz", "", "200 ok\n", "503 APISilent: The API server has not answered since "},
			{"HEAD", "/readyz", "", "200 ", "503 "},
			{"DELETE", "/readyz", "", "405 ", "405 "},
		}
		check := func(want func(i int) string) {
			t.Helper()
			for i, r := range rows {
				code, text, _ := strings.Cut(want(i), " ")
				got, vary, body := fetch(t, r.method, "http://"+d.at("127.12.34.1")+r.path, r.accept)
				if got != code || !strings.Contains(body, text) || text == "" && body != "" && code == "200" {
					t.Errorf("%s %s as %q: got %s %q, want %q", r.method, r.path, r.accept, got, body, want(i))
				}
				if r.path == "/status" && r.method == "GET" && vary != "Accept" {
					t.Errorf("%s as %q has no Vary", r.path, r.accept)
				}
			}
		}
		check(func(i int) string { return rows[i].whenReady })
		_ = d.api.Publish(types.Global, types.APIStatus{SilentSince: time.Now()})
		check(func(i int) string { return rows[i].whenSilent })
	})
}

func fetch(t *testing.T, method, url, accept string) (code, vary, body string) {
	t.Helper()
	client := &http.Client{Timeout: 10 * time.Second, Transport: dialing(t, "")}
	r, err := http.NewRequestWithContext(t.Context(), method, strings.Replace(url, byTLS, "", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(url, byTLS) {
		r.URL.Scheme = "https"
		r.Header.Set("Authorization", strings.TrimSpace(strings.TrimPrefix(auth, "Authorization: ")))
	}
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status[:3], answer.Header.Get("Vary"), string(text)
}

func TestServesOnAnIPv6Address(t *testing.T) {
	d := bootOn(t, portOn(t, "::1"), t.TempDir())
	d.ready("::1/128")
	d.listens("::1", true)
	if code, _, body := fetch(t, "GET", "http://"+d.at("::1")+"/status", ""); code != "200" || body != "cluster:"+clusterID {
		t.Errorf("got %s %q", code, body)
	}
	if code, _, body := fetch(t, "GET", "http://"+d.at("::1")+"/app", ""); code != "200" {
		t.Errorf("this node itself is answered %s %q", code, body)
	}
}

func TestChangeIsDatedWhenItHappens(t *testing.T) {
	d := boot(t)
	d.ready("127.12.34.1/24")
	d.listens("127.12.34.1", true)
	since := func() string {
		_, _, body := fetch(t, "GET", "http://"+d.at("127.12.34.1")+"/status", "application/json")
		_, rest, _ := strings.Cut(body, `"since": "`)
		text, _, _ := strings.Cut(rest, `"`)
		return text
	}
	for name, change := range map[string]func(){
		"the API":    func() { _ = d.api.Publish(types.Global, types.APIStatus{SilentSince: time.Now()}) },
		"the Nodes":  func() { _ = d.nodes.Unpublish("n1") },
		"the device": func() { _ = d.info.Unpublish(types.Global) },
	} {
		f := working()
		_ = d.nodes.Publish("n1", f.nodes["n1"])
		_ = d.info.Publish(types.Global, f.info)
		_ = d.api.Publish(types.Global, f.api)
		time.Sleep(50 * time.Millisecond)
		change()
		end := time.Now().Add(period / 2) // without a bell it takes a period
		for first := since(); first != since() && time.Now().Before(end); first = since() {
		}
		if first := since(); first != since() {
			t.Errorf("a change of %s is not noted at once", name)
		}
	}
}
