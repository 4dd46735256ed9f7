package statusserver

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/types"
)

func TestHoardedConnectionsDoNotKeepAJoinerOut(t *testing.T) {
	overBoth(t, func(t *testing.T, d *device) {
		d.ready("127.12.34.1/24")
		d.listens("127.12.34.1", true)
		var hoard []net.Conn
		defer func() {
			for _, c := range hoard {
				_ = c.Close()
			}
		}()
		for i := range 3 * maxConnections {
			conn, err := net.Dial("tcp", d.plainlyAt("127.12.34.1"))
			if err != nil {
				t.Fatalf("connection %d: %v", i, err)
			}
			hoard = append(hoard, conn)
			fmt.Fprint(conn, d.begin()) // and never the rest
		}
		began := time.Now()
		if got := raw(t, d.at("127.12.34.1"), "GET /status HTTP/1.0\r\n"+auth+"\r\n"); !strings.HasSuffix(got, "cluster:"+clusterID) {
			t.Errorf("got %q", got)
		}
		if took := time.Since(began); took > requestTimeout {
			t.Errorf("the answer took %s", took)
		}
		_ = hoard[0].SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := bufio.NewReader(hoard[0]).ReadByte(); err == nil {
			t.Error("the oldest connection is still served")
		}
	})
}

// dialFrom connects to address from an address of its own.
func dialFrom(t *testing.T, from, address string) net.Conn {
	t.Helper()
	conn, err := connect(t, from, address)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return conn
}

