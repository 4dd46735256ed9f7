package localserver

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/pkg/proof"
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

func TestProfilesAreOnTheSocketAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for at, want := range map[place]string{onSocket: "profile", onLoopback: "page"} {
			w, stop := onWire(t, component(t), at)
			conn := w.dial()
			resp, err := send(conn, get("/debug/pprof/heap"))
			if err != nil {
				t.Fatal(err)
			}
			if body, _ := io.ReadAll(io.LimitReader(resp.body, int64(len(want)))); string(body) != want {
				t.Errorf("%s: %q", at, body)
			}
			conn.Close()
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
