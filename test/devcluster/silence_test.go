//go:build linux

package devcluster

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"
)

func TestASilencedPortNeitherAcceptsNorRefuses(t *testing.T) {
	c := &Cluster{Nodes: []Node{{Name: "node-1", IP: "127.99.98.97"}}}
	dial := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", "127.99.98.97:12346")
		if err == nil {
			conn.Close()
		}
		return err
	}
	if err := dial(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("before: %v", err)
	}
	end, err := c.Silence(t.Context(), 0, 12346)
	if err != nil {
		t.Fatal(err)
	}
	var late net.Error
	if err := dial(); !errors.As(err, &late) || !late.Timeout() {
		t.Errorf("meanwhile: %v", err)
	}
	end()
	if err := dial(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("afterwards: %v", err)
	}
}
