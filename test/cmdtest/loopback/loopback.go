// Package loopback is where tests listen at a port that is fixed.
package loopback

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
)

// Listen listens at a port of an address of loopback that is no other test's.
func Listen(t testing.TB, port uint16) net.Listener {
	t.Helper()
	for range 100 {
		ip := netip.AddrFrom4([4]byte{127, byte(128 + rand.IntN(120)), byte(rand.IntN(256)), byte(1 + rand.IntN(254))})
		if l, err := net.Listen("tcp", netip.AddrPortFrom(ip, port).String()); err == nil {
			t.Cleanup(func() { _ = l.Close() })
			return l
		}
	}
	t.Fatalf("port %d is free nowhere", port)
	return nil
}
