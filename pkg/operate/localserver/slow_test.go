package localserver

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestWhoReadsNothingKeepsNobodyOut asks over real sockets, whose buffers hold a
// part of an answer: without rights someone opens connections over and over,
// asks many times on each and reads nothing.
func TestWhoReadsNothingKeepsNobodyOut(t *testing.T) {
	for _, path := range []string{"/metrics", "/"} {
		t.Run(path, func(t *testing.T) {
			c := component(t)
			content := says(strings.Repeat("a metric 1\n", 40000))
			c.Routes["/metrics"] = Route{Handler: content, Access: Always, Apart: true}
			c.Routes["/"] = Route{Handler: content, Access: WithPage}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			s := c.serve(t.Context(), onLoopback, l.Addr().String(), l, func() bool { return true })
			defer func() { s.stop(context.Background(), &c.ending); c.ending.Wait() }()
			ctx, cancel := context.WithCancel(t.Context())
			var crowd sync.WaitGroup
			full := make(chan struct{}) // closed when there have been enough to take all there is
			crowd.Go(func() { neverRead(ctx, l.Addr().String(), path, 3*maxConnections, full) })
			<-full
			failed := 0
			for range 20 {
				if err := scrape(t.Context(), "http://"+l.Addr().String()+path, len(content)); err != nil {
					t.Log(err)
					failed++
				}
			}
			if failed > 1 { // where the machine is busy, one may come to nothing
				t.Errorf("%d of 20 got no answer", failed)
			}
			cancel()
			crowd.Wait()
		})
	}
}

// neverRead opens connections until ctx is done.
func neverRead(ctx context.Context, address, path string, enough int, full chan struct{}) {
	var open []net.Conn
	defer func() {
		for _, conn := range open {
			conn.Close()
		}
	}()
	dialer := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		var err error
		return errors.Join(raw.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 2304) }), err)
	}}
	for tries := 0; ctx.Err() == nil; time.Sleep(25 * time.Millisecond) {
		if conn, err := dialer.DialContext(ctx, "tcp", address); err == nil {
			open = append(open, conn)
			_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
			_, _ = io.WriteString(conn, strings.Repeat("GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n", 90))
		}
		if tries++; tries == enough {
			close(full)
		}
	}
}

// scrape asks once, on a connection of its own.
func scrape(ctx context.Context, url string, want int) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || len(content) != want) {
		err = errors.New(resp.Status + ": " + string(content[:min(len(content), 80)]))
	}
	return err
}

func TestAnAnswerThatIsMadeHoldsNoPlace(t *testing.T) {
	for _, path := range []string{"/metrics", "/"} {
		synctest.Test(t, func(t *testing.T) {
			c := component(t)
			w, stop := onWire(t, c, onLoopback)
			defer stop()
			began := time.Now()
			for range maxRequests + maxConnections {
				conn := w.dial() // a pipe: nothing is taken before it is read
				defer conn.Close()
				_, _ = io.WriteString(conn, get(path))
				synctest.Wait()
			}
			if got := code(w, get(path)); got != 200 || time.Since(began) > 0 {
				t.Errorf("%s: %d after %v", path, got, time.Since(began))
			}
		})
	}
}

func TestTheConnectionThatWaitsLongestGoesForANewOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := component(t)
		made := make(chan struct{})
		c.Routes["/slow"] = shown(func(http.ResponseWriter, *http.Request) { <-made })
		w, stop := onWire(t, c, onLoopback)
		defer stop()
		defer close(made)
		open := func(request string) net.Conn {
			conn := w.dial()
			if request != "" {
				_, _ = io.WriteString(conn, request)
			}
			time.Sleep(time.Millisecond)
			return conn
		}
		closed := func(conn net.Conn) bool {
			_ = conn.SetReadDeadline(time.Now())
			_, err := conn.Read(make([]byte, 1))
			return errors.Is(err, io.EOF)
		}
		first := []net.Conn{open(get("/slow")), open(get("/metrics")), open(""), open(get("/slow"))}
		var others []net.Conn
		for range maxConnections - len(first) {
			others = append(others, open(get("/slow")))
		}
		for range 2 {
			others = append(others, open(get("/metrics")))
		}
		for i, conn := range first {
			waits := i == 1 || i == 2 // for someone to read, and for a request
			if closed(conn) != waits {
				t.Errorf("connection %d: closed is %v", i, !waits)
			}
		}
		for _, conn := range append(first, others...) {
			conn.Close()
		}
	})
}
