package statusserver

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestPromisedBodiesDoNotKeepAJoinerOut(t *testing.T) {
	for name, request := range map[string]string{
		"of a known length": "GET /status HTTP/1.1\r\nHost: x\r\n" + auth + "Content-Length: 100\r\n\r\n1",
		"in chunks":         "POST /status HTTP/1.1\r\nHost: x\r\n" + auth + "Transfer-Encoding: chunked\r\n\r\n1\r\n1\r\n",
		"after a nod":       "POST /app HTTP/1.1\r\nHost: x\r\n" + auth + "Expect: 100-continue\r\nContent-Length: 100\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			overBoth(t, func(t *testing.T, d *device) {
				d.ready("127.12.34.1/16")
				d.listens("127.12.34.1", true)
				open := func(i int) (net.Conn, error) {
					conn, err := connect(t, fmt.Sprintf("127.12.100.%d", 1+i%250), d.at("127.12.34.1"))
					if err == nil {
						_, _ = io.WriteString(conn, request) // the server may have closed it
					}
					return conn, err
				}
				joinsAmong(t, d.at("127.12.34.1"), 5, maxConnections/16, open)
			})
		})
	}
}

func TestStrangeRequestsGetOneAnswerEach(t *testing.T) {
	overBoth(t, func(t *testing.T, d *device) {
		d.ready("127.12.34.1/24")
		d.listens("127.12.34.1", true)
		const (
			host = " HTTP/1.1\r\nHost: x\r\n" + auth
			next = "GET /healthz HTTP/1.1\r\nHost: x\r\n" + auth + "Connection: close\r\n\r\n"
		)
		for _, r := range []struct{ name, request, want string }{ // want: the codes, in order
			{"pipelined", "GET /status" + host + "\r\nGET /readyz" + host + "\r\n" + next, "200 200 200"},
			{"HTTP/1.0", "GET /status HTTP/1.0\r\n" + auth + "\r\n", "200"},
			{"HTTP/1.0 that goes on", "GET /status HTTP/1.0\r\n" + auth + "Connection: keep-alive\r\n\r\n" + next, "200 200"},
			{"HTTP/0.9", "GET /status\r\n\r\n", "400"},
			{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400"},
			{"without a host", "GET /status HTTP/1.1\r\n\r\n", "400"},
			{"two hosts", "GET /status HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", "400"},
			{"a length and chunks", "POST /status" + host + "Content-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + next, "405 200"},
			{"two lengths", "POST /status" + host + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "400"},
			{"chunks that are none", "POST /status" + host + "Transfer-Encoding: chunked\r\n\r\nzz\r\n" + next, "400"},
			{"an encoding that nobody knows", "POST /status" + host + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "501"},
			{"a header with a blank before its colon", "GET /status" + host + "X-Zedkube-Auth : v1 1 A\r\n\r\n", "400"},
			{"a header over two lines", "GET /status" + host + "X: a\r\n b\r\nConnection: close\r\n\r\n", "200"},
			{"a short body", "GET /status" + host + "Content-Length: 5\r\n\r\nhello" + next, "200 200"},
			{"the longest body", "GET /status" + host + "Content-Length: 4096\r\n\r\n" + strings.Repeat("x", maxBody) + next, "200 200"},
			{"a longer one", "GET /status" + host + "Content-Length: 4097\r\n\r\n" + strings.Repeat("x", maxBody+1), "413"},
			{"an upgrade", "GET /status" + host + "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n\r\n" + next, "200 200"},
		} {
			t.Run(r.name, func(t *testing.T) {
				got, err := exchange(t, d.at("127.12.34.1"), []byte(r.request), 10*time.Second)
				if err != nil {
					t.Fatal(err)
				}
				want := r.want
				if d.tls && r.name == "HTTP/2" {
					want = "401" // it has no header of its own
				}
				if codes := codesOf(string(got)); codes != want {
					t.Errorf("got %s, want %s: %q", codes, want, got)
				}
			})
		}
	})
}

// codesOf are the codes of all answers in text.
func codesOf(text string) string {
	var codes []string
	for part := range strings.SplitSeq(text, "HTTP/1.") {
		if len(part) > 5 {
			codes = append(codes, part[2:5])
		}
	}
	return strings.Join(codes, " ")
}

func TestPathsAreTakenAsTheyStandOrCleaned(t *testing.T) {
	overBoth(t, func(t *testing.T, d *device) {
		d.ready("127.12.34.1/24")
		d.listens("127.12.34.1", true)
		for _, r := range []struct{ request, want, to string }{
			{"GET //status", "307", "/status"},
			{"GET /app/../status", "307", "/status"},
			{"GET /app/%2e%2e/status", "404", ""},
			{"GET /app//", "307", "/app/"},
			{"POST //app", "307", "/app"},
			{"GET //127.12.34.9/..//x", "307", "/x"},
			{"GET http://127.12.34.9/status", "200", ""},
			{"GET /%73tatus", "200", ""},
			{"GET /STATUS", "404", ""},
			{"GET /app/b3e2f%2fx", "404", ""},
			{"GET /app/%00", "404", ""},
			{"GET /app;x", "404", ""},
			{"OPTIONS *", "200", ""},
			{"CONNECT /app/../status", "405", ""},
			{"CONNECT x:12346", "404", ""},
		} {
			t.Run(r.request, func(t *testing.T) {
				conn := dialFrom(t, strangerIP, d.at("127.12.34.1"))
				defer conn.Close()
				fmt.Fprint(conn, r.request+" HTTP/1.1\r\nHost: x\r\n"+auth+"Connection: close\r\n\r\n")
				got, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer got.Body.Close()
				if got.Status[:3] != r.want || got.Header.Get("Location") != r.to {
					t.Errorf("got %s to %q, want %s to %q", got.Status, got.Header.Get("Location"), r.want, r.to)
				}
			})
		}
	})
}
