package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

// nameAddresses gives a script the addresses of its nodes, ADDRESS1 and so on;
// for each a free one, FREE1 and so on; one that is no node's, FOREIGN; and the
// port of the API servers, APIPORT.
func (s *story) nameAddresses(env *testscript.Env) {
	for i, m := range s.fleet.Members {
		ip := m.IP.To4()
		env.Setenv(fmt.Sprintf("ADDRESS%d", i+1), ip.String())
		env.Setenv(fmt.Sprintf("FREE%d", i+1), net.IPv4(ip[0], ip[1], ip[2], ip[3]+100).String())
		env.Setenv("FOREIGN", net.IPv4(ip[0], ip[1], ip[2], 200).String())
		env.Setenv("APIPORT", strconv.Itoa(m.APIPort))
	}
}

// setAddress is address NODE IP: the controller gives the device this cluster address.
func setAddress(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	return m.ChangeCluster(func(c *types.EdgeNodeClusterConfig) { c.ClusterIPPrefix.IP = net.ParseIP(args[1]) })
}

// joinServer is joinserver IP: the controller sends every device there to join;
// the one with this address becomes the bootstrap node.
func joinServer(s *story, _ *testscript.TestScript, args []string) error {
	return s.fleet.ChangeCluster(func(c *types.EdgeNodeClusterConfig) { c.JoinServerIP = net.ParseIP(args[0]) })
}

// setPort is port NODE up|down: the cluster interface has its address, or not.
func setPort(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	if args[1] == "down" {
		m.TakeAddress()
	} else {
		m.GiveAddress()
	}
	return nil
}

// occupy IP: someone else listens where a status server would, and
// answers nothing.
func occupy(s *story, _ *testscript.TestScript, args []string) error {
	listener, err := (&net.ListenConfig{}).Listen(s.ctx, "tcp", net.JoinHostPort(args[0], strconv.Itoa(player.StatusPort)))
	if err != nil {
		return err
	}
	s.occupied[args[0]] = listener
	context.AfterFunc(s.ctx, func() { listener.Close() })
	return nil
}

// vacate IP: that one ends.
func vacate(s *story, _ *testscript.TestScript, args []string) error {
	return s.occupied[args[0]].Close()
}

// statusOf is status IP TEXT|nobody: waits until /status of this address has this
// body, or until nobody listens there.
func statusOf(s *story, _ *testscript.TestScript, args []string) error {
	return eventually(func() string {
		ctx, cancel := context.WithTimeout(s.ctx, 2*time.Second)
		defer cancel()
		got, err := player.Ask(ctx, net.ParseIP(args[0]))
		if errors.Is(err, syscall.ECONNREFUSED) {
			got, err = nobody, nil
		}
		if err != nil {
			return err.Error()
		}
		return differs("/status of "+args[0], got, args[1])
	})
}

// setManifest is manifest FILE: the controller sends the cluster this registration manifest.
func setManifest(s *story, ts *testscript.TestScript, args []string) error {
	return s.fleet.ChangeManifest(ts.ReadFile(args[0]))
}
