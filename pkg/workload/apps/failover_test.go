package apps

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

func TestAnApplicationOfADeadNodeRunsElsewhereWithinAMinute(t *testing.T) {
	inWorld(t, func(w *world) {
		time.Sleep(time.Minute)
		w.lose()
		took := w.until("it runs on n3", time.Minute, func() bool { return slices.Equal(w.runsOn(), []string{"n3"}) })
		t.Logf("after %s: %v", took, w.verbs())
		if got := w.attachments(); !slices.Equal(got, []string{"va-2"}) {
			t.Errorf("attachments left: %v", got)
		}
		if n, _ := w.nodes.Get("n2"); !n.OutOfService || n.Fence == nil {
			t.Error("the node is not fenced")
		}
		w.until("the note is wiped and all is well", time.Minute, func() bool {
			set, _ := w.sets.Get(types.KindVMIReplicaSet + "/" + name)
			one, _ := w.agents["n1"].repairs.Get(appID)
			return set.Note == types.RepairNote{} && one.Phase == types.RepairWell && one.Node == "n3"
		})
		before := w.verbs()
		time.Sleep(time.Hour)
		if after := w.verbs(); fmt.Sprint(before) != fmt.Sprint(after) {
			t.Errorf("an hour later: %v, before %v", after, before)
		}
		steps := 0
		for _, a := range w.agents {
			s, _ := a.repairs.Get(appID)
			steps += len(s.Steps)
		}
		if events := w.kube.Events(); steps < 3 || len(events) < steps {
			t.Errorf("%d steps and %d Events were told", steps, len(events))
		}

		w.kube.SetRunningPods("n2", types.PodRef{Namespace: "eve-kube-app", Name: "stale", UID: "l"})
		w.kube.Change(func() { w.setReady("n2", types.ConditionTrue) })
		w.start("n2")
		time.Sleep(time.Minute)
		if n, _ := w.nodes.Get("n2"); !n.OutOfService {
			t.Error("the node is back in service while it runs a stale copy")
		}
		w.kube.SetRunningPods("n2", types.PodRef{Namespace: "kube-system", Name: "any", UID: "any"})
		w.until("the node is in service", time.Minute, func() bool {
			n, _ := w.nodes.Get("n2")
			return !n.OutOfService && n.Fence == nil
		})
	})
}

func TestANodeThatIsCutOffForAMomentKeepsItsApplication(t *testing.T) {
	inWorld(t, func(w *world) {
		w.lose()
		time.Sleep(9 * time.Second)
		w.kube.Change(func() { w.setReady("n2", types.ConditionTrue) })
		time.Sleep(5 * time.Minute)
		if got := w.verbs(); len(got) != 0 || !slices.Equal(w.runsOn(), []string{"n2"}) {
			t.Errorf("it runs on %v after %v", w.runsOn(), got)
		}
	})
}

func TestAnApplicationWithoutAWholeReplicaElsewhereIsNotTouched(t *testing.T) {
	inWorld(t, func(w *world) {
		v, f := volume("data"), volume("foreign")
		v.Replicas[1].LastMode = "ERR"
		w.kube.SetStorage(types.Storage{Longhorn: true, Volumes: []types.Volume{v, f}})
		w.lose()
		time.Sleep(time.Hour)
		s, _ := w.agents["n1"].repairs.Get(appID)
		if got := w.verbs(); len(got) != 0 || s.Phase != types.RepairRefused || s.Lost != "n2" {
			t.Errorf("%v, %+v", got, s)
		}
		warned := 0
		for _, e := range w.agents["n1"].logged.AllEntries() {
			if e.Data["phase"] == types.RepairRefused {
				warned++
			}
		}
		if warned != 1 {
			t.Errorf("it was said %d times in an hour", warned)
		}
		request := types.AppDetachRequest{Node: "n2", AppDomain: appID, Force: true, ID: uuid.New(), Asked: time.Now()}
		_ = w.agents["n3"].asked.Publish(appID, request)
		w.until("by force it runs on n3", time.Minute, func() bool { return slices.Equal(w.runsOn(), []string{"n3"}) })
		if s, _ := w.agents["n3"].repairs.Get(appID); s.Heard != request.ID {
			t.Errorf("the request is not told to be heard: %+v", s)
		}
	})
}

