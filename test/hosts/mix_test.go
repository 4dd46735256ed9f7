//go:build linux

package hosts

import (
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/test/rig"
	"github.com/zedkube/zedkube/types"
)

// useIPv6 gives the devices, which are off, cluster addresses of that kind.
func (s *stage) useIPv6(t *testing.T) {
	t.Helper()
	s.ipv6 = true
	for i, m := range s.Fleet.Members {
		err := m.ChangeCluster(func(c *types.EdgeNodeClusterConfig) {
			c.ClusterIPPrefix = &net.IPNet{IP: net.ParseIP(s.address(i)), Mask: net.CIDRMask(64, 128)}
			c.JoinServerIP = net.ParseIP(s.address(0))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// clustersDoNotMix starts a second cluster on the switch of the first, with
// cluster addresses of the other kind.
func (s *stage) clustersDoNotMix(t *testing.T, program string) {
	other := newStage(t, program, devcluster.Options{Nodes: 2, Spare: 1, Wire: s.Cluster}, 2)
	other.useIPv6(t)
	seed, joiner := other.Fleet.Members[0], other.Fleet.Members[1]
	foreign := s.Fleet.Members[1]
	other.Boot(t, 0)
	err := joiner.ChangeCluster(func(c *types.EdgeNodeClusterConfig) { c.JoinServerIP = foreign.IP })
	if err != nil {
		t.Fatal(err)
	}
	other.Boot(t, 1)
	rig.Until(t, 60*time.Second, func() string {
		if !other.Heard(joiner, "presents the certificate of another cluster token") { // each cluster has its own
			return "the joiner does not say that it asks another cluster's server"
		}
		return other.lacks(t.Context(), 0)
	})
	for _, path := range []string{"/app", "/cluster-app"} {
		if code, _, err := other.ask(t.Context(), 0, foreign.IP.String(), path); code != http.StatusForbidden {
			t.Errorf("%s of another cluster: %d, %v", path, code, err)
		}
	}
	err = joiner.ChangeCluster(func(c *types.EdgeNodeClusterConfig) { c.JoinServerIP = net.ParseIP(other.address(0)) })
	if err != nil {
		t.Fatal(err)
	}
	rig.Until(t, 60*time.Second, func() string { return other.lacks(t.Context(), 0, 1) })
	for i, m := range other.Fleet.Members {
		if other.reaches(t, i, m.IP.String(), player.StatusPort) {
			t.Errorf("the status server of %s listens on %s", m.Name, m.IP)
		}
	}
	for _, m := range s.Fleet.Members {
		report, _ := m.Watch.Report.Get(types.Global)
		if names := nodesOf(report); slices.Contains(names, seed.Name) || slices.Contains(names, joiner.Name) {
			t.Errorf("%s reports %v", m.Name, names)
		}
	}
}
