package k3sconfig

import (
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

// The vault of a device with TPM and ext4 is an encrypted directory: it is there from the boot on, and
// until vaultmgr has the key no name in it is found.
func lockedVault(t *testing.T, play func(*story)) {
	tell(t, func(s *story) {
		_ = s.member.Publish(types.Global, types.ClusterMembership{State: types.MembershipMember})
		_ = s.kube.Publish(types.Global, kube("v1.34.2+k3s1", false)) // it has run
		_ = s.lifecycle.Publish(types.Global, types.KubeLifecycle{Phase: types.LifecycleIdle})
		s.mount()
		s.start()
		play(s)
	})
}

func TestAnOverrideThatWasBehindALockedVaultIsReadOnceThatIsUnlocked(t *testing.T) {
	for name, seen := range map[string]func(*story){
		"by the k3s on the disk":       func(s *story) { s.k3s("v1.34.2+k3s1") },
		"by the own Node of this boot": func(s *story) { s.node("v1.34.2+k3s1", boot); s.joins() },
	} {
		t.Run(name, func(t *testing.T) {
			lockedVault(t, func(s *story) {
				s.say("", "", before)
				time.Sleep(time.Minute)
				s.put(s.file, before)
				seen(s)
				s.later()
				if o, _ := s.override.Get(types.Global); o.InForce != o.Sum {
					s.Errorf("in force %.12q, wanted %.12q: a change would begin that changes nothing", o.InForce, o.Sum)
				}
			})
		})
	}
}

func TestThatThereIsNoOverrideIsKnownOnceTheVaultIsUnlocked(t *testing.T) {
	lockedVault(t, func(s *story) {
		s.say("", "", before)
		time.Sleep(time.Minute)
		if o, _ := s.override.Get(types.Global); o.InForce != "" {
			s.Errorf("while it is locked: in force %.12q", o.InForce)
		}
		s.k3s("v1.34.2+k3s1")
		s.later()
		if o, _ := s.override.Get(types.Global); o.InForce != types.K3sNoOverride {
			s.Errorf("unlocked: in force %.12q", o.InForce)
		}
	})
}

func TestAFileBehindALockedVaultIsNotRemovedWithoutATurn(t *testing.T) {
	lockedVault(t, func(s *story) {
		s.say("", "", "") // the setting was emptied, and other nodes come first
		s.put(s.file, before)
		s.k3s("v1.34.2+k3s1")
		time.Sleep(time.Minute)
		s.settle()
		s.expect(before)
	})
}

// The operator may need it: k3s has last run with it.
func TestTheFormerFileIsKeptUntilTheJournalIsRead(t *testing.T) {
	member(t, after, func(s *story) {
		s.stop()
		s.put(s.file+".former", before)
		s.start()
		s.say("", "", after)
		for _, unread := range []types.KubeLifecycle{{}, {Phase: types.LifecycleWaits, Reason: "The disk has not answered."}, {Phase: types.LifecycleStuck}} {
			_ = s.lifecycle.Publish(types.Global, unread)
			s.later()
			s.beside(before)
		}
		s.ends()
		s.beside("")
	})
}

// Where /var/lib of the kube container is a volume of its own, a k3s that does not come up cannot be seen. The
// override file that was read is in the same vault as the former one.
func TestTheCureIsWrittenWhereK3sCannotBeSeen(t *testing.T) {
	lockedVault(t, func(s *story) {
		s.put(s.file, before)
		s.say("", "", after)
		s.later()
		s.turn(after, before)
		s.later()
		s.expect(after)
	})
}
