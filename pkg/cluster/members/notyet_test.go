package members

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

// three is a cluster of n1, n2 and n3, all well, whose agents n1 and n2 run.
func (s *stage) three() {
	for _, name := range []string{"n1", "n2", "n3"} {
		_ = s.nodes.Publish(name, node(name, listing("n1", "n2", "n3")))
	}
	for _, name := range []string{"n1", "n2"} {
		s.start(name, func(a *agent) { a.configure(uuid.Nil, "n1", "n2", "n3") })
	}
}

// lists has the controller name these masters to n1 and n2, which stamp them.
func (s *stage) lists(names ...string) {
	for _, name := range []string{"n1", "n2"} {
		s.agents[name].configure(uuid.Nil, names...)
		s.cluster.ChangeNode(name, func(n *types.Node) {
			listing(names...)(n)
			n.StampedAt = time.Now()
		})
	}
}

func TestAMasterThatIsAboutToJoinIsNotRemoved(t *testing.T) {
	for name, change := range map[string][]func(*types.Node){
		"not Ready, and told of all four": {down, listing("n1", "n2", "n3", "n4")},
		"not Ready, without a stamp":      {down, unstamped},
		"Ready, without a stamp":          {unstamped},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *stage) {
				s.three()
				s.after(time.Minute)
				_ = s.nodes.Publish("n4", node("n4", change...))
				s.after(10 * 24 * time.Hour)
				if !s.there("n4") {
					s.Fatal("a master that the controller has never named was removed")
				}
				if m := s.says(s.agents["n1"]); len(m.Stale) != 1 || !m.Stale[0].Joins || !strings.Contains(m.Stale[0].Why, "zedkube nodes remove n4") {
					s.Errorf("says %+v", m)
				}
				s.lists("n1", "n2", "n3", "n4")
				s.after(time.Minute)
				if m := s.says(s.agents["n1"]); len(m.Stale) != 0 || m.Why != "" {
					s.Errorf("once it is named: %+v", m)
				}
			})
		})
	}
}

func TestAListThatLacksARebootingMasterForAWhileRemovesNothing(t *testing.T) {
	play(t, func(s *stage) {
		s.three()
		s.after(time.Minute)
		s.cluster.SetLock(types.DrainLock{Holder: "n3", BootID: "boot-n3"})
		s.cluster.ChangeNode("n3", func(n *types.Node) { down(n); cordoned(n); n.CordonedBy = &types.Cordon{By: "zedkube"} })
		s.lists("n1", "n2")
		s.after(23 * time.Hour)
		if !s.there("n3") {
			s.Fatal("a node that reboots under the drain lock was removed")
		}
		if m := s.says(s.agents["n1"]); !strings.Contains(m.Why, "zedkube nodes remove n3") {
			s.Errorf("says %+v", m)
		}
		s.lists("n1", "n2", "n3")
		s.after(time.Minute)
		s.lists("n1", "n2")
		s.after(23 * time.Hour)
		if !s.there("n3") {
			s.Fatal("the time before it was named again was counted")
		}
		s.after(2 * time.Hour)
		s.removed()
	})
}