func TestANodeWithAnotherApplicationInDangerIsNotFenced(t *testing.T) {
	inWorld(t, func(w *world) {
		v, f := volume("data"), volume("foreign")
		f.Replicas = f.Replicas[:1]
		w.kube.SetStorage(types.Storage{Longhorn: true, Volumes: []types.Volume{v, f}})
		w.lose()
		w.until("it runs on n3", time.Minute, func() bool { return slices.Equal(w.runsOn(), []string{"n3"}) })
		if n, _ := w.nodes.Get("n2"); n.OutOfService || !slices.Equal(w.attachments(), []string{"va-2"}) {
			t.Errorf("fenced %v, attachments %v", n.OutOfService, w.attachments())
		}
		if p, ok := w.pods.Get("eve-kube-app/other"); !ok || p.UID != "other" {
			t.Error("the other application was touched")
		}
	})
}

func TestATiedApplicationStaysAndIsNotStartedBesideItsStaleCopy(t *testing.T) {
	inWorld(t, func(w *world) {
		set, _ := w.sets.Get(types.KindVMIReplicaSet + "/" + name)
		set.Affinity.Required = true
		w.kube.Change(func() { _ = w.sets.Publish(set.Key(), set) })
		v, f := volume("data"), volume("foreign")
		v.Replicas = v.Replicas[:1]
		w.kube.SetStorage(types.Storage{Longhorn: true, Volumes: []types.Volume{v, f}})
		w.lose()
		w.until("the node is fenced", time.Minute, func() bool { n, _ := w.nodes.Get("n2"); return n.OutOfService })
		time.Sleep(10 * time.Minute)
		s, _ := w.agents["n1"].repairs.Get(appID)
		if got := w.verbs(); len(got) != 1 || s.Phase != types.RepairRefused {
			t.Errorf("%v, %+v", got, s)
		}
		w.kube.SetRunningPods("n2", types.PodRef{Namespace: "eve-kube-app", Name: "stale", UID: "gone"})
		w.kube.Change(func() { w.setReady("n2", types.ConditionTrue) })
		time.Sleep(time.Minute)
		if n, _ := w.nodes.Get("n2"); !n.OutOfService {
			t.Error("the node is back in service beside a stale copy")
		}
		w.kube.SetRunningPods("n2")
		w.until("the node is in service", 10*time.Second, func() bool { n, _ := w.nodes.Get("n2"); return !n.OutOfService })
	})
}

// endAtOnce has each instance that is made from now on end at once.
func endAtOnce(w *world) {
	w.kube.OnRevival(func(_ types.AppSet, vmi *types.VMI, pod *types.Pod) {
		vmi.Phase, pod.NodeName = types.VMIScheduling, "n3"
		pod.Phase, pod.Containers = types.PodFailed, []types.Container{{Name: "compute", Waiting: "CrashLoopBackOff"}}
	})
}

// neverStarts has the virtual machine made again, and end at once.
func neverStarts(w *world) {
	endAtOnce(w)
	w.kube.Change(func() {
		v, _ := w.vmis.Get(name + "abcde")
		_ = w.vmis.Unpublish(v.Name)
		for key, p := range w.pods.All() {
			if p.VMI == v.Name {
				_ = w.pods.Unpublish(key)
			}
		}
	})
}

