package page

import (
	"net"
	"net/http"
	"testing"
	"testing/synctest"
)

func TestOtherNodesCannotHoldTheOwnPageOut(t *testing.T) {
	far := &net.TCPAddr{IP: net.IPv4(10, 244, 244, 1), Port: 12347}
	for _, near := range []net.Addr{
		&net.UnixAddr{Net: "unix", Name: "/run/zedkube/zedkube.sock"}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 12347}, &net.TCPAddr{IP: net.IPv6loopback, Port: 12347},
	} {
		for _, what := range []string{"/api/events?", "/api/logs?follow=1&app="} {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				target := what
				if what != "/api/events?" {
					target += s.app(1, false, "a", "b", "c", "d", "e")
				}
				s.kube.lines = make(chan string)
				s.local = far
				var all []*browser
				refused := 0
				for range 2 * maxViewers {
					b := s.ask(target, false)
					all = append(all, b)
					if b.code == http.StatusServiceUnavailable {
						refused++
					}
				}
				if refused == 0 || refused == len(all) {
					t.Errorf("%s: of %d from other nodes %d were refused", what, len(all), refused)
				}
				s.local = near
				b := s.ask(target, false)
				if b.code == http.StatusServiceUnavailable {
					t.Errorf("%s at %v: %s", what, near, b.took())
				}
				for _, b := range append(all, b) {
					b.leave()
				}
			})
		}
	}
}
