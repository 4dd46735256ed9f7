package apps

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// noAttachments is a Kube that does not list what is attached to a node.
type noAttachments struct{ Kube }

func (noAttachments) NodeAttachments(context.Context, string) ([]types.Attachment, error) {
	return nil, errors.New("etcdserver: request timed out")
}

// It is told at every moment of 40 minutes: after ten of them a loss is looked at once a minute, and is stale in between.
func TestARepairThatFailsAsAWholeSaysWhyAllTheTime(t *testing.T) {
	rows := map[string]struct {
		fails func(*world)
		wrong func(*world)
		act   types.RepairAct
		why   string
	}{
		"no repair lease, for a failover": {
			func(w *world) {
				w.kube.FailVerb("repair", errors.New("repair as n1: context deadline exceeded"))
			},
			(*world).lose, types.ActFailover, "repair as n1: context deadline exceeded",
		},
		"no repair lease, for a set at none": {
			func(w *world) {
				w.kube.FailVerb("repair", errors.New("repair as n1: context deadline exceeded"))
			},
			leavesAtNone, types.ActRevive, "repair as n1: context deadline exceeded",
		},
		"another node repairs all the time": {
			func(w *world) { w.kube.SetRepairer("somebody", 24*time.Hour) },
			(*world).lose, types.ActFailover, "held by another node: somebody",
		},
		"another node repairs all the time, for a set at none": {
			func(w *world) { w.kube.SetRepairer("somebody", 24*time.Hour) },
			leavesAtNone, types.ActRevive, "held by another node: somebody",
		},
		"a webhook denies the taint": {
			func(w *world) {
				w.kube.FailVerb("fence", errors.New(`admission webhook "nodes.example.com" denied the request`))
			},
			(*world).lose, types.ActFailover, `admission webhook "nodes.example.com" denied the request`,
		},
		"a look under the repair lease fails": {
			func(w *world) { w.restartWith(func(k Kube) Kube { return noAttachments{k} }) },
			(*world).lose, types.ActFailover, "attachments of n2: etcdserver: request timed out",
		},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				row.fails(w)
				row.wrong(w)
				time.Sleep(2 * time.Minute)
				silent, last := 0, ""
				for range 38 * 60 {
					time.Sleep(time.Second)
					synctest.Wait()
					for _, n := range []string{"n1", "n3"} {
						s, _ := w.agents[n].repairs.Get(appID)
						if s.Act != row.act || !strings.Contains(s.Reason, "The last attempt failed: ") || !strings.Contains(s.Reason, row.why) {
							silent, last = silent+1, n+": "+string(s.Act)+": "+s.Reason
						}
					}
				}
				if silent > 0 {
					t.Errorf("it does not say why at %d of %d moments: %s", silent, 2*38*60, last)
				}
				w.zero = false // not by us
			})
		})
	}
}

func TestWhyARepairFailedIsOverWithTheFirstThatDoesNot(t *testing.T) {
	inWorld(t, func(w *world) {
		told := func(why string) bool {
			for _, n := range []string{"n1", "n3"} {
				if s, _ := w.agents[n].repairs.Get(appID); strings.Contains(s.Reason, why) {
					return true
				}
			}
			return false
		}
		w.kube.Change(func() { w.nowhere = true })
		w.kube.SetRepairer("somebody", 24*time.Hour)
		w.lose()
		w.until("it is told who holds the lease", time.Minute, func() bool { return told("held by another node") })
		w.kube.SetRepairer("", 0)
		w.kube.FailVerb("fence", errors.New("denied"))
		w.until("it is told that the fence fails", time.Minute, func() bool { return told("denied") && !told("held") })
		w.kube.FailVerb("fence", nil)
		w.until("the node is fenced", 3*time.Minute, func() bool { n, _ := w.nodes.Get("n2"); return n.OutOfService })
		time.Sleep(2 * time.Minute)
		if told("last attempt") {
			t.Error("it is over, and still told")
		}
	})
}

