package joiner_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/test/joiner"
)

func TestJoinerWaitsWhereNobodyListens(t *testing.T) {
	n := boot(t, seed)
	waits := func(when string) {
		t.Helper()
		if got := n.joiner(plant).Ask(t.Context()); got.Verdict != joiner.Wait || got.Told != nil || !strings.Contains(got.Why, "status server") {
			t.Errorf("%s: got %+v", when, got)
		}
	}
	waits("before there is a cluster status")
	w := working(seed)
	w.status.ClusterIPIsReady = false
	n.turns(w)
	waits("before the address is up")
	n.turns(working(seed))
	if got := n.joiner(plant).Ask(t.Context()); got.Verdict != joiner.Join {
		t.Errorf("got %+v from a working server", got)
	}
	n.turns(w)
	waits("when the address is gone")
	n.turns(working(seed))
	w = working(seed)
	w.status = nil
	n.turns(w)
	waits("when the node has left")
}

func TestJoinerFindsAServerByIPv6(t *testing.T) {
	n := boot(t, "::1")
	n.turns(working("::1"))
	if got := n.joiner(plant).Ask(t.Context()); got.Verdict != joiner.Join {
		t.Errorf("got %+v", got)
	}
	if got := n.joiner(depot).Ask(t.Context()); got.Verdict != joiner.Elsewhere || got.Told == nil || got.Told.Reason != "OtherCluster" {
		t.Errorf("got %+v", got)
	}
}

func TestAPIServerHasToAnswerFirst(t *testing.T) {
	n := boot(t, seed)
	n.turns(working(seed))
	ask := func(apiPort int) joiner.Answer {
		j := n.joiner(plant)
		j.APIPort = uint16(apiPort)
		return j.Ask(t.Context())
	}
	for _, code := range []int{http.StatusOK, http.StatusFound, http.StatusForbidden, http.StatusInternalServerError} {
		port := apiServer(t, seed, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "https://127.12.56.9:1/")
			w.WriteHeader(code)
		})
		if got := ask(port); got.Verdict != joiner.Join {
			t.Errorf("an API server that answers %d: got %+v", code, got)
		}
	}
	if got := ask(freePort(t, seed)); got.Verdict != joiner.Wait || !strings.Contains(got.Why, "API server") {
		t.Errorf("no API server: got %+v", got)
	}
}

func TestJoinerGivesASilentAPIServerTwoSeconds(t *testing.T) {
	t.Parallel()
	dead := listen(t, "127.12.56.3") // takes connections and says nothing
	defer dead.Close()
	j := joiner.Joiner{Server: netip.MustParseAddr("127.12.56.3"), Cluster: plant, APIPort: netip.MustParseAddrPort(dead.Addr().String()).Port(), StatusPort: 1}
	start := time.Now()
	got := j.Ask(t.Context())
	if took := time.Since(start); got.Verdict != joiner.Wait || !strings.Contains(got.Why, "API server") || took < 1900*time.Millisecond || took > 4*time.Second {
		t.Errorf("got %+v after %s", got, took)
	}
}

func TestJoinerUnderstandsStatusServersOfEVE(t *testing.T) {
	api := apiServer(t, seed, func(http.ResponseWriter, *http.Request) {})
	for _, r := range []struct {
		name, body string
		code       int
		verdict    joiner.Verdict
	}{
		{"its own cluster", "cluster:" + plant.String(), http.StatusOK, joiner.Join},
		{"its own cluster and a newline", "cluster:" + plant.String() + "\n", http.StatusOK, joiner.Join},
		{"its own cluster, with another 2xx", "cluster:" + plant.String(), http.StatusAccepted, joiner.Join},
		{"another cluster", "cluster:" + depot.String(), http.StatusOK, joiner.Elsewhere},
		{"the bare word of old", "cluster", http.StatusOK, joiner.Wait},
		{"the prefix alone", "cluster:", http.StatusOK, joiner.Wait},
		{"no UUID", "cluster:" + uuid.Nil.String(), http.StatusOK, joiner.Wait},
		{"half a UUID", "cluster:" + plant.String()[:20], http.StatusOK, joiner.Wait},
		{"more than a UUID", "cluster:" + plant.String() + " and more", http.StatusOK, joiner.Wait},
		{"the UUID without the prefix", plant.String(), http.StatusOK, joiner.Wait},
		{"nothing", "", http.StatusOK, joiner.Wait},
		{"its own cluster in a redirect", "cluster:" + plant.String(), http.StatusTemporaryRedirect, joiner.Wait},
		{"its own cluster in an error", "cluster:" + plant.String(), http.StatusInternalServerError, joiner.Wait},
	} {
		t.Run(r.name, func(t *testing.T) {
			port := statusServer(t, seed, func(w http.ResponseWriter, req *http.Request) {
				w.Header().Set("Location", "/elsewhere")
				if req.Method != http.MethodGet || req.URL.Path != "/status" {
					t.Errorf("asked %s %s", req.Method, req.URL)
				}
				w.WriteHeader(r.code)
				_, _ = w.Write([]byte(r.body))
			})
			j := joiner.Joiner{Server: netip.MustParseAddr(seed), Cluster: plant, APIPort: uint16(api), StatusPort: uint16(port)}
			if got := j.Ask(t.Context()); got.Verdict != r.verdict || got.Why == "" || got.Told != nil {
				t.Errorf("got %+v, want %s", got, r.verdict)
			}
		})
	}
}

