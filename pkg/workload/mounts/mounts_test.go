package mounts

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

const three = "n1 n2 n3"

func TestK3sIsRestartedForAPodWhoseVolumesAreNotMounted(t *testing.T) {
	play(t, three, func(s *stage) {
		a := s.start("n1")
		s.pass(4 * time.Minute)
		a.is(0, types.RepairWell, "")
		if a.says().Watch {
			t.Error("volumes are watched for a pod that has waited for four minutes")
		}
		s.pass(2 * time.Minute)
		if a.is(0, types.RepairWell, ""); !a.says().Watch {
			t.Error("volumes are not watched for a pod that has waited for six minutes")
		}
		s.pass(3 * time.Minute)
		a.is(1, types.RepairActs, "The drain lock is kept until the kubelet of this node is back after a restart of k3s.")
		if !slices.Equal(a.says().Pods, []string{"eve-kube-app/app-n1"}) || a.says().Attempts != 1 {
			t.Errorf("it says %+v", a.says())
		}
		if len(a.audit) != 1 || a.audit[0].Op != "restart k3s" || a.audit[0].Target != "node/n1" || a.audit[0].Outcome != types.OperationOK || a.audit[0].Component != "mounts" {
			t.Errorf("the audit has %+v", a.audit)
		}
		if last := a.logs.LastEntry(); last == nil || !strings.HasPrefix(last.Message, "MOUNT-WEDGE-RECOVERY: ") {
			t.Errorf("the log ends with %+v", last)
		}
		s.pass(2 * time.Minute)
		if lock := s.cluster.Lock(); lock.Holder != "n1" || lock.Task != types.TaskK3s || lock.BootID != "boot" {
			t.Errorf("before the node is back the lock is %+v", lock)
		}
		s.pass(2 * time.Minute)
		if lock := s.cluster.Lock(); lock.Holder != "" {
			t.Errorf("after the node is back the lock is %+v", lock)
		}
		a.is(1, types.RepairWell, "")
		s.pass(20 * time.Minute)
		if m := a.says(); m.Attempts != 0 || m.Began != 0 || m.Watch {
			t.Errorf("after the episode it says %+v", m)
		}
	})
}

func TestThreeNodesRestartOneAfterTheOther(t *testing.T) {
	play(t, three, func(s *stage) {
		for _, name := range []string{"n1", "n2", "n3"} {
			s.agents[name].then = func() {
				down := 0
				for _, n := range s.nodes.All() {
					if n.Ready != types.ConditionTrue {
						down++
					}
				}
				if down != 1 {
					t.Errorf("%d nodes are down when %s is", down, name)
				}
			}
			s.start(name)
		}
		s.pass(time.Hour)
		for _, a := range s.agents {
			a.is(1, types.RepairWell, "")
		}
	})
}

func TestThreeAttemptsAnEpisodeFifteenMinutesApart(t *testing.T) {
	play(t, three, func(s *stage) {
		a := s.agents["n1"]
		a.cures = false
		s.start("n1")
		s.pass(3 * time.Hour)
		a.is(3, types.RepairGaveUp, "k3s was restarted 3 times without success; an operator must investigate.")
		for i := 1; i < len(a.restarts); i++ {
			if d := a.restarts[i].Sub(a.restarts[i-1]); d < apart {
				t.Errorf("restart %d comes %s after the one before", i+1, d)
			}
		}
		if len(a.says().Pods) != 1 {
			t.Errorf("it says %+v", a.says())
		}
		a.stop()
		s.start("n1")
		s.pass(2 * time.Hour)
		a.is(3, types.RepairGaveUp, "3 times")
		a.stop()
		a.boot, a.booted = "next", time.Now() // a reboot forgets nothing either
		s.start("n1")
		s.pass(2 * time.Hour)
		a.is(3, types.RepairGaveUp, "3 times")
		p := wedged("n1")
		p.Phase = types.PodRunning
		_ = s.pods.Publish(p.Key(), p)
		s.pass(20 * time.Minute)
		a.is(3, types.RepairWell, "")
		_ = s.pods.Publish(p.Key(), wedged("n1"))
		s.pass(10 * time.Minute)
		a.is(4, types.RepairActs, "after a restart of k3s")
	})
}

func TestAPodThatIsMadeAgainBeginsNoNewEpisode(t *testing.T) {
	play(t, three, func(s *stage) {
		a := s.agents["n1"]
		a.cures = false
		s.start("n1")
		for i := range 30 {
			p := wedged("n1")
			p.UID += string(rune('a' + i))
			_ = s.pods.Publish(p.Key(), p)
			s.pass(20 * time.Minute)
			_ = s.pods.Unpublish(p.Key())
			s.pass(time.Minute)
		}
		if a.told() != mostAttempts {
			t.Errorf("%d restarts", a.told())
		}
	})
}

