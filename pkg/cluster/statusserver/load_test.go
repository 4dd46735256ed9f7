package statusserver

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
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
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
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
	return joinsWithin(t, address, n, 1)
}

// joinsWithin lets each of them try as often as that.
func joinsWithin(t *testing.T, address string, n, tries int) (slowest time.Duration) {
	t.Helper()
	for i := range n {
		began := time.Now()
		for try := 1; ; try++ {
			conn := dialFrom(t, fmt.Sprintf("127.12.35.%d", 1+i), address)
			fmt.Fprint(conn, "GET /status HTTP/1.1\r\nHost: x\r\n"+auth+"Connection: close\r\n\r\n")
			got, err := io.ReadAll(conn)
			_ = conn.Close()
			if err == nil && strings.HasSuffix(string(got), "cluster:"+clusterID) {
				break
			}
			if try == tries {
				t.Errorf("joiner %d got %q, %v", i, got, err)
				break
			}
		}
		slowest = max(slowest, time.Since(began))
	}
	return slowest
}

// enough is how long a joining node waits for its answer. Alone it takes less
// than a millisecond, but the machine that tests run on has more to do.
const enough = 2 * time.Second

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
	if t.Logf("the slowest of 50 answers, half of them by TLS, took %s", slowest); slowest > enough {
		t.Error("that is too long")
	}
	// Closed ones need a moment to be noticed by those who served them.
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before+2*maxConnections && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if n := runtime.NumGoroutine() - before; n > 2*maxConnections {
		t.Errorf("%d goroutines serve them", n)
	}
}

func TestJoinerIsAnsweredWhileConnectionsKeepComing(t *testing.T) {
	overBoth(t, func(t *testing.T, d *device) {
		d.ready("127.12.34.1/16")
		d.listens("127.12.34.1", true)
		var wg sync.WaitGroup
		stop := make(chan struct{})
		for worker := range 4 {
			wg.Go(func() {
				var kept []net.Conn
				for i := 0; ; i++ {
					select {
					case <-stop:
						for _, c := range kept {
							_ = c.Close()
						}
						return
					default:
					}
					from := &net.TCPAddr{IP: net.IPv4(127, 12, byte(100+worker), byte(1+i%250))}
					conn, err := net.DialTCP("tcp", from, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(d.plainlyAt("127.12.34.1"))))
					if err != nil {
						continue // it has no port left for a moment
					}
					if kept = append(kept, conn); len(kept) > 1000 {
						_ = kept[0].Close()
						kept = kept[1:]
					}
				}
			})
		}
		tries := 1
		if d.tls {
			tries = 10 // a handshake takes a round trip, in which others come: a joiner asks again
		}
		slowest := joinsWithin(t, d.at("127.12.34.1"), 50, tries)
		close(stop)
		wg.Wait()
		// The flood takes what the processors give, so time says little here.
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
	if slowest := joins(t, first.at(firstIP), 20); slowest > enough {
		t.Errorf("an answer took %s", slowest)
	}
}

func TestHalfARequestDoesNotHoldUpTheMove(t *testing.T) {
	overBoth(t, func(t *testing.T, d *device) {
		d.ready("127.12.34.1/24")
		d.listens("127.12.34.1", true)
		slow := dialFrom(t, "127.12.34.5", d.at("127.12.34.1"))
		defer slow.Close()
		fmt.Fprint(slow, "GET /status HT")
		time.Sleep(50 * time.Millisecond) // the server has read as much and waits for the rest

		began := time.Now()
		_ = d.status.Publish(types.Global, status("127.12.34.1/24", false))
		d.listens("127.12.34.1", false)
		d.ready("127.12.34.2/24")
		d.listens("127.12.34.2", true)
		d.ready("127.12.34.1/24")
		d.listens("127.12.34.1", true) // also where someone still holds a connection
		if took := time.Since(began); took > time.Second {
			t.Errorf("three moves took %s", took)
		}
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
