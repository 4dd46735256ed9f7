package witness

import (
	"maps"
	"slices"
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

func TestTheNodesOfAClusterThatThisDeviceHasLeftAreForgottenAtOnce(t *testing.T) {
	play(t, func(s *stage) {
		is := func(m types.Membership) {
			_ = s.member.Publish(types.Global, types.ClusterMembership{State: m})
			synctest.Wait()
		}
		remembers := func(when string, want ...string) {
			t.Helper()
			for what, all := range map[string]map[string]types.KnownNode{"memory": s.known.All(), "disk": s.journal.All()} {
				if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, want) {
					t.Errorf("%s: in %s are %v, want %v", when, what, got, want)
				}
			}
		}
		s.sleep(time.Minute)
		s.deleteNode()
		for _, m := range []types.Membership{"", types.MembershipNever, types.MembershipMember, types.MembershipDoubtful, types.MembershipLeaving} {
			is(m)
			s.sleep(time.Hour)
			remembers("while it is "+string(m), "n1", "n2", "n3")
		}
		s.apiIs(false) // and so does a node that is cut off
		s.sleep(2 * knownFor)
		remembers("while it is cut off", "n1", "n2", "n3")
		s.apiIs(true)
		_ = s.nodes.Unpublish("n1") // the last act of the leave
		is(types.MembershipLeft)
		remembers("when it has left")
		s.stop()
		s.start()
		s.sleep(time.Hour)
		remembers("after a restart")
		_ = s.pods.Unpublish("eve-kube-app/a")
		_ = s.nodes.Unpublish("n2")
		s.change(1) // of k3s on the device alone
		s.sleep(time.Minute)
		remembers("on its own", "n1")
		s.change(2)
		is(types.MembershipMember)
		s.sleep(time.Minute)
		_ = s.nodes.Unpublish("n2")
		s.sleep(time.Hour)
		remembers("as a member again", "n1", "n2")
	})
}

func TestANodeThatComesBackWhileItsDeviceLeavesDoesNotKeepTheOthersKnown(t *testing.T) {
	play(t, func(s *stage) {
		s.sleep(time.Minute)
		_ = s.member.Publish(types.Global, types.ClusterMembership{State: types.MembershipLeft})
		s.sleep(time.Minute) // its kubelet has registered the Node again, before k3s stopped
		_ = s.nodes.Unpublish("n2")
		_ = s.nodes.Unpublish("n3")
		s.sleep(time.Minute)
		if len(s.known.All()) != 1 || len(s.journal.All()) != 1 {
			t.Errorf("known are %v, on disk %v", s.known.All(), s.journal.All())
		}
	})
}
