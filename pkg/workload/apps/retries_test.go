package apps

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func (w *world) calls(verb string) int { return len(w.kube.Calls(verb)) }

// errorsLogged counts warnings and worse, of all agents.
func (w *world) warnings() int {
	n := 0
	for _, a := range w.agents {
		for _, e := range a.logged.AllEntries() {
			if e.Level <= 3 { // logrus.WarnLevel
				n++
			}
		}
	}
	return n
}

func TestANodeThatIsOffForHoursCostsLittle(t *testing.T) {
	inWorld(t, func(w *world) {
		v, f := volume("data"), volume("foreign")
		v.Replicas[1].LastMode = "ERR"
		w.kube.SetStorage(types.Storage{Longhorn: true, Volumes: []types.Volume{v, f}})
		w.lose()
		time.Sleep(time.Hour)
		before := w.calls("storage")
		time.Sleep(6 * time.Hour)
		if n := w.calls("storage") - before; n > 2*6*60+2 {
			t.Errorf("two agents listed all volumes %d times in six hours", n)
		}
		if n := w.warnings(); n > 2 {
			t.Errorf("%d warnings", n)
		}
	})
}

func TestAReplacementThatNoNodeTakesIsNoReasonToGoOnReleasing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.kube.Change(func() { w.nowhere = true })
		w.lose()
		time.Sleep(6 * time.Hour)
		got := w.verbs()
		if got["noterepair"] != 1 || got["forcedelete"] > 2 || got["deleteattachment"] != 1 {
			t.Errorf("in six hours: %v", got)
		}
		if n := w.calls("repair"); n > 6*60*2 {
			t.Errorf("the right to repair was asked for %d times", n)
		}
		w.kube.Change(func() {
			w.nowhere = false
			for key, p := range w.pods.All() {
				if p.VMI != "" && p.NodeName == "" {
					p.NodeName = "n3"
					_ = w.pods.Publish(key, p)
				}
			}
		})
		w.until("the note is wiped once it runs", time.Minute, func() bool {
			set, _ := w.sets.Get(types.KindVMIReplicaSet + "/" + name)
			return set.Note == types.RepairNote{}
		})
	})
}

func TestLooksThatFailNowAndThenAreNotSaidAgainAndAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		v, f := volume("data"), volume("foreign")
		v.Replicas[1].LastMode = "ERR"
		w.kube.SetStorage(types.Storage{Longhorn: true, Volumes: []types.Volume{v, f}})
		w.lose()
		time.Sleep(time.Minute)
		for range 60 {
			w.kube.FailVerb("storage", errors.New("one volume contradicts itself"))
			time.Sleep(time.Minute)
			w.kube.FailVerb("storage", nil)
			time.Sleep(time.Minute)
		}
		if n := w.warnings(); n > 2 {
			t.Errorf("%d warnings in two hours", n)
		}
		if got := w.verbs(); len(got) != 0 {
			t.Errorf("done: %v", got)
		}
	})
}

func TestANodeIsNotFencedWhileSomethingAttachedThereIsInDanger(t *testing.T) {
	rows := map[string]struct {
		foreign types.Volume
		known   bool
	}{
		"a volume whose pod waits elsewhere": {func() types.Volume { v := volume("foreign"); v.Replicas = v.Replicas[:1]; return v }(), true},
		"a volume of which nothing is known": {types.Volume{}, false},
		"a volume in a namespace that is not ours": {func() types.Volume {
			v := volume("foreign")
			v.Replicas, v.Claim = v.Replicas[:1], "shop/database"
			return v
		}(), true},
	}
	for row, r := range rows {
		t.Run(row, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.kube.Change(func() { _ = w.pods.Unpublish("eve-kube-app/other") })
				s := types.Storage{Longhorn: true, Volumes: []types.Volume{volume("data")}}
				if r.known {
					r.foreign.Name = "pv-foreign"
					s.Volumes = append(s.Volumes, r.foreign)
				}
				w.kube.SetStorage(s)
				w.lose()
				w.until("it runs on n3", time.Minute, func() bool { return slices.Equal(w.runsOn(), []string{"n3"}) })
				time.Sleep(time.Hour)
				if n, _ := w.nodes.Get("n2"); n.OutOfService || !slices.Equal(w.attachments(), []string{"va-2"}) {
					t.Errorf("fenced %v, attachments %v", n.OutOfService, w.attachments())
				}
				if n := w.warnings(); n > 4 {
					t.Errorf("%d warnings", n)
				}
			})
		})
	}
}

func TestAFenceStaysUntilACopyThatTerminatesHasStopped(t *testing.T) {
	inWorld(t, func(w *world) {
		w.lose()
		w.until("the node is fenced", time.Minute, func() bool { n, _ := w.nodes.Get("n2"); return n.OutOfService })
		stale := launcher(name+"stale", on("n2"), func(p *types.Pod) { p.UID, p.Deleted = "stale", time.Now() })
		w.kube.Change(func() { _ = w.pods.Publish(stale.Key(), stale) })
		w.kube.SetRunningPods("n2", types.PodRef{Namespace: "eve-kube-app", Name: stale.Name, UID: "stale"})
		w.kube.Change(func() { w.setReady("n2", types.ConditionTrue) })
		time.Sleep(50 * time.Second)
		if n, _ := w.nodes.Get("n2"); !n.OutOfService {
			t.Error("the node is back in service while its stale copy terminates")
		}
		w.kube.SetRunningPods("n2")
		w.until("the node is in service", 30*time.Second, func() bool { n, _ := w.nodes.Get("n2"); return !n.OutOfService })
	})
}