func TestARecordThatCannotBeReadCountsAsAllAttempts(t *testing.T) {
	play(t, three, func(s *stage) {
		a := s.agents["n1"]
		if err := os.WriteFile(a.file, []byte("{"), 0o600); err != nil { // of which the table has nothing
			t.Fatal(err)
		}
		s.start("n1")
		s.pass(time.Hour)
		a.is(0, types.RepairGaveUp, "cannot be read")
		for _, m := range []types.MountRecovery{{Last: 1000 * time.Hour}, {Began: 1000 * time.Hour}, {Last: -1}, {Began: -1}, {Attempts: -1}} {
			a.stop()
			m.BootID = "boot"
			_ = a.recovery.Publish(types.Global, m)
			s.start("n1")
			s.pass(time.Hour)
			a.is(0, types.RepairGaveUp, "cannot be read")
		}
		p := wedged("n1")
		_ = s.pods.Unpublish(p.Key())
		s.pass(20 * time.Minute)
		_ = s.pods.Publish(p.Key(), p)
		s.pass(10 * time.Minute)
		a.is(1, types.RepairActs, "after a restart of k3s")
	})
}

func TestTheOnlyAPIServerIsTheLastResort(t *testing.T) {
	for _, nodes := range []string{"n1", "n1 n2"} {
		play(t, nodes, func(s *stage) {
			a := s.start("n1")
			s.pass(50 * time.Minute)
			a.is(0, types.RepairWaits, "k3s is restarted after 1h0m0s of that, because the cluster has no API server meanwhile.")
			s.pass(17 * time.Minute)
			a.is(0, types.RepairWaits, "k3s is restarted 10m0s after this was first reported.")
			if m := a.says(); time.Since(m.Since) > announced {
				t.Errorf("it has stood since %s", m.Since)
			}
			a.stop() // the hour has passed; the announcement begins again
			s.start("n1")
			s.pass(17 * time.Minute)
			a.is(0, types.RepairWaits, "k3s is restarted 10m0s after this was first reported.")
			s.pass(3 * time.Minute)
			a.is(1, types.RepairActs, "after a restart of k3s")
			s.pass(30 * time.Minute)
			a.is(1, types.RepairWell, "")
		})
	}
}

func TestWhatIsNoReasonToRestartK3s(t *testing.T) {
	pod := func(change func(*types.Pod)) func(*agent) {
		return func(a *agent) {
			p := wedged("n1")
			change(&p)
			_ = a.pods.Publish(p.Key(), p)
		}
	}
	waiting := func(reason string) func(*agent) {
		return pod(func(p *types.Pod) { p.Containers[1].Waiting = reason })
	}
	volume := func(change func(*types.Volume)) func(*agent) {
		return func(a *agent) {
			v, _ := a.volumes.Get("pv-n1")
			change(&v)
			_ = a.volumes.Publish(v.Name, v)
		}
	}
	for name, change := range map[string]func(*agent){
		"CrashLoopBackOff":           waiting("CrashLoopBackOff"),
		"ImagePullBackOff":           waiting("ImagePullBackOff"),
		"ErrImagePull":               waiting("ErrImagePull"),
		"CreateContainerError":       waiting("CreateContainerError"),
		"CreateContainerConfigError": waiting("CreateContainerConfigError"),
		"RunContainerError":          waiting("RunContainerError"),
		"a reason of later releases": waiting("Whatever"),
		"an init container that failed": pod(func(p *types.Pod) {
			p.Containers[0] = types.Container{Name: "init", Now: types.ContainerRun{ID: "1", ExitCode: 1}}
		}),
		"an init container that runs":                     pod(func(p *types.Pod) { p.Containers[0].Now.Started = time.Unix(1, 0) }),
		"an image that is pulled: the pod has an address": pod(func(p *types.Pod) { p.IP = "10.42.0.7" }),
		"a pod that terminates":                           pod(func(p *types.Pod) { p.Deleted = time.Unix(1, 0) }),
		"a pod of another node":                           pod(func(p *types.Pod) { p.NodeName = "n2" }),
		"a pod that is not scheduled":                     pod(func(p *types.Pod) { p.NodeName = "" }),
		"a pod that runs":                                 pod(func(p *types.Pod) { p.Phase = types.PodRunning }),
		"a pod without volumes":                           pod(func(p *types.Pod) { p.Claims = nil }),
		"one of its volumes is not of Longhorn":           pod(func(p *types.Pod) { p.Claims = []string{"data-n1", "other"} }),
		"the volume attaches":                             volume(func(v *types.Volume) { v.State = "attaching" }),
		"the volume is of another claim by now":           volume(func(v *types.Volume) { v.Claim = "eve-kube-app/later" }),
		"the volume is not here":                          func(a *agent) { _ = a.volumes.Unpublish("pv-n1") },
		"there is no VolumeAttachment":                    func(a *agent) { _ = a.attachments.Unpublish("csi-n1") },
		"there is no device":                              func(a *agent) { _ = os.Remove(a.devices + "/pv-n1") },
		"the tables of volumes are not complete":          func(a *agent) { a.watched(false) },
		"the API server does not answer":                  func(a *agent) { a.cluster.SetFault(kubetest.Refused) },
		"the tables are not complete":                     func(a *agent) { _ = a.api.Publish(types.Global, types.APIStatus{}) },
		"the own Node is missing":                         func(a *agent) { _ = a.nodes.Unpublish("n1") },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, three, func(s *stage) {
				change(s.agents["n1"])
				a := s.start("n1")
				s.pass(3 * time.Hour)
				if m := a.says(); a.told() > 0 || len(s.cluster.Calls("setlock")) > 0 || m.Reason != "" {
					t.Errorf("%d restarts, it says %+v", a.told(), m)
				}
			})
		})
	}
}