func TestAnApplicationThatHadItsTurnDoesNotTellWhyTheNextHadNot(t *testing.T) {
	log, logged := logtest.NewNullLogger()
	c := &Component{Log: log, Uptime: func() time.Duration { return up }, Repairs: &pubsub.Table[types.AppRepairStatus]{}}
	s := newScene()
	s.lose()
	s.follow()
	k := &slow{scene: s, clock: up}
	k.then = func() { k.nobody = true }
	w := &worker{Kube: k, hears: &pubsub.Table[heard]{}, task: task{act: types.ActFailover, self: s.self, lost: s.nodes["n2"], heard: up}, steps: map[string][]types.RepairStep{}, fails: map[string]error{}}
	w.now, w.uptime = func() time.Time { return now }, func() time.Duration { return k.clock }
	w.words = types.Witnesses{"n1": {Round: 9, At: up - time.Second, First: up - time.Second, Last: up}, "n3": {Round: 9, At: up - time.Second, First: up - time.Second, Last: up}}
	for _, name := range []string{"a", "b", "c"} {
		a := s.apps()[0]
		a.key, a.set.Name, a.pods, a.vmis = name, name, nil, nil // nothing is left to be taken
		w.targets = append(w.targets, target{app: a, note: types.RepairNote{Act: types.ActFailover, Node: "n2"}})
	}
	c.finish(outcome{w, fmt.Errorf("repair as n1: %w", types.ErrHeld)})
	if len(c.mem.rest) != 2 || c.mem.rest[held].why == "" {
		t.Errorf("while another node repairs: %+v", c.mem.rest)
	}
	c.finish(outcome{w, w.do(t.Context())})
	if _, still := c.mem.rest[held]; still {
		t.Error("another node still repairs")
	}
	for name, want := range map[string]string{"a": "", "b": "", "c": "check node n2: node n1 is not in the list of nodes"} {
		if got := c.mem.rest[name].why; got != want {
			t.Errorf("%s says %q", name, got)
		}
	}
	if n := len(logged.AllEntries()); n != 1 {
		t.Errorf("%d lines for one failure", n)
	}
}

func TestWhyARepairFailedIsNotToldOfAnApplicationThatRunsAgain(t *testing.T) {
	s := newScene()
	s.set.Note = types.RepairNote{Act: types.ActFailover, Node: "n2", NodeUID: "uid-n2"}
	s.since["settle/set"] = up - time.Minute
	s.follow().rest[appID] = pause{until: up, why: "refused", act: types.ActFailover}
	s.rest[held] = pause{until: up, why: "held by another node"}
	if v := s.judged(); v.act != actSettle || v.target == nil {
		t.Fatalf("%+v", v)
	}
	if got := decide(s.facts).repairs[appID].Reason; got != "It runs." {
		t.Error(got)
	}
	s.rest[appID] = pause{until: up, why: "refused", act: actSettle}
	if got := decide(s.facts).repairs[appID].Reason; got != "It runs. The last attempt failed: refused." {
		t.Error(got)
	}
}

func TestAFenceThatFailsByItselfIsToldWithTheFailover(t *testing.T) {
	s := newScene()
	s.lose()
	s.follow().rest["uid-n2"] = pause{until: up, why: "fence node n2: denied", act: actFence}
	tells := func() bool {
		return strings.Contains(decide(s.facts).repairs[appID].Reason, "The last attempt to fence node n2 failed: fence node n2: denied.")
	}
	if !tells() {
		t.Error("it is not told")
	}
	s.node("n2", func(n *types.Node) { n.OutOfService = true })
	if s.follow(); tells() {
		t.Error("the reason names a failed fence of a node that is fenced")
	}
	s.node("n2", func(n *types.Node) { n.OutOfService = false })
	s.follow().rest["uid-n2"] = pause{until: up - maxPause, why: "fence node n2: denied", act: actFence}
	if tells() {
		t.Error("the reason names a failed fence of a former loss")
	}
	s.rest["uid-n2"] = pause{until: up, why: "fence node n2: denied", act: actUnfence}
	if tells() {
		t.Error("the reason names a failed fence where the removal of one failed")
	}
}
