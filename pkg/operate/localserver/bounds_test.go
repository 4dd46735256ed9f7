package localserver

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
)

func TestConnectionsThatSayNothingKeepNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, stop := onWire(t, component(t), onLoopback)
		defer stop()
		var slow []net.Conn
		for range 3 * maxConnections {
			conn := w.dial()
			if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: "); err == nil { // and then nothing
				slow = append(slow, conn)
			}
		}
		_ = slow[0].SetReadDeadline(time.Now().Add(time.Millisecond))
		if _, err := slow[0].Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("of %d connections none was closed: %v", len(slow), err)
		}
		began := time.Now()
		if got := code(w, get("/metrics")); got != 200 || time.Since(began) > 0 {
			t.Errorf("%d after %v among %d slow ones", got, time.Since(began), len(slow))
		}
		time.Sleep(boundedhttp.HeadTimeout + time.Second)
		for _, conn := range slow {
			if _, err := io.ReadAll(conn); err != nil {
				t.Errorf("one that says nothing is still held: %v", err)
			}
			conn.Close()
		}
	})
}

func TestAHeadThatComesByteByByteIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, stop := onWire(t, component(t), onLoopback)
		defer stop()
		conn := w.dial()
		defer conn.Close()
		go func() { _, _ = io.Copy(io.Discard, conn) }() // as a kernel would
		began := time.Now()
		for _, b := range []byte("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n" + strings.Repeat("X: y\r\n", 100)) {
			if _, err := conn.Write([]byte{b}); err != nil {
				break
			}
			time.Sleep(500 * time.Millisecond)
		}
		if took := time.Since(began); took > boundedhttp.HeadTimeout+time.Second {
			t.Errorf("it was listened to for %v", took)
		}
	})
}

func TestAnAnswerThatNobodyTakesIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := component(t)
		c.Routes["/long"] = shown(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1<<20)) })
		w, stop := onWire(t, c, onLoopback)
		defer stop()
		conn := w.dial()
		defer conn.Close()
		_, _ = io.WriteString(conn, get("/long"))
		part := make([]byte, 1000)
		for range 20 { // slowly, and so without success
			time.Sleep(answerTimeout / 10)
			_, _ = conn.Read(part)
		}
		if rest, err := io.ReadAll(conn); len(rest) > 0 || err != nil {
			t.Errorf("%d bytes more, %v", len(rest), err)
		}
	})
}

func TestAStreamLastsAndEightAreEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, stop := onWire(t, component(t), onLoopback)
		var open []net.Conn
		var first reply
		for i := range maxStreams {
			conn := w.dial()
			resp, err := send(conn, get("/api/events"))
			if err != nil || resp.code != http.StatusOK {
				t.Fatalf("stream %d: %v, %v", i, resp, err)
			}
			if open = append(open, conn); i > 0 {
				go func() { _, _ = io.Copy(io.Discard, resp.body) }()
			} else {
				first = resp
			}
		}
		if got := code(w, get("/api/events")); got != 503 {
			t.Errorf("one stream too many: %d", got)
		}
		if got := code(w, get("/metrics")); got != 200 {
			t.Errorf("beside the streams: %d", got)
		}
		began := time.Now()
		if _, err := io.ReadFull(first.body, make([]byte, 5*120)); err != nil { // far beyond every bound there is
			t.Errorf("a stream broke off: %v", err)
		}
		if took := time.Since(began); took < 110*time.Second {
			t.Errorf("two minutes of the stream took %v", took)
		}
		open[0].Close()
		time.Sleep(2 * time.Second)
		if got := code(w, get("/api/events")); got != 200 {
			t.Errorf("after one has gone: %d", got)
		}
		began = time.Now()
		stop()
		if took := time.Since(began); took > time.Second {
			t.Errorf("streams held up the end for %v", took)
		}
		for _, conn := range open {
			conn.Close()
		}
	})
}

func TestAStreamThatNobodyReadsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := component(t)
		ended := make(chan struct{})
		c.Routes["/api/events"] = Route{Access: Always, Stream: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(ended)
			ticks{}.ServeHTTP(w, r)
		})}
		w, stop := onWire(t, c, onLoopback)
		defer stop()
		conn := w.dial()
		defer conn.Close()
		_, _ = io.WriteString(conn, get("/api/events"))
		began := time.Now()
		<-ended
		if took := time.Since(began); took > writeTimeout+2*time.Second {
			t.Errorf("it was held for %v", took)
		}
	})
}