// held is what keeps a restart that there is a reason for from being made.
func TestWhatARestartOfK3sWaitsFor(t *testing.T) {
	unhealthy := func(robustness string) func(*agent) {
		return func(a *agent) {
			v, _ := a.volumes.Get("pv-n1")
			v.Robustness, v.Wanted = robustness, 3
			_ = a.volumes.Publish(v.Name, v)
		}
	}
	request := types.NodeDrainRequest{RequestedAt: time.Unix(1, 0)}
	node := func(name string, change func(*types.Node)) func(*agent) {
		return func(a *agent) { a.cluster.ChangeNode(name, change) }
	}
	for name, row := range map[string]struct {
		change func(*agent)
		phase  types.RepairPhase
		words  string
	}{
		"zedagent requests a drain":  {func(a *agent) { _ = a.device.Publish(types.Global, request) }, types.RepairWaits, "a drain of this node is requested"},
		"baseosmgr requests a drain": {func(a *agent) { _ = a.update.Publish(types.Global, request) }, types.RepairWaits, "a drain of this node is requested"},
		"an operator does":           {func(a *agent) { _ = a.operator.Publish(types.Global, request) }, types.RepairWaits, "a drain of this node is requested"},
		"a drain is under way": {func(a *agent) {
			_ = a.drain.Publish(types.Global, types.NodeDrainProgress{Phase: types.PhaseEmptying})
		}, types.RepairWaits, "a drain of this node is requested or not over"},
		"a drain that failed holds the lock": {func(a *agent) {
			_ = a.drain.Publish(types.Global, types.NodeDrainProgress{Phase: types.PhaseNoCordon, Lock: types.DrainLockView{Mine: true}})
		}, types.RepairWaits, "a drain of this node is requested or not over"},
		"a drain that failed may hold the lock": {func(a *agent) {
			_ = a.drain.Publish(types.Global, types.NodeDrainProgress{Phase: types.PhaseNotEmpty, Journal: types.NodeDrainJournal{Locked: true}})
		}, types.RepairWaits, "a drain of this node is requested or not over"},
		"what zedagent requests is not known yet": {func(a *agent) { a.device.late = true }, types.RepairWaits, "not known yet"},
		"the node leaves": {func(a *agent) {
			_ = a.member.Publish(types.Global, types.ClusterMembership{State: types.MembershipLeaving})
		}, types.RepairWaits, "leaves its cluster"},
		"a component is updated": {func(a *agent) {
			_ = a.parts.Publish(types.Global, types.KubeClusterUpdateStatus{Status: types.KubeCompUpdateInProgress})
		}, types.RepairWaits, "a component of Kubernetes is updated"},
		"another version of k3s would start": {func(a *agent) {
			_ = a.version.Publish(types.Global, types.K3sVersionStatus{Version: "v1.35.0+k3s1", Running: "v1.34.2+k3s1"})
		}, types.RepairWaits, "a restart would update k3s from v1.34.2+k3s1 to v1.35.0+k3s1"},
		"another node holds the drain lock":                     {func(a *agent) { a.cluster.SetLock(types.DrainLock{Holder: "n2", BootID: "boot"}) }, types.RepairWaits, "node n2 has released the drain lock"},
		"a drain of a node that has rebooted since is not over": {func(a *agent) { a.cluster.SetLock(types.DrainLock{Holder: "n2", BootID: "earlier"}) }, types.RepairWaits, "node n2 has released the drain lock"},
		"a node that has rebooted since is not Ready": {func(a *agent) {
			a.cluster.ChangeNode("n2", func(n *types.Node) { n.Ready, n.Etcd = types.ConditionUnknown, false })
			a.cluster.SetLock(types.DrainLock{Holder: "n2", BootID: "earlier", Task: types.TaskK3s})
		}, types.RepairWaits, "node n2 has released the drain lock"},
		"of the holder's boot nothing is known": {func(a *agent) { a.cluster.SetLock(types.DrainLock{Holder: "n2", Task: types.TaskK3s}) }, types.RepairWaits, "node n2 has released the drain lock"},
		"the own node is not Ready":             {node("n1", func(n *types.Node) { n.Ready = types.ConditionUnknown }), types.RepairWaits, "while this node is not Ready"},
		"the volume is degraded":                {unhealthy("degraded"), types.RepairWaits, "Pod eve-kube-app/app-n1 waits for its volumes, although they are attached. k3s is not restarted for that while volume pv-n1 is not healthy."},
		"the volume is faulted":                 {unhealthy("faulted"), types.RepairWaits, "while volume pv-n1 is not healthy"},
		"how healthy the volume is is unknown":  {unhealthy("unknown"), types.RepairWaits, "while volume pv-n1 is not healthy"},
		"etcd has no quorum without it":         {node("n2", func(n *types.Node) { n.Ready = types.ConditionUnknown }), types.RepairWaits, "1 of 3 etcd members would be Ready"},
		"a server drains without the lock":      {node("n2", func(n *types.Node) { n.Unschedulable, n.Agent = true, nil }), types.RepairWaits, "node n2 is cordoned and may be draining"},
		"a drain is complete without the lock": {node("n2", func(n *types.Node) {
			n.Unschedulable, n.DrainInProgress, n.DrainReason = true, types.ConditionFalse, string(types.PhaseComplete)
		}), types.RepairWaits, "the drain of node n2 is complete, and it has not rebooted yet"},
		"a volume of another pod is degraded": {func(a *agent) {
			p := wedged("n1")
			p.Name, p.UID, p.Claims = "other", "other", []string{"other"}
			_ = a.pods.Publish(p.Key(), p)
			_ = a.volumes.Publish("pv-other", types.Volume{Name: "pv-other", Claim: "eve-kube-app/other", State: "attached", Robustness: "degraded"})
		}, types.RepairWaits, "while volume pv-other is not healthy"},
		"k3s is not found": {func(a *agent) { a.missing = errNoK3s }, types.RepairRefused, "process 100 of /run/k3s.pid is not k3s server."},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, three, func(s *stage) {
				row.change(s.agents["n1"])
				a := s.start("n1")
				s.pass(30 * time.Minute)
				a.is(0, row.phase, row.words)
				if n := len(s.cluster.Calls("setlock")); n > 0 {
					t.Errorf("the lock was taken %d times", n)
				}
			})
		})
	}
}

