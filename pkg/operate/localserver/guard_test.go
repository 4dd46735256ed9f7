package localserver

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/pkg/base/peer"
	"github.com/zedkube/zedkube/pkg/base/proof"
	"github.com/zedkube/zedkube/types"
)

func TestWhoIsAnsweredOverLoopback(t *testing.T) {
	ask := func(host string, headers ...string) string {
		return strings.Join(append([]string{"GET /metrics HTTP/1.1", "Host: " + host}, headers...), "\r\n") + "\r\n\r\n"
	}
	const own = "127.0.0.1:12347"
	synctest.Test(t, func(t *testing.T) {
		c := component(t)
		w, stop := onWire(t, c, onLoopback)
		defer stop()
		for name, test := range map[string]struct {
			request string
			want    int
		}{
			"curl":                          {ask(own), 200},
			"by name":                       {ask("localhost:12347"), 200},
			"by IPv6":                       {ask("[::1]:12347"), 200},
			"without a port":                {ask("localhost"), 200},
			"IPv6 without a port":           {ask("[::1]"), 200},
			"in capitals":                   {ask("LOCALHOST:12347"), 200},
			"through a tunnel":              {ask("localhost:8080", "Sec-Fetch-Site: none"), 200},
			"an address that was typed":     {ask(own, "Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate"), 200},
			"the page itself":               {ask(own, "Sec-Fetch-Site: same-origin", "Origin: http://"+own), 200},
			"a HEAD":                        {strings.Replace(ask(own), "GET", "HEAD", 1), 200},
			"a name that DNS turns to us":   {ask("evil.example:12347"), 403},
			"such a name as its own site":   {ask("evil.example:12347", "Origin: http://evil.example:12347", "Sec-Fetch-Site: same-origin"), 403},
			"a name like ours":              {ask("localhost.evil.example:12347"), 403},
			"a name that looks like ours":   {ask("127.0.0.1.nip.io:12347"), 403},
			"a user in the host":            {ask("localhost@evil.example"), 400},
			"no host":                       {"GET /metrics HTTP/1.0\r\n\r\n", 403},
			"any address":                   {ask("0.0.0.0:12347"), 403},
			"the cluster address":           {ask("10.244.244.1:12347"), 403},
			"a proxy's request":             {"GET http://evil.example/metrics HTTP/1.1\r\nHost: " + own + "\r\n\r\n", 403},
			"fetch of another site":         {ask(own, "Origin: http://evil.example", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors"), 403},
			"fetch by an older browser":     {ask(own, "Origin: http://evil.example"), 403},
			"fetch of a frame without name": {ask(own, "Origin: null"), 403},
			"fetch of a neighbour port":     {ask(own, "Origin: http://127.0.0.1:3000", "Sec-Fetch-Site: same-site"), 403},
			"fetch of our other name":       {ask(own, "Origin: http://localhost:12347"), 403},
			"two origins":                   {ask(own, "Origin: http://"+own, "Origin: http://evil.example"), 403},
			"an <img> of another site":      {ask(own, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"), 403},
			"an <img> of a neighbour port":  {ask(own, "Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"), 403},
			"a link on another site":        {ask(own, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"), 403},
			"a form's POST":                 {"POST /metrics HTTP/1.1\r\nHost: " + own + "\r\nOrigin: http://evil.example\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n\r\na=b", 405},
			"our own POST":                  {"POST /metrics HTTP/1.1\r\nHost: " + own + "\r\nContent-Length: 0\r\n\r\n", 405},
			"a DELETE":                      {"DELETE /metrics HTTP/1.1\r\nHost: " + own + "\r\n\r\n", 405},
			"OPTIONS of everything":         {"OPTIONS * HTTP/1.1\r\nHost: " + own + "\r\n\r\n", 405},
			"a preflight":                   {"OPTIONS /metrics HTTP/1.1\r\nHost: " + own + "\r\nOrigin: http://evil.example\r\nAccess-Control-Request-Method: GET\r\n\r\n", 405},
			"CONNECT":                       {"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n", 405},
			"a body":                        {"GET /metrics HTTP/1.1\r\nHost: " + own + "\r\nContent-Length: 3\r\n\r\nabc", 400},
			"a body without end":            {"GET /metrics HTTP/1.1\r\nHost: " + own + "\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
			"two hosts":                     {ask(own, "Host: evil.example"), 400},
			"a path with a zero":            {get("/api/%00"), 400},
			"a path with an escape":         {get("/api/%1b[2J"), 400},
			"a path of another system":      {get("/..%5cmetrics"), 400},
			"a long path":                   {get("/" + strings.Repeat("a", 3000)), 414},
			"a head without end":            {get("/", "X: "+strings.Repeat("a", 20000)), 431},
			"a profile":                     {get("/debug/pprof/profile"), 200}, // the page: there is no profile here
			"no HTTP":                       {"hello\r\n\r\n", 400},
		} {
			if got := code(w, test.request); got != test.want {
				t.Errorf("%s: %d instead of %d", name, got, test.want)
			}
		}
	})
}

func TestANeighbourIsNotAnsweredOverLoopback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, stop := onWire(t, component(t), onLoopback)
		defer stop()
		for address, want := range map[string]int{
			"127.0.0.1:4000": 200, "127.8.8.8:4000": 200, "[::1]:4000": 200, "[::ffff:127.0.0.1]:4000": 200,
			"10.99.0.2:4000": 403, "[fe80::1]:4000": 403, "[::ffff:10.99.0.2]:4000": 403, "0.0.0.0:4000": 403,
		} {
			conn := w.dialFrom(address)
			resp, err := send(conn, get("/metrics"))
			if err != nil || resp.code != want {
				t.Errorf("%s: %d, %v", address, resp.code, err)
			}
			conn.Close()
		}
	})
}

// over asks c over its socket.
func over(c *Component, who *peer.Peer, method, path, body string, headers ...string) (code int, answer, allow string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "zedkube"
	if body == "" {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	if who != nil {
		r = r.WithContext(peer.NewContext(r.Context(), *who))
	}
	w := httptest.NewRecorder()
	c.handler(onSocket, nil).ServeHTTP(w, r)
	return w.Code, w.Body.String(), w.Header().Get("Allow")
}

func TestOnlyRootIsAnsweredOnTheSocket(t *testing.T) {
	for name, test := range map[string]struct {
		who  *peer.Peer
		want int
	}{
		"root": {&peer.Peer{}, 200}, "the agent's user": {&peer.Peer{UID: peer.Self().UID}, 200},
		"somebody else": {&peer.Peer{UID: peer.Self().UID + 1}, 403}, "nobody knows who": {nil, 403},
	} {
		for _, path := range []string{"/metrics", "/api/logs", "/debug/pprof/heap", "/"} {
			if got, _, _ := over(component(t), test.who, http.MethodGet, path, ""); got != test.want {
				t.Errorf("%s, %s: %d", name, path, got)
			}
		}
	}
}

func TestABodyIsReadOnTheSocketOfAPUTAPOSTAndAPATCHAlone(t *testing.T) {
	c := component(t)
	c.Routes["/object"] = Route{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }),
		Methods: []string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodPatch, http.MethodDelete},
	}
	for method, want := range map[string]int{http.MethodGet: 400, http.MethodPut: 200, http.MethodPost: 200, http.MethodPatch: 200, http.MethodDelete: 400} {
		if got, answer, _ := over(c, &peer.Peer{}, method, "/object", "{}"); got != want || want == 200 && answer != "{}" {
			t.Errorf("%s: %d %q", method, got, answer)
		}
	}
	if got, _, _ := over(c, &peer.Peer{UID: peer.Self().UID + 1}, http.MethodPatch, "/object", "{}"); got != http.StatusForbidden {
		t.Errorf("of another user: %d", got)
	}
}

func TestASiteInABrowserBehindATunnelIsNotAnsweredOnTheSocket(t *testing.T) {
	for name, test := range map[string]struct {
		headers []string
		want    int
	}{
		"a command":                  {nil, 200},
		"curl":                       {[]string{"Host: localhost"}, 200},
		"the page":                   {[]string{"Host: 127.0.0.1:12347", "Origin: http://127.0.0.1:12347", "Sec-Fetch-Site: same-origin"}, 200},
		"a name of DNS":              {[]string{"Host: evil.example:12347"}, 403},
		"our name, from a browser":   {[]string{"Host: zedkube:12347"}, 403},
		"another site's fetch":       {[]string{"Host: localhost:12347", "Origin: http://evil.example"}, 403},
		"another site's image":       {[]string{"Host: localhost:12347", "Sec-Fetch-Site: cross-site"}, 403},
		"a frame without an address": {[]string{"Host: localhost:12347", "Origin: null"}, 403},
	} {
		for _, method := range []string{http.MethodGet, http.MethodPut} {
			path, body := "/api/logs", ""
			if method == http.MethodPut {
				path, body = "/requests/a", "{}"
			}
			if got, _, _ := over(component(t), &peer.Peer{}, method, path, body, test.headers...); got != test.want {
				t.Errorf("%s, %s: %d", name, method, got)
			}
		}
	}
}

func TestOnlyOverTheSocketAnythingIsChanged(t *testing.T) {
	root := &peer.Peer{}
	for _, test := range []struct {
		method, path, body string
		want               int
		allow              string
	}{
		{http.MethodPut, "/requests/a", "{}", 200, ""},
		{http.MethodDelete, "/requests/a", "", 200, ""},
		{http.MethodDelete, "/requests/a", "{}", 400, ""},
		{http.MethodGet, "/requests/a", "", 405, "PUT, DELETE"},
		{http.MethodHead, "/requests/a", "", 405, "PUT, DELETE"},
		{http.MethodPost, "/requests/a", "", 405, "PUT, DELETE"},
		{http.MethodPost, "/requests/a", "{}", 405, "PUT, DELETE"}, // a body is not what is wrong with it
		{http.MethodPost, "/made", "{}", 200, ""},
		{http.MethodGet, "/made", "", 405, "POST"},
		{http.MethodPut, "/metrics", "{}", 405, "GET, HEAD"},
		{http.MethodPut, "/", "", 405, "GET, HEAD"},
		{http.MethodGet, "/metrics", "{}", 400, ""},
		{http.MethodOptions, "/requests/a", "", 405, "PUT, DELETE"},
	} {
		got, answer, allow := over(component(t), root, test.method, test.path, test.body)
		if got != test.want || allow != test.allow {
			t.Errorf("%s %s %q: %d, allow %q: %s", test.method, test.path, test.body, got, allow, answer)
		}
		if says := strings.Contains(answer, "a GET must have no effect, and here a thing is made"); says != (test.method+test.path == "GET/made") {
			t.Errorf("%s %s: %q", test.method, test.path, answer)
		}
		if want := test.method + " " + test.body + " <nil>"; got == 200 && answer != want {
			t.Errorf("%s %s: %q", test.method, test.path, answer)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		c := component(t)
		w, stop := onWire(t, c, onLoopback)
		defer stop()
		for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodPost, http.MethodPatch} {
			if got := code(w, method+" /requests/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"); got != 405 {
				t.Errorf("%s over loopback: %d", method, got)
			}
		}
		if got := code(w, get("/requests/a")); got != 200 { // the page: there is no such path here
			t.Errorf("GET over loopback: %d", got)
		}
	})
}

func TestWhatIsAnsweredOverLoopback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, page := range []bool{false, true} {
			c := component(t)
			c.PageToo = page
			delete(c.Routes, "/")
			c.Routes["/page.js"] = Route{Handler: says("page"), Access: WithPage}
			bearer := "Authorization: Bearer " + c.token.value()
			w, stop := onWire(t, c, onLoopback)
			for _, test := range []struct {
				request          string
				numbers, withAll int
			}{
				{get("/metrics"), 200, 200},
				{get("/page.js"), 404, 200},
				{get("/api/logs"), 404, 401},
				{get("/api/logs", bearer), 404, 200},
				{get("/api/logs", "Authorization: Bearer no"), 404, 401},
				{get("/api/logs", "Authorization: Basic "+c.token.value()), 404, 401},
				{get("/api/logs?token="+c.token.value(), "Cookie: token="+c.token.value()), 404, 401},
				{get("/debug/pprof/heap", bearer), 404, 404},
				{get("/requests/a", bearer), 404, 404},
				{get("/no"), 404, 404},
			} {
				want := test.numbers
				if page {
					want = test.withAll
				}
				if got := code(w, test.request); got != want {
					t.Errorf("page %v, %q: %d instead of %d", page, test.request, got, want)
				}
			}
			stop()
		}
	})
}

