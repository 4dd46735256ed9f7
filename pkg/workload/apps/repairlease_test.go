package apps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// slowly is a Kube whose lists of nodes take long: in a look, and under the repair lease; and so does a node's Lease.
type slowly struct {
	Kube
	look, check func() time.Duration
	lease       time.Duration
}

func (s *slowly) NodeLease(ctx context.Context, node string) (time.Time, error) {
	if err := s.wait(ctx, s.lease); err != nil {
		return time.Time{}, err
	}
	return s.Kube.NodeLease(ctx, node)
}

func (s *slowly) wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return ctx.Err()
}

type underLease struct{}

func (s *slowly) Repair(ctx context.Context, identity string, do func(context.Context) error) error {
	return s.Kube.Repair(ctx, identity, func(ctx context.Context) error {
		return do(context.WithValue(ctx, underLease{}, true))
	})
}

func (s *slowly) FreshNodes(ctx context.Context) ([]types.Node, error) {
	takes := s.look
	if ctx.Value(underLease{}) != nil {
		takes = s.check
	}
	if err := s.wait(ctx, takes()); err != nil {
		return nil, err
	}
	return s.Kube.FreshNodes(ctx)
}

// restartWith runs the agents of n1 and n3 with other verbs.
func (w *world) restartWith(wrap func(Kube) Kube) {
	for _, n := range []string{"n1", "n3"} {
		w.agents[n].stop()
		w.start(n, wrap)
	}
}

func takes(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

// Another repair of the same node, as of its workloads, may come first.
func TestAFailoverThatWaitsForTheRepairLeaseKnowsWhatWitnessesSayMeanwhile(t *testing.T) {
	for hangs, want := range map[bool][]string{false: {"n3"}, true: nil} {
		inWorld(t, func(w *world) {
			var waited atomic.Int32
			w.restartWith(func(k Kube) Kube {
				return &meddler{Kube: k, happens: func() {
					if waited.Add(1) == 1 && hangs { // the agents of others, once they have published again
						time.Sleep(6 * time.Second)
						w.kube.Change(func() { w.answers = true })
					}
					time.Sleep(30 * time.Second)
				}}
			})
			w.lose()
			w.until("somebody has waited", 5*time.Minute, func() bool { return waited.Load() > 0 })
			time.Sleep(2 * time.Minute)
			if got := w.runsOn(); !slices.Equal(got, want) {
				t.Errorf("a witness hangs: %v, and it runs on %v: %v", hangs, got, w.verbs())
			}
			if got := w.verbs(); hangs && len(got) > 0 {
				t.Errorf("done: %v", got)
			}
		})
	}
}

// The repair lease is waited for as long as a task may take.
func TestWhatIsConfiguredOtherwiseWhileAFailoverWaitsIsNotTaken(t *testing.T) {
	for name, change := range map[string]func(*world, types.AppInstanceConfig){
		"it is tied to its node": func(w *world, cfg types.AppInstanceConfig) {
			cfg.AffinityType = types.AffinityRequired
			_ = w.configs.Publish(appID, cfg)
		},
		"it is not to run": func(w *world, cfg types.AppInstanceConfig) {
			cfg.Activate = false
			_ = w.configs.Publish(appID, cfg)
		},
		"it is not to be there": func(w *world, _ types.AppInstanceConfig) { _ = w.configs.Unpublish(appID) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				var waited atomic.Int32
				w.restartWith(func(k Kube) Kube {
					return &meddler{Kube: k, happens: func() {
						time.Sleep(2 * time.Second)
						s1, _ := w.agents["n1"].repairs.Get(appID)
						s3, _ := w.agents["n3"].repairs.Get(appID)
						if s1.Phase != types.RepairActs && s3.Phase != types.RepairActs {
							return // the node is fenced
						}
						if waited.Add(1) == 1 {
							cfg, _ := w.configs.Get(appID)
							change(w, cfg)
						}
						time.Sleep(30 * time.Second)
					}}
				})
				w.lose()
				w.until("somebody has waited", 5*time.Minute, func() bool { return waited.Load() > 0 })
				time.Sleep(3 * time.Minute)
				if got := w.verbs(); got["forcedelete"]+got["forgetvmi"]+got["deleteattachment"]+got["noterepair"] > 0 {
					t.Errorf("done: %v", got)
				}
			})
		})
	}
}

