package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

// failover is of the node that reports, and of containers. A virtual machine is moved only from a device
// that is proved to be off, and an address of loopback proves nothing: test/apps tells that on hosts.
func (s *stage) failover() []step {
	return []step{
		{"the device of the node that reports loses its power", s.powerFails},
		{"another node reports for the cluster", s.anotherReports},
		{"every application of that device runs on another one", s.appsStartElsewhere},
	}
}

func (s *stage) powerFails(context.Context) (string, error) {
	n := s.fleet.Reporter()
	if n == nil {
		return "", errors.New("no node reports, or several")
	}
	kube, ok := n.Kube.(player.ClusterNode)
	if !ok {
		return "", fmt.Errorf("%s is no node of the cluster", n.Name)
	}
	s.lost = n
	n.KillProgram()
	n.PowerOff()
	s.cluster.StopKubelet(kube.Index)
	s.view.Event(n.Name, "device", "has no power")
	return n.Name + ", ", nil
}

func (s *stage) anotherReports(ctx context.Context) (string, error) {
	next := ""
	err := s.until(ctx, func() string {
		for _, n := range s.nodes {
			leader, _ := n.Watch.Leader.Get(types.Global)
			report, _ := n.Watch.Report.Get(types.Global)
			if n != s.lost && leader.IsStatsLeader && len(report.Nodes) == len(s.nodes) {
				next = n.Name
				return ""
			}
		}
		return "no other node reports"
	})
	return next + ", ", err
}

func (s *stage) appsStartElsewhere(ctx context.Context) (string, error) {
	return "", s.everyApp(ctx, func(claiming []string) bool {
		for _, name := range claiming {
			if name != s.lost.Name { // whose files say what was so before
				return true
			}
		}
		return false
	})
}
