package k3supdate

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/pkg/base/k3sprocess"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// lackingPods are facts of a change of each kind that is late, because a pod does not run again.
func lackingPods(t *testing.T) map[string]facts {
	all := map[string]facts{"a version": changing(), "certificates": restarted(), "an override": released(t)}
	for kind, f := range all {
		f.pods["eve-kube-app/a"] = false
		f.journal = decide(f).journal
		f.uptime, f.now = f.uptime+patchFor, f.now.Add(patchFor)
		f.checked = &checked{at: f.uptime, nodes: f.checked.nodes, lock: f.checked.lock}
		f.evidence.disk = f.journal.To
		all[kind] = f
	}
	return all
}

func TestAStuckChangeNamesThePodsThatDoNotRunAgainWhereItLacksNothingElse(t *testing.T) {
	stuck := types.KubeLifecycle{Phase: types.LifecycleStuck, NotBack: []string{"eve-kube-app/a"}}
	for name, row := range map[string]struct {
		change func(*facts)
		named  bool
	}{
		"nothing else":                    {func(*facts) {}, true},
		"while it is looked at once more": {func(f *facts) { f.checked, f.published = nil, stuck }, true},
		"before it was looked at":         {func(f *facts) { f.checked = nil }, false},
		"it is not late yet":              {func(f *facts) { f.uptime = f.journal.Began + 6*time.Minute; f.checked.at = f.uptime }, false},
		"the API server does not answer":  {func(f *facts) { f.known, f.published = false, stuck }, false},
		"the Lease is not renewed":        {func(f *facts) { f.node(0, func(n *types.Node) { n.Ready = types.ConditionUnknown }) }, false},
		"the volumes, for minutes": {func(f *facts) {
			f.checked, f.published, f.listed, f.unlisted = nil, stuck, f.uptime-time.Hour, volumesError{errors.New("list volumes: refused")}
		}, false},
		"the disk has another binary": {func(f *facts) { f.version.OnDisk = false }, false},
		"k3s is the one of before":    {func(f *facts) { f.process = k3sprocess.Process{PID: 7, Start: f.uptime - stableFor/2} }, false},
		"a replica as well": {func(f *facts) {
			f.journal.Volumes = map[string]int{"pv-1": 2}
			f.checked.storage.Volumes = []types.Volume{{Name: "pv-1", State: "attached", Wanted: 2, Running: true, Replicas: []types.Replica{{Node: "n1", Mode: "WO"}, {Node: "n2", Mode: "RW"}}}}
		}, false},
	} {
		for kind, f := range lackingPods(t) {
			row.change(&f)
			a := decide(f)
			if got := slices.Equal(a.status.NotBack, stuck.NotBack); got != row.named || !row.named && a.status.NotBack != nil {
				t.Errorf("%s, %s: %s: %s: %q", kind, name, a.status.Phase, a.status.Reason, a.status.NotBack)
			}
			if row.named && (!a.status.LacksPods() || a.journal.Step == "" || !strings.Contains(a.status.Reason, ": pod eve-kube-app/a ran before")) {
				t.Errorf("%s, %s: %+v", kind, name, a.status)
			}
		}
	}
	for kind, f := range lackingPods(t) {
		f.recovery = types.MountRecovery{BootID: "boot", Phase: types.RepairActs}
		if why := decide(f).status.Reason; !strings.Contains(why, "k3s is restarted for that under the drain lock of this change") || strings.Contains(why, "operator must") {
			t.Errorf("%s: %s", kind, why)
		}
		f.recovery = types.MountRecovery{BootID: "boot", Phase: types.RepairWaits, Reason: "k3s is not restarted: without this node 1 of 3 etcd members would be Ready."}
		if why := decide(f).status.Reason; !strings.Contains(why, f.recovery.Reason+" The drain lock is kept") || strings.Contains(why, "is restarted for that") {
			t.Errorf("%s, which may wait for ever: %s", kind, why)
		}
		f.recovery.Phase = types.RepairGaveUp
		if why := decide(f).status.Reason; !strings.Contains(why, "An operator must investigate") {
			t.Errorf("%s, for which nothing is done any more: %s", kind, why)
		}
	}
}

