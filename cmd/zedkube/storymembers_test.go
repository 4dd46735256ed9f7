package main

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

// setMasters is masters NODE|all [none|UUID...]: the controller tells the device
// that the fleet's members, and these, are the cluster's masters, or names none.
func setMasters(s *story, _ *testscript.TestScript, args []string) error {
	list := s.fleet.IDs()
	for _, arg := range args[1:] {
		if arg == "none" {
			list = nil
			continue
		}
		id, err := uuid.Parse(arg)
		if err != nil {
			return err
		}
		list = append(list, id)
	}
	to := s.fleet.Members
	if args[0] != "all" {
		m, _, err := s.member(args[0])
		if err != nil {
			return err
		}
		to = []*player.Member{m}
	}
	for _, m := range to {
		if err := m.ChangeCluster(func(c *types.EdgeNodeClusterConfig) { c.MasterNodeIDs = list }); err != nil {
			return err
		}
	}
	return nil
}

// setTieBreaker is tiebreaker NODE|none: the controller names the tie-breaker to every device.
func setTieBreaker(s *story, _ *testscript.TestScript, args []string) error {
	id := uuid.Nil
	if args[0] != "none" {
		_, i, err := s.member(args[0])
		if err != nil {
			return err
		}
		id = s.fleet.IDs()[i]
	}
	return s.fleet.ChangeCluster(func(c *types.EdgeNodeClusterConfig) { c.TieBreakerNodeID.UUID = id })
}

// cordons NODE N: zedkube has cordoned the node so often.
func cordons(s *story, _ *testscript.TestScript, args []string) error {
	return eventually(func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		n := 0
		for _, name := range s.cordons {
			if name == args[0] {
				n++
			}
		}
		return differs("the number of cordons of "+args[0], strconv.Itoa(n), args[1])
	})
}

// removed NODE...: the Nodes that the agents have deleted since the story began
// are these, in this order.
func removed(s *story, _ *testscript.TestScript, args []string) error {
	return eventually(func() string { // the log is behind the answers
		calls, err := s.fleet.Cluster.Calls()
		if err != nil {
			return err.Error()
		}
		var gone []string
		for _, c := range calls {
			ours := strings.HasPrefix(c.UserAgent, "zedkube/") && c.At.After(s.began)
			if ours && c.Verb == "delete" && c.Resource == "nodes" && c.Subresource == "" && c.Code == http.StatusOK {
				gone = append(gone, c.Name)
			}
		}
		if !slices.Equal(gone, args) {
			return fmt.Sprintf("the agents have deleted the Nodes %q", gone)
		}
		return ""
	})
}