func TestFloodFromOneAddressDoesNotDisturbAnother(t *testing.T) {
	overBoth(t, func(t *testing.T, d *device) {
		d.ready("127.12.34.1/24")
		d.listens("127.12.34.1", true)
		joiner := dialFrom(t, "127.12.34.5", d.at("127.12.34.1"))
		defer joiner.Close()
		fmt.Fprint(joiner, "GET /status HT")
		// A slow joiner is the oldest connection by far when the rest of its
		// request arrives.
		for range 3 * maxConnections {
			conn := dialFrom(t, "127.12.34.6", d.plainlyAt("127.12.34.1"))
			defer conn.Close()
		}
		fmt.Fprint(joiner, "TP/1.0\r\n"+auth+"\r\n")
		got, err := io.ReadAll(joiner)
		if err != nil || !strings.HasSuffix(string(got), "cluster:"+clusterID) {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// crowdOf opens n connections to address, each from the next of the addresses
// 127.12.x.y that network makes of two numbers, and keeps them.
func crowdOf(t *testing.T, address, network string, n, sources int) {
	t.Helper()
	for i := range n {
		i %= sources
		conn := dialFrom(t, fmt.Sprintf(network, i/250, 1+i%250), address)
		t.Cleanup(func() { _ = conn.Close() })
		if i%2 == 0 {
			fmt.Fprint(conn, "GET /status HTTP/1.1\r\nHo") // and never the rest
		}
	}
}

// joins asks /status as joining nodes do, n times, each from an address of its
// own, and returns the slowest answer.
func joins(t *testing.T, address string, n int) (slowest time.Duration) {
	t.Helper()
	for i := range n {
		began := time.Now()
		conn := dialFrom(t, fmt.Sprintf("127.12.35.%d", 1+i), address)
		fmt.Fprint(conn, "GET /status HTTP/1.1\r\nHost: x\r\n"+auth+"Connection: close\r\n\r\n")
		got, err := io.ReadAll(conn)
		_ = conn.Close()
		if err != nil || !strings.HasSuffix(string(got), "cluster:"+clusterID) {
			t.Errorf("joiner %d got %q, %v", i, got, err)
		}
		slowest = max(slowest, time.Since(began))
	}
	return slowest
}

// joinsAmong asks as joins does, while others come by open. All places are taken before,
// and beside each joiner come fewer than there are places, so that the server
// could serve it however the machine shares its time.
func joinsAmong(t *testing.T, address string, n, beside int, open func(i int) (net.Conn, error)) (slowest time.Duration) {
	t.Helper()
	var kept []net.Conn
	opened := 0
	come := func(n int) {
		for range n {
			conn, err := open(opened)
			if opened++; err != nil {
				t.Errorf("connection %d: %v", opened, err)
				return
			}
			if kept = append(kept, conn); len(kept) > 2*maxConnections {
				_ = kept[0].Close()
				kept = kept[1:]
			}
		}
	}
	come(maxConnections + 100)
	for range n {
		var others sync.WaitGroup
		others.Go(func() { come(beside) })
		slowest = max(slowest, joins(t, address, 1))
		others.Wait()
	}
	for _, conn := range kept {
		_ = conn.Close()
	}
	return slowest
}

func TestJoinerIsAnsweredAmongTenThousandIdleConnections(t *testing.T) {
	d := boot(t)
	d.ready("127.12.34.1/16")
	at := d.plainlyAt("127.12.34.1")
	d.listens("127.12.34.1", true)
	before := runtime.NumGoroutine()
	crowdOf(t, at, "127.12.%d.%d", 2500, 4)    // hoarders
	crowdOf(t, at, "127.12.%d.%d", 5000, 2500) // a whole network
	crowdOf(t, at, "127.13.%d.%d", 2500, 2500) // one from somewhere else
	joins(t, at, 1)                            // comes behind all that were not let in yet
	slowest := max(joins(t, at, 25), joins(t, byTLS+at, 25))
	t.Logf("the slowest of 50 answers, half of them by TLS, took %s", slowest)
	// Closed ones need a moment to be noticed by those who served them.
	eventually(t, "too many goroutines serve them", func() bool { return runtime.NumGoroutine() <= before+2*maxConnections })
}

func TestJoinerIsAnsweredWhileConnectionsKeepComing(t *testing.T) {
	overBoth(t, func(t *testing.T, d *device) {
		d.ready("127.12.34.1/16")
		d.listens("127.12.34.1", true)
		slowest := joinsAmong(t, d.at("127.12.34.1"), 50, maxConnections/2, func(i int) (net.Conn, error) {
			return connect(t, fmt.Sprintf("127.12.%d.%d", 100+i/250%4, 1+i%250), d.plainlyAt("127.12.34.1"))
		})
		t.Logf("the slowest of 50 answers took %s", slowest)
	})
}

func TestStatusIsAnsweredWhileReportsAreStuck(t *testing.T) {
	first, _ := pair(t, types.Node{Name: "slow", InternalIP: "127.12.34.14"})
	goOn := make(chan struct{})
	asked := make(chan struct{}, 1)
	player(t, "127.12.34.14", first.port, func(http.ResponseWriter, *http.Request) { asked <- struct{}{}; <-goOn })
	defer close(goOn)
	conn := dialFrom(t, firstIP, first.at(firstIP))
	defer conn.Close()
	fmt.Fprint(conn, "GET /cluster-app HTTP/1.1\r\nHost: x\r\n"+auth+"\r\n")
	<-asked
	done := make(chan struct{})
	go func() { defer close(done); _, _ = conn.Read(make([]byte, 1)) }()
	joins(t, first.at(firstIP), 3)
	select {
	case <-done:
		t.Error("the answers came after that of the reports")
	default:
	}
	_ = conn.Close()
	<-done
}

func TestHalfARequestDoesNotHoldUpTheMove(t *testing.T) {
	overBoth(t, func(t *testing.T, d *device) {
		d.ready("127.12.34.1/24")
		d.listens("127.12.34.1", true)
		slow := dialFrom(t, "127.12.34.5", d.at("127.12.34.1"))
		defer slow.Close()
		fmt.Fprint(slow, "GET /status HT")
		joins(t, d.at("127.12.34.1"), 1) // comes behind it, so the server has let both in

		ended := make(chan struct{})
		go func() { defer close(ended); _, _ = io.Copy(io.Discard, slow) }()
		_ = d.status.Publish(types.Global, status("127.12.34.1/24", false))
		d.listens("127.12.34.1", false)
		d.ready("127.12.34.2/24")
		d.listens("127.12.34.2", true)
		d.ready("127.12.34.1/24")
		d.listens("127.12.34.1", true) // also where someone still holds a connection
		select {
		case <-ended: // it has five seconds to send the rest
			t.Error("the moves have waited for it")
		default:
		}
		_ = slow.Close()
		<-ended
	})
}

func TestOversizedRequestIsRefused(t *testing.T) {
	overBoth(t, func(t *testing.T, d *device) {
		d.ready("127.12.34.1/24")
		d.listens("127.12.34.1", true)
		got := raw(t, d.at("127.12.34.1"), "GET /status HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("x", 3*boundedhttp.MaxHeaderBytes)+"\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 431 ") {
			t.Errorf("got %.60q", got)
		}
	})
}
