//go:build linux

package devcluster

import (
	"net"
	"testing"
	"time"
)

func TestACableThatIsCutOneWayCarriesTheOther(t *testing.T) {
	needsHosts(t)
	c := &Cluster{}
	if err := c.takeHosts(2, nil, false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.dropHosts(); err != nil {
			t.Error(err)
		}
	})
	var at [2]net.PacketConn
	for i, h := range c.hosts {
		err := h.space.enter(func() (err error) {
			at[i], err = net.ListenPacket("udp4", h.seat.ip+":7777")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		defer at[i].Close()
	}
	// carries says whether something that is sent again and again gets through. What an earlier
	// call sent may still arrive, or wait in the socket: it does not count.
	var asked byte
	carries := func(from, to int, long time.Duration) bool {
		asked++
		ends := time.Now().Add(long)
		for time.Now().Before(ends) {
			_, _ = at[from].WriteTo([]byte{asked}, at[to].LocalAddr()) // a full queue says so
			_ = at[to].SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			got := make([]byte, 8)
			if n, _, err := at[to].ReadFrom(got); err == nil && n == 1 && got[0] == asked {
				return true
			}
		}
		return false
	}
	const patience, moment = 20 * time.Second, 300 * time.Millisecond
	for way, row := range map[Way][2]bool{Sending: {false, true}, Hearing: {true, false}} {
		if !carries(0, 1, patience) || !carries(1, 0, patience) {
			t.Fatal("a whole cable carries nothing")
		}
		for range 2 { // cutting twice is cutting
			if err := c.CutWay(0, way); err != nil {
				t.Fatal(err)
			}
		}
		for i, want := range row {
			long := patience
			if !want {
				long = moment
			}
			if got := carries(i, 1-i, long); got != want {
				t.Errorf("way %d is cut: from host %d it carries: %v", way, i, got)
			}
		}
		for range 2 {
			if err := c.HealWay(0, way); err != nil {
				t.Fatal(err)
			}
		}
	}
}
