package statusserver

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestHoardedConnectionsDoNotKeepAJoinerOut(t *testing.T) {
	d := boot(t)
	d.ready("127.12.34.1/24")
	d.listens("127.12.34.1", true)
	var hoard []net.Conn
	defer func() {
		for _, c := range hoard {
			_ = c.Close()
		}
	}()
	for i := range 3 * maxConnections {
		conn, err := net.Dial("tcp", d.at("127.12.34.1"))
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		hoard = append(hoard, conn)
		fmt.Fprint(conn, "GET /status HTTP/1.1\r\nHo") // and never the rest
	}
	began := time.Now()
	if got := raw(t, d.at("127.12.34.1"), "GET /status HTTP/1.0\r\n\r\n"); !strings.HasSuffix(got, "cluster:"+clusterID) {
		t.Errorf("got %q", got)
	}
	if took := time.Since(began); took > requestTimeout/2 {
		t.Errorf("the answer took %s", took)
	}
	_ = hoard[0].SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := bufio.NewReader(hoard[0]).ReadByte(); err == nil {
		t.Error("the oldest connection is still served")
	}
}

// dialFrom connects to address from an address of its own.
func dialFrom(t *testing.T, from, address string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := d.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	return conn
}

func TestFloodFromOneAddressDoesNotDisturbAnother(t *testing.T) {
	d := boot(t)
	d.ready("127.12.34.1/24")
	d.listens("127.12.34.1", true)
	joiner := dialFrom(t, "127.12.34.5", d.at("127.12.34.1"))
	defer joiner.Close()
	fmt.Fprint(joiner, "GET /status HT")
	// A slow joiner is the oldest connection by far when the rest of its
	// request arrives.
	for range 3 * maxConnections {
		conn := dialFrom(t, "127.12.34.6", d.at("127.12.34.1"))
		defer conn.Close()
	}
	fmt.Fprint(joiner, "TP/1.0\r\n\r\n")
	got, err := io.ReadAll(joiner)
	if err != nil || !strings.HasSuffix(string(got), "cluster:"+clusterID) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestHalfARequestDoesNotHoldUpTheMove(t *testing.T) {
	d := boot(t)
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
	d.listens("127.12.34.1", true) // also where somebody still holds a connection
	if took := time.Since(began); took > time.Second {
		t.Errorf("three moves took %s", took)
	}
}

func TestOversizedRequestIsRefused(t *testing.T) {
	d := boot(t)
	d.ready("127.12.34.1/24")
	d.listens("127.12.34.1", true)
	got := raw(t, d.at("127.12.34.1"), "GET /status HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("x", 3*maxHeaderBytes)+"\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 431 ") {
		t.Errorf("got %.60q", got)
	}
}