func TestARequestBetweenTheDecisionAndTheSignalIsSeen(t *testing.T) {
	play(t, three, func(s *stage) {
		a := s.start("n1")
		for s.cluster.Lock().Holder != "n1" {
			s.pass(100 * time.Millisecond)
		}
		_ = a.device.Publish(types.Global, types.NodeDrainRequest{RequestedAt: time.Unix(1, 0)})
		s.pass(time.Minute)
		a.is(0, types.RepairWaits, "a drain of this node is requested")
		if m, lock := a.says(), s.cluster.Lock(); m.Attempts != 0 || lock.Holder != "" {
			t.Errorf("it says %+v, the lock is %+v", m, lock)
		}
	})
}

func TestWhatIsSeenUnderTheLockCounts(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*stage)
		words  string
	}{
		"a table lied about the volume":  {func(s *stage) { s.cluster.SetStorage(types.Storage{Longhorn: true}) }, "volume pv-n1 is not attached, or not as healthy as it can be"},
		"a Ready node is not alive":      {func(s *stage) { s.cluster.SetRenewed("n2", s.began) }, "etcd has no quorum"},
		"the own kubelet is not alive":   {func(s *stage) { s.cluster.SetRenewed("n1", s.began) }, "this node is not Ready"},
		"the volumes cannot be listed":   {func(s *stage) { s.cluster.FailVerb("storage", errors.New("403")) }, "403"},
		"the lock was not had":           {func(s *stage) { s.cluster.FailVerb("setlock", types.ErrConflict) }, types.ErrConflict.Error()},
		"the lock may be had: no answer": {func(s *stage) { s.cluster.LoseAnswer("setlock") }, "no answer"},
		"nothing is done to k3s":         {func(s *stage) { s.agents["n1"].fails = errNoK3s }, "is not k3s server"},
		"the lock's table had not changed": {func(s *stage) {
			s.cluster.SetLock(types.DrainLock{Holder: "n3", BootID: "boot"})
			_ = s.leases.Unpublish(types.DrainLockName)
		}, "node n3 holds the drain lock"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, three, func(s *stage) {
				row.change(s)
				_ = s.agents["n1"].recovery.Publish(types.Global, types.MountRecovery{BootID: "boot", Last: time.Minute}) // so that a later release would need its kubelet
				a := s.start("n1")
				for range 60 {
					s.pass(10 * time.Second)
					if strings.Contains(a.says().Reason, row.words) {
						break
					}
				}
				if !strings.Contains(a.says().Reason, row.words) || a.told() > 0 {
					t.Errorf("%d restarts, it says %+v", a.told(), a.says())
				}
				s.pass(time.Minute)
				if lock := s.cluster.Lock(); lock.Holder == "n1" || a.says().Attempts > 0 {
					t.Errorf("the lock is %+v, it says %+v", lock, a.says())
				}
			})
		})
	}
}

func TestTheLockIsReleasedByALaterRunOfTheAgent(t *testing.T) {
	play(t, three, func(s *stage) {
		a := s.agents["n1"]
		ended := make(chan struct{})
		a.then = func() { time.AfterFunc(time.Second, func() { close(ended) }) }
		s.start("n1")
		<-ended
		a.stop()
		s.pass(5 * time.Minute)
		if lock := s.cluster.Lock(); a.told() != 1 || lock.Holder != "n1" {
			t.Fatalf("%d restarts, the lock is %+v", a.told(), lock)
		}
		s.start("n1")
		s.pass(3 * time.Minute)
		if lock := s.cluster.Lock(); lock.Holder != "" {
			t.Errorf("the lock is %+v", lock)
		}
		a.is(1, types.RepairWell, "")
	})
}

func TestALockThatIsTakenAwayPermitsNothing(t *testing.T) {
	play(t, three, func(s *stage) {
		a := s.start("n1")
		for s.cluster.Lock().Holder != "n1" {
			s.pass(100 * time.Millisecond)
		}
		s.cluster.SetLock(types.DrainLock{Holder: "n2", BootID: "boot"}) // an operator released it
		s.pass(time.Minute)
		if lock := s.cluster.Lock(); a.told() > 0 || lock.Holder != "n2" {
			t.Errorf("%d restarts, the lock is %+v", a.told(), lock)
		}
	})
}

