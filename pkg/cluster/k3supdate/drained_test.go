package k3supdate

import (
	"fmt"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

// toMinor are facts of the first of three servers before another minor version.
func toMinor() facts {
	f := ready()
	f.version.Wanted = minor
	for i := range f.nodes {
		f.node(i, func(n *types.Node) { n.K3s = &types.K3sStamp{Wanted: minor} })
	}
	return f
}

func TestAMinorVersionRequestsTheDrainOnceNothingElseIsInTheWay(t *testing.T) {
	asked := types.NodeDrainRequest{RequestedAt: toMinor().now.Add(-time.Hour), RequestedBy: types.DrainRequesterNone, Context: "k3s changes to " + minor}
	asks := func(f *facts) { f.published.Drain = asked }
	for name, row := range map[string]struct {
		change []func(*facts)
		asks   bool
	}{
		"nothing is in the way":                   {nil, true},
		"the volumes have not been looked at":     {[]func(*facts){func(f *facts) { f.checked = nil }}, false},
		"etcd is not well":                        {[]func(*facts){func(f *facts) { f.evidence.etcd.lacks = "etcd has alarm NOSPACE" }}, false},
		"another node has the lock":               {[]func(*facts){func(f *facts) { f.lock.Holder, f.checked.lock = "n2", types.DrainLock{Holder: "n2", BootID: "boot"} }}, false},
		"it stands":                               {[]func(*facts){asks}, true},
		"while pods go":                           {[]func(*facts){asks, func(f *facts) { f.checked, f.drain.Phase = nil, types.PhaseEmptying }}, true},
		"another node was faster with the lock":   {[]func(*facts){asks, func(f *facts) { f.lock.Holder, f.checked.lock = "n2", types.DrainLock{Holder: "n2", BootID: "boot"} }}, true},
		"another node is not Ready for a moment":  {[]func(*facts){asks, func(f *facts) { f.nodes[1].Ready, f.lacked = types.ConditionUnknown, f.uptime-9*time.Minute }}, true},
		"another node is not Ready for long":      {[]func(*facts){asks, func(f *facts) { f.nodes[1].Ready, f.lacked = types.ConditionUnknown, f.uptime-10*time.Minute }}, false},
		"another node may reboot for a moment":    {[]func(*facts){asks, mayReboot, func(f *facts) { f.lacked = f.uptime - 9*time.Minute }}, true},
		"another node may reboot for long":        {[]func(*facts){asks, mayReboot, func(f *facts) { f.lacked = f.uptime - 10*time.Minute }}, false},
		"another node may reboot":                 {[]func(*facts){mayReboot}, false},
		"a volume is degraded for long":           {[]func(*facts){asks, degraded, func(f *facts) { f.lacked = f.uptime - 10*time.Minute }}, false},
		"the API server does not answer":          {[]func(*facts){asks, func(f *facts) { f.known = false }}, true},
		"it is not known which version runs":      {[]func(*facts){asks, func(f *facts) { f.version.Version, f.version.Running = "", "" }}, true},
		"the agent has just started":              {[]func(*facts){asks, func(f *facts) { f.heard = false }}, true},
		"the journal cannot be read":              {[]func(*facts){asks, func(f *facts) { f.unread = true }}, true},
		"the hold file":                           {[]func(*facts){asks, func(f *facts) { f.hold = "the file is there" }}, false},
		"another node failed":                     {[]func(*facts){asks, func(f *facts) { f.nodes[1].K3s = &types.K3sStamp{Wanted: minor, Failed: minor} }}, false},
		"this node leaves":                        {[]func(*facts){asks, func(f *facts) { f.leaves = true }}, false},
		"the setting is another patch":            {[]func(*facts){asks, func(f *facts) { f.version.Wanted = patch }}, false},
		"the setting is what runs":                {[]func(*facts){asks, func(f *facts) { f.version.Wanted = old }}, false},
		"the setting is empty":                    {[]func(*facts){asks, func(f *facts) { f.version.Wanted = "" }}, false},
		"the setting is refused":                  {[]func(*facts){asks, func(f *facts) { f.version.Wanted = "v1.40.0+k3s1" }}, false},
		"a drain that emptied nothing":            {[]func(*facts){asks, func(f *facts) { f.drain.Phase, f.drain.Journal.Dead = types.PhaseComplete, true }}, false},
		"a single node has no place for its pods": {[]func(*facts){func(f *facts) { f.nodes, f.order = f.nodes[:1], f.nodes[:1]; f.checked.nodes = f.nodes }}, false},
	} {
		f := toMinor()
		for _, change := range row.change {
			change(&f)
		}
		a := decide(f)
		if got := a.status.Drain; got.RequestedAt.IsZero() == row.asks || row.asks && f.asksForDrain() && got != asked {
			t.Errorf("%s: it asks %+v: %s", name, got, a.status.Reason)
		}
		if a.journal.Step == types.K3sStepChange && f.nodes[len(f.nodes)-1].Name != "n1" {
			t.Errorf("%s: the change begins without a drain", name)
		}
	}
}

func mayReboot(f *facts) { f.node(1, completed) }

func degraded(f *facts) {
	f.checked.storage.Volumes = []types.Volume{{Name: "pv-1", Robustness: "degraded", Replicas: []types.Replica{{Node: "n1"}}}}
}

func TestWhatDelaysADrainedNodeIsTimedFromItsBeginning(t *testing.T) {
	f := toMinor()
	f.published.Drain.RequestedAt = f.now
	f.nodes[1].Ready = types.ConditionUnknown
	a := decide(f)
	if a.lacked != f.uptime {
		t.Fatalf("it began at %s", a.lacked)
	}
	f.lacked, f.uptime = a.lacked, f.uptime+time.Minute
	if a := decide(f); a.lacked != f.lacked {
		t.Errorf("a minute later it began at %s", a.lacked)
	}
	f.nodes[1].Ready = types.ConditionTrue
	if a := decide(f); a.lacked != 0 || a.status.Drain.RequestedAt.IsZero() {
		t.Errorf("it is over, and began at %s: %+v", a.lacked, a.status)
	}
}

func TestTheDrainStandsUntilAMinorVersionIsVerified(t *testing.T) {
	for _, step := range []types.K3sStep{types.K3sStepSwap, types.K3sStepChange, types.K3sStepReturn} {
		f := toMinor()
		f.journal = types.KubeLifecycleJournal{Step: step, From: old, To: minor, Kind: types.K3sMinor, BootID: "boot", Began: f.uptime}
		if a := decide(f); a.status.Drain.RequestedAt.IsZero() { // after a boot
			t.Errorf("%s: no drain is wanted: %+v", step, a.status)
		}
		f.published.Drain.RequestedAt = f.now.Add(-time.Hour)
		f.known, f.nodes, f.own = false, nil, types.Node{}
		if a := decide(f); a.status.Drain != f.published.Drain {
			t.Errorf("%s, without the API server: %+v", step, a.status)
		}
	}
	f := toMinor()
	f.journal = types.KubeLifecycleJournal{Step: types.K3sStepChange, From: old, To: minor, Kind: types.K3sMinor, BootID: "boot", Began: f.uptime - time.Hour}
	f.published.Drain.RequestedAt = f.now.Add(-time.Hour)
	f.version.Running, f.version.OnDisk = minor, true
	f.node(0, func(n *types.Node) { n.KubeletVersion = minor })
	if a := decide(f); a.journal.Step != types.K3sStepNone || !a.status.Drain.RequestedAt.IsZero() {
		t.Errorf("it is verified: %+v, %+v", a.status, a.journal)
	}
	f.journal.Kind = types.K3sPatch
	f.published.Drain = types.NodeDrainRequest{}
	f.process.Start = f.uptime // not long enough
	f.process.PID = 7
	if a := decide(f); a.journal.Step == types.K3sStepNone || !a.status.Drain.RequestedAt.IsZero() {
		t.Errorf("a patch needs no drain: %+v", a.status)
	}
}

func TestALockOfAChangeThatIsDrainedForIsFreed(t *testing.T) {
	f := toMinor()
	f.published.Drain.RequestedAt, f.checked = f.now, nil
	f.lock, f.drain.Phase = types.Lease{Holder: "n1", Version: "7"}, types.PhaseGates
	if a := decide(f); a.call != check {
		t.Fatalf("call %d: %s", a.call, a.status.Reason)
	}
	f.checked = &checked{at: f.uptime, nodes: f.nodes, lock: types.DrainLock{Holder: "n1", BootID: "boot", Task: types.TaskK3sChange, Version: "7"}}
	if a := decide(f); a.call != free {
		t.Errorf("call %d: %s", a.call, a.status.Reason)
	}
	f.checked, f.looked = nil, "7" // it is the drain's
	if a := decide(f); a.call != noCall {
		t.Errorf("of the drain: call %d", a.call)
	}
}

func TestThreeServersAreDrainedForAMinorVersionOneAfterTheOther(t *testing.T) {
	play(t, "n1 n2 n3", func(s *site) {
		s.pass(time.Minute)
		s.wants(minor, true) // also without their turn
		for i := 0; i < 120 && len(s.order) == 0; i++ {
			s.pass(5 * time.Second)
		}
		for _, a := range s.agents { // while k3s of one is stopped
			a.stop()
			a.start()
		}
		s.pass(30 * time.Minute)
		if s.most != 1 || len(s.order) != 3 || s.cluster.Lock().Holder != "" {
			t.Errorf("%v changed, %d at once; the lock is %+v", s.order, s.most, s.cluster.Lock())
		}
		for _, a := range s.agents {
			n, _ := s.nodes.Get(a.name)
			if drain, _ := a.drain.Get(types.Global); n.KubeletVersion != minor || a.drained != 1 || drain.Phase != "" || a.is().Phase != types.LifecycleIdle {
				t.Errorf("%s was drained %d times, %+v: %+v", a.name, a.drained, drain, a.is())
			}
		}
	})
}

// The change has ended because its node was drained under its lock, for a reboot.
func TestALockUnderWhichThisNodeWasDrainedIsFreedOnceItIsBack(t *testing.T) {
	play(t, "n1 n2 n3", func(s *site) {
		rebuilt := func(mode string) types.Storage {
			return types.Storage{Longhorn: true, Volumes: []types.Volume{{
				Name: "pv-1", State: "attached", Running: true, Robustness: "degraded", Wanted: 2, Replicas: []types.Replica{{Node: "n1", Mode: mode}, {Node: "n2", Mode: "RW"}},
			}}}
		}
		s.agents[0].stop()
		s.cluster.SetStorage(rebuilt("WO"))
		s.cluster.ChangeNode("n1", func(n *types.Node) {
			n.Ready, n.Unschedulable, n.CordonedBy = types.ConditionFalse, true, &types.Cordon{By: "zedkube"}
		})
		s.cluster.SetLock(types.DrainLock{Holder: "n1", BootID: "before", Task: types.TaskK3sChange, Since: time.Now().Add(-2 * time.Hour), Volumes: map[string]int{"pv-1": 2}})
		_ = s.agents[0].drain.Publish(types.Global, types.NodeDrainProgress{Phase: types.PhaseIdle, Reason: "the device has rebooted"})
		s.agents[0].start()
		kept := func(when string) {
			s.pass(3 * time.Minute)
			if lock := s.cluster.Lock(); lock.Holder != "n1" {
				t.Errorf("%s: it is freed: %+v", when, lock)
			}
		}
		kept("it is not Ready")
		s.cluster.ChangeNode("n1", func(n *types.Node) { n.Ready = types.ConditionTrue })
		kept("it is cordoned")
		s.cluster.ChangeNode("n1", func(n *types.Node) { n.Unschedulable, n.CordonedBy = false, nil })
		kept("its replica is rebuilt")
		s.cluster.SetStorage(rebuilt("RW"))
		s.pass(3 * time.Minute)
		if lock := s.cluster.Lock(); lock.Holder != "" {
			t.Errorf("the node is back: %+v", lock)
		}
	})
}

// A change that an operator has released without its volumes waits for none of them, and the lock is not free in between.
func TestTheNextChangeTakesTheLockOfAFormerBootAsItIs(t *testing.T) {
	play(t, "n1 n2 n3", func(s *site) {
		a := s.agents[0]
		s.pass(time.Minute)
		a.stop()
		s.cluster.SetLock(types.DrainLock{Holder: "n1", BootID: "before", Task: types.TaskK3sChange, Since: time.Now().Add(-2 * time.Hour), Volumes: map[string]int{"pv-1": 2, "pv-2": 1}})
		rebuilt := func(mode string) types.Storage {
			return types.Storage{Longhorn: true, Volumes: []types.Volume{
				{Name: "pv-1", State: "attached", Running: true, Robustness: "degraded", Wanted: 2, Replicas: []types.Replica{{Node: "n1", Mode: mode}, {Node: "n2", Mode: "RW"}}},
				{Name: "pv-2", State: "attached", Running: true, Robustness: "healthy", Wanted: 2, Replicas: []types.Replica{{Node: "n1", Mode: "RW"}, {Node: "n3", Mode: "RW"}}}, // whole meanwhile
			}}
		}
		s.cluster.SetStorage(rebuilt("WO"))
		s.wants(patch, false)
		a.releases(patch)
		a.start()
		s.pass(time.Minute)
		if lock := s.cluster.Lock(); lock.Holder != "n1" || lock.BootID != "boot" || time.Since(lock.Since) > time.Minute || lock.Volumes["pv-1"] != 2 || lock.Volumes["pv-2"] != 2 || len(s.cluster.Calls("freelock")) > 0 {
			t.Errorf("the lock is %+v, %s: %s", lock, a.is().Phase, a.is().Reason)
		}
		s.pass(20 * time.Minute)
		n1, _ := s.nodes.Get("n1")
		if lock := s.cluster.Lock(); n1.KubeletVersion != patch || a.is().Phase != types.LifecycleIdle || lock.Holder != "n1" || !lock.Ended || lock.Volumes["pv-1"] != 2 {
			t.Errorf("n1 runs %s, and its replica is rebuilt still: the lock is %+v, %s: %s", n1.KubeletVersion, lock, a.is().Phase, a.is().Reason)
		}
		s.cluster.SetStorage(rebuilt("RW"))
		s.pass(3 * time.Minute)
		if lock := s.cluster.Lock(); lock.Holder != "" {
			t.Errorf("its replica is rebuilt: %+v", lock)
		}
	})
}

// n2 was drained and rebooted under the lock of its change, which has ended. Its agent keeps the lock while its replica
// is rebuilt; who took it would forget the volume.
func TestTheLockThatAnotherNodeKeepsForItsVolumesIsLeft(t *testing.T) {
	play(t, "n1 n2 n3", func(s *site) {
		a := s.agents[0]
		s.pass(time.Minute)
		s.cluster.SetStorage(types.Storage{Longhorn: true, Volumes: []types.Volume{
			{Name: "pv-9", State: "attached", Running: true, Robustness: "degraded", Wanted: 2, Replicas: []types.Replica{{Node: "n2", Mode: "WO"}, {Node: "n3", Mode: "RW"}}},
		}})
		s.cluster.SetLock(types.DrainLock{Holder: "n2", BootID: "before", Task: types.TaskK3sChange, Since: time.Now().Add(-2 * time.Hour), Volumes: map[string]int{"pv-9": 2}})
		s.wants(patch, false)
		a.releases(patch)
		s.pass(30 * time.Minute)
		if lock := s.cluster.Lock(); len(s.order) > 0 || lock.Holder != "n2" || lock.Volumes["pv-9"] != 2 {
			t.Errorf("the lock is %+v; n1: %s: %s", lock, a.is().Phase, a.is().Reason)
		}
		s.agents[1].stop() // it does not free the lock
		s.cluster.SetStorage(types.Storage{Longhorn: true})
		s.pass(20 * time.Minute)
		if n1, _ := s.nodes.Get("n1"); n1.KubeletVersion != patch {
			t.Errorf("the volume is deleted; n1: %s: %s", a.is().Phase, a.is().Reason)
		}
	})
}

// What is in the way under the lock of before ends the change, which has not begun, and does not free the lock.
func TestALockThatIsTakenOverForAChangeThatDoesNotBeginIsKept(t *testing.T) {
	f := underLock(expiring(50 * day))
	f.checked.lock.Volumes = map[string]int{"pv-1": 2}
	f.checked.storage = types.Storage{Longhorn: true, Volumes: []types.Volume{{Name: "pv-1", State: "attached", Running: true, Wanted: 2, Robustness: "degraded", Replicas: []types.Replica{{Node: "n1", Mode: "WO"}, {Node: "n2", Mode: "RW"}}}}}
	if a := decide(f); a.call != end || a.journal.Step != "" {
		t.Errorf("call %d, %+v", a.call, a.journal)
	}
	f.checked.lock.Ended = true
	if a := decide(f); a.call != noCall {
		t.Errorf("once that is noted: call %d", a.call)
	}
	f.checked.storage.Volumes[0].Robustness = "healthy" // as Longhorn says, a moment before it says so of the replica
	if a := decide(f); a.call != take || a.journal.Step != "" {
		t.Errorf("nothing is in the way any more: call %d, %+v", a.call, a.journal)
	}
}

// The node of the third replica is gone for good. It is removed, and replaced, under the same lock.
func TestALockOfAFormerBootIsNotKeptForAReplicaThatAnotherNodeLacks(t *testing.T) {
	well := types.Replica{LastMode: "RW", HealthyAt: time.Unix(1, 0)}
	for name, v := range map[string]types.Volume{
		"the engine runs":                   {Running: true, Robustness: "degraded", Engine: "n2", Replicas: []types.Replica{{Mode: "RW"}, {Mode: "RW"}, {Mode: "ERR"}}},
		"the engine is lost with that node": {Robustness: "unknown", Engine: "n3", Replicas: []types.Replica{well, well, well}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, "n1 n2 n3", func(s *site) {
				a := s.agents[0]
				s.pass(time.Minute)
				a.stop()
				s.cluster.ChangeNode("n3", func(n *types.Node) { n.Ready = types.ConditionUnknown })
				s.cluster.SetLock(types.DrainLock{Holder: "n1", BootID: "before", Task: types.TaskK3sChange, Since: time.Now().Add(-2 * time.Hour), Volumes: map[string]int{"pv-1": 3}})
				v.Name, v.State, v.Wanted = "pv-1", "attached", 3
				for i := range v.Replicas {
					v.Replicas[i].Node = fmt.Sprint("n", i+1)
				}
				s.cluster.SetStorage(types.Storage{Longhorn: true, Volumes: []types.Volume{v}})
				a.start()
				s.pass(10 * time.Minute)
				if lock := s.cluster.Lock(); lock.Holder != "" {
					t.Errorf("n1 is back and has its replica: %+v", lock)
				}
			})
		})
	}
}
