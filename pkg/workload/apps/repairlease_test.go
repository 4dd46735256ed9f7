package apps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

// meddler is a Kube in which something happens as soon as the repair lease is
// had: what was proved before is not so any more.
type meddler struct {
	Kube
	happens func()
}

func (m *meddler) Repair(ctx context.Context, identity string, do func(context.Context) error) error {
	return m.Kube.Repair(ctx, identity, func(ctx context.Context) error {
		m.happens()
		return do(ctx)
	})
}

func TestWhatIsNotTrueAnyMoreUnderTheRightIsNotDone(t *testing.T) {
	rows := map[string]func(*world){
		"the node reports again": func(w *world) { w.setReady("n2", types.ConditionTrue) },
		"the node reports that it is not ready": func(w *world) {
			w.setReady("n2", types.ConditionFalse)
		},
		"the node's Lease is renewed": func(w *world) { w.kube.SetRenewed("n2", time.Now()) },
		"the node answers a witness": func(w *world) {
			w.kube.Change(func() { w.answers = true })
			n, _ := w.nodes.Get("n3")
			n.Witness = &types.Witness{Round: n.Witness.Round + 1, Sightings: []types.Sighting{{Node: "n2", UID: "uid-n2", Alive: "10.0.0.1:12346"}}}
			_ = w.nodes.Publish("n3", n)
		},
		"another Node has its name": func(w *world) {
			n, _ := w.nodes.Get("n2")
			n.UID = "uid-new"
			_ = w.nodes.Publish("n2", n)
		},
		"the last whole replica elsewhere has failed": func(w *world) {
			v, f := volume("data"), volume("foreign")
			v.Replicas[1].FailedAt, f.Replicas[1].FailedAt = time.Now(), time.Now()
			w.kube.SetStorage(types.Storage{Longhorn: true, Volumes: []types.Volume{v, f}})
		},
		"volumes cannot be listed":     func(w *world) { w.kube.FailVerb("storage", errors.New("refused")) },
		"nodes cannot be listed":       func(w *world) { w.kube.FailVerb("nodes", errors.New("refused")) },
		"attachments cannot be listed": func(w *world) { w.kube.FailVerb("attachments", errors.New("refused")) },
	}
	for row, happens := range rows {
		t.Run(row, func(t *testing.T) {
			inWorld(t, func(w *world) {
				for _, n := range []string{"n1", "n3"} {
					w.agents[n].stop()
					w.start(n, func(k Kube) Kube { return &meddler{Kube: k, happens: func() { happens(w) }} })
				}
				w.lose()
				time.Sleep(2 * time.Minute)
				if n := w.calls("repair"); n == 0 {
					t.Error("nobody took the right to repair")
				}
				if got := w.verbs(); len(got) != 0 {
					t.Errorf("done: %v", got)
				}
			})
		})
	}
}

// Another repair of the same node, as of its workloads, may come first.
func TestAFailoverWhoseTurnCameLateIsJudgedAgainAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		var late atomic.Int32
		for _, n := range []string{"n1", "n3"} {
			w.agents[n].stop()
			w.start(n, func(k Kube) Kube {
				return &meddler{Kube: k, happens: func() {
					if late.Add(1) <= 3 {
						time.Sleep(30 * time.Second)
						if got := w.verbs(); len(got) != 0 {
							t.Errorf("done: %v", got)
						}
					}
				}}
			})
		}
		w.lose()
		w.until("it was late three times", 5*time.Minute, func() bool { return late.Load() > 3 })
		w.until("it runs on n3", 20*time.Second, func() bool { return slices.Equal(w.runsOn(), []string{"n3"}) })
		if n := w.warnings(); n > 0 {
			t.Errorf("%d warnings", n)
		}
	})
}

// Stale tables of a minority say that all others are gone; the repair lease
// needs a majority.
func TestWithoutTheRightNothingIsDone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.kube.SetRepairer("somebody", 24*time.Hour)
		w.lose()
		time.Sleep(time.Hour)
		if got := w.verbs(); len(got) != 0 {
			t.Errorf("done: %v", got)
		}
		w.kube.FailVerb("repair", errors.New("etcdserver: no leader"))
		time.Sleep(time.Hour)
		if got := w.verbs(); len(got) != 0 {
			t.Errorf("done: %v", got)
		}
		if n := w.warnings(); n > 4 {
			t.Errorf("%d warnings", n)
		}
		w.kube.FailVerb("repair", nil)
		w.kube.SetRepairer("", 0)
		w.until("it runs on n3", 3*time.Minute, func() bool { return slices.Equal(w.runsOn(), []string{"n3"}) })
	})
}

func TestByForceNothingIsTakenFromANodeThatIsBack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.agents["n3"].stop()
		w.start("n3", func(k Kube) Kube {
			return &meddler{Kube: k, happens: func() { w.setReady("n2", types.ConditionTrue) }}
		})
		w.agents["n1"].stop()
		w.agents["n1"].stop = func() {}
		n, _ := w.nodes.Get("n1")
		n.Agent = nil
		w.kube.Change(func() { _ = w.nodes.Publish("n1", n) })
		w.lose()
		_ = w.agents["n3"].asked.Publish(appID, types.AppDetachRequest{Node: "n2", AppDomain: appID, Force: true, ID: uuid.New(), Asked: time.Now()})
		time.Sleep(time.Minute)
		if n := w.calls("repair"); n == 0 {
			t.Error("nobody took the right to repair")
		}
		if got := w.verbs(); len(got) != 0 {
			t.Errorf("done: %v", got)
		}
	})
}

// KubeVirt writes the status of a set whenever something of it changes.
func TestASetThatIsWrittenByOthersAllTheTimeIsRepairedAllTheSame(t *testing.T) {
	inWorld(t, func(w *world) {
		w.lose()
		w.kube.FailVerb("noterepair", fmt.Errorf("note: %w", types.ErrConflict))
		time.Sleep(45 * time.Second)
		if got := w.verbs(); got["forcedelete"]+got["deleteattachment"] != 0 {
			t.Errorf("without its note: %v", got)
		}
		w.kube.FailVerb("noterepair", nil)
		w.until("it runs on n3", 20*time.Second, func() bool { return slices.Equal(w.runsOn(), []string{"n3"}) })
	})
}
