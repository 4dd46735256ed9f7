//go:build linux

package devcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Silence has the address of node i, on loopback, answer at these ports as that of a device that is
// off: a connection is neither accepted nor refused. What listens there has to be stopped before. It
// lasts until end.
func (c *Cluster) Silence(ctx context.Context, i int, ports ...int) (end func(), err error) {
	ip := net.ParseIP(c.Nodes[i].IP).To4()
	if c.hosts != nil || ip == nil {
		return nil, errors.New("only a node on loopback is silenced: a host is cut")
	}
	var sockets []int
	var waiting []net.Conn
	end = sync.OnceFunc(func() {
		for _, conn := range waiting {
			_ = conn.Close()
		}
		for _, socket := range sockets {
			_ = syscall.Close(socket)
		}
	})
	for _, port := range ports {
		socket, err := full([4]byte(ip), port)
		if err != nil {
			end()
			return nil, fmt.Errorf("silence port %d of node %s: %w", port, c.Nodes[i].Name, err)
		}
		sockets = append(sockets, socket)
		for {
			// The kernel drops what comes to a queue that is full.
			dialer := net.Dialer{Timeout: 300 * time.Millisecond}
			conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(ip.String(), strconv.Itoa(port)))
			if err != nil {
				break
			}
			waiting = append(waiting, conn)
		}
	}
	return end, nil
}

// full is a socket that listens with the shortest queue, from which nothing is taken.
func full(ip [4]byte, port int) (socket int, err error) {
	socket, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	err = errors.Join(
		syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1),
		syscall.Bind(socket, &syscall.SockaddrInet4{Port: port, Addr: ip}),
		syscall.Listen(socket, 0),
	)
	if err != nil {
		_ = syscall.Close(socket)
	}
	return socket, err
}
