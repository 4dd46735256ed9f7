//go:build linux

// Package hosts holds the stories that need addresses, cables and a quorum that
// are real: three devices, each on a host of its own in network namespaces.
package hosts

import (
	"slices"
	"testing"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/rig"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a cluster of hosts with a device on each.
type stage struct {
	*rig.Rig
	reigns *reigns
	ipv6   bool // the cluster's addresses are
}

// newStage starts the first host of a cluster. The devices are off, and the
// first of them, by number, are the masters.
func newStage(t *testing.T, program string, o devcluster.Options, masters int) *stage {
	t.Helper()
	o.Hosts = true
	s := &stage{Rig: rig.New(t, rig.Options{Name: "hosts", Cluster: o, Program: program})}
	s.reigns = watchReigns(s.Fleet)
	s.Closed = func() { s.reigns.end(t) }
	for _, m := range s.Fleet.Members { // which asks the controller every second
		item := types.ConfigItemValue{Key: types.SettingConfigInterval, ItemType: types.ConfigItemInt, IntValue: 1}
		if err := m.ConfigureSettings(types.ConfigItemValueMap{GlobalSettings: map[string]types.ConfigItemValue{item.Key: item}}); err != nil {
			t.Fatal(err)
		}
	}
	s.setMasters(t, slices.Collect(upTo(masters))...)
	return s
}

// upTo counts from 0.
func upTo(n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := 0; i < n && yield(i); i++ {
		}
	}
}

func (s *stage) id(i int) uuid.UUID { return s.Fleet.IDs()[i] }

// setMasters is the controller's list of masters, by index.
func (s *stage) setMasters(t *testing.T, of ...int) {
	t.Helper()
	s.tell(t, func(c *types.EdgeNodeClusterConfig) {
		c.MasterNodeIDs = nil
		for _, i := range of {
			c.MasterNodeIDs = append(c.MasterNodeIDs, s.id(i))
		}
	})
}

// tell changes what the controller says of the cluster to every device.
func (s *stage) tell(t *testing.T, change func(*types.EdgeNodeClusterConfig)) {
	t.Helper()
	if err := s.Fleet.ChangeCluster(change); err != nil {
		t.Fatal(err)
	}
}