func TestJoinerWithoutAClusterJoinsNobody(t *testing.T) {
	n := boot(t, seed)
	n.turns(working(seed))
	if got := n.joiner(uuid.Nil).Ask(t.Context()); got.Verdict != joiner.Wait {
		t.Errorf("got %+v", got)
	}
}

func TestStatusServerAnswersAsTheDocumentSays(t *testing.T) {
	n := boot(t, seed)
	n.turns(working(seed))
	const asJSON = "application/json"
	plain := "cluster:" + plant.String()
	for _, r := range []struct {
		method, path, accept string
		code                 int
		body                 string // "*" for any, "{" for an object
	}{
		{"GET", "/status", "", 200, plain},
		{"GET", "/status", "*/*", 200, plain},
		{"GET", "/status", "application/*", 200, plain},
		{"GET", "/status", "text/plain", 200, plain},
		{"GET", "/status", asJSON + ";q=0", 200, plain},
		{"GET", "/status", asJSON + ";q=0.4, text/plain;q=0.5", 200, plain},
		{"GET", "/status", asJSON + ", text/plain", 200, "{"},
		{"GET", "/status", "text/html, " + asJSON + ";q=0.1", 200, "{"},
		{"GET", "/status?cluster=" + depot.String(), "", 200, plain},
		{"GET", "/status?cluster=plant-7", "", 200, plain},
		{"GET", "/status?cluster=plant-7", asJSON, 400, "*"},
		{"GET", "/status?cluster=%zz", asJSON, 400, "*"},
		{"GET", "/status?cluster=" + plant.String() + "&cluster=plant-7", asJSON, 200, "{"},
		{"GET", "/status?cluster=" + plant.String(), asJSON, 200, "{"},
		{"HEAD", "/status", "", 405, ""},
		{"HEAD", "/status", asJSON, 405, ""},
		{"POST", "/status", "", 405, "405 - Method Not Allowed"},
		{"OPTIONS", "/status", asJSON, 405, "405 - Method Not Allowed"},
		{"GET", "//status", "", 307, "*"},
		{"GET", "/app/../status", "", 307, "*"},
		{"GET", "/healthz", "", 200, "ok\n"},
		{"GET", "/readyz", "", 200, "ok\n"},
		{"HEAD", "/healthz", "", 200, ""},
		{"HEAD", "/readyz", "", 200, ""},
		{"GET", "/", "", 404, "*"},
		{"GET", "/status/", "", 404, "*"},
		{"GET", "/statusx", "", 404, "*"},
		{"GET", "/pub-status", "", 404, "*"},
		{"DELETE", "/metrics", "", 404, "*"},
		{"GET", "/app/plant-7", "", 404, "App not found\n"},
	} {
		t.Run(strings.TrimSpace(r.method+" "+r.path+" "+r.accept), func(t *testing.T) {
			got := fetch(t, r.method, "http://"+n.at()+r.path, r.accept)
			if got.code != r.code || !matches(r.body, got.body) {
				t.Errorf("got %d %q, want %d %q", got.code, got.body, r.code, r.body)
			}
			if path, _, _ := strings.Cut(r.path, "?"); path == "/status" && got.code == 200 && (got.head.Get("Vary") != "Accept" || (r.body == "{") != (got.head.Get("Content-Type") == asJSON)) {
				t.Errorf("got headers %v", got.head)
			}
		})
	}
}

func TestClusterAskedForMayBeWrittenInManyWays(t *testing.T) {
	n := boot(t, seed)
	n.turns(working(seed))
	dashless := strings.ReplaceAll(depot.String(), "-", "")
	for text, reason := range map[string]string{
		"": "Ready", uuid.Nil.String(): "Ready", strings.ToUpper(plant.String()): "Ready", "urn:uuid:" + plant.String(): "Ready",
		dashless: "OtherCluster", "{" + depot.String() + "}": "OtherCluster", "urn:uuid:" + depot.String(): "OtherCluster",
	} {
		got := fetch(t, http.MethodGet, "http://"+n.at()+"/status?cluster="+text, "application/json")
		if !strings.Contains(got.body, `"reason": "`+reason+`"`) {
			t.Errorf("%q: got %d %s, want %s", text, got.code, got.body, reason)
		}
	}
}

func matches(want, got string) bool {
	return want == "*" || want == "{" && strings.HasPrefix(got, "{") || want == got
}
