package apps

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// cutOff makes the API server silent for whoever asks from now on.
func (w *world) cutOff() {
	_ = w.api.Publish(types.Global, types.APIStatus{SilentSince: time.Now(), Reason: "cut off"})
}

func TestARestartedAgentClaimsNoLongerThanTheFormerOne(t *testing.T) {
	inWorld(t, func(w *world) {
		claims := func() bool {
			synctest.Wait()
			s, ok := w.agents["n2"].status.Get(appID)
			return ok && s.ScheduledOnThisNode
		}
		restart := func() {
			w.agents["n2"].stop()
			if s, _ := w.api.Get(types.Global); !s.SilentSince.IsZero() {
				w.cutOff() // the new process knows of no silence before its own
			}
			w.start("n2")
		}
		time.Sleep(time.Minute)
		restart()
		if !claims() {
			t.Fatal("control: it does not claim what runs there")
		}
		for round := range 2 {
			w.cutOff()
			for at := time.Duration(0); at < trust+time.Minute; at += 30 * time.Second {
				if got, want := claims(), at < trust; got != want {
					t.Errorf("round %d, after %s: it claims: %v, want %v", round, at, got, want)
				}
				time.Sleep(29 * time.Second)
				restart()
				time.Sleep(time.Second)
			}
			_ = w.api.Publish(types.Global, types.APIStatus{Synced: true, Apps: true})
			if !claims() {
				t.Errorf("round %d: it is in view again, and does not claim", round)
			}
			if s, _ := w.agents["n2"].repairs.Get(appID); s.Unseen != 0 || s.BootID != "" {
				t.Errorf("round %d: it is in view again, and out of view since %s of %q", round, s.Unseen, s.BootID)
			}
			time.Sleep(time.Hour)
			restart()
		}
	})
}

func TestOutOfViewCountsInOneBoot(t *testing.T) {
	for row, r := range map[string]struct {
		on   types.AppRepairStatus
		want time.Duration
	}{
		"nothing on record":   {types.AppRepairStatus{}, time.Second},
		"a former run":        {types.AppRepairStatus{BootID: "boot", Unseen: up - time.Minute}, time.Minute},
		"a former boot":       {types.AppRepairStatus{BootID: "former", Unseen: up - time.Minute}, time.Second},
		"this run, from then": {types.AppRepairStatus{BootID: "boot", Unseen: up - time.Second}, time.Second},
	} {
		s := newScene()
		s.boot, s.unseenSince, s.repairs = "boot", now.Add(-time.Second), map[string]types.AppRepairStatus{appID: r.on}
		if got := s.unseen(appID); got != r.want {
			t.Errorf("%s: out of view for %s, want %s", row, got, r.want)
		}
		if told := decide(s.facts).repairs[appID]; told.BootID != "boot" || told.Unseen != up-r.want {
			t.Errorf("%s: on record is then %s of %q", row, told.Unseen, told.BootID)
		}
		s.unseenSince = time.Time{}
		if told := decide(s.facts).repairs[appID]; s.unseen(appID) != 0 || told.Unseen != 0 {
			t.Errorf("%s: in view it is out of view for %s", row, s.unseen(appID))
		}
	}
}

// lagging is the table of nodes of one agent, which may stand still, as from the end of a watch until the list that
// follows has come. APIStatus says that it is whole for up to a minute then.
type lagging struct {
	pubsub.Reader[types.Node]
	still atomic.Pointer[map[string]types.Node]
}

func (l *lagging) All() map[string]types.Node {
	if still := l.still.Load(); still != nil {
		return *still
	}
	return l.Reader.All()
}

func (l *lagging) lag() {
	now := l.All()
	l.still.Store(&now)
}

// restartLagging runs the agent of n1 with such a table; that of n3 hangs.
func (w *world) restartLagging(wrap ...func(Kube) Kube) *lagging {
	w.agents["n3"].stop()
	w.agents["n3"].stop = func() {}
	w.agents["n1"].stop()
	l := &lagging{Reader: &w.nodes}
	w.agents["n1"].nodes = l
	w.start("n1", wrap...)
	return l
}

// say has witnesses say that n2 was silent so often, and waits for their next look.
func (w *world) say(silent int, names ...string) {
	for _, name := range names {
		w.kube.ChangeNode(name, func(n *types.Node) {
			n.Witness = &types.Witness{Round: time.Now().Unix(), Sightings: []types.Sighting{{Node: "n2", UID: "uid-n2", Silent: silent}}}
		})
	}
	time.Sleep(5 * time.Second)
}

// n3 has seen n2 silent a third time, and its agent hangs since. n1 hears of that when its API server answers again, or
// when its table of nodes no longer lags.
func TestNothingIsTakenByWhatAWitnessSaidWhileItWasNotHeard(t *testing.T) {
	for name, row := range map[string]struct{ begins, ends func(*world, *lagging) }{
		"the API server does not answer": {
			func(w *world, _ *lagging) { w.cutOff() },
			func(w *world, _ *lagging) { _ = w.api.Publish(types.Global, types.APIStatus{Synced: true, Apps: true}) },
		},
		"the table of nodes lags": {
			func(_ *world, l *lagging) { l.lag() },
			func(_ *world, l *lagging) { l.still.Store(nil) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				l := w.restartLagging()
				w.kube.Change(func() { w.answers = true }) // the test says what witnesses say
				w.lose()
				for silent := range types.WitnessSilent {
					w.say(silent, "n1", "n3") // nobody is sure yet
				}
				row.begins(w, l)
				w.say(types.WitnessSilent, "n1", "n3")
				for range 11 {
					w.say(6, "n1")
				}
				row.ends(w, l)
				for range 12 {
					w.say(6, "n1")
				}
				if got := w.verbs(); len(got) > 0 {
					t.Errorf("done: %v", got)
				}
				for range 12 {
					w.say(6, "n1", "n3")
				}
				if got := w.verbs(); got["fence"] == 0 || got["forcedelete"] == 0 {
					t.Errorf("when n3 says so again: %v", got)
				}
			})
		})
	}
}

// The words count as the steps hear them until the repair lease is had, also where they hear nothing any more.
func TestAFailoverThatWaitsForTheRepairLeaseWhileTheTableOfNodesLagsDoesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		var l *lagging
		var waited atomic.Int32
		l = w.restartLagging(func(k Kube) Kube {
			return &meddler{Kube: k, happens: func() {
				if waited.Add(1) > 1 {
					return
				}
				l.lag()
				time.Sleep(6 * time.Second) // both publish once more
				w.kube.Change(func() { w.answers = true })
				for range 6 {
					w.say(9, "n1")
				}
			}}
		})
		w.lose()
		w.until("somebody has waited", 5*time.Minute, func() bool { return waited.Load() > 0 })
		time.Sleep(time.Minute)
		if got := w.verbs(); len(got) > 0 {
			t.Errorf("done: %v", got)
		}
	})
}