func TestAVirtualMachineThatNeverStartsIsMadeAnewThreeTimesAndThenLeftAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		neverStarts(w)
		w.until("it is given up", time.Hour, func() bool {
			s, _ := w.agents["n1"].repairs.Get(appID)
			return s.Phase == types.RepairGaveUp
		})
		time.Sleep(6 * time.Hour)
		if got := w.verbs(); got["deletevmi"] != mostStuck || got["noterepair"] > 2*mostStuck {
			t.Errorf("six hours later: %v", got)
		}
		for n, a := range w.agents {
			if lines := len(a.logged.AllEntries()); lines > 20 {
				t.Errorf("%s logged %d lines in that time", n, lines)
			}
		}
		w.kube.Change(func() {
			for key, p := range w.pods.All() {
				if p.VMI == "" {
					continue
				}
				p.Phase, p.Containers = types.PodRunning, nil
				_ = w.pods.Publish(key, p)
				v, _ := w.vmis.Get(p.VMI)
				v.Phase, v.NodeName = types.VMIRunning, "n3"
				_ = w.vmis.Publish(v.Name, v)
			}
		})
		w.until("the count begins anew once it runs", time.Minute, func() bool {
			set, _ := w.sets.Get(types.KindVMIReplicaSet + "/" + name)
			return set.Note.Stuck == 0
		})
	})
}

func TestAVirtualMachineWhoseDeletionFailsIsCountedOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.kube.FailVerb("deletevmi", errors.New("HTTP 500"))
		neverStarts(w)
		w.until("it is tried", time.Hour, func() bool { return w.calls("deletevmi") > 0 })
		time.Sleep(6 * time.Hour)
		note, tries := w.set().Note, w.calls("deletevmi")
		if s, _ := w.agents["n1"].repairs.Get(appID); note.Stuck != 1 || s.Phase == types.RepairGaveUp || w.calls("noterepair") != 1 || tries > 3*6*60 {
			t.Errorf("after %d tries: %+v, %s: %s", tries, note, s.Phase, s.Reason)
		}
		w.kube.FailVerb("deletevmi", nil)
		w.until("it is given up", time.Hour, func() bool {
			s, _ := w.agents["n1"].repairs.Get(appID)
			return s.Phase == types.RepairGaveUp
		})
		if n := w.calls("deletevmi") - tries; n != mostStuck {
			t.Errorf("it was recreated %d times", n)
		}
	})
}

// returnsAfterBoot has the designated node boot, which the application prefers.
func returnsAfterBoot(w *world) {
	cfg, _ := w.configs.Get(appID)
	w.began = time.Now().Add(-5 * time.Minute)
	w.kube.Change(func() {
		for _, n := range []string{"n1", "n2", "n3"} {
			w.setReady(n, types.ConditionTrue)
		}
		set, _ := w.sets.Get(types.KindVMIReplicaSet + "/" + name)
		set.Affinity.Node = "n1"
		_ = w.sets.Publish(set.Key(), set)
	})
	v := volume("data")
	v.Robustness, v.Running = "healthy", true
	for i := range v.Replicas {
		v.Replicas[i].Mode, v.Replicas[i].HealthyAt = "RW", time.Now()
	}
	w.kube.SetStorage(types.Storage{Longhorn: true, Volumes: []types.Volume{v}})
	w.agents["n1"].stop()
	w.mine = map[string]types.AppInstanceConfig{"n1": cfg}
	w.mine["n1"] = func() types.AppInstanceConfig { cfg.IsDesignatedNodeID = true; return cfg }()
	w.start("n1")
	_ = w.agents["n1"].settings.Publish(types.Global, types.ConfigItemValueMap{
		GlobalSettings: map[string]types.ConfigItemValue{types.SettingDescheduleOn: {ItemType: types.ConfigItemString, StrValue: "boot"}},
	})
}

func TestAFailbackWhoseEvictionIsRefusedIsTriedAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.kube.FailVerb("evict", errors.New("HTTP 500"))
		returnsAfterBoot(w)
		w.until("it is tried", 10*time.Minute, func() bool { return w.calls("evict") > 0 })
		w.kube.FailVerb("evict", nil)
		time.Sleep(time.Hour)
		if n := w.calls("evict"); n != 2 {
			t.Errorf("in an hour: %d evictions", n)
		}
	})
}