func TestANodeIsNotFencedBesideWhatIsNoLongerTiedToIt(t *testing.T) {
	inWorld(t, func(w *world) {
		tie := func(required bool) {
			w.kube.Change(func() {
				set := w.set()
				set.Affinity.Required = required
				_ = w.sets.Publish(set.Key(), set)
			})
		}
		tie(true)
		lost, f := volume("data"), volume("foreign")
		f.Name, f.Claim = "pv-foreign", foreign
		lost.Replicas[1].FailedAt = time.Now() // it may start nowhere else
		w.kube.SetStorage(types.Storage{Longhorn: true, Volumes: []types.Volume{lost, f}})
		var waited atomic.Int32
		w.restartWith(func(k Kube) Kube {
			return &meddler{Kube: k, happens: func() {
				waited.Add(1)
				tie(false)
				time.Sleep(30 * time.Second)
			}}
		})
		w.lose()
		w.until("somebody has waited", 5*time.Minute, func() bool { return waited.Load() > 0 })
		time.Sleep(3 * time.Minute)
		if got := w.verbs(); got["fence"] > 0 {
			t.Errorf("done: %v", got)
		}
	})
}

func TestAFailoverWhoseCheckCameLateSaysSoAndIsJudgedAgainAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		var late atomic.Int32
		w.restartWith(func(k Kube) Kube {
			return &slowly{Kube: k, look: takes(0), check: func() time.Duration {
				if late.Add(1) > 4 {
					return 0
				}
				return 25 * time.Second
			}}
		})
		w.lose()
		w.until("it is tried", 5*time.Minute, func() bool { return late.Load() > 0 })
		told := func() bool {
			for _, n := range []string{"n1", "n3"} {
				if s, _ := w.agents[n].repairs.Get(appID); s.Act == types.ActFailover && strings.Contains(s.Reason, "The last attempt failed: check node n2: the list of nodes came more than 20s after") {
					return true
				}
			}
			return false
		}
		w.until("it says so", time.Minute, told)
		if got := w.verbs(); len(got) != 0 {
			t.Errorf("done: %v", got)
		}
		w.until("it was late four times", 5*time.Minute, func() bool { return late.Load() > 4 })
		w.until("it runs on n3", 20*time.Second, func() bool { return slices.Equal(w.runsOn(), []string{"n3"}) })
		if n := w.warnings(); n > 0 {
			t.Errorf("%d warnings", n)
		}
		if told() {
			t.Error("it is over, and still told")
		}
	})
}

func TestWhyALossWasJudgedAgainIsNotToldOfTheNextOne(t *testing.T) {
	s := newScene()
	s.lose()
	s.follow().rest[late(s.nodes["n2"])] = pause{until: up, why: "it was late"}
	tells := func() bool { return strings.Contains(decide(s.facts).repairs[appID].Reason, "it was late") }
	if !tells() {
		t.Error("it is not told")
	}
	s.node("n2", func(n *types.Node) { n.ReadySince = now.Add(-time.Minute) }) // it has been back
	if s.follow(); tells() {
		t.Error("it is told of the next loss")
	}
}

func TestAFailoverGoesOnWithASlowAPIServer(t *testing.T) {
	for name, row := range map[string]struct {
		list, lease time.Duration
		lose        func(*world)
		limit       time.Duration
	}{
		"a node that is lost": {14 * time.Second, 0, (*world).lose, 4 * time.Minute},
		"a Node that is deleted": {12 * time.Second, 9 * time.Second, func(w *world) {
			w.agents["n2"].stop()
			w.agents["n2"].stop = func() {}
			w.deleteNode()
		}, deletedFor + 4*time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.restartWith(func(k Kube) Kube {
					return &slowly{Kube: k, look: takes(row.list), check: takes(row.list), lease: row.lease}
				})
				row.lose(w)
				w.until("it is taken from n2", row.limit, func() bool { return w.verbs()["forcedelete"] > 0 })
			})
		})
	}
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