func TestADrainOfThisNodeIsNotTakenForARestart(t *testing.T) {
	play(t, three, func(s *stage) {
		p := wedged("n1")
		_ = s.pods.Unpublish(p.Key())
		a := s.start("n1")
		s.pass(time.Hour)
		s.cluster.SetLock(types.DrainLock{Holder: "n1", BootID: "boot"})
		s.pass(time.Minute)
		a.is(0, types.RepairWell, "")
		if len(a.logs.AllEntries()) > 0 {
			t.Errorf("the log has %q", a.logs.LastEntry().Message)
		}
	})
}

func TestTheLockIsKeptWhileTheFormerK3sStillRuns(t *testing.T) {
	play(t, three, func(s *stage) {
		s.agents["n1"].hangs = true
		a := s.start("n1")
		for a.told() == 0 {
			s.pass(10 * time.Second)
		}
		s.pass(apart - time.Minute)
		if lock := s.cluster.Lock(); lock.Holder != "n1" {
			t.Errorf("k3s has not ended, and the lock is %+v", lock)
		}
		s.pass(2 * time.Minute) // but not for ever
		if lock := s.cluster.Lock(); lock.Holder != "" {
			t.Errorf("the lock is %+v", lock)
		}
	})
}

func TestAPodWhoseVolumesAreNotSeenAnyMoreIsNotNamed(t *testing.T) {
	play(t, three, func(s *stage) {
		s.agents["n1"].missing = errNoK3s
		a := s.start("n1")
		s.pass(10 * time.Minute)
		a.is(0, types.RepairRefused, "Nothing is done")
		a.watched(false)
		s.pass(time.Minute)
		if a.is(0, types.RepairWell, ""); len(a.says().Pods) > 0 {
			t.Errorf("it says %+v", a.says())
		}
	})
}

func TestTheLastResortNeedsAnHourOfOneWait(t *testing.T) {
	play(t, "n1", func(s *stage) {
		a := s.start("n1")
		for range 8 {
			p := wedged("n1")
			_ = s.pods.Unpublish(p.Key())
			s.pass(time.Minute)
			_ = s.pods.Publish(p.Key(), p)
			s.pass(25 * time.Minute)
			a.is(0, types.RepairWaits, "k3s is restarted after 1h0m0s of that")
		}
	})
}

func TestTheLockOfADrainIsLeftAlone(t *testing.T) {
	play(t, three, func(s *stage) {
		s.cluster.SetLock(types.DrainLock{Holder: "n1", BootID: "boot"})
		a := s.start("n1")
		s.pass(time.Hour)
		a.is(0, types.RepairWaits, "node n1 has released the drain lock")
		if n := len(s.cluster.Calls("lock")); s.cluster.Lock().Holder != "n1" || n > 2 {
			t.Errorf("%d looks, the lock is %+v", n, s.cluster.Lock())
		}
	})
}

func TestANodeThatStaysAwayKeepsTheLock(t *testing.T) {
	play(t, three, func(s *stage) {
		s.agents["n1"].then = func() {
			time.AfterFunc(4*time.Minute, func() {
				s.cluster.ChangeNode("n1", func(n *types.Node) { n.Ready = types.ConditionUnknown })
			})
			s.cluster.SetRenewed("n1", s.began)
		}
		s.start("n1")
		s.pass(5 * time.Minute)
		s.start("n2")
		s.pass(time.Hour)
		if lock := s.cluster.Lock(); lock.Holder != "n1" {
			t.Errorf("the lock is %+v", lock)
		}
		s.agents["n2"].is(0, types.RepairWaits, "node n1 has released the drain lock")
	})
}

func TestTimeInWhichTheClusterIsNotSeenDoesNotCount(t *testing.T) {
	play(t, three, func(s *stage) {
		a := s.start("n1")
		for range 30 {
			s.pass(7 * time.Minute)
			_ = s.api.Publish(types.Global, types.APIStatus{SilentSince: time.Now()})
			s.pass(10 * time.Second)
			_ = s.api.Publish(types.Global, types.APIStatus{Synced: true, Apps: true})
		}
		a.is(0, types.RepairWell, "")
	})
}

func TestNothingIsRestartedInTheFirstMinutesOfABoot(t *testing.T) {
	play(t, three, func(s *stage) {
		a := s.agents["n1"]
		a.booted = time.Now()
		s.start("n1")
		s.pass(apart - 10*time.Second)
		a.is(0, types.RepairWaits, "no sooner than 15m0s after the last restart or the boot")
		s.pass(time.Minute)
		a.is(1, types.RepairActs, "after a restart of k3s")
	})
}

func TestATieBreakerIsNoDrain(t *testing.T) {
	play(t, three, func(s *stage) {
		s.cluster.ChangeNode("n3", func(n *types.Node) { n.Unschedulable, n.TieBreaker, n.Agent = true, true, nil })
		a := s.start("n1")
		s.pass(10 * time.Minute)
		a.is(1, types.RepairActs, "after a restart of k3s")
	})
}