func TestAFailbackThatIsAlwaysRefusedEndsWithTheTimeAfterTheBoot(t *testing.T) {
	inWorld(t, func(w *world) {
		w.kube.FailVerb("evict", errors.New("HTTP 500"))
		returnsAfterBoot(w)
		time.Sleep(6 * time.Hour)
		if n := w.calls("evict"); n < 2 || n > int(afterBoot/betweenFailbacks) {
			t.Errorf("in six hours: %d evictions", n)
		}
	})
}

func TestAnApplicationReturnsOnceAfterTheBootOfItsDesignatedNode(t *testing.T) {
	inWorld(t, func(w *world) {
		returnsAfterBoot(w)
		time.Sleep(time.Hour)
		if got := w.verbs(); got["evict"] != 1 {
			t.Errorf("after an hour: %v", got)
		}
	})
}

// The eviction of the first is refused each time, as by a disruption budget; that of the second is not.
func TestARefusedEvictionDoesNotCostTheFailbackOfOthers(t *testing.T) {
	const otherID = "c3e2f1a0-1111-4222-8333-444455556666"
	s := newScene()
	s.cfg.IsDesignatedNodeID, s.events, s.uptime = true, "boot", 10*time.Minute
	s.set.Affinity.Node = "n1"
	s.fresh.storage.Volumes = []types.Volume{volume("data"), volume("more")}
	for i := range s.fresh.storage.Volumes {
		v := &s.fresh.storage.Volumes[i]
		v.Robustness, v.Running = "healthy", true
		for j := range v.Replicas {
			v.Replicas[j].Mode = "RW"
		}
	}
	s.pods[0].UID = "pod-a"
	s.follow()
	cfg := s.cfg
	cfg.UUIDandVersion.UUID, cfg.DisplayName = uuid.MustParse(otherID), "Other"
	set := s.set
	set.Name, set.UID, set.AppDomain, set.Claims = cfg.KubeName(), "set-b", otherID+".1.7", []string{"more"}
	s.configs[otherID], s.sets[set.Key()] = cfg, set
	p := launcher(cfg.KubeName()+"abcde", on("n2"), func(p *types.Pod) { p.UID, p.AppDomain = "pod-b", otherID+".1.7" })
	s.pods = append(s.pods, p)
	s.vmis = append(s.vmis, types.VMI{Name: cfg.KubeName() + "abcde", UID: "vmi-b", Phase: types.VMIRunning, NodeName: "n2", Owner: types.Owner{Name: cfg.KubeName()}, AppDomain: otherID + ".1.7"})

	var tried []string
	start := s.uptime
	for s.uptime < afterBoot+time.Minute {
		s.fresh.at, s.fresh.tried = s.uptime, s.uptime
		a := decide(s.facts)
		s.since = a.since
		if a.act != nil {
			for _, target := range a.act.targets {
				if a.act.act == types.ActFailback {
					tried = append(tried, (s.uptime-start).String()+" "+target.key[:4])
				}
				is := s.sets[target.set.Key()]
				is.Note = target.note // written before the eviction
				s.sets[target.set.Key()] = is
				if a.act.act == types.ActFailback && target.key == otherID { // that is not refused
					i := slices.IndexFunc(s.pods, func(p types.Pod) bool { return p.UID == "pod-b" })
					s.pods[i].NodeName, s.pods[i].UID = "n1", "pod-b2"
					s.vmis[1].NodeName = "n1"
				}
			}
		}
		s.uptime, s.now = s.uptime+5*time.Second, s.now.Add(5*time.Second)
	}
	if !slices.ContainsFunc(tried, func(x string) bool { return strings.HasSuffix(x, otherID[:4]) }) {
		t.Errorf("the second one never returned: %v", tried)
	}
}
