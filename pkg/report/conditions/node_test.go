package conditions

import (
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

// sees wants the status of the own node, published no earlier than after.
func (s *story) sees(status types.KubeNodeStatus, after time.Time) time.Time {
	s.Helper()
	s.pass(time.Second)
	n, ok := s.node.Get(types.Global)
	if !ok || n.Status != status || n.Since.Before(after) {
		s.Errorf("published is %v %v since %v; want %v, not before %v", ok, n.Status, n.Since, status, after)
	}
	return n.Since
}

func TestOwnNodeIsReadyNotReadyOrTheAPIServerIsDown(t *testing.T) {
	tell(t, func(s *story) {
		ready := func(is types.ConditionStatus) time.Time {
			s.change("n1", func(n *types.Node) { n.Ready = is })
			return time.Now().UTC()
		}
		s.sees(types.KubeNodeNotReady, time.Time{}) // it has no such condition yet
		since := s.sees(types.KubeNodeReady, ready(types.ConditionTrue))
		s.pass(time.Hour)
		if got := s.sees(types.KubeNodeReady, since); !got.Equal(since) {
			t.Errorf("it is Ready since %v, and an hour later since %v", since, got)
		}
		s.sees(types.KubeNodeNotReady, ready(types.ConditionUnknown)) // its kubelet is silent
		s.sees(types.KubeNodeReady, ready(types.ConditionTrue))

		put(s, &s.api, types.Global, types.APIStatus{SilentSince: time.Now(), Reason: "timeout"})
		down := s.sees(types.KubeNodeNotReachable, time.Now().UTC())
		put(s, &s.tables, types.TableNodes, types.TableStatus{})
		put(s, &s.api, types.Global, types.APIStatus{Synced: true})
		if got := s.sees(types.KubeNodeNotReachable, down); !got.Equal(down) { // until the nodes are listed
			t.Errorf("it was down since %v, and then since %v", down, got)
		}
		put(s, &s.tables, types.TableNodes, types.TableStatus{Complete: true})
		s.sees(types.KubeNodeReady, down)

		if err := s.nodes.Unpublish("n1"); err != nil {
			t.Fatal(err)
		}
		s.sees(types.KubeNodeNotReady, down)
	})
}

func TestOwnNodeIsNotDownWhereNoClusterWasEver(t *testing.T) {
	for name, change := range map[string]func(*facts){
		"no kubeconfig":             func(f *facts) { f.api = types.APIStatus{SilentSince: t0, NoKubeconfig: true} },
		"nothing is known yet":      func(f *facts) { f.watched = false },
		"the device has no name":    func(f *facts) { f.named = false },
		"the nodes are not all yet": func(f *facts) { f.complete = false },
	} {
		f := healthy()
		change(&f)
		if got := decide(f).node; got != (types.ClusterNodeStatus{}) {
			t.Errorf("%s: %+v", name, got)
		}
		f.node = types.ClusterNodeStatus{Status: types.KubeNodeReady, Since: t0}
		if got := decide(f).node; got != f.node {
			t.Errorf("%s: what a former run has published becomes %+v", name, got)
		}
	}
}
