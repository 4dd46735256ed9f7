package apps

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// deleteNode takes the Node of n2 away, and its Lease with it. Its pods and what
// is attached there stay: who takes those by himself is not played.
func (w *world) deleteNode() {
	w.kube.Change(func() { _ = w.nodes.Unpublish("n2") })
	w.kube.SetRenewed("n2", time.Time{})
}

// untouched checks that nothing was taken from n2.
func (w *world) untouched(when string) {
	w.Helper()
	if got := w.verbs(); len(got) != 0 {
		w.Fatalf("%s: %v", when, got)
	}
}

func TestADeviceThatLivesKeepsItsApplicationThoughItsNodeIsDeleted(t *testing.T) {
	for name, alive := range map[string]func(context.Context, *world){
		"it answers a dial": func(_ context.Context, w *world) { w.kube.Change(func() { w.alive = "10.0.0.2:12346" }) },
		"its kubelet renews its Lease": func(ctx context.Context, w *world) {
			go func() {
				for ctx.Err() == nil {
					w.kube.SetRenewed("n2", time.Now())
					select {
					case <-ctx.Done():
					case <-time.After(10 * time.Second):
					}
				}
			}()
		},
		"one that was not seen before": func(_ context.Context, w *world) { _ = w.known.Unpublish("n2") },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				time.Sleep(time.Minute)
				w.deleteNode()
				ctx, cancel := context.WithCancel(w.Context())
				alive(ctx, w)
				time.Sleep(time.Hour)
				cancel()
				w.untouched("an hour later")
				s, _ := w.agents["n1"].repairs.Get(appID)
				if s.Act != types.ActFailover || s.Lost != "n2" || slices.ContainsFunc(s.Evidence, func(e string) bool { return strings.Contains(e, "Lease") }) {
					t.Errorf("told: %+v", s)
				}
			})
		})
	}
}

func TestANodeThatIsMadeAnewKeepsItsApplication(t *testing.T) {
	inWorld(t, func(w *world) {
		for range 3 {
			before, _ := w.nodes.Get("n2")
			w.deleteNode()
			time.Sleep(4 * time.Minute)
			before.UID += "-again"
			w.kube.Change(func() { _ = w.nodes.Publish("n2", before) })
			w.kube.SetRenewed("n2", time.Now())
			time.Sleep(4 * time.Minute)
		}
		w.untouched("after the third time")
		if !slices.Equal(w.runsOn(), []string{"n2"}) {
			t.Errorf("it runs on %v", w.runsOn())
		}
	})
}

func TestTheApplicationOfADeadDeviceWhoseNodeIsDeletedFailsOverAfterFiveMinutes(t *testing.T) {
	inWorld(t, func(w *world) {
		w.agents["n2"].stop()
		w.agents["n2"].stop = func() {}
		w.deleteNode()
		time.Sleep(deletedFor - time.Second)
		w.untouched("before five minutes")
		w.until("it is taken from n2", time.Minute, func() bool { return !slices.Contains(w.runsOn(), "n2") })
		time.Sleep(time.Minute)
		if got := w.attachments(); len(got) != 2 {
			t.Errorf("attachments left: %v", got)
		}
		w.kube.SetAttachments(types.Attachment{Name: "va-2", UID: "va-2", Node: "n2", Volume: "pv-foreign"}) // by Kubernetes itself
		w.until("it runs on n3", time.Minute, func() bool { return slices.Equal(w.runsOn(), []string{"n3"}) })
	})
}