func TestManyRequestsAtOnceWaitAShortTimeAndAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := component(t)
		free := make(chan struct{})
		c.Routes["/slow"] = shown(func(http.ResponseWriter, *http.Request) { <-free })
		w, stop := onWire(t, c, onLoopback)
		defer stop()
		var open []net.Conn
		for range maxRequests {
			conn := w.dial()
			_, _ = io.WriteString(conn, get("/slow"))
			open = append(open, conn)
		}
		synctest.Wait()
		began := time.Now()
		if got := code(w, get("/")); got != 503 || time.Since(began) != turnTimeout {
			t.Errorf("got %d after %v", got, time.Since(began))
		}
		began = time.Now()
		if got := code(w, get("/metrics")); got != 200 || time.Since(began) != 0 {
			t.Errorf("the numbers, which have places of their own: %d after %v", got, time.Since(began))
		}
		time.AfterFunc(turnTimeout/2, func() { close(free) })
		if got := code(w, get("/")); got != 200 {
			t.Errorf("a place that was free in time: %d", got)
		}
		for _, conn := range open {
			conn.Close()
		}
	})
}

func TestTheOldestStreamEndsForANewOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := component(t)
		quiet := make(chan struct{})
		c.Routes["/api/logs"] = Route{Access: WithPage, Stream: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).Flush()
			select { // nothing is sent: what a kernel took of it would be no sign of a reader
			case <-r.Context().Done():
			case <-quiet:
			}
		})}
		w, stop := onWire(t, c, onLoopback)
		defer stop()
		defer close(quiet)
		stream := func() (net.Conn, int) {
			conn := w.dial()
			resp, err := send(conn, get("/api/logs"))
			if err != nil {
				t.Fatal(err)
			}
			return conn, resp.code
		}
		var open []net.Conn
		for range maxStreams {
			conn, got := stream()
			if got != 200 {
				t.Fatal(got)
			}
			open = append(open, conn)
			time.Sleep(time.Second)
		}
		if conn, got := stream(); got != 503 {
			t.Errorf("while all are young: %d", got)
		} else {
			conn.Close()
		}
		time.Sleep(streamAtLeast)
		for range 3 {
			conn, got := stream()
			if got != 200 {
				t.Errorf("an old one did not go for it: %d", got)
			}
			defer conn.Close()
		}
		for i, conn := range open {
			_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
			_, err := conn.Read(make([]byte, 1))
			if ended := !errors.Is(err, os.ErrDeadlineExceeded); ended != (i < 3) {
				t.Errorf("stream %d: %v", i, err)
			}
			conn.Close()
		}
	})
}

func TestAPanicIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := component(t)
		c.Routes["/broken"] = shown(func(http.ResponseWriter, *http.Request) {
			var none *http.Request
			_ = none.Host
		})
		w, stop := onWire(t, c, onLoopback)
		defer stop()
		for range maxRequests + 1 { // each gives its place back
			if got := code(w, get("/broken")); got != 500 {
				t.Fatalf("got %d", got)
			}
		}
	})
}

// shown is a route that anyone sees.
func shown(f http.HandlerFunc) Route {
	return Route{Handler: f, Access: Always}
}

func TestAConnectionOverTCPIsForOneQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, stop := onWire(t, component(t), onLoopback)
		defer stop()
		conn := w.dial()
		defer conn.Close()
		go func() { _, _ = io.WriteString(conn, strings.Repeat(get("/metrics"), 90)) }()
		if answers, err := io.ReadAll(conn); err != nil || strings.Count(string(answers), "numbers") != 1 {
			t.Errorf("%v: %s", err, answers)
		}
	})
}

func TestAConnectionToTheSocketIsKeptForTheNextQuestionButNotForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, stop := onWire(t, component(t), onSocket)
		defer stop()
		conn := w.dial()
		defer conn.Close()
		for range 3 {
			resp, err := send(conn, get("/metrics"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, resp.body); err != nil {
				t.Fatal(err)
			}
			time.Sleep(boundedhttp.IdleTimeout - time.Second)
		}
		time.Sleep(2 * time.Second)
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("an idle connection: %v", err)
		}
	})
}