func TestWhereNothingWasDoneToK3sThatIsNoAttempt(t *testing.T) {
	play(t, three, func(s *stage) {
		a := s.agents["n1"]
		a.fails = errNoK3s
		s.start("n1")
		s.pass(15 * time.Minute)
		a.is(0, types.RepairWaits, "The last attempt failed: nothing was done: process 100")
		s.pass(3 * time.Hour)
		if a.is(0, types.RepairRefused, "k3s is not restarted: nothing was done: process 100"); a.says().Attempts > 0 || a.says().Last > 0 {
			t.Errorf("it says %+v", a.says())
		}
		if n := len(s.cluster.Calls("setlock")); n > 6 {
			t.Errorf("the lock was taken %d times", n)
		}
		a.mu.Lock()
		a.fails = nil
		a.mu.Unlock()
		s.pass(time.Hour)
		a.is(1, types.RepairWell, "")
	})
}

func TestWhatFailedInAnEpisodeDoesNotHoldUpTheNextOne(t *testing.T) {
	play(t, three, func(s *stage) {
		a := s.agents["n1"]
		a.fails = errNoK3s
		s.start("n1")
		s.pass(20 * time.Minute)
		a.is(0, types.RepairRefused, "k3s is not restarted")
		p := wedged("n1")
		_ = s.pods.Unpublish(p.Key())
		s.pass(20 * time.Minute)
		a.mu.Lock()
		a.fails = nil
		a.mu.Unlock()
		_ = s.pods.Publish(p.Key(), p)
		s.pass(9 * time.Minute)
		a.is(1, types.RepairActs, "after a restart of k3s")
	})
}

func TestWhereAnotherNodeHadTheLockNothingWasTried(t *testing.T) {
	play(t, three, func(s *stage) {
		a := s.start("n1")
		s.cluster.FailVerb("setlock", types.ErrConflict)
		s.pass(3 * time.Hour)
		a.is(0, types.RepairWaits, "The last attempt failed: "+types.ErrConflict.Error())
	})
}

func TestOnAFullDiskNothingIsRestartedAndTheLockIsReleased(t *testing.T) {
	for name, row := range map[string]struct {
		fill  func(*agent)
		locks int // the lock is taken
		told  int
	}{
		"before the restart": {func(a *agent) {
			for a.cluster.Lock().Holder != "n1" {
				a.pass(100 * time.Millisecond)
			}
			a.recovery.refused = func() { a.cluster.SetRenewed("n1", a.began) } // a later release would need the kubelet
			a.recovery.full.Store(true)
		}, 1, 0},
		"before there is a reason": {func(a *agent) { a.recovery.full.Store(true) }, 0, 0},
		"after the restart": {func(a *agent) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.then = func() { a.recovery.full.Store(true) }
		}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, three, func(s *stage) {
				_ = s.agents["n1"].recovery.Publish(types.Global, types.MountRecovery{BootID: "boot", Last: time.Minute})
				a := s.start("n1")
				row.fill(a)
				s.pass(20 * time.Minute)
				if lock, n := s.cluster.Lock(), len(s.cluster.Calls("setlock")); lock.Holder != "" || n != row.locks || a.told() != row.told {
					t.Errorf("%d restarts, the lock was taken %d times and is %+v", a.told(), n, lock)
				}
			})
		})
	}
}

func TestAnAgentThatEndsBeforeTheRestartReleasesTheLock(t *testing.T) {
	play(t, three, func(s *stage) {
		a := s.start("n1")
		for s.cluster.Lock().Holder != "n1" {
			s.pass(100 * time.Millisecond)
		}
		a.stop()
		if lock := s.cluster.Lock(); lock.Holder != "" || a.told() > 0 {
			t.Errorf("%d restarts, the lock is %+v", a.told(), lock)
		}
	})
}

func TestWhyTheLockIsNotReleasedIsSaidUntilItIs(t *testing.T) {
	play(t, three, func(s *stage) {
		a := s.agents["n1"]
		a.cures = false
		a.then = func() { s.cluster.SetRenewed("n1", s.began) }
		s.start("n1")
		s.pass(12 * time.Minute)
		a.is(1, types.RepairActs, "after a restart of k3s. It could not be released: this node is not Ready.")
		for range 30 {
			s.cluster.SetRenewed("n1", time.Now())
			s.pass(time.Second)
		}
		if lock := s.cluster.Lock(); lock.Holder != "" {
			t.Errorf("the lock is %+v", lock)
		}
		a.is(1, types.RepairWaits, "attempt 1 of 3. Pod eve-kube-app/app-n1 waits for its volumes.")
	})
}

func TestARestartOfWhichNothingIsKnownIsAnAttempt(t *testing.T) {
	play(t, three, func(s *stage) {
		a := s.agents["n1"]
		a.fails = errors.New("the supervisor does not answer")
		s.start("n1")
		s.pass(9 * time.Minute)
		if lock := s.cluster.Lock(); lock.Holder != "n1" || a.says().Attempts != 1 {
			t.Errorf("the lock is %+v, it says %+v", lock, a.says())
		}
		s.pass(3 * time.Hour)
		if a.says().Attempts != mostAttempts || a.says().Phase != types.RepairGaveUp {
			t.Errorf("it says %+v", a.says())
		}
	})
}

func TestAnAttemptIsOnTheDiskBeforeK3sIsTold(t *testing.T) {
	play(t, three, func(s *stage) {
		a := s.agents["n1"]
		a.then = func() {
			if m := a.says(); m.Attempts != 1 || m.Last == 0 {
				t.Errorf("k3s is told while it says %+v", m)
			}
		}
		s.start("n1")
		s.pass(9 * time.Minute)
		a.is(1, types.RepairActs, "after a restart of k3s")
	})
}

