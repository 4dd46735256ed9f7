package joincmd

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/operate/joinplan"
)

// replies is a status server that answers text to all.
func replies(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
}

// explains is one of ours that is no server yet, with an explanation.
func explains(explanation http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") == "application/json" {
			explanation(w, r)
		}
	}
}

// trickle sends a byte now and then, for ever.
func trickle(w http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		_, _ = w.Write([]byte(" "))
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func code(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(n) }
}

// silent answers nothing, and hangs up when the client does: over TLS a client announces the end
// of its connection before it closes it, and would take an answer that comes in between.
func silent(_ http.ResponseWriter, r *http.Request) {
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// hangUp ends the connection without an answer.
func hangUp(w http.ResponseWriter, _ *http.Request) {
	if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
		_ = conn.Close()
	}
}

func portOf(s *httptest.Server) int { return s.Listener.Addr().(*net.TCPAddr).Port }

const (
	quick   = 500 * time.Millisecond // for those who let it pass
	patient = 20 * time.Second       // for all others, on a busy machine too
)

// noLeak watches from now on until the servers of the test are closed.
func noLeak(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

// served runs handlers as API and status server on loopback.
func served(t *testing.T, api, status http.HandlerFunc, patience time.Duration) asker {
	t.Helper()
	a, s := httptest.NewUnstartedServer(api), httptest.NewUnstartedServer(status)
	a.Config.ErrorLog, s.Config.ErrorLog = log.New(io.Discard, "", 0), log.New(io.Discard, "", 0)
	a.StartTLS()
	t.Cleanup(a.Close)
	s.Start()
	t.Cleanup(s.Close)
	q := newAsker(&net.Dialer{}, nil, portOf(a), portOf(s))
	q.patience = patience
	return q
}

// portless is an answer with names for ports.
func (q asker) portless(a joinplan.Answer) joinplan.Answer {
	a.Why = strings.NewReplacer(strconv.Itoa(q.apiPort), "A", strconv.Itoa(q.statusPort), "S").Replace(a.Why)
	return a
}

func TestTheApiMayAnswerWhateverItLikes(t *testing.T) {
	for name, api := range map[string]http.HandlerFunc{
		"401": code(401), "500": code(500), "a redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) },
		"an endless body": trickle,
	} {
		q := served(t, api, replies("cluster:"+ourCluster.String()), patient)
		if a := q.mayJoin(t.Context(), given("127.0.0.1", ourCluster)); !a.May {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

func TestWhatAStatusServerMeans(t *testing.T) {
	good := httptest.NewServer(replies("cluster:" + ourCluster.String()))
	defer good.Close()
	const notYetWhy = "127.0.0.1 is not yet a working server of its cluster"
	own := ourCluster.String()
	for name, row := range map[string]struct {
		status http.HandlerFunc
		reason string
		why    string
	}{
		"its cluster is ours":  {replies("cluster:" + own), "MayJoin", "127.0.0.1 is a working server of cluster " + own},
		"blanks do not matter": {replies("\n cluster:\t" + own + " \r\n"), "MayJoin", "127.0.0.1 is a working server of cluster " + own},
		"any 2xx will do": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusAccepted)
			replies("cluster:"+own)(w, r)
		}, "MayJoin", "127.0.0.1 is a working server of cluster " + own},
		"its cluster is another": {
			replies("cluster:" + theirCluster.String()), "OtherCluster",
			"127.0.0.1 is a server of cluster " + theirCluster.String() + ", and this device belongs to " + own + ": waiting does not help",
		},
		"an old EVE": {replies("cluster"), "OldServer", "127.0.0.1 runs an EVE from before October 2025, which does not report which cluster it is in"},
		"the UUID has to be spelled as the kube container spells it": {
			replies("cluster:" + strings.ToUpper(own)), "StatusGarbage", `127.0.0.1 answers "cluster:` + strings.ToUpper(own) + `", which is not a status`,
		},
		"an EVE that is no server yet": {replies(""), "NotYet", notYetWhy + "; EVE's own zedkube runs there, which does not say why"},
		"one of ours explains itself": {
			explains(replies(`{"state":"waiting","since":"2026-05-03T06:05:01.25Z","reason":"NoEtcd","why":"The Node has no etcd label yet.","node":"n","status":{}}`)),
			"NotYet", notYetWhy + "; it says: The Node has no etcd label yet (NoEtcd), waiting since 2026-05-03 06:05:01Z",
		},
		"it is asked with the cluster": {
			explains(func(w http.ResponseWriter, r *http.Request) { replies(`{"why":"`+r.URL.RawQuery+`"}`)(w, r) }),
			"NotYet", notYetWhy + "; it says: cluster=" + own,
		},
		"an explanation decides nothing": {
			explains(replies(`{"state":"ready","reason":"Ready","why":"All is well.","cluster":"` + own + `"}`)), "NotYet", notYetWhy,
		},
		"nor does one in the plain answer": {replies(`{"state":"ready","cluster":"` + own + `"}`), "StatusGarbage", `127.0.0.1 answers "{\"state\":\"ready\",\"cluster\":\"` + own[:32] + `...", which is not a status`},
		"an explanation of other types":    {explains(replies(`{"state":1,"since":{},"reason":[],"why":null}`)), "NotYet", notYetWhy},
		"a why without the rest":           {explains(replies(`{"why":"Because.","since":"yesterday"}`)), "NotYet", notYetWhy + "; it says: Because"},
		"an explanation that is a list":    {explains(replies(`["why"]`)), "NotYet", notYetWhy + "; EVE's own zedkube runs there, which does not say why"},
		"one of garbage":                   {explains(replies("\x00{{{")), "NotYet", notYetWhy + "; EVE's own zedkube runs there, which does not say why"},
		"one that is too long":             {explains(replies(`{"why":"` + strings.Repeat("x", 1<<20) + `"}`)), "NotYet", notYetWhy + "; EVE's own zedkube runs there, which does not say why"},
		"one that never ends":              {explains(trickle), "NotYet", notYetWhy},
		"one that is refused":              {explains(code(503)), "NotYet", notYetWhy},
		"a terminal is not obeyed":         {explains(replies(`{"why":"a\u001b[2Jb\nc"}`)), "NotYet", notYetWhy + "; it says: a?[2Jb c"},
		"garbage is shown, and no more than a bit of it": {
			replies("\x1b]0;" + strings.Repeat("é", 400)), "StatusGarbage", `127.0.0.1 answers "?]0;` + strings.Repeat("é", 28) + `...", which is not a status`,
		},
		"a body that is too long": {
			replies("cluster:" + own + strings.Repeat(" ", 2000)), "StatusGarbage", "127.0.0.1 answers with more than 1024 bytes, which is not a status",
		},
		"a body that never ends": {trickle, "StatusSilent", "the status server of 127.0.0.1, port S, does not answer within 500ms"},
		"a good beginning of a body that never ends": {
			func(w http.ResponseWriter, r *http.Request) { replies("cluster:"+own)(w, r); trickle(w, r) },
			"StatusSilent", "the status server of 127.0.0.1, port S, does not answer within 500ms",
		},
		"no answer": {silent, "StatusSilent", "the status server of 127.0.0.1, port S, does not answer within 500ms"},
		"a redirect is not followed, not to a good server either": {
			func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, good.URL, http.StatusFound) },
			"StatusRefuses", "the status server of 127.0.0.1, port S, answers 302 Found",
		},
		"an error with a good body": {
			func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusInternalServerError)
				replies("cluster:"+own)(w, r)
			},
			"StatusRefuses", "the status server of 127.0.0.1, port S, answers 500 Internal Server Error",
		},
		"a code that nobody knows": {code(599), "StatusRefuses", "the status server of 127.0.0.1, port S, answers 599"},
		"a connection that ends":   {hangUp, "StatusUnreachable", "the status server of 127.0.0.1, port S, does not answer: EOF"},
		"headers without end": {
			func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) },
			"StatusUnreachable", "the status server of 127.0.0.1, port S, does not answer: net/http: HTTP/1.x transport connection broken: net/http: server response headers exceeded 65536 bytes; aborted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			q := served(t, code(401), row.status, patient)
			if row.reason == "StatusSilent" || strings.Contains(name, "never ends") {
				q.patience = quick
			}
			got := q.portless(q.askStatus(t.Context(), given("127.0.0.1", ourCluster)))
			if want := (joinplan.Answer{May: row.reason == "MayJoin", Reason: row.reason, Why: row.why}); got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestWhatTheApiLacks(t *testing.T) {
	status := func(w http.ResponseWriter, _ *http.Request) { t.Error("the status server was asked before the API") }
	for name, row := range map[string]struct {
		api    http.HandlerFunc
		reason string
		why    string
	}{
		"silent":   {silent, "APISilent", "the API server of 127.0.0.1, port A, does not answer within 500ms"},
		"hangs up": {hangUp, "APIUnreachable", "the API server of 127.0.0.1, port A, does not answer: EOF"},
	} {
		q := served(t, row.api, status, quick)
		got := q.portless(q.mayJoin(t.Context(), given("127.0.0.1", ourCluster)))
		if want := (joinplan.Answer{Reason: row.reason, Why: row.why}); got != want {
			t.Errorf("%s: got  %+v\nwant %+v", name, got, want)
		}
	}
}

func TestAPortWhereNobodyListensIsRefused(t *testing.T) {
	free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	q := newAsker(&net.Dialer{}, nil, port, port)
	if a := q.mayJoin(t.Context(), given("127.0.0.1", ourCluster)); a.Reason != "APIRefused" {
		t.Errorf("%+v", a)
	}
	api := httptest.NewTLSServer(code(200))
	defer api.Close()
	q.apiPort = portOf(api)
	if a := q.mayJoin(t.Context(), given("127.0.0.1", ourCluster)); a.Reason != "StatusRefused" {
		t.Errorf("%+v", a)
	}
	plain := httptest.NewServer(code(200))
	defer plain.Close()
	q.apiPort = portOf(plain)
	if a := q.mayJoin(t.Context(), given("127.0.0.1", ourCluster)); a.Reason != "APIUnreachable" {
		t.Errorf("an API that does not speak TLS: %+v", a)
	}
}

func TestNoProxyIsAsked(t *testing.T) {
	// What the environment says is read once in a process, so a proxy in it would not be seen here.
	if joinClient(&net.Dialer{}).Transport.(*http.Transport).Proxy != nil {
		t.Error("a proxy may answer in the place of the server")
	}
}
