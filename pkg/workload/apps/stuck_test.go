package apps

import (
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

// hang makes the virtual machine stay in a phase, with its launcher as it is.
func (s *scene) hang(phase types.VMIPhase, change ...func(*types.Pod)) {
	s.vmis[0].Phase = phase
	for _, f := range change {
		f(&s.pods[0])
	}
}

func broken(reason string) func(*types.Pod) {
	return func(p *types.Pod) {
		p.Phase = types.PodPending
		p.Containers = []types.Container{{Name: "compute", Waiting: reason}}
	}
}

// after makes everything that is seen now have been seen for so long.
func (s *scene) after(d time.Duration) {
	for _, k := range s.follow().judged().keys {
		s.since[k] = s.uptime - d
	}
}

func TestAVirtualMachineCountsAsStuckByEvidence(t *testing.T) {
	rows := map[string]struct {
		change func(*scene)
		after  time.Duration // when it is recreated; 0: never
		phase  types.RepairPhase
	}{
		"its launcher runs and it does not": {func(s *scene) { s.hang(types.VMIScheduling) }, stuckFor, types.RepairWaits},
		"its launcher has failed": {func(s *scene) {
			s.hang(types.VMIScheduled, func(p *types.Pod) { p.Phase = types.PodFailed })
		}, stuckFor, types.RepairWaits},
		"its image cannot be had": {func(s *scene) { s.hang(types.VMIPending, broken("ErrImageNeverPull")) }, stuckFor, types.RepairWaits},
		"its launcher crashes":    {func(s *scene) { s.hang(types.VMIPending, broken("CrashLoopBackOff")) }, stuckFor, types.RepairWaits},
		"a container ended with an error": {func(s *scene) {
			s.hang(types.VMIScheduling, func(p *types.Pod) {
				p.Containers = []types.Container{{Name: "compute", Now: types.ContainerRun{Finished: now, ExitCode: 1}}}
			})
		}, stuckFor, types.RepairWaits},
		"no node takes it": {func(s *scene) {
			s.hang(types.VMIScheduling, func(p *types.Pod) { p.Phase, p.NodeName, p.Unschedulable = types.PodPending, "", "0/3 nodes" })
		}, 0, types.RepairWaits},
		"its node is not ready": {func(s *scene) {
			s.hang(types.VMIScheduling)
			n := s.nodes["n2"]
			n.Ready = types.ConditionFalse
			s.nodes["n2"] = n
		}, 0, types.RepairWaits},
		"it is being deleted already": {func(s *scene) { s.hang(types.VMIScheduling); s.vmis[0].Deleted = now }, 0, types.RepairWaits},
		"one that runs is not stuck":  {func(*scene) {}, 0, types.RepairWell},
		"the second time takes twice as long": {func(s *scene) {
			s.hang(types.VMIScheduling)
			s.set.Note.Stuck = 1
		}, 2 * stuckFor, types.RepairWaits},
		"after three times it is given up": {func(s *scene) {
			s.hang(types.VMIScheduling)
			s.set.Note.Stuck = mostStuck
		}, 0, types.RepairGaveUp},
		"also when it is tied to its node": {func(s *scene) {
			s.hang(types.VMIScheduling)
			s.cfg.AffinityType = types.AffinityRequired
		}, stuckFor, types.RepairWaits},
	}
	for row, r := range rows {
		t.Run(row, func(t *testing.T) {
			s := newScene()
			r.change(s)
			for _, d := range []time.Duration{0, stuckFor, 2 * stuckFor, slowFor, time.Hour} {
				s.after(max(0, d-time.Second))
				before := s.judged()
				s.after(d)
				if r.after > 0 && d == r.after && (before.target != nil || before.again == 0) {
					t.Errorf("a second before %s: %+v", d, before)
				}
				// n2 has the pod, n1 is next: it leaves n2 one turn.
				v := s.judged()
				if due := r.after > 0 && d >= r.after+turn; (v.target != nil) != due {
					t.Errorf("after %s: acts %v, want %v (%s)", d, v.target != nil, due, v.reason)
				}
				if v.target == nil && d == 0 && v.phase != r.phase {
					t.Errorf("%s, want %s: %s", v.phase, r.phase, v.reason)
				}
			}
			if r.after > 0 {
				s.after(r.after + turn)
				if v := s.judged(); v.target == nil || v.act != types.ActUnstick || v.target.note.Stuck != s.set.Note.Stuck+1 {
					t.Errorf("in its turn it does not act: %+v", v)
				}
			}
		})
	}
}

func TestAnInstanceIsCountedOnce(t *testing.T) {
	for row, r := range map[string]struct {
		note  types.RepairNote
		after time.Duration // when it is deleted; 0: never
		stuck int           // counted then
	}{
		"it is the first":                       {types.RepairNote{}, stuckFor, 1},
		"it is counted and still there":         {types.RepairNote{Stuck: 1, StuckVMI: "vmi"}, stuckFor, 1},
		"it is the last one and still there":    {types.RepairNote{Stuck: mostStuck, StuckVMI: "vmi"}, stuckFor << (mostStuck - 1), mostStuck},
		"the last one is gone":                  {types.RepairNote{Stuck: mostStuck, StuckVMI: "former"}, 0, 0},
		"an earlier release has counted it":     {types.RepairNote{Stuck: 1}, 2 * stuckFor, 2},
		"it is counted, and its count was lost": {types.RepairNote{StuckVMI: "vmi"}, stuckFor, 1},
	} {
		s := newScene()
		s.hang(types.VMIScheduling)
		s.here()
		s.set.Note = r.note
		for _, d := range []time.Duration{r.after - time.Second, r.after, 24 * time.Hour} {
			s.after(d)
			v := s.judged()
			if due := r.after > 0 && d >= r.after; (v.target != nil) != due {
				t.Errorf("%s: after %s: acts %v (%s)", row, d, v.target != nil, v.reason)
			} else if due && (v.target.note.Stuck != r.stuck || v.target.note.StuckVMI != "vmi") {
				t.Errorf("%s: the note is to be %+v", row, v.target.note)
			}
		}
	}
}

func TestAnApplicationReturnsToItsDesignatedNode(t *testing.T) {
	rows := map[string]struct {
		change func(*scene)
		want   bool
	}{
		"after the boot, where that is asked for": {func(*scene) {}, true},
		"not twice for one boot":                  {func(s *scene) { s.set.Note.Failback = "boot" }, false},
		"but while the pod of that try still runs": {func(s *scene) {
			s.set.Note.Failback, s.set.Note.Evicted, s.set.Note.Returned = "boot", s.pods[0].UID, now.Add(-betweenFailbacks)
		}, true},
		"not until five minutes after it": {func(s *scene) {
			s.set.Note.Failback, s.set.Note.Evicted, s.set.Note.Returned = "boot", s.pods[0].UID, now.Add(1-betweenFailbacks)
		}, false},
		"not while that pod terminates": {func(s *scene) {
			s.set.Note.Failback, s.set.Note.Evicted, s.pods[0].Deleted = "boot", s.pods[0].UID, now
		}, false},
		"not where another one runs by now": {func(s *scene) { s.set.Note.Failback, s.set.Note.Evicted = "boot", "former" }, false},
		"not long after the boot":           {func(s *scene) { s.uptime = afterBoot }, false},
		"whenever it is healthy, where that is asked for": {func(s *scene) {
			s.uptime, s.events = up, "boot, healthy"
			s.fresh.at = up - time.Second
		}, true},
		"not where nothing is asked for":        {func(s *scene) { s.events = "" }, false},
		"not to a node that has just come":      {func(s *scene) { s.node("n1", func(n *types.Node) { n.ReadySince = now.Add(-time.Minute) }) }, false},
		"to one whose clock was set back since": {func(s *scene) { s.node("n1", func(n *types.Node) { n.ReadySince = now.Add(9 * time.Hour) }) }, true},
		"not to a cordoned node":                {func(s *scene) { s.node("n1", func(n *types.Node) { n.Unschedulable = true }) }, false},
		"not while any node is not ready":       {func(s *scene) { s.node("n3", func(n *types.Node) { n.Ready = types.ConditionFalse }) }, false},
		"not while any node drains":             {func(s *scene) { s.node("n3", func(n *types.Node) { n.DrainInProgress = types.ConditionTrue }) }, false},
		"not where it is not designated":        {func(s *scene) { s.cfg.IsDesignatedNodeID = false }, false},
		"not over a volume that rebuilds":       {func(s *scene) { s.storage().Robustness = "degraded" }, false},
		"not over a volume nothing is known of": {func(s *scene) { s.fresh.storage.Volumes = nil }, false},
		"not after an old look":                 {func(s *scene) { s.fresh.at = s.uptime - time.Minute }, false},
		"not while it does not run":             {func(s *scene) { s.pods[0].Phase = types.PodPending }, false},
		"not when it is here already":           {func(s *scene) { s.pods[0].NodeName = "n1" }, false},
		"not soon after another one": {func(s *scene) {
			s.sets["other"] = types.AppSet{Note: types.RepairNote{Act: types.ActFailback, At: now.Add(-time.Minute)}}
		}, false},
		"not soon after another one that has failed over since": {func(s *scene) {
			s.sets["other"] = types.AppSet{Note: types.RepairNote{Act: types.ActFailover, Returned: now.Add(-time.Minute)}}
		}, false},
		"at any time where it is tied to this node by now": {func(s *scene) {
			s.uptime, s.events, s.cfg.AffinityType, s.set.Affinity.Required = up, "", types.AffinityRequired, true
			s.fresh.at = up - time.Second
		}, true},
		"a container, where its set asks for this node": {func(s *scene) {
			s.contain(types.SetAffinity{Node: "n1"})
		}, true},
		"a container that is tied to this node": {func(s *scene) {
			s.contain(types.SetAffinity{Node: "n1", Required: true})
			s.events, s.cfg.AffinityType = "", types.AffinityRequired
		}, true},
		"not a container whose set requires its former designated node": {func(s *scene) {
			s.contain(types.SetAffinity{Node: "n2", Required: true})
			s.cfg.AffinityType = types.AffinityRequired
		}, false},
		"nor one whose set prefers that": {func(s *scene) { s.contain(types.SetAffinity{Node: "n2"}) }, false},
		"not again within the hour, whatever the scheduler did": {func(s *scene) {
			s.events = "healthy"
			s.set.Note = types.RepairNote{Act: types.ActFailback, At: now.Add(-30 * time.Minute)}
		}, false},
		"nor where it has failed over since": {func(s *scene) {
			s.events = "healthy"
			s.set.Note = types.RepairNote{Returned: now.Add(-30 * time.Minute)}
		}, false},
		"but after an hour": {func(s *scene) {
			s.events = "healthy"
			s.set.Note = types.RepairNote{Returned: now.Add(-61 * time.Minute)}
		}, true},
	}
	for row, r := range rows {
		t.Run(row, func(t *testing.T) {
			s := newScene()
			s.cfg.IsDesignatedNodeID, s.events, s.uptime = true, "boot", 10*time.Minute
			s.fresh.at = s.uptime - time.Second
			s.set.Affinity.Node = "n1"
			s.storage().Robustness, s.storage().Running = "healthy", true
			for i := range s.storage().Replicas {
				s.storage().Replicas[i].Mode = "RW"
			}
			s.follow()
			r.change(s)
			other, has := s.sets["other"]
			s.follow()
			if has {
				s.sets["other"] = other
			}
			v := s.judged()
			if got := v.target != nil && v.act == types.ActFailback; got != r.want {
				t.Errorf("it returns: %v, want %v: %s", got, r.want, v.reason)
			}
			if r.want && (len(v.target.pods) != 1 || v.target.note.Failback != "boot" || v.target.note.LastFailback() != now) {
				t.Errorf("what is evicted: %+v", v.target)
			}
		})
	}
}

func TestTheTimeOfTheLastFailbackOutlastsOtherActs(t *testing.T) {
	at := now.Add(-20 * time.Minute)
	for row, note := range map[string]types.RepairNote{
		"a note of this release":      {Act: types.ActFailback, At: at, Returned: at},
		"one of the release before":   {Act: types.ActFailback, At: at},
		"one of a failover since":     {Act: types.ActFailover, At: now, Returned: at},
		"one of a move, long settled": {Moved: now, MovedTo: "n1", Returned: at},
	} {
		s := newScene()
		s.set.Note = note
		a := s.follow().apps()[0]
		for _, act := range []types.RepairAct{types.ActFailover, types.ActUnstick, types.ActRevive} {
			if n := s.noted(a, act, ""); !n.LastFailback().Equal(at) {
				t.Errorf("%s: %s notes that the last one was at %s", row, act, n.LastFailback())
			}
		}
		a.set.Note = s.noted(a, types.ActFailover, "n2")
		s.since["settle/set"] = up - time.Hour
		if v, ok := s.settle(a); !ok || v.target == nil || v.target.note.Act != "" || !v.target.note.LastFailback().Equal(at) {
			t.Errorf("%s: it is settled with %+v", row, v.target)
		}
	}
	if n := (types.RepairNote{Act: types.ActFailover, At: at}); !n.LastFailback().IsZero() {
		t.Errorf("a failover counts as a failback at %s", n.LastFailback())
	}
}

// contain makes the application one of containers, which runs on n2.
func (s *scene) contain(affinity types.SetAffinity) {
	s.cfg = config(container, designated)
	s.cfg.Activate = true
	s.set.Kind, s.set.AppDomain, s.set.Affinity = types.KindReplicaSet, "", affinity
	s.pods, s.vmis = []types.Pod{pod("a", on("n2"))}, nil
}

func (s *scene) node(name string, change func(*types.Node)) {
	n := s.nodes[name]
	change(&n)
	s.nodes[name] = n
}

// A kubelet says now that an image cannot be obtained, now that it will try again.
func TestWhatFailsInTurnsHasFailedSinceTheFirstTime(t *testing.T) {
	s := newScene()
	s.hang(types.VMIPending, broken("ErrImagePull"))
	s.after(stuckFor + turn - time.Second)
	for _, reason := range []string{"ImagePullBackOff", "ErrImagePull", "CrashLoopBackOff"} {
		s.hang(types.VMIPending, broken(reason))
		if v := s.follow().judged(); v.again != time.Second {
			t.Errorf("%s begins anew: %s", reason, v.again)
		}
	}
	s.hang(types.VMIPending, broken("ContainerCreating"))
	s.here()
	if v := s.follow().judged(); v.again < slowFor {
		t.Errorf("what has not failed has failed before: %s", v.again)
	}
}

func TestASetAtNoneIsLeftToTheNodesBefore(t *testing.T) {
	s := newScene()
	s.nodes["n0"] = types.Node{Name: "n0", UID: "uid-n0", Ready: types.ConditionTrue, Agent: &types.AgentStamp{}}
	s.set.Wanted, s.pods, s.vmis = 0, nil, nil
	s.since["none/set"] = s.uptime - leftAtNone - turn + time.Second
	if v := s.follow().judged(); v.target != nil || v.again != time.Second {
		t.Errorf("before its turn: %+v", v)
	}
	s.since["none/set"] -= time.Second
	if v := s.judged(); v.target == nil {
		t.Errorf("in its turn: %+v", v)
	}
}

// mounting makes the launcher wait for its volumes.
func mounting(p *types.Pod) {
	broken("ContainerCreating")(p)
	p.IP, p.Claims = "", []string{"data"}
}

// remounted makes the launcher wait for its volumes on n1, and says what is known of that.
func (s *scene) remounted(phase types.RepairPhase) {
	s.here()
	s.hang(types.VMIScheduling, mounting)
	s.mounts = types.MountRecovery{Pods: []string{s.pods[0].Key()}, Phase: phase, Reason: "Its volumes are not mounted."}
}

// here moves the launcher to n1, from where it is looked at.
func (s *scene) here() { s.pods[0].NodeName, s.vmis[0].NodeName = "n1", "n1" }

func TestAnApplicationWhoseVolumesAreNotMountedIsLeftToTheRestartOfK3s(t *testing.T) {
	for _, phase := range []types.RepairPhase{types.RepairWaits, types.RepairActs} {
		s := newScene()
		s.remounted(phase)
		for _, d := range []time.Duration{0, slowFor, 24 * time.Hour} {
			s.after(d)
			if v := s.judged(); v.target != nil || v.act != types.ActRestart || v.phase != phase || v.reason != s.mounts.Reason {
				t.Errorf("after %s: %+v", d, v)
			}
		}
		s.mounts, s.since = types.MountRecovery{}, map[string]time.Duration{}
		if v := s.judged(); v.act != types.ActUnstick || v.again < slowFor {
			t.Errorf("%s: after it is over, it is made again in %s: %+v", phase, v.again, v)
		}
	}
	s := newScene()
	s.remounted(types.RepairActs)
	s.pods[0].Phase, s.vmis[0].Phase = types.PodRunning, types.VMIRunning
	if v := s.judged(); v.phase != types.RepairWell {
		t.Errorf("its pod runs by now: %+v", v)
	}
}

func TestWhereK3sIsNotRestartedAnInstanceIsMadeAgainAsEver(t *testing.T) {
	for _, phase := range []types.RepairPhase{types.RepairRefused, types.RepairGaveUp} {
		s := newScene()
		s.remounted(phase)
		s.after(slowFor - time.Second)
		if v := s.judged(); v.target != nil || v.act != types.ActRestart || v.phase != phase || v.reason != s.mounts.Reason || v.again != time.Second {
			t.Errorf("%s: before: %+v", phase, v)
		}
		s.after(slowFor)
		if v := s.judged(); v.target == nil || v.act != types.ActUnstick {
			t.Errorf("%s: %+v", phase, v)
		}
	}
}

func TestALauncherThatDoesNotStartIsGivenTime(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*scene)
		after  time.Duration
	}{
		"it waits for its volumes on this node": {func(s *scene) { s.here(); mounting(&s.pods[0]) }, slowFor},
		"that is left to another node's agent for a while": {func(s *scene) {
			mounting(&s.pods[0])
			s.node("n2", func(n *types.Node) { n.Agent = &types.AgentStamp{TLS: true} })
		}, slowFor + remountFor},
		"that agent is gone": {func(s *scene) { mounting(&s.pods[0]); s.node("n2", func(n *types.Node) { n.StampStale = true }) }, slowFor},
		"that agent is from before it could help": {func(s *scene) {
			mounting(&s.pods[0])
			s.node("n2", func(n *types.Node) { n.Agent = &types.AgentStamp{} })
		}, slowFor},
		"its volumes are mounted there":                      {func(s *scene) { mounting(&s.pods[0]); s.pods[0].IP = "10.42.0.7" }, slowFor},
		"it has no volumes":                                  {func(s *scene) { mounting(&s.pods[0]); s.pods[0].Claims = nil }, slowFor},
		"another container of it has begun, so they must be": {func(s *scene) { mounting(&s.pods[0]); s.pods[0].Containers[0].Now.Started = now }, slowFor},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene()
			s.hang(types.VMIScheduling, broken("ContainerCreating"))
			row.change(s)
			s.after(0)
			turns := s.turns(s.apps()[0])
			for d, acts := range map[time.Duration]bool{stuckFor: false, row.after + turns - time.Second: false, row.after + turns: true} {
				s.after(d)
				if v := s.judged(); v.act != types.ActUnstick || (v.target != nil) != acts {
					t.Errorf("after %s: %+v", d, v)
				}
			}
		})
	}
}

func TestDisabledWorkloadsAreLeftAlone(t *testing.T) {
	for name, disable := range map[string]func(*scene){
		"by the status":                         func(s *scene) { s.off = types.WorkloadsStatus{Phase: types.WorkloadsDisabling} },
		"since long":                            func(s *scene) { s.off = types.WorkloadsStatus{Phase: types.WorkloadsDisabled} },
		"by the set, before the status says so": func(s *scene) { s.set.Former = &types.FormerScale{UID: s.set.UID, Replicas: 1} },
	} {
		s := newScene()
		s.set.Wanted, s.pods, s.vmis = 0, nil, nil
		disable(s)
		s.since["none/set"] = 0
		if v := s.follow().judged(); v.target != nil || v.phase != types.RepairWell || v.act != types.ActNone || !strings.Contains(v.reason, "disabled") {
			t.Errorf("%s: %+v", name, v)
		}
	}
	s := newScene()
	s.off = types.WorkloadsStatus{Phase: types.WorkloadsEnabling}
	s.set.Wanted, s.pods, s.vmis = 0, nil, nil
	s.since["none/set"] = 0
	if v := s.follow().judged(); v.act != types.ActRevive {
		t.Errorf("while they are enabled, one that is at 0 by itself is %+v", v)
	}
}