// A restart for volumes that are not mounted has been told to k3s, which may take its time to end.
func TestAChangeNeitherEndsNorStopsK3sWhileThatRestartsForVolumes(t *testing.T) {
	for kind, f := range lackingPods(t) {
		f.pods["eve-kube-app/a"] = true
		if a := decide(f); a.journal.Step != "" || a.call != free {
			t.Errorf("%s: it ends by itself: call %d, %+v", kind, a.call, a.status)
		}
		told := f.uptime - time.Minute
		f.recovery = types.MountRecovery{BootID: "boot", Last: told, Attempts: 1}
		for name, row := range map[string]struct {
			change func(*facts)
			ends   bool
		}{
			"a moment ago":                 {func(*facts) {}, false},
			"its kubelet is back":          {func(f *facts) { f.uptime, f.process.Start = told+types.MountsBackAfter, told+time.Second }, true},
			"by a look of before":          {func(f *facts) { f.uptime, f.checked.at = told+types.MountsBackAfter, told; f.process.Start = told + 1 }, false},
			"k3s has not ended yet":        {func(f *facts) { f.uptime = told + types.MountsApart - 1 }, false},
			"it never does":                {func(f *facts) { f.uptime = told + types.MountsApart }, true},
			"only its supervisor knows it": {func(f *facts) { f.process = k3sprocess.Process{}; f.uptime = told + types.MountsBackAfter }, true},
			"in a former boot":             {func(f *facts) { f.recovery.BootID = "earlier" }, true},
			"an operator takes the change back": {func(f *facts) {
				f.journal.Sum = sum64 // the former binary is kept
				f.rollback = types.K3sRollbackRequest{Version: f.journal.To, RequestedAt: f.now, LoseChanges: true}
			}, false},
			"another override is wanted": {func(f *facts) { f.known, f.override.Sum = false, more }, false},
		} {
			f := f
			f.checked = &checked{at: f.uptime, nodes: f.checked.nodes, lock: f.checked.lock}
			row.change(&f)
			if f.checked.at > told && f.uptime > told {
				f.checked.at = f.uptime
			}
			a := decide(f)
			if ends := a.journal.Step == ""; ends != row.ends || (a.call == free) != row.ends || !row.ends && (a.call > check || a.journal.Step != f.journal.Step || a.journal.Sum != f.journal.Sum) {
				t.Errorf("%s, %s: call %d, %+v, %+v", kind, name, a.call, a.status, a.journal)
			}
			if a.status.NotBack != nil {
				t.Errorf("%s, %s: k3s may be restarted once more: %+v", kind, name, a.status)
			}
		}
	}
}

// The drain, which looks at no restart, frees its lock with the request.
func TestAChangeThatIsDrainedForEndsOnceNoRestartCanBeginUnderTheLockOfThat(t *testing.T) {
	f := lackingPods(t)["a version"]
	f.journal.Kind, f.uptime = types.K3sMinor, f.journal.Began+minorFor
	f.checked = &checked{at: f.uptime, nodes: f.checked.nodes, lock: types.DrainLock{Holder: "n1", BootID: "boot"}}
	f.published.Drain = types.NodeDrainRequest{RequestedAt: f.now, Context: "test"}
	f.published = decide(f).status
	if !f.published.LacksPods() || f.published.Drain.RequestedAt.IsZero() {
		t.Fatalf("it is %+v", f.published)
	}
	f.pods["eve-kube-app/a"] = true
	a := decide(f)
	if a.journal.Step == "" || a.status.Drain != f.published.Drain || a.status.NotBack != nil || a.again != soon || a.call != noCall {
		t.Errorf("while it is published that pods are lacking: call %d, %+v, %+v", a.call, a.status, a.journal)
	}
	f.published = a.status
	told := f
	told.recovery = types.MountRecovery{BootID: "boot", Last: f.uptime, Attempts: 1} // before that
	if a := decide(told); a.journal.Step == "" || a.status.Drain != f.published.Drain || a.status.NotBack != nil {
		t.Errorf("k3s restarts: %+v, %+v", a.status, a.journal)
	}
	if a := decide(f); a.journal.Step != "" || !a.status.Drain.RequestedAt.IsZero() {
		t.Errorf("afterwards: %+v, %+v", a.status, a.journal)
	}
}