func TestAFenceStaysBesideACopyThatOnlyAnOldTableHas(t *testing.T) {
	inWorld(t, func(w *world) {
		var old pubsub.Table[types.Pod]
		var copied types.Pod
		for key, p := range w.pods.All() {
			_ = old.Publish(key, p)
			if p.VMI != "" {
				copied = p
			}
		}
		w.agents["n1"].stop()
		w.agents["n1"].pods = &old
		w.start("n1")
		w.lose()
		w.until("it runs on n3", 2*time.Minute, func() bool { return slices.Equal(w.runsOn(), []string{"n3"}) })
		w.kube.SetRunningPods("n2", types.PodRef{Namespace: copied.Namespace, Name: copied.Name, UID: copied.UID})
		w.kube.Change(func() { w.setReady("n2", types.ConditionTrue) })
		time.Sleep(time.Minute)
		if n, _ := w.nodes.Get("n2"); n.Fence == nil || w.calls("apppods") == 0 {
			t.Errorf("the node is back in service while it runs the stale copy: %v", w.verbs())
		}
		stays := types.Pod{Namespace: copied.Namespace, Name: "stays", UID: "stays", NodeName: "n2", Phase: types.PodRunning}
		w.kube.Change(func() { _ = errors.Join(w.pods.Publish(stays.Key(), stays), old.Publish(stays.Key(), stays)) })
		w.kube.FailVerb("apppods", errors.New("forbidden"))
		w.kube.SetRunningPods("n2", types.PodRef{Namespace: stays.Namespace, Name: stays.Name, UID: stays.UID})
		time.Sleep(5 * time.Minute)
		if n, _ := w.nodes.Get("n2"); n.Fence == nil {
			t.Error("the node is back in service without a list")
		}
		w.kube.FailVerb("apppods", nil)
		w.until("the node is in service", 3*time.Minute, func() bool { n, _ := w.nodes.Get("n2"); return !n.OutOfService })
	})
}

func TestAFencedNodeWhoseRuntimeCannotBeAskedIsSaidOnceAndAskedSeldom(t *testing.T) {
	inWorld(t, func(w *world) {
		w.lose()
		w.until("the node is fenced", time.Minute, func() bool { n, _ := w.nodes.Get("n2"); return n.OutOfService })
		before := w.warnings()
		w.kube.FailVerb("runningpods", errors.New("forbidden"))
		w.kube.Change(func() { w.setReady("n2", types.ConditionTrue) })
		time.Sleep(6 * time.Hour)
		if n := w.calls("runningpods"); n > 3*6*60 { // one a minute of each agent
			t.Errorf("asked %d times in six hours", n)
		}
		if n := w.warnings() - before; n > 3 {
			t.Errorf("%d warnings", n)
		}
		w.kube.FailVerb("runningpods", nil)
		w.until("the node is in service", 3*time.Minute, func() bool { n, _ := w.nodes.Get("n2"); return !n.OutOfService })
	})
}

func TestANodeThatIsDeletedAndJoinsAgainIsNotFenced(t *testing.T) {
	inWorld(t, func(w *world) {
		w.lose()
		w.until("the node is fenced", time.Minute, func() bool { n, _ := w.nodes.Get("n2"); return n.OutOfService })
		w.kube.Change(func() { _ = w.nodes.Unpublish("n2") })
		time.Sleep(time.Minute)
		w.kube.Change(func() {
			_ = w.nodes.Publish("n2", types.Node{Name: "n2", UID: "uid-again", Ready: types.ConditionTrue, Agent: &types.AgentStamp{}, ReadySince: time.Now()})
		})
		before := w.verbs()
		time.Sleep(time.Hour)
		if n, _ := w.nodes.Get("n2"); n.OutOfService || fmt.Sprint(before) != fmt.Sprint(w.verbs()) {
			t.Errorf("%+v, then %v", before, w.verbs())
		}
	})
}

// leavesAtNone is somebody who scales the set to 0.
func leavesAtNone(w *world) {
	w.kube.Change(func() {
		set := w.set()
		set.Wanted = 0
		_ = w.sets.Publish(set.Key(), set)
	})
}

func TestASetThatSomebodyElseLeavesAtNoneIsRevivedOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		leavesAtNone(w)
		w.until("the set wants one", leftAtNone+turn, func() bool {
			set, _ := w.sets.Get(types.KindVMIReplicaSet + "/" + name)
			return set.Wanted == 1
		})
		time.Sleep(time.Hour)
		if got := w.verbs(); got["wanted"] != 1 || len(got) != 1 {
			t.Errorf("done: %v", got)
		}
		w.zero = false // not by us
	})
}

func TestOnlyWhatIsTiedToTheLostNodeItselfMayLoseItsReplicas(t *testing.T) {
	rows := map[string]struct {
		affinity types.SetAffinity
		tied     bool
	}{
		"to this node":      {types.SetAffinity{Node: "n2", Required: true}, true},
		"to another node":   {types.SetAffinity{Node: "n3", Required: true}, false},
		"to several nodes":  {types.SetAffinity{Required: true}, false},
		"preferred, only":   {types.SetAffinity{Node: "n2"}, false},
		"to nothing at all": {types.SetAffinity{}, false},
	}
	for row, r := range rows {
		s := newScene()
		s.pods[0].Claims = []string{"data"}
		s.set.Affinity = r.affinity
		if all := s.follow().podClaims("n2"); len(all) != 1 || all[0].tied != r.tied {
			t.Errorf("%s: %+v", row, all)
		}
	}
}