// The answer to the try to free the lock is an error as well, and the node is not Ready for long.
func TestALockUnderWhichNothingWasRestartedNeedsNoKubeletToBeFreed(t *testing.T) {
	play(t, three, func(s *stage) {
		a := s.start("n1")
		s.cluster.SetRenewed("n1", s.began)
		s.cluster.FailVerb("freelock", errors.New("500"))
		s.pass(9 * time.Minute)
		if lock := s.cluster.Lock(); lock.Holder != "n1" {
			t.Fatalf("the lock is %+v", lock)
		}
		s.cluster.FailVerb("freelock", nil)
		s.cluster.ChangeNode("n1", func(n *types.Node) { n.Ready = types.ConditionUnknown })
		s.pass(time.Minute)
		if lock := s.cluster.Lock(); lock.Holder != "" || a.told() > 0 {
			t.Errorf("%d restarts, the lock is %+v", a.told(), lock)
		}
	})
}

func TestALockThatItsHolderDoesNotNeedIsTaken(t *testing.T) {
	for name, lock := range map[string]types.DrainLock{
		"the holder's Node is gone":                {Holder: "n9", BootID: "boot"},
		"the holder has rebooted since, and is up": {Holder: "n2", BootID: "earlier", Task: types.TaskK3s},
		"it removed a member before that":          {Holder: "n2", BootID: "earlier", Task: types.TaskMembers},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, three, func(s *stage) {
				s.cluster.SetLock(lock)
				a := s.start("n1")
				s.pass(9 * time.Minute)
				a.is(1, types.RepairActs, "after a restart of k3s")
			})
		})
	}
}

func TestTheLockOfAChangeOfK3sIsLeftAfterAReboot(t *testing.T) {
	for name, change := range map[string]func(*types.Node){
		"it goes on":                   func(n *types.Node) { n.K3s = &types.K3sStamp{Step: types.K3sStepChange} },
		"the node is drained under it": func(n *types.Node) { n.Unschedulable, n.CordonedBy = true, &types.Cordon{} },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, three, func(s *stage) {
				s.cluster.SetLock(types.DrainLock{Holder: "n2", BootID: "earlier", Task: types.TaskK3sChange})
				s.cluster.ChangeNode("n2", change)
				a := s.start("n1")
				s.pass(9 * time.Minute)
				a.is(0, types.RepairWaits, "node n2 has released the drain lock")
			})
		})
	}
}

// The holder was drained and rebooted under it. A restart here would end with the lock freed.
func TestTheLockOfAChangeOfK3sIsLeftWhileItsVolumesAreRebuilt(t *testing.T) {
	for _, holder := range []string{"n1", "n2"} {
		t.Run(holder, func(t *testing.T) {
			play(t, three, func(s *stage) {
				lock := types.DrainLock{Holder: holder, BootID: "earlier", Task: types.TaskK3sChange, Volumes: map[string]int{"pv-9": 2}}
				s.cluster.SetLock(lock)
				storage, _ := s.cluster.Storage(t.Context(), "")
				replicas := []types.Replica{{Node: holder, Mode: "WO"}, {Node: "n3", Mode: "RW"}}
				storage.Longhorn, storage.Volumes = true, append(storage.Volumes, types.Volume{Name: "pv-9", State: "attached", Running: true, Robustness: "degraded", Wanted: 2, Replicas: replicas})
				s.cluster.SetStorage(storage)
				a := s.start("n1")
				s.pass(14 * time.Minute)
				if a.is(0, types.RepairWaits, "until volumes on node "+holder+" are rebuilt: pv-9"); s.cluster.Lock().Volumes["pv-9"] != 2 {
					t.Errorf("the lock is %+v", s.cluster.Lock())
				}
				storage.Volumes = slices.Clone(storage.Volumes)
				storage.Volumes[len(storage.Volumes)-1].Replicas = []types.Replica{{Node: holder, Mode: "RW"}, {Node: "n3", Mode: "RW"}}
				s.cluster.SetStorage(storage)
				s.pass(6 * time.Minute)
				if a.told() != 1 {
					t.Errorf("they are rebuilt: %+v", a.says())
				}
			})
		})
	}
}

// The kube container may not have labelled it, and its cordon stays.
func TestTheLockOfAChangeOfK3sThatTheTieBreakerHasLeftIsTaken(t *testing.T) {
	play(t, three, func(s *stage) {
		a := s.agents["n1"]
		_ = a.member.Publish(types.Global, types.ClusterMembership{State: types.MembershipMember, Config: &types.EdgeNodeClusterConfig{TieBreakerNodeID: types.UUIDandVersion{UUID: device("n2")}}})
		s.cluster.SetLock(types.DrainLock{Holder: "n2", BootID: "earlier", Task: types.TaskK3sChange})
		s.cluster.ChangeNode("n2", func(n *types.Node) { n.Unschedulable, n.CordonedBy = true, &types.Cordon{} })
		s.start("n1")
		s.pass(9 * time.Minute)
		a.is(1, types.RepairActs, "after a restart of k3s")
	})
}

