package witness

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/types"
)

// deleteNode takes the Node of n3 away while an application's pod is there.
func (s *stage) deleteNode() {
	_ = s.pods.Publish("eve-kube-app/a", types.Pod{Namespace: "eve-kube-app", Name: "a", NodeName: "n3"})
	_ = s.nodes.Unpublish("n3")
	synctest.Wait()
}

func TestADeviceWhoseNodeIsDeletedIsStillLookedAt(t *testing.T) {
	play(t, func(s *stage) {
		s.sleep(time.Minute)
		s.deleteNode()
		s.sleep(45 * time.Second)
		if got := s.sees(3); got.Alive != "10.0.0.4:12346" {
			t.Errorf("%+v", got)
		}
		s.dies(3)
		s.sleep(30 * time.Second)
		if got := s.sees(3); got.Silent < types.WitnessSilent || got.Alive != "" {
			t.Errorf("%+v", got)
		}
		s.stop()
		s.start() // it remembers over a restart
		s.sleep(45 * time.Second)
		if got := s.sees(3); got.Silent < types.WitnessSilent {
			t.Errorf("after a restart: %+v", got)
		}
		s.answers("10.0.0.4", nil)
		s.change(3, func(n *types.Node) { n.UID = "again" })
		s.sleep(time.Minute)
		if s.told() != nil {
			t.Errorf("the Node is made anew and Ready, and it says %+v", s.told())
		}
	})
}

func TestADeletedNodeOfWhichNoApplicationIsLeftIsNotLookedAt(t *testing.T) {
	play(t, func(s *stage) {
		s.sleep(time.Minute)
		s.dials()
		s.deleteNode()
		s.sleep(time.Minute)
		_ = s.vmis.Publish("a", types.VMI{Name: "a", NodeName: "n3"})
		_ = s.pods.Unpublish("eve-kube-app/a")
		s.sleep(time.Minute)
		if len(s.dials()) == 0 || s.told() == nil {
			t.Error("it is not looked at while a virtual machine is there")
		}
		_ = s.vmis.Unpublish("a")
		s.sleep(time.Minute)
		s.dials()
		s.sleep(time.Hour)
		if d := s.dials(); len(d) > 0 || s.told() != nil {
			t.Errorf("dialled %v, says %+v", d, s.told())
		}
		if _, ok := s.known.Get("n3"); !ok {
			t.Error("it is forgotten after an hour")
		}
		s.sleep(knownFor)
		if _, ok := s.known.Get("n3"); ok || len(s.known.All()) != 2 {
			t.Errorf("known are %v", s.known.All())
		}
	})
}

func TestNodesAreRememberedOnlyFromAWholeTable(t *testing.T) {
	play(t, func(s *stage) {
		s.apiIs(false)
		s.change(4)
		s.sleep(time.Minute)
		if _, ok := s.known.Get("n4"); ok {
			t.Error("a Node is remembered from a table that is not whole")
		}
		s.apiIs(true)
		s.sleep(time.Minute)
		s.change(4, addressed("10.9.9.9", "192.168.1.4"))
		want := types.KnownNode{Name: "n4", UID: "uid-n4", InternalIP: "10.9.9.9", ExternalIP: "192.168.1.4"}
		k, _ := s.known.Get("n4")
		if k.LeaseRenewed, k.LeaseSeen = want.LeaseRenewed, want.LeaseSeen; k != want {
			t.Errorf("known is %+v", k)
		}
	})
}
