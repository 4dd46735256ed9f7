package apps

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// slow is a cluster in which every note takes six seconds, and in which after the
// second one something else is true.
type slow struct {
	Kube
	*scene
	clock  time.Duration
	noted  []string
	then   func()
	looked int

	nobody   bool      // is in the list of nodes
	lease    time.Time // of a node whose Node is deleted
	unseen   error     // that it is met with
	attached []types.Attachment
	took     []string
}

func (k *slow) NodeLease(context.Context, string) (time.Time, error) { return k.lease, k.unseen }

func (k *slow) DeleteAttachment(context.Context, types.Attachment) error {
	k.took = append(k.took, "attachment")
	return nil
}

func (k *slow) FreshNodes(context.Context) ([]types.Node, error) {
	k.looked++
	if k.nobody {
		return nil, nil
	}
	return k.follow().fresh.nodes, nil
}

func (k *slow) Storage(context.Context, string) (types.Storage, error) { return k.fresh.storage, nil }

func (k *slow) NodeAttachments(context.Context, string) ([]types.Attachment, error) {
	return k.attached, nil
}

func (k *slow) Event(context.Context, types.Event) error { return nil }

func (k *slow) Fence(_ context.Context, n types.Node, f types.Fence) error {
	k.node(n.Name, func(n *types.Node) { n.OutOfService, n.Fence = true, &f })
	return nil
}

func (k *slow) ForceDeletePod(context.Context, types.Pod) error {
	k.took = append(k.took, "pod")
	return nil
}

func (k *slow) ForgetVMI(context.Context, types.VMI) error {
	k.took = append(k.took, "vmi")
	return nil
}

func (k *slow) NoteRepair(_ context.Context, set types.AppSet, _ types.RepairNote) error {
	k.clock += 6 * time.Second
	k.noted = append(k.noted, set.Name)
	if len(k.noted) == 2 {
		k.then()
	}
	return nil
}

func TestALongTaskLooksAgainAndAgain(t *testing.T) {
	rows := map[string]struct {
		then func(*slow)
		want []string // whose note is written
		err  bool
	}{
		"all stays as it is":    {func(*slow) {}, []string{"a", "b", "c", "d"}, false},
		"a replica fails":       {func(s *slow) { s.storage().Replicas[1].FailedAt = now }, []string{"a", "b"}, false},
		"the node is back":      {func(s *slow) { s.node("n2", func(n *types.Node) { n.Ready = types.ConditionTrue }) }, []string{"a", "b"}, true},
		"the Lease is renewed":  {func(s *slow) { s.node("n2", func(n *types.Node) { n.RenewedAt = now }) }, []string{"a", "b"}, false},
		"the device answers":    {func(s *slow) { s.nodes["n3"].Witness.Sightings[0].Alive = "10.0.0.2:10250" }, []string{"a", "b"}, false},
		"a witness has gone":    {func(s *slow) { s.node("n3", func(n *types.Node) { n.Witness = nil }) }, []string{"a", "b"}, false},
		"it takes too long":     {func(s *slow) { s.clock += types.WitnessFresh }, []string{"a", "b"}, true},
		"another Node is there": {func(s *slow) { s.node("n2", func(n *types.Node) { n.UID = "uid-new" }) }, []string{"a", "b"}, true},
	}
	for row, r := range rows {
		t.Run(row, func(t *testing.T) {
			s := newScene()
			s.lose()
			s.follow()
			k := &slow{scene: s, clock: up}
			k.then = func() { r.then(k) }
			w := &worker{Kube: k, hears: &pubsub.Table[heard]{}, task: task{act: types.ActFailover, self: s.self, lost: s.nodes["n2"], heard: up}, steps: map[string][]types.RepairStep{}, fails: map[string]error{}}
			w.now, w.uptime = func() time.Time { return now }, func() time.Duration { return k.clock }
			w.words = types.Witnesses{"n1": {Round: 9, At: up - time.Second, First: up - time.Second, Last: up}, "n3": {Round: 9, At: up - time.Second, First: up - time.Second, Last: up}}
			for _, name := range []string{"a", "b", "c", "d"} {
				a := s.apps()[0]
				a.key, a.set.Name = name, name
				w.targets = append(w.targets, target{app: a, note: types.RepairNote{Act: types.ActFailover, Node: "n2"}})
			}
			err := w.do(t.Context())
			if (err != nil) != r.err || !slices.Equal(k.noted, r.want) || k.looked != 2 {
				t.Errorf("%v after %d looks: %v, %v", k.noted, k.looked, err, w.fails)
			}
			for _, name := range r.want {
				if w.fails[name] != nil {
					t.Errorf("%s: %v", name, w.fails[name])
				}
			}
		})
	}
}

func TestWhatWitnessesSayIsNotTakenForNewWhereTheTurnOfTheNodeCameLate(t *testing.T) {
	for _, act := range []types.RepairAct{types.ActFailover, actFence} {
		s := newScene()
		s.lose()
		s.follow()
		k := &slow{scene: s, clock: up + 100*time.Second}
		w := &worker{Kube: k, hears: &pubsub.Table[heard]{}, task: task{act: act, self: s.self, lost: s.nodes["n2"], heard: up}, steps: map[string][]types.RepairStep{}, fails: map[string]error{}}
		w.now, w.uptime = func() time.Time { return now.Add(100 * time.Second) }, func() time.Duration { return k.clock }
		w.words = types.Witnesses{"n1": {Round: 9, At: up - time.Second, First: up - time.Second, Last: up}, "n3": {Round: 9, At: up - time.Second, First: up - time.Second, Last: up}}
		w.targets = []target{{app: s.apps()[0], note: types.RepairNote{Act: types.ActFailover, Node: "n2"}}}
		s.node("n1", func(n *types.Node) { n.Witness.Round = 29 })
		s.node("n3", func(n *types.Node) { n.Witness.Round = 10 }) // its agent hangs since
		if err := w.do(t.Context()); !errors.Is(err, errLate) || len(k.took)+len(k.noted) > 0 || k.nodes["n2"].OutOfService {
			t.Errorf("%s: %v, %v, %v", act, err, k.noted, k.took)
		}
	}
}
