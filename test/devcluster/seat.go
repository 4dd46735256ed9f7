//go:build linux

package devcluster

import (
	"net"
	"strconv"
	"time"
)

// seat is where one control plane listens.
type seat struct {
	name   string // of the etcd member
	ip     string
	bind   string // what the API server listens on
	ports  ports
	suffix string        // of its files; "" where there is but one
	lease  time.Duration // of the leaders among several; 0: it is alone
}

// ports are those of the programs of a control plane.
type ports struct{ api, etcd, peer, kcm, scheduler int }

func (s seat) address(port int) string { return net.JoinHostPort(s.ip, strconv.Itoa(port)) }

// server is the URL of the API server.
func (s seat) server() string { return "https://" + s.address(s.ports.api) }

// etcd is the URL of a page that etcd serves its clients.
func (s seat) etcd(path string) string { return "http://" + s.address(s.ports.etcd) + path }

// peerURL is where the other members of etcd reach this one.
func (s seat) peerURL() string { return "http://" + s.address(s.ports.peer) }

// peer is a member as etcd's flags name it.
func (s seat) peer() string { return s.name + "=" + s.peerURL() }
