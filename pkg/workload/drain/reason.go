package drain

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/workload/drain/outlook"
	"github.com/zedkube/zedkube/types"
)

// reasonOf is why the drain stands where it stands, in a sentence.
func (c *Component) reasonOf(f facts, a action, p types.NodeDrainProgress) string {
	switch v := &c.mem.view; {
	case p.Phase == v.resumed && f.now.Sub(c.mem.started) < 2*patience:
		return v.reason // nothing else is known yet
	case !drains(p.Phase):
		return cmp.Or(a.waits, a.rec.reason)
	case !f.living() && f.onlyLeaves() && f.atStake() != "":
		return f.why + "; and " + f.atStake()
	case !f.living():
		return fmt.Sprintf("%s; once that has lasted %s the drain is Complete as it is", cmp.Or(a.waits, f.why), f.skip)
	case p.Phase != types.PhaseEmptying || f.list.IsZero() || f.evictions().left() == 0:
		return cmp.Or(a.waits, f.trouble, a.rec.reason)
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
		parts = append(parts, outlook.Counted(len(never), "pod")+" will not go by "+itself(never)+": "+outlook.Some(never, "", ""))
	}
	if len(slow) > 0 {
		parts = append(parts, "waits for "+outlook.Counted(len(slow), "pod")+": "+outlook.Some(slow, "", ""))
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
// begin anew.
func (c *Component) resume(f facts, was types.NodeDrainProgress) {
	j, now := was.Journal, f.now
	if c.rec.asked.IsZero() || !ofThisBoot(j, f.bootID, now) || j.Asked != sinceBoot(c.rec.asked) {
		return
	}
	at := func(t time.Time) time.Time { // by the boot clock, which has no time after now
		if t.IsZero() {
			return now
		}
		return earlier(later(boot.Add(t.Sub(c.mem.bootWall)), c.rec.asked), now)
	}
	v := &c.mem.view
	v.reason, v.since = was.Reason, at(was.Since)
	v.resumed, v.pods = was.Phase, was.Pods
	v.stranded = union(v.stranded, was.Stranded)
	v.earlier, v.told, v.stands = map[string]time.Time{}, map[string]bool{}, map[string]time.Time{}
	for _, b := range was.Blockers {
		v.earlier[b.Pod] = c.wallTime(at(b.Since))
		v.told[b.Pod] = b.Outlook == types.OutlookNever
	}
	for _, vol := range was.Volumes {
		v.stands[vol.Name] = at(vol.Since)
	}
	if !c.mem.lockKnown && was.Lock.Holder != "" {
		c.mem.lock, c.mem.lockKnown = types.DrainLock{Holder: was.Lock.Holder, Since: was.Lock.Since}, true
	}
}
