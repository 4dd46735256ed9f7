package apps

import (
	"testing"
	"testing/synctest"
	"time"

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

// n3 has seen n2 silent a third time, and its agent hangs since. n1 hears of that when its API server answers again.
func TestNothingIsTakenByWhatAWitnessSaidBeforeTheAPIServerWasSilent(t *testing.T) {
	inWorld(t, func(w *world) {
		w.agents["n3"].stop()
		w.agents["n3"].stop = func() {}
		w.kube.Change(func() { w.answers = true }) // the test says what witnesses say
		round := int64(0)
		says := func(silent int, names ...string) {
			round++
			for _, name := range names {
				w.kube.ChangeNode(name, func(n *types.Node) {
					n.Witness = &types.Witness{Round: round, Sightings: []types.Sighting{{Node: "n2", UID: "uid-n2", Silent: silent}}}
				})
			}
		}
		w.lose()
		for silent := range types.WitnessSilent {
			says(silent, "n1", "n3") // nobody is sure yet
			time.Sleep(5 * time.Second)
		}
		w.cutOff()
		time.Sleep(time.Minute)
		says(types.WitnessSilent, "n3")
		_ = w.api.Publish(types.Global, types.APIStatus{Synced: true, Apps: true})
		for range 12 {
			says(6, "n1")
			time.Sleep(5 * time.Second)
		}
		if got := w.verbs(); len(got) > 0 {
			t.Errorf("done: %v", got)
		}
		for range 12 {
			says(6, "n1", "n3")
			time.Sleep(5 * time.Second)
		}
		if got := w.verbs(); got["fence"] == 0 || got["forcedelete"] == 0 {
			t.Errorf("when n3 says so again: %v", got)
		}
	})
}