func TestADrainOfThisNodeKeepsTheLockThatItTakesOver(t *testing.T) {
	play(t, three, func(s *stage) {
		a := s.agents["n1"]
		a.then = func() { s.cluster.SetRenewed("n1", s.began) } // k3s does not come back
		s.start("n1")
		s.pass(9 * time.Minute)
		lock := s.cluster.Lock()
		lock.Task = ""
		_ = a.device.Publish(types.Global, types.NodeDrainRequest{RequestedAt: time.Unix(1, 0)})
		s.cluster.SetLock(lock)
		s.pass(time.Hour)
		if lock := s.cluster.Lock(); a.told() != 1 || lock.Holder != "n1" || lock.Task != "" {
			t.Errorf("%d restarts, the lock is %+v", a.told(), lock)
		}
	})
}

// Two servers whose volumes are to have three replicas: that does not change by waiting.
func TestAVolumeWithAReplicaOnEachNodeIsAsHealthyAsItCanBe(t *testing.T) {
	healthy := []types.Replica{{Node: "n1", Mode: "RW"}, {Node: "n2", Mode: "RW"}, {}}
	for name, row := range map[string]struct {
		replicas []types.Replica
		restarts int
		words    string
	}{
		"each node has one":               {healthy, 1, "after a restart of k3s"},
		"the one of the other is lost":    {healthy[:1], 0, "volume pv-n1 is not attached, or not as healthy as it can be"},
		"the one of the other is built":   {[]types.Replica{healthy[0], {Node: "n2", Mode: "WO"}}, 0, "volume pv-n1 is not attached, or not as healthy as it can be"},
		"a third has failed on the other": {[]types.Replica{healthy[0], healthy[1], {Node: "n2", Mode: "ERR"}}, 0, "volume pv-n1 is not attached, or not as healthy as it can be"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, "n1 n2", func(s *stage) {
				v := types.Volume{Name: "pv-n1", Claim: "eve-kube-app/data-n1", State: "attached", Robustness: "degraded", Wanted: 3}
				_ = s.agents["n1"].volumes.Publish(v.Name, v)
				v.Running, v.Replicas = true, row.replicas
				s.cluster.SetStorage(types.Storage{Volumes: []types.Volume{v}, Attachments: []types.Attachment{{Volume: v.Name}}})
				a := s.start("n1")
				for range 20 {
					if s.pass(5 * time.Minute); strings.Contains(a.says().Reason, row.words) || a.told() > row.restarts {
						break
					}
				}
				if a.told() != row.restarts || row.restarts == 0 && !strings.Contains(a.says().Reason, row.words) {
					t.Errorf("%d restarts, it says %+v", a.told(), a.says())
				}
			})
		})
	}
}

func TestTheLockOfAChangeOfK3sIsTakenWhereItsHolderIsProvedOff(t *testing.T) {
	for name, row := range map[string]struct {
		task     string
		alive    string // where n2's device answers n3
		restarts int
	}{
		"it changes the version of k3s": {types.TaskK3sChange, "", 1},
		"its device answers a witness":  {types.TaskK3sChange, "192.0.2.2:22", 0},
		"it drains":                     {"", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, "n1 n2 n3 n4", func(s *stage) {
				s.cluster.SetLock(types.DrainLock{Holder: "n2", BootID: "boot", Task: row.task})
				s.cluster.ChangeNode("n2", func(n *types.Node) {
					n.UID, n.Ready, n.Etcd, n.EtcdVoter, n.ControlPlane = "u2", types.ConditionUnknown, false, "", false
				})
				a := s.start("n1")
				for round := range int64(54) {
					for witness, alive := range map[string]string{"n1": "", "n3": row.alive, "n4": ""} {
						s.cluster.ChangeNode(witness, func(n *types.Node) {
							n.Agent = &types.AgentStamp{}
							n.Witness = &types.Witness{Round: round, Sightings: []types.Sighting{{Node: "n2", UID: "u2", Alive: alive, Silent: 9}}}
						})
					}
					s.pass(10 * time.Second)
				}
				if got := a.says().Attempts; got != row.restarts {
					t.Errorf("%d restarts: %s", got, a.says().Reason)
				}
			})
		})
	}
}

func TestAHolderIsNotOffByWhatWitnessesSaidBeforeTheAPIServerWasSilent(t *testing.T) {
	play(t, three, func(s *stage) {
		c := s.component("n1")
		s.cluster.SetLock(types.DrainLock{Holder: "n2", BootID: "boot", Task: types.TaskK3sChange})
		s.cluster.ChangeNode("n2", func(n *types.Node) { n.UID, n.Ready = "u2", types.ConditionUnknown })
		for step, row := range []struct {
			round int64
			fault kubetest.Fault
			off   string
		}{{1, kubetest.None, ""}, {2, kubetest.None, "n2"}, {3, kubetest.Refused, ""}, {3, kubetest.None, ""}} { // the first word may be old, too
			for _, witness := range []string{"n1", "n3"} {
				s.cluster.ChangeNode(witness, func(n *types.Node) {
					n.Witness = &types.Witness{Round: row.round, Sightings: []types.Sighting{{Node: "n2", UID: "u2", Silent: 9}}}
				})
			}
			s.cluster.SetFault(row.fault)
			_ = c.Step(t.Context()) // it has to come again
			if f := c.look(); f.off != row.off || f.known != (row.fault == kubetest.None) {
				t.Errorf("step %d: %q is off, known: %v", step, f.off, f.known)
			}
			s.pass(5 * time.Second)
		}
	})
}
