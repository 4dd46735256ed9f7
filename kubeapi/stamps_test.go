package kubeapi

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/kubeapi/nodes"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// stampedNode is a Node n1 whose agent wrote its stamp at the given time.
func stampedNode(uid ktypes.UID, renewed string) corev1.Node {
	n := testNode("n1", "")
	n.UID = uid
	n.Annotations = map[string]string{nodes.AgentAnnotation: `{"version":"1","given":"2026-01-02T03:06:00Z","renewed":"` + renewed + `"}`}
	return n
}

// stampWatch plays a cluster of n1 and n2 and rings to see what rings.
type stampWatch struct {
	*testing.T
	api  *fakeAPI
	tb   *tables
	bell chan struct{}
}

func watchStamps(t *testing.T, play func(*stampWatch)) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		w := &stampWatch{T: t, tb: tb, bell: make(chan struct{}, 1), api: &fakeAPI{
			nodes: []corev1.Node{stampedNode("u1", "2026-01-02T03:06:00Z"), testNode("n2", "x")},
		}}
		end := startInMemory(t, c, &kubetest.InMemory{Handler: w.api})
		defer end()
		time.Sleep(time.Second)
		tb.nodes.Notify(w.bell)
		w.rang()
		play(w)
	})
}

// rang reports whether the table of nodes has rung since the last call.
func (w *stampWatch) rang() bool {
	synctest.Wait()
	select {
	case <-w.bell:
		return true
	default:
		return false
	}
}

// is checks what is said of n1.
func (w *stampWatch) is(what string, stale bool) {
	w.Helper()
	synctest.Wait()
	n, ok := w.tb.nodes.Get("n1")
	if !ok || n.Agent == nil || n.StampStale != stale || n.Foreign() != stale {
		w.Errorf("%s: want stale %v: %+v", what, stale, n)
	}
}

// silent makes the API server hang for a while, and show other nodes afterwards.
func (w *stampWatch) silent(d time.Duration, then ...corev1.Node) {
	w.Helper()
	w.api.set(func() { w.api.fault = hang })
	time.Sleep(d)
	if s := w.tb.status(); s.Answers() {
		w.Fatal("the server is not found silent")
	}
	w.api.set(func() { w.api.fault, w.api.nodes = nil, then })
	time.Sleep(time.Minute)
	if s := w.tb.status(); !s.Answers() {
		w.Fatal("the server is not found to answer")
	}
}

func TestAStampThatDoesNotChangeTurnsStaleAndRings(t *testing.T) {
	watchStamps(t, func(w *stampWatch) {
		time.Sleep(24 * time.Minute)
		w.is("one minute before", false)
		if w.rang() {
			t.Error("the table rings though nothing changed")
		}
		time.Sleep(2 * time.Minute)
		w.is("one minute after", true)
		if !w.rang() {
			t.Error("the table does not ring")
		}
		time.Sleep(24 * time.Hour)
		w.is("a day later", true)
		if w.rang() {
			t.Error("the table rings though nothing changed")
		}
		if n, _ := w.tb.nodes.Get("n2"); n.Agent != nil || n.StampStale || !n.Foreign() {
			t.Errorf("a node without a stamp: %+v", n)
		}
	})
}

func TestAStampThatChangesIsFreshAgain(t *testing.T) {
	watchStamps(t, func(w *stampWatch) {
		time.Sleep(time.Hour)
		w.is("before", true)
		w.silent(time.Minute, stampedNode("u1", "2026-01-02T03:16:00Z"))
		w.is("after a refresh", false)
		time.Sleep(time.Hour)
		w.is("an hour later", true)
		w.silent(time.Minute, stampedNode("u1", "2026-01-02T03:16:00Z"))
		w.is("a list that brings the same is no refresh", true)
		w.silent(time.Minute, stampedNode("u2", "2026-01-02T03:16:00Z"))
		w.is("on another Node of that name", false)
	})
}

func TestAStampAgesOnlyWhileTheTableOfNodesIsWhole(t *testing.T) {
	watchStamps(t, func(w *stampWatch) {
		time.Sleep(20 * time.Minute)
		w.silent(24*time.Hour, stampedNode("u1", "2026-01-02T03:06:00Z"))
		w.is("after a day without the API server", false)
		time.Sleep(5 * time.Minute)
		w.is("after the rest", true)
	})
}

func TestAProcessThatWasStoppedHasSeenNoStampAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		var stopped atomic.Int64
		began := time.Now()
		c.Uptime = func() time.Duration { return time.Since(began) + time.Duration(stopped.Load()) }
		end := startInMemory(t, c, &kubetest.InMemory{Handler: &fakeAPI{nodes: []corev1.Node{stampedNode("u1", "x")}}})
		defer end()
		time.Sleep(time.Minute)
		stopped.Store(int64(24 * time.Hour))
		time.Sleep(20 * time.Minute)
		if n, _ := tb.nodes.Get("n1"); n.StampStale {
			t.Error("a stamp is stale after 21 minutes")
		}
	})
}

