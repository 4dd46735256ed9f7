package localserver

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		get("/metrics"), get("/api/events?x=%zz"), get("//evil.example/"), get("/../../etc/passwd"), get("/debug/pprof/", "Origin: http://evil.example"),
		"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", "GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", "GET / HTTP/1.0\r\n\r\n", get("/api/logs", "Authorization: Bearer "), get("/api/logs", "Authorization: Bearer x"), "PUT /requests/a/b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x16\x03\x01\x02",
	} {
		f.Add([]byte(seed))
	}
	c := &Component{
		Log:     quiet(),
		PageToo: true,
		Routes: map[string]Route{
			"/": {Handler: says("open"), Access: WithPage}, "/metrics": {Handler: says("open"), Access: Always},
			"/api/": {Handler: says("secret"), Access: WithToken}, "/debug/pprof/": {Handler: says("profile")},
			"/requests/": {Handler: says("profile"), Methods: []string{http.MethodPut}},
		},
	}
	w := newWire()
	s := c.serve(f.Context(), onLoopback, "wire", w, func() bool { return true })
	f.Cleanup(func() { s.stop(f.Context(), &c.ending); c.ending.Wait() })
	f.Fuzz(func(t *testing.T, request []byte) {
		if !bytes.Contains(request, []byte("\r\n\r\n")) && !bytes.Contains(request, []byte("\n\n")) {
			return // the rest of the head is waited for
		}
		conn := w.dial()
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
		go func() { _, _ = conn.Write(request) }()
		answer := make([]byte, 4096)
		n, _ := io.ReadAtLeast(conn, answer, 12)
		answer = answer[:n]
		if n == 0 {
			return // such as for a line that is waited for
		}
		if !bytes.HasPrefix(answer, []byte("HTTP/1.")) {
			t.Fatalf("%q", answer)
		}
		if bytes.Contains(answer, []byte("profile")) {
			t.Error("a profile, or a request, over loopback")
		}
		if bytes.Contains(answer, []byte("secret")) {
			t.Error("a secret without the token")
		}
		if !bytes.Contains(answer, []byte(" 200 OK\r\n")) {
			return
		}
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(request)))
		if err != nil {
			t.Fatalf("what is no request is answered: %v", err)
		}
		if !ours(r.Host) || r.Method != http.MethodGet && r.Method != http.MethodHead || strings.Contains(r.Header.Get("Origin"), "evil") {
			t.Errorf("%s for %q is answered", r.Method, r.Host)
		}
	})
}

// ours judges hosts another way than the guard does.
func ours(host string) bool {
	if strings.EqualFold(host, "localhost") || strings.HasPrefix(strings.ToLower(host), "localhost:") {
		return true
	}
	if at, err := netip.ParseAddrPort(host); err == nil {
		return at.Addr().IsLoopback()
	}
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}
