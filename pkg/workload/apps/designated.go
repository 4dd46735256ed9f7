package apps

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	// defaultInterval is zedagent's own (docs/wire.md, "Settings").
	defaultInterval = 60 * time.Second
	// betweenMoves is how far apart changes of one affinity are: someone else may
	// change it back each time.
	betweenMoves = 10 * time.Minute
	// tellTimeout bounds the write of what this node is told.
	tellTimeout = 20 * time.Second
	// telling is the key of its pause.
	telling = "designations"
)

// heard takes in zedagent's word: whether a fetch of the configuration succeeded
// recently, as of the last look that saw that, and whether an application that is
// not in the table is not configured.
func (c *Component) heard(f *facts, interval time.Duration) {
	agent, _ := c.Agent.Get(types.ZedAgentKey)
	f.settled = f.configsKnown && c.mem.configSource.Observe(agent, len(f.configs) > 0, time.Now()) == 0
	now := agent.ConfigGetStatus == types.ConfigGetSuccess
	if now || c.mem.fetching {
		c.mem.fetched = f.uptime
	}
	c.mem.fetching = now
	f.reached = c.mem.fetched > 0 && f.uptime-c.mem.fetched <= 2*interval
}

// designations are what this node has to say of the applications whose
// designated node it is, with the current configuration. Whether it is told so
// for the first time shows in what it said before, over restarts too. It says so
// for the first time only after a fetch that succeeded: what zedagent has saved
// may be of last year. What is not in its table yet stays.
func (f facts) designations() types.Designations {
	all := types.Designations{Apps: map[string]types.Designation{}}
	for key, old := range f.designationsNow().Apps {
		if _, known := f.configs[key]; !known && !f.settled {
			all.Apps[key] = old
		}
	}
	for key, cfg := range f.configs {
		d := types.Designation{Count: f.self.Designated.Get(key).Count}
		if !cfg.IsDesignatedNodeID || d.Count == 0 && !f.reached {
			continue
		}
		if d.Count == 0 {
			d.Count = f.highest(key) + 1
		}
		for _, n := range f.rivals(key) {
			if theirs := n.Designated.Get(key).Count; theirs > d.Count {
				d.Yields = max(d.Yields, theirs)
			}
		}
		all.Apps[key] = d
	}
	return all.Fit()
}

func (f facts) designationsNow() types.Designations {
	if f.self.Designated == nil {
		return types.Designations{}
	}
	return *f.self.Designated
}

func (f facts) highest(app string) int64 {
	var n int64
	for _, node := range f.nodes {
		d := node.Designated.Get(app)
		n = max(n, d.Count, d.Yields)
	}
	return n
}

// rivals are the other nodes that hold themselves for the designated one, by
// name: those with a zedkube that can act on it.
func (f facts) rivals(app string) []types.Node {
	return f.nodesThat(func(n types.Node) bool {
		return n.Name != f.self.Name && !n.Foreign() && n.Ready == types.ConditionTrue && n.Designated.Get(app).Count > 0
	})
}

// contested says why this node does not act as the designated one of an
// application, "" where nobody else does.
func (f facts) contested(app string) string {
	own := f.self.Designated.Get(app)
	agreed := true
	names := []string{f.self.Name}
	for _, n := range f.rivals(app) {
		names = append(names, n.Name)
		agreed = agreed && own.Count > 0 && n.Designated.Get(app).Yields >= own.Count
	}
	if agreed {
		return ""
	}
	return twoDesignated(names)
}

func twoDesignated(names []string) string {
	slices.Sort(names)
	return fmt.Sprintf("Two nodes are designated: %s.", strings.Join(names, ", "))
}

// notMoved says why the affinity of an application must not follow this node
// yet, "" where it may, and when time alone will change that.
func (f facts) notMoved(a app) (why string, again time.Duration) {
	if why := f.contested(a.key); why != "" {
		return why, 0
	}
	note := a.set.Note
	wait := betweenMoves - f.now.Sub(note.Moved).Abs()
	switch {
	case !f.reached:
		return "This node has not reached its controller recently.", 0
	case f.self.Designated.Get(a.key).Count == 0:
		return "The other nodes have not seen this yet.", 0
	case wait > 0 && note.MovedTo == f.self.Name: // someone has changed it back
		return twoDesignated([]string{f.self.Name, a.set.Affinity.Node}), wait
	case wait > 0:
		return fmt.Sprintf("It was changed less than %s ago.", betweenMoves), wait
	}
	return "", 0
}

// tell begins to write on the own Node what it does not say yet.
func (f facts) tell(a *action) {
	if !f.unseenSince.IsZero() || f.self.Name == "" {
		return
	}
	d := f.designations()
	if d.Equal(f.designationsNow()) {
		return
	}
	if wait := f.pausing(telling); wait > 0 {
		a.soon(wait)
		return
	}
	a.tell = &d
}

// representativePod finds the pod that speaks for an application: the one that runs
// here, else one that runs, else the newest. The order is total, so every step
// chooses the same one. What terminates leaves; its replacement speaks.
func (a app) representativePod(self string) (types.Pod, bool) {
	var best *types.Pod
	for i := range a.pods {
		p := &a.pods[i]
		if !p.Terminating() && (best == nil ||
			cmp.Or(cmp.Compare(weight(p, self), weight(best, self)), p.Created.Compare(best.Created), cmp.Compare(p.Name, best.Name)) > 0) {
			best = p
		}
	}
	if best == nil {
		return types.Pod{}, false
	}
	return *best, true
}

func weight(p *types.Pod, self string) int {
	switch {
	case p.Phase != types.PodRunning:
		return 0
	case self == "" || p.NodeName != self:
		return 1
	}
	return 2
}