func TestOnlyTheStampThatWasSeenIsForgotten(t *testing.T) {
	n := wholeNode()
	n.Annotations[nodes.WitnessAnnotation], n.Annotations[nodes.DesignatedAnnotation] = `{"round":1}`, `{"apps":{}}`
	c, kube := withFake(t, n)
	old := nodes.NodeOf(n)
	old.Agent = &types.AgentStamp{Renewed: time.Unix(1, 0)}
	if err := c.ForgetStamp(t.Context(), old); !errors.Is(err, types.ErrConflict) || patches(t, kube) != nil {
		t.Errorf("a stamp that was written again: %v, sent %v", err, patches(t, kube))
	}
	if err := c.ForgetStamp(t.Context(), nodes.NodeOf(n)); err != nil {
		t.Error(err)
	}
	now, _ := kube.CoreV1().Nodes().Get(t.Context(), n.Name, metav1.GetOptions{})
	for _, key := range []string{nodes.AgentAnnotation, nodes.WitnessAnnotation, nodes.DesignatedAnnotation} {
		if _, has := now.Annotations[key]; has {
			t.Errorf("%s is still there", key)
		}
	}
	if now.Annotations[nodes.CordonAnnotation] == "" {
		t.Errorf("annotations are %v", now.Annotations)
	}
}

// stampRow is a row of n1.
func stampRow(boot string, renewed int64) types.Node {
	n := types.Node{Name: "n1", UID: "u1", BootID: boot}
	if renewed > 0 {
		n.Agent = &types.AgentStamp{Version: "1", Renewed: time.Unix(renewed, 0)}
	}
	return n
}

func TestAStampIsConfirmedOnceItIsSeenToChangeInOneBoot(t *testing.T) {
	another := stampRow("b", 2)
	another.UID = "u2"
	for name, c := range map[string]struct {
		seen      []types.Node
		confirmed bool
	}{
		"not when it is seen for the first time":  {[]types.Node{stampRow("b", 1)}, false},
		"nor while it stands":                     {[]types.Node{stampRow("b", 1), stampRow("b", 1)}, false},
		"when it changes":                         {[]types.Node{stampRow("b", 1), stampRow("b", 2)}, true},
		"and while it stands after that":          {[]types.Node{stampRow("b", 1), stampRow("b", 2), stampRow("b", 2)}, true},
		"when it appears":                         {[]types.Node{stampRow("b", 0), stampRow("b", 1)}, true},
		"not after a reboot":                      {[]types.Node{stampRow("b", 1), stampRow("b", 2), stampRow("c", 2), stampRow("c", 2)}, false},
		"when it changes after a reboot":          {[]types.Node{stampRow("b", 1), stampRow("c", 1), stampRow("c", 2)}, true},
		"not when it changed before or after one": {[]types.Node{stampRow("b", 1), stampRow("b", 2), stampRow("c", 3)}, false},
		"not on another Node of that name":        {[]types.Node{stampRow("b", 1), another}, false},
		"there is nothing to confirm without one": {[]types.Node{stampRow("b", 1), stampRow("b", 0)}, true},
	} {
		var s nodes.Stamps
		var n types.Node
		for _, shown := range c.seen {
			n = s.Sees(shown)
		}
		if n.StampStale || n.StampUnconfirmed == c.confirmed || n.MaybeForeign() != (!c.confirmed || n.Agent == nil) {
			t.Errorf("%s: %+v", name, n)
		}
		if listed := s.Listed(c.seen[len(c.seen)-1]); listed.StampUnconfirmed != n.StampUnconfirmed {
			t.Errorf("%s: a list says unconfirmed %v", name, listed.StampUnconfirmed)
		}
	}
	var s nodes.Stamps
	s.Sees(stampRow("b", 1))
	if s.Listed(stampRow("b", 2)).StampUnconfirmed {
		t.Error("a change that only a list shows is none")
	}
	if !s.Listed(stampRow("b", 1)).StampUnconfirmed {
		t.Error("a list was taken for what the watch has shown")
	}
}

func TestAStampIsConfirmedByTheWatch(t *testing.T) {
	watchStamps(t, func(w *stampWatch) {
		if n, _ := w.tb.nodes.Get("n1"); !n.StampUnconfirmed || !n.MaybeForeign() {
			t.Errorf("at the start: %+v", n)
		}
		w.silent(time.Minute, stampedNode("u1", "2026-01-02T03:16:00Z"))
		if n, _ := w.tb.nodes.Get("n1"); n.StampUnconfirmed || n.MaybeForeign() {
			t.Errorf("after it changed: %+v", n)
		}
		time.Sleep(time.Hour)
		if n, _ := w.tb.nodes.Get("n1"); !n.StampStale || !n.MaybeForeign() {
			t.Errorf("an hour later: %+v", n)
		}
	})
}

func TestAFreshListJudgesStampsAsTheWatchDoes(t *testing.T) {
	var s nodes.Stamps
	n := types.Node{Name: "n1", UID: "u1", Agent: &types.AgentStamp{Version: "1"}}
	if is := s.Listed(n); is.StampStale || !is.StampUnconfirmed {
		t.Error("a stamp that the watch has not shown is stale, or confirmed")
	}
	s.Sees(n)
	s.Counted += types.StampFresh
	if !s.Listed(n).StampStale {
		t.Error("a stamp that stands as long is not stale")
	}
	renewed := n
	renewed.Agent = &types.AgentStamp{Version: "1", Renewed: time.Unix(1, 0)}
	if s.Listed(renewed).StampStale {
		t.Error("a stamp that is newer than the one the watch has shown is stale")
	}
	if n.Agent = nil; s.Listed(n).StampStale || s.Listed(n).StampUnconfirmed {
		t.Error("no stamp is a stale one, or an unconfirmed")
	}
}
