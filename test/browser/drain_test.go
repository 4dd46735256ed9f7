package browser

import (
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// followsADrain plays a drain in the files of the device while the page is open.
func followsADrain(t *testing.T, b *browser) {
	d := newDevice(t)
	d.root = t.TempDir()
	now := time.Now().UTC()
	play := func(change func(*types.NodeDrainProgress)) {
		p := progress(time.Now().UTC())
		p.Started = now.Add(-6 * time.Minute)
		change(p)
		d.play("zedkube", "NodeDrainProgress", types.Global, p)
	}
	play(func(p *types.NodeDrainProgress) {
		*p = types.NodeDrainProgress{Phase: types.PhaseIdle, Reason: "nobody has asked for a drain", Since: now.Add(-time.Hour)}
	})
	tb := b.open(t, d.url(), wide)
	tb.shows("#drain", "Idle", "nobody has asked for a drain", "1h ago")

	play(func(p *types.NodeDrainProgress) {
		p.Phase, p.Reason = types.PhaseGates, "node node-1 drains and has not rebooted yet"
		p.Lock = types.DrainLockView{Holder: "node-1", Waits: "node node-1 drains and has not rebooted yet", Since: now}
		p.Blockers, p.Volumes, p.Pods = nil, nil, types.DrainPods{}
	})
	tb.shows("#drain", "Gates", "node-1 drains and has not rebooted yet")

	play(func(*types.NodeDrainProgress) {})
	tb.shows("#drain", "Emptying", "12 of 14 gone", "NEVER", "asks for 1 healthy pod and there is 1", "edit pdb plc", "42% on node-1", "12m to go")
	if got := eval[string](tb, `[...document.querySelectorAll("#drain progress")].map(e => e.value + "/" + e.max).join(" ")`); got != "12/14 42/100" {
		t.Errorf("bars show %s, want 12/14 42/100", got)
	}

	play(func(p *types.NodeDrainProgress) {
		p.Volumes[0].Percent, p.Volumes[0].ETA = 93, 45
		p.Blockers = p.Blockers[1:]
		p.Pods = types.DrainPods{Total: 14, Evicted: 13, Terminating: 1}
	})
	tb.shows("#drain", "93% on node-1", "45s to go", "13 of 14 gone", "wait")

	play(func(p *types.NodeDrainProgress) {
		p.Phase, p.Reason, p.Ended = types.PhaseComplete, "the node is empty", time.Now().UTC()
		p.Blockers, p.Volumes, p.Pods = nil, nil, types.DrainPods{Total: 14, Evicted: 14}
	})
	tb.shows("#drain", "Complete", "the device may go down", "14 of 14 gone")
	tb.clean(d.url())
}

// keepsItsPlace checks that a redrawn part leaves the reader where he is, and
// that a part without news is not redrawn at all.
func keepsItsPlace(t *testing.T, b *browser) {
	d := newDevice(t)
	d.full()
	tb := b.open(t, d.url(), wide)
	tb.shows("#apps", "historian")
	tb.do(`document.querySelectorAll("#apps table button")[1].focus()`)
	tb.do(`window.nodes = document.querySelector("#nodes table")`)
	d.show(func(o *overview.Overview) { o.Apps.List[0].Name = "camera" })
	tb.shows("#apps", "camera")
	if got := eval[string](tb, `document.activeElement.dataset.key ?? "nothing"`); got != "log "+appUUID(2) {
		t.Errorf("after a redraw the focus is on %q", got)
	}
	if !eval[bool](tb, `window.nodes === document.querySelector("#nodes table")`) {
		t.Error("the table of nodes was drawn anew without news")
	}
	tb.clean(d.url())
}