// Of what k3s lacks as it starts again the change is not to blame: it has run well.
func TestAChangeDoesNotReturnWhereK3sIsSlowAfterARestartForVolumes(t *testing.T) {
	f := lackingPods(t)["a version"]
	f.recovery = types.MountRecovery{BootID: "boot", Last: f.uptime}
	f.known, f.process, f.checked = false, k3sprocess.Process{}, nil
	f.uptime += 10 * time.Minute
	if a := decide(f); a.status.Phase != types.LifecycleStuck || a.status.NotBack != nil || a.journal.Step != types.K3sStepChange {
		t.Errorf("after 10 minutes: %+v", a.status)
	}
	f.uptime += 10 * time.Minute
	f.journal.Sum = sum64
	if a := decide(f); a.journal.Step != types.K3sStepReturn {
		t.Errorf("it does not come up at all: %+v", a.status)
	}
	f = lackingPods(t)["certificates"]
	f.journal.Force = true
	f.recovery = types.MountRecovery{BootID: "boot", Last: f.uptime}
	f.known, f.process, f.checked = false, k3sprocess.Process{}, nil
	f.uptime += restoreAfter - 1
	if a := decide(f); a.call != noCall || a.journal.Restored {
		t.Errorf("the certificates of before are put back: call %d, %+v", a.call, a.status)
	}
	f.uptime++
	if a := decide(f); a.call != putBack {
		t.Errorf("they are not: call %d, %+v", a.call, a.status)
	}
}

func TestNothingBeginsUnderALockUnderWhichK3sRestartsForVolumes(t *testing.T) {
	f := ready()
	f.lock.Holder, f.checked.lock = "n1", types.DrainLock{Holder: "n1", Task: types.TaskK3sChange, BootID: "boot"}
	f.recovery = types.MountRecovery{BootID: "boot", Last: f.uptime - time.Minute}
	if a := decide(f); a.journal.Step != "" || a.call != noCall || strings.Join(lacking(a), " ") != "Lock" {
		t.Errorf("call %d, %+v", a.call, a.status)
	}
	f.recovery.Last = f.uptime - types.MountsBackAfter
	if a := decide(f); a.journal.Step == "" {
		t.Errorf("afterwards: call %d, %+v", a.call, a.status)
	}
}

// tells is KubeLifecycle, at whose publication something happens.
type tells struct {
	*pubsub.Table[types.KubeLifecycle]
	then func()
	full atomic.Bool // its disk
}

func (p *tells) Publish(key string, is types.KubeLifecycle) error {
	if p.full.Load() {
		return syscall.ENOSPC
	}
	err := p.Table.Publish(key, is)
	p.then()
	return err
}

// The restart was published before it read KubeLifecycle, and after that was decided.
func TestARestartForVolumesThatIsPublishedAfterTheDecisionKeepsTheLock(t *testing.T) {
	play(t, "n1 n2 n3", func(s *site) {
		a := s.agents[0]
		a.stop()
		s.cluster.SetLock(types.DrainLock{Holder: "n1", BootID: "boot", Task: types.TaskK3sChange})
		c := a.component()
		var told time.Duration
		c.Lifecycle = &tells{Table: &a.lifecycle, then: func() {
			if told == 0 && len(s.cluster.Calls("lock")) > 0 && !c.calling.Busy() { // it has been looked at
				told = c.Uptime()
				_ = a.recovery.Publish(types.Global, types.MountRecovery{BootID: "boot", Last: told})
			}
		}}
		a.run(c)
		for synctest.Wait(); told == 0 || c.Uptime() < told+types.MountsBackAfter-time.Second; s.pass(5 * time.Second) {
			if n := len(s.cluster.Calls("freelock")); n > 0 {
				t.Fatalf("it is freed, told at %s", told)
			}
		}
		s.pass(2 * time.Minute)
		if lock := s.cluster.Lock(); lock.Holder != "" {
			t.Errorf("afterwards it is %+v", lock)
		}
	})
}

// What is there still says that k3s may be restarted under it.
func TestALockIsKeptWhileItCannotBePublishedThatItsChangeHasEnded(t *testing.T) {
	play(t, "n1 n2 n3", func(s *site) {
		a := s.agents[0]
		a.stop()
		s.cluster.SetLock(types.DrainLock{Holder: "n1", BootID: "boot", Task: types.TaskK3sChange})
		_ = a.lifecycle.Publish(types.Global, types.KubeLifecycle{Phase: types.LifecycleStuck, NotBack: []string{"eve-kube-app/a"}})
		c, disk := a.component(), &tells{Table: &a.lifecycle, then: func() {}}
		disk.full.Store(true)
		c.Lifecycle = disk
		a.run(c)
		if s.pass(5 * time.Minute); s.cluster.Lock().Holder != "n1" {
			t.Error("it is freed")
		}
		disk.full.Store(false)
		if s.pass(5 * time.Minute); s.cluster.Lock().Holder != "" || a.is().LacksPods() {
			t.Errorf("later it is %+v", s.cluster.Lock())
		}
	})
}
