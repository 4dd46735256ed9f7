package members

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/base/span"
	"github.com/zedkube/zedkube/types"
)

const (
	// intervals is how many times zedagent must have asked the controller and
	// not been given a device before that is taken for an answer: as many as to
	// leave a cluster (docs/wire.md, "ClusterMembership").
	intervals = 5
	// defaultInterval is zedagent's own (docs/wire.md, "Settings").
	defaultInterval = 60 * time.Second
	// patience is how long a lock or a reboot under way on a stale Node holds up
	// its removal, and how long the stamp of a node that is not Ready counts.
	patience = 24 * time.Hour
	// maxNamed bounds the devices that are remembered.
	maxNamed = 64
)

// mark tells two stamps of a Node apart, without comparing clocks.
type mark struct{ given, written time.Time }

func markOf(n types.Node) mark {
	if n.Agent == nil {
		return mark{}
	}
	return mark{given: n.Agent.Given.UTC(), written: n.StampedAt.UTC()}
}

// trace is what is remembered of a stale Node.
type trace struct {
	node  string
	since time.Time     // wall clock, to be shown only
	seen  time.Duration // uptime at which this process first saw it so
	stamp mark          // its stamp at the first list without it
	asked time.Duration // uptime from which on the controller was reached all the time
	holds bool          // it is now
}

// reported is when the stamp of a node was last seen to change.
type reported struct {
	mark mark
	at   time.Duration
}

// past is what was seen of the members before now. What decide and a repair get
// is a copy that nobody changes.
type past struct {
	cluster   uuid.UUID
	named     []uuid.UUID         // as ClusterMembersJournal.Named
	masters   []uuid.UUID         // of the last list by which the nodes were seen
	stale     map[string]trace    // by the UID of the Node
	published map[string]reported // of all Nodes with a stamp, by UID
	uptime    time.Duration       // now
}

// restored is the past that the journal keeps. Everything that is measured
// begins again with the process.
func restored(j types.ClusterMembersJournal, uptime time.Duration) past {
	p := past{cluster: j.Cluster, named: slices.Clone(j.Named), stale: map[string]trace{}, published: map[string]reported{}, uptime: uptime}
	for _, s := range j.Stale {
		p.stale[s.UID] = trace{node: s.Node, since: s.Since, seen: uptime, stamp: mark{given: s.Given.UTC(), written: s.Written.UTC()}}
	}
	return p
}

// journal is what has to survive a restart.
func (p past) journal() types.ClusterMembersJournal {
	j := types.ClusterMembersJournal{Cluster: p.cluster, Named: p.named}
	for uid, t := range p.stale {
		j.Stale = append(j.Stale, types.StaleTrace{Node: t.node, UID: uid, Since: t.since, Given: t.stamp.given, Written: t.stamp.written})
	}
	slices.SortFunc(j.Stale, func(a, b types.StaleTrace) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.UID, b.UID))
	})
	return j
}

// next is the past with what f shows now.
func (p past) next(f facts) past {
	if p.cluster != f.configured.cluster {
		p = past{cluster: f.configured.cluster}
	}
	n := past{cluster: p.cluster, named: p.withNames(f), masters: f.configured.masters, stale: map[string]trace{}, published: map[string]reported{}, uptime: f.uptime}
	for _, node := range f.nodes {
		if node.Agent == nil {
			continue
		}
		was, known := p.published[node.UID]
		if !known || was.mark != markOf(node) {
			was = reported{mark: markOf(node), at: f.uptime}
		}
		n.published[node.UID] = was
	}
	for _, node := range stale(f.nodes, f.configured) {
		t, known := p.stale[node.UID]
		if !known {
			t = trace{since: f.now, seen: f.uptime, stamp: markOf(node)}
		}
		t.node = node.Name
		n.stale[node.UID] = p.heard(t, f)
	}
	return n
}

// unseen is the past after a step that did not see the nodes. Time under another list does
// not count: it may name a node again that was stale by the last one.
func (p past) unseen(f facts) past {
	f.fetched = f.fetched && sameSet(p.masters, f.configured.masters)
	n := p
	n.uptime, n.stale = f.uptime, map[string]trace{}
	for uid, t := range p.stale {
		n.stale[uid] = p.heard(t, f)
	}
	return n
}

// heard is t after a step in which the controller is reached, or not. The time
// that counts begins again after a step in which it was not, and after a time
// without any step.
func (p past) heard(t trace, f facts) trace {
	reached := f.belongs && f.valid && f.fetched
	if reached && (!t.holds || f.uptime-p.uptime > span.LongestGap) {
		t.asked = f.uptime
	}
	t.holds = reached
	return t
}

// withNames adds the masters that the controller names now, and those that the
// others were configured with. A Node is not named by its own stamp: one that is about
// to join says so of itself before the others are told.
func (p past) withNames(f facts) []uuid.UUID {
	named := slices.Clone(p.named)
	add := func(id uuid.UUID) {
		if !slices.Contains(named, id) {
			named = append(named, id)
		}
	}
	for _, id := range f.configured.masters {
		add(id)
	}
	for _, n := range f.nodes {
		if n.Agent == nil || n.Agent.Cluster != f.configured.cluster {
			continue
		}
		for _, id := range n.Agent.Masters {
			if own, err := uuid.Parse(n.UUID); err != nil || own != id {
				add(id)
			}
		}
	}
	for i := 0; len(named) > maxNamed && i < len(named); {
		if slices.Contains(f.configured.masters, named[i]) {
			i++
			continue
		}
		named = slices.Delete(named, i, i+1)
	}
	return named
}

// wasNamed reports that the device of n was a master of this cluster.
func (p past) wasNamed(n types.Node) bool {
	id, err := uuid.Parse(n.UUID)
	return err == nil && slices.Contains(p.named, id)
}

// answered reports that the controller was asked often enough since it does not
// name n, and answered each time.
func (p past) answered(n types.Node, interval time.Duration) bool {
	t, ok := p.stale[n.UID]
	return ok && t.holds && p.uptime-t.asked >= intervals*interval
}

// long reports that n has been stale for longer than anything is waited for.
func (p past) long(n types.Node) bool {
	t, ok := p.stale[n.UID]
	return ok && p.uptime-t.seen >= patience
}

// counts reports that the stamp of n is a word of now: always of a Ready node;
// else of one that is stale if it was written after the first list without it, and
// of another while it was seen to change within patience.
func (p past) counts(n types.Node) bool {
	if n.Ready == types.ConditionTrue {
		return true
	}
	if t, ok := p.stale[n.UID]; ok {
		return markOf(n) != t.stamp
	}
	s, ok := p.published[n.UID]
	return !ok || s.mark != markOf(n) || p.uptime-s.at < patience
}
