package drain

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/workload/drain/outlook"
	"github.com/zedkube/zedkube/types"
)

const (
	// shown bounds each list of the record, which is one packet.
	shown = 50
	// inquired bounds the pods whose situation is asked for.
	inquired = 100
	// progressEvery bounds how often counts alone are published.
	progressEvery = 250 * time.Millisecond
	// wordsEvery is the same for what says how long it has been so, or will be.
	wordsEvery = 10 * time.Second
	// patience is how long a pod may take before anybody asks why.
	patience  = 2 * time.Second
	maxEvents = 32
	// maxError bounds what an error says in the record, in bytes.
	maxError = 500
)

// view is what the progress record is made of beyond the facts.
type view struct {
	reason        string
	since         time.Duration
	published     time.Duration
	asked         bool // for the situations of this drain's pods
	situations    []types.PodSituation
	stranded      []string // pods that no other node took when last asked
	volumes       []types.DrainVolume
	blockingSince map[string]time.Duration // of volumes in the way
	pace          outlook.RebuildRates
	events        []types.Event
	reported      map[string]bool          // pods that an Event was written about
	resumed       types.DrainPhase         // of the record of an earlier process, "" for none
	pods          types.DrainPods          // as that counted them
	earlier       map[string]time.Duration // since when pods were in the way, as that saw it
	remain        []types.DrainBlocker     // the pods in the way when an operator ended the drain, as that saw it
	shown         types.DrainConditions    // as last written to the Node
	shownAt       time.Duration
}

// publishProgress explains the drain. Counts alone are not worth a record each.
func (c *Component) publishProgress(f facts, a action) error {
	v := &c.mem.view
	old, ok := c.Progress.Get(types.Global)
	if v.published == 0 && ok {
		c.resume(f, old)
	}
	p := c.progress(f, a)
	if p.Reason = c.reasonOf(f, a, p); p.Reason != v.reason {
		v.reason, v.since = p.Reason, f.now
	}
	p.Since = c.wallTime(v.since)
	if ok && (v.published != 0 && f.now-v.published < hurry(old, p) || reflect.DeepEqual(p, old)) {
		return nil
	}
	v.published = f.now
	if err := c.Progress.Publish(types.Global, p); err != nil {
		return fmt.Errorf("publish NodeDrainProgress: %w", err)
	}
	return nil
}

// hurry is how long p may wait where old was published.
func hurry(old, p types.NodeDrainProgress) time.Duration {
	switch {
	case !drains(p.Phase) || p.Phase != old.Phase || p.Journal.Serial != old.Journal.Serial:
		return 0
	case p.Reason != old.Reason || p.Pods != old.Pods || p.Lock != old.Lock || p.Quorum != old.Quorum || p.Cordon != old.Cordon ||
		!slices.EqualFunc(p.Blockers, old.Blockers, func(a, b types.DrainBlocker) bool {
			return a.Pod == b.Pod && a.Cause == b.Cause && a.Outlook == b.Outlook
		}) ||
		!slices.EqualFunc(p.Volumes, old.Volumes, func(a, b types.DrainVolume) bool {
			return a.Name == b.Name && a.Outlook == b.Outlook && a.LastHere == b.LastHere
		}):
		return progressEvery
	}
	return wordsEvery
}

// progress is the record.
func (c *Component) progress(f facts, a action) types.NodeDrainProgress {
	r, m := a.rec, &c.mem
	p := types.NodeDrainProgress{
		Phase: r.Phase, Requesters: asking(r),
		Attempt: r.Attempt, Attempts: attempts, Started: c.wallTime(r.Asked), Ended: c.wallTime(r.Ended),
		Cordon: cordonedBy(f.node, f.tieBreaker), Quorum: f.check.quorum, Left: r.Left, Journal: m.journal,
	}
	p.Journal.Look = nil // a record is one packet, and what was not looked at holds a leave
	p.Pods = f.evictions().count(r.Total)
	if f.list == 0 && len(f.pods) == 0 && m.view.pods.Total > 0 {
		p.Pods = m.view.pods // all there is, until the first list
	}
	p.Lock = types.DrainLockView{Waits: f.check.lock}
	// Of another node's lock nothing is known but while this one waits for it, and the API
	// server answers: no other phase reads it again.
	if mine := m.lock.Holder != "" && ours(m.lock, f.node.Name); mine || r.Phase == types.PhaseGates && f.living() {
		p.Lock.Holder, p.Lock.Since, p.Lock.Mine = m.lock.Holder, m.lock.Since, mine
	}
	if r.Phase == types.PhaseGates {
		p.Quorum = m.quorum
		if p.Quorum == "" && !p.Lock.Mine {
			p.Lock.Waits = f.gates
		}
	}
	p.Stranded, p.StrandedOmitted = first(m.view.stranded)
	if drains(r.Phase) {
		p.Deadline = c.wallTime(r.began()).Add(f.timeout)
		p.Warnings = f.warnings[:min(shown, len(f.warnings))]
		c.inTheWay(f, &p)
	}
	if r.forced() {
		p.Forced = true
		c.whatRemains(f, &p)
	}
	return p
}

// whatRemains fills what a drain leaves behind that an operator called complete: of the pods
// in its way those that are still on the node.
func (c *Component) whatRemains(f facts, p *types.NodeDrainProgress) {
	if f.list != 0 {
		c.inTheWay(f, p)
		return
	}
	here := map[string]bool{}
	for _, pod := range f.nodePods {
		here[pod.Key()] = true
	}
	left := slices.DeleteFunc(slices.Clone(c.mem.view.remain), func(b types.DrainBlocker) bool { return f.synced && !here[b.Pod] })
	p.Blockers, p.BlockersOmitted = first(left)
}

