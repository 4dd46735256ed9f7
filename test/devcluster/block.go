//go:build linux

package devcluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
)

// The ports of every instance. Each has its own block of 127/8, so they need
// not differ. They lie below the ephemeral ports and beside the well-known
// ones, which a Kubernetes of the machine itself may hold on all addresses.
const (
	markerPort    = 16440
	apiPort       = 16443
	etcdPort      = 16479
	etcdPeerPort  = 16480
	kcmPort       = 16457
	schedulerPort = 16459
	kubeletPort   = 16450

	virtAPIPort        = 16470 // as in kubevirt/objects.go, and also on hosts
	virtControllerPort = 16471
)

// block is the /24 of 127/8 an instance lives in: the control plane on .1, the
// nodes from .11 on.
type block struct {
	a, b   int
	marker *os.File // the listener on .1 that marks the block as taken
}

// claimBlock takes a block nobody else has. It is free again when the last
// process that holds the marker is gone.
func claimBlock() (block, error) {
	var errs []error
	for range 20 {
		k := block{a: 1 + rand.IntN(254), b: rand.IntN(256)}
		marker, err := k.mark()
		if err == nil {
			k.marker = marker
			return k, nil
		}
		errs = append(errs, err)
	}
	return block{}, fmt.Errorf("find a free block of loopback addresses: %w", errors.Join(errs...))
}

// takeBlock makes nodes with addresses on loopback.
func (c *Cluster) takeBlock(count int) error {
	var err error
	c.block, err = claimBlock()
	for i := range count {
		c.Nodes = append(c.Nodes, makeNode(i+1, c.block.node(i).String()))
	}
	return err
}

func (k block) mark() (*os.File, error) {
	listener, err := net.Listen("tcp", addr(k.control(), markerPort))
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	return listener.(*net.TCPListener).File()
}

// seat is that of the control plane.
func (k block) seat() seat {
	ip := k.control().String()
	return seat{name: "dev", ip: ip, bind: ip, ports: ports{
		api: apiPort, etcd: etcdPort, peer: etcdPeerPort, kcm: kcmPort, scheduler: schedulerPort,
	}}
}

func (k block) control() net.IP   { return k.ip(1) }
func (k block) node(i int) net.IP { return k.ip(11 + i) }
func (k block) ip(last int) net.IP {
	return net.IPv4(127, byte(k.a), byte(k.b), byte(last))
}

func addr(ip net.IP, port int) string { return net.JoinHostPort(ip.String(), strconv.Itoa(port)) }