func TestADeviceThatComesToLifeAtTheLastMomentKeepsItsApplication(t *testing.T) {
	play := func(change func(*worker, *slow)) (took []string, err error) {
		s := newScene()
		s.deleteNode(time.Hour)
		k := &slow{scene: s.follow(), clock: up, then: func() {}}
		w := &worker{Kube: k, hears: &pubsub.Table[heard]{}, steps: map[string][]types.RepairStep{}, fails: map[string]error{}}
		w.task = task{act: types.ActFailover, self: s.self, lost: s.deleted("n2"), deleted: true, heard: up, targets: []target{{app: s.apps()[0], note: types.RepairNote{Act: types.ActFailover, Node: "n2"}}}}
		w.now, w.uptime = func() time.Time { return now }, func() time.Duration { return k.clock }
		w.words = types.Witnesses{"n1": {Round: 9, At: up - time.Second, First: up - time.Second, Last: up}, "n3": {Round: 9, At: up - time.Second, First: up - time.Second, Last: up}}
		k.attached = []types.Attachment{{Name: "va", UID: "va", Node: "n2", Volume: "pv-data"}}
		change(w, k)
		err = w.do(t.Context())
		return k.took, err
	}
	for name, change := range map[string]func(*worker, *slow){
		"its Node is back":                         func(_ *worker, k *slow) { k.nodes["n2"] = types.Node{Name: "n2", UID: "again"} },
		"its Lease is there again":                 func(_ *worker, k *slow) { k.lease = now },
		"its Lease cannot be seen":                 func(_ *worker, k *slow) { k.unseen = errors.New("refused") },
		"it answers a dial":                        func(_ *worker, k *slow) { k.nodes["n3"].Witness.Sightings[0].Alive = "10.0.0.2:10250" },
		"its Node was there when this was decided": func(w *worker, _ *slow) { w.deleted = false },
		"the list has nobody in it":                func(_ *worker, k *slow) { k.nobody = true },
		"it answers a dial, by force": func(w *worker, k *slow) {
			k.nodes["n3"].Witness.Sightings[0].Alive = "10.0.0.2:10250"
			w.targets[0].force = true
		},
		"nor does it by force":      func(w *worker, k *slow) { k.nobody, w.targets[0].force = true, true },
		"nothing is known about it": func(w *worker, _ *slow) { w.lost.UID = "" },
	} {
		if took, err := play(change); len(took) > 0 {
			t.Errorf("%s: %v, %v", name, took, err)
		}
	}
	if took, err := play(func(*worker, *slow) {}); err != nil || !slices.Equal(took, []string{"pod", "vmi"}) {
		t.Errorf("one that stays dead: %v, %v", took, err)
	}
	byHand := func(w *worker, _ *slow) { w.targets[0].asked = true }
	if took, err := play(byHand); err != nil || !slices.Equal(took, []string{"pod", "vmi", "attachment"}) {
		t.Errorf("by hand: %v, %v", took, err)
	}
}

func TestTheLastRenewalThatWasSeenIsShown(t *testing.T) {
	for _, c := range []struct {
		ago  time.Duration
		want string
	}{
		{20 * time.Second, "less than a minute ago"},
		{7*time.Minute + 20*time.Second, "7m ago"},
		{26*time.Hour + 7*time.Minute, "26h7m ago"},
		{-time.Hour, "less than a minute ago"}, // the clock was set back
	} {
		s := newScene()
		s.deleteNode(time.Minute)
		s.remember(now.Add(time.Hour), now.Add(-c.ago)) // the kubelet's clock is an hour ahead
		want := "The last renewal of the Lease of n2 before its Node was deleted was at " + now.Add(-c.ago).UTC().Format(time.RFC3339) + ", " + c.want + "."
		if v := s.follow().judged(); !slices.Contains(v.evidence, want) {
			t.Errorf("want %q, got %q", want, v.evidence)
		}
	}
	s := newScene()
	s.deleteNode(time.Minute)
	if v := s.follow().judged(); len(v.evidence) != 0 {
		t.Errorf("none was seen, and it says %q", v.evidence)
	}
}

func TestADeviceWhoseKubeletRenewsItsLeaseAfterTheDeletionHasFiveMinutesFromThen(t *testing.T) {
	inWorld(t, func(w *world) {
		w.agents["n2"].stop()
		w.agents["n2"].stop = func() {}
		w.deleteNode()
		for range 60 { // its Lease outlives its Node
			w.kube.SetRenewed("n2", time.Now())
			time.Sleep(10 * time.Second)
		}
		w.untouched("while it is renewed")
		time.Sleep(deletedFor - 12*time.Second)
		w.untouched("five minutes after that")
		w.until("it is taken from n2", time.Minute, func() bool { return !slices.Contains(w.runsOn(), "n2") })
	})
}