// inTheWay fills the pods and volumes that keep the drain from its end.
func (c *Component) inTheWay(f facts, p *types.NodeDrainProgress) {
	v := &c.mem.view
	p.Blockers, p.BlockersOmitted = first(outlook.Blockers(f.wall, c.obstacles(f)))
	for _, b := range p.Blockers {
		// Half of the queue is kept for what happens to the drain itself.
		if b.Outlook == types.OutlookNever && !v.reported[b.Pod] && len(v.events) < maxEvents/2 {
			c.queueBlocked(f, b)
		}
	}
	p.Volumes, p.VolumesOmitted = first(v.volumes)
}

// first is what fits, and how many there are beyond.
func first[T any](all []T) ([]T, int) {
	n := min(shown, len(all))
	return all[:n:n], len(all) - n
}

// obstacles is what is known of the pods that stay longer than they should.
func (c *Component) obstacles(f facts) []outlook.StuckPod {
	known := map[string]types.PodSituation{}
	for _, s := range c.mem.view.situations {
		known[s.Pod.UID] = s
	}
	var all []outlook.StuckPod
	for _, e := range f.evictions().slow(f.now, patience) {
		s, ok := known[e.pod.UID]
		if !ok {
			s = types.PodSituation{Pod: e.pod, Fits: 1}
		}
		s.Pod = e.pod
		since := e.since
		if was := c.mem.view.earlier[e.pod.Key()]; was != 0 {
			since = min(was, since)
		}
		all = append(all, outlook.StuckPod{
			Situation: s, Since: c.wallTime(since), RefusedBy: e.refusal,
			TerminatingSince: e.pod.Deleted, Returns: e.returns, Shared: e.shared, KubeletReady: f.node.Ready == types.ConditionTrue,
		})
	}
	return all
}

// cordonedBy is who keeps the node unschedulable, "" for nobody.
func cordonedBy(n types.Node, tieBreaker bool) string {
	if n.Unschedulable && tieBreaker {
		return "tie-breaker"
	}
	return n.Cordoner()
}

// reasonOf is why the drain stands where it stands, in a sentence.
func (c *Component) reasonOf(f facts, a action, p types.NodeDrainProgress) string {
	switch v := &c.mem.view; {
	case p.Phase == v.resumed && f.now-c.mem.started < 2*patience:
		return v.reason // nothing else is known yet
	case !drains(p.Phase):
		return cmp.Or(a.waits, a.rec.Reason)
	case !f.living() && f.onlyLeaves() && f.atStake() != "":
		return f.why + "; and " + f.atStake()
	case !f.living():
		return fmt.Sprintf("%s; once that has lasted %s the drain is Complete as it is", cmp.Or(a.waits, f.why), f.skip)
	case p.Phase != types.PhaseEmptying || f.list == 0 || f.evictions().left() == 0:
		return cmp.Or(a.waits, f.trouble, a.rec.Reason)
	case c.mem.errVerb == evict && len(p.Blockers) > 0: // they say more than the error of one of them
		return cmp.Or(a.waits, inTheWayOf(p))
	}
	return cmp.Or(a.waits, f.trouble, inTheWayOf(p))
}

// inTheWayOf names the pods that a drain waits for, those first that will not go
// by themselves.
func inTheWayOf(p types.NodeDrainProgress) string {
	var never, slow []string
	for _, b := range p.Blockers {
		if b.Outlook == types.OutlookNever {
			never = append(never, b.Pod)
		} else {
			slow = append(slow, b.Pod)
		}
	}
	var parts []string
	if len(never) > 0 {
		parts = append(parts, phrase.Counted(len(never), "pod")+" will not go by "+itself(never)+": "+outlook.Some(never))
	}
	if len(slow) > 0 {
		parts = append(parts, "waits for "+phrase.Counted(len(slow), "pod")+": "+outlook.Some(slow))
	}
	if p.BlockersOmitted > 0 {
		parts = append(parts, fmt.Sprintf("%d more in the way", p.BlockersOmitted))
	}
	return cmp.Or(strings.Join(parts, "; "), "the pods are being evicted")
}

func itself(names []string) string {
	if len(names) == 1 {
		return "itself"
	}
	return "themselves"
}

// resume takes over from the record of an earlier process since when things are
// as they are, and what else only that process could see. Its own list and looks
// begin again.
func (c *Component) resume(f facts, was types.NodeDrainProgress) {
	j, now := was.Journal, f.now
	if c.rec.Asked == 0 || !ofThisBoot(j, f.bootID, now) || j.Asked != c.rec.Asked {
		return
	}
	at := func(t time.Time) time.Duration { // by the boot clock, which has no time after now
		if t.IsZero() {
			return now
		}
		return min(max(t.Sub(c.mem.bootWall), c.rec.Asked), now)
	}
	v := &c.mem.view
	v.reason, v.since = was.Reason, at(was.Since)
	v.resumed, v.pods = was.Phase, was.Pods
	v.stranded = union(v.stranded, was.Stranded)
	if was.Forced {
		v.remain = was.Blockers
	}
	v.earlier, v.reported, v.blockingSince = map[string]time.Duration{}, map[string]bool{}, map[string]time.Duration{}
	for _, b := range was.Blockers {
		v.earlier[b.Pod] = at(b.Since)
		v.reported[b.Pod] = b.Outlook == types.OutlookNever
	}
	for _, vol := range was.Volumes {
		v.blockingSince[vol.Name] = at(vol.Since)
	}
	if !c.mem.lockKnown && was.Lock.Holder != "" {
		c.mem.lock, c.mem.lockKnown = types.DrainLock{Holder: was.Lock.Holder, Since: was.Lock.Since}, true
	}
}
