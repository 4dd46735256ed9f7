//go:build linux

package devcluster

import (
	"errors"
	"fmt"
	"net"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// seats are those of all control planes.
func (c *Cluster) seats() []seat {
	if c.hosts == nil {
		return []seat{c.block.seat()}
	}
	var seats []seat
	for _, h := range c.hosts {
		seats = append(seats, h.seat)
	}
	return seats
}

// writeCredentials writes all keys and kubeconfigs and makes our own clients.
func (c *Cluster) writeCredentials() error {
	var ips []net.IP
	for _, s := range c.seats() {
		ips = append(ips, net.ParseIP(s.ip))
	}
	for _, n := range c.Nodes {
		for _, ip := range []string{n.IP, n.IPv6, n.Management} {
			if ip != "" {
				ips = append(ips, net.ParseIP(ip))
			}
		}
	}
	if c.edges != nil {
		ips = append(ips, net.ParseIP("10.43.0.1")) // the Service of the API server
	}
	var err error
	if c.ca, err = writePKI(c.Dir, ips); err != nil {
		return err
	}
	for _, at := range c.seats() {
		if err := c.writeKubeconfigs(at); err != nil {
			return err
		}
		if c.real == "" {
			continue
		}
		if err := c.writeKubeletCredentials(at); err != nil {
			return err
		}
	}
	config, err := c.restConfig()
	if err != nil {
		return err
	}
	c.rest = config
	var failed error
	c.client, err = kubernetes.NewForConfig(config)
	c.dynamic, failed = dynamic.NewForConfig(config)
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("make a client of the cluster: %w", err)
	}
	return nil
}