func TestNoAnswerMayBeFramedSniffedOrKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, stop := onWire(t, component(t), onLoopback)
		defer stop()
		for _, request := range []string{get("/metrics"), get("/metrics", "Origin: null"), strings.Replace(get("/"), "GET", "POST", 1)} {
			conn := w.dial()
			resp, err := send(conn, request)
			if err != nil {
				t.Fatal(err)
			}
			for header, want := range map[string]string{
				"Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
				"X-Content-Type-Options":  "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
				"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store", "Access-Control-Allow-Origin": "",
			} {
				if got := resp.header.Get(header); got != want {
					t.Errorf("%d: %s is %q", resp.code, header, got)
				}
			}
			conn.Close()
		}
	})
}

func TestWhoIsAnsweredOverTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := component(t)
		status := member("10.244.244.1", "token", true)
		_ = c.Status.(interface {
			Publish(string, types.EdgeNodeClusterStatus) error
		}).Publish(types.Global, status)
		w, stop := onWire(t, c, onCluster)
		defer stop()
		key, _ := proof.Key(status)
		otherKey, _ := proof.Key(member("10.244.244.1", "another", true))
		const server = "127.0.0.1:12347" // as the wire has it
		proved := func(path string, key []byte, at time.Time) string {
			return get(path, proof.Header+": "+proof.Ask{Method: http.MethodGet, Host: server, Path: path}.Sign(key, at))
		}
		of := func(path, header string) string { return get(path, header) }
		good := proved("/metrics", key, time.Now())
		for _, test := range []struct {
			name, request string
			want          int
		}{
			{"nobody proves anything", get("/metrics"), 403},
			{"a member", good, 200},
			{"the same again", good, 403},
			{"another cluster", proved("/metrics", otherKey, time.Now()), 403},
			{"too late", proved("/metrics", key, time.Now().Add(-3*time.Minute)), 403},
			{"for another path", of("/api/audit", strings.Split(proved("/metrics", key, time.Now().Add(time.Second)), "\r\n")[2]), 403},
			{"for another query", of("/metrics?a=c", strings.Split(proved("/metrics?a=b", key, time.Now().Add(time.Second)), "\r\n")[2]), 403},
			{"with its query", proved("/metrics?a=b", key, time.Now().Add(2*time.Second)), 200},
			{"a browser that pretends to be here", get("/metrics", "Sec-Fetch-Site: same-origin"), 403},
		} {
			if got := code(w, test.request); got != test.want {
				t.Errorf("%s: %d instead of %d", test.name, got, test.want)
			}
		}
	})
}

func TestWithoutATokenNobodyIsAnsweredOverTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, stop := onWire(t, component(t), onCluster)
		defer stop()
		if got := code(w, get("/metrics", proof.Header+": v1 1 AAAA")); got != 403 {
			t.Errorf("got %d", got)
		}
	})
}

func TestOnlyNamesOfThisMachineAreLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.1.2.3:1": true, "[::1]:1": true, "::1": true, "[::ffff:127.0.0.1]:1": true, "localhost": true,
		"": false, ":12347": false, "[": false, "[]": false, "[::1%eth0]": false, "127.1": false, "0x7f000001": false, "2130706433": false,
		"localhost.": false, "localhost:1:2": false, "127.0.0.1 evil": false, "0.0.0.0": false, "[::]": false, "10.0.0.1": false,
	} {
		if got := isLoopback(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}
