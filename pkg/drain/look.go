package drain

import (
	"cmp"
	"maps"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	// doubtFor is how long after a start a request that nobody has spoken of
	// yet may still turn up; the agents start in any order.
	doubtFor           = 2 * time.Minute
	defaultTimeout     = 24 * time.Hour
	defaultSkipSilence = 300 * time.Second
)

// memory is what one process knows beyond what it can read anywhere.
type memory struct {
	started  time.Time // first look
	resumed  bool      // the drain under way, or just ended, was begun by an earlier process
	newBoot  bool      // this boot has seen no drain yet
	asked    time.Time // when the drain under way was asked for; zero where resumed
	since    time.Time // when the published value last changed
	standing time.Time // since when the requester has been told of a drain under way
	missing  time.Time // since when a living API knows no own node; zero while it does
	alone    time.Time // since when no other node is Ready and takes pods
	waits    string    // what the drain under way was last reported to wait for
	told     map[types.DrainRequester]bool
	failed   map[time.Time]bool // RequestedAt, without monotonic clock and zone, of the requests that have failed

	cordonedAt time.Time // when a Cordon call of this drain last succeeded
	cordonSeen bool      // and the table has shown it
	losses     int       // times it was undone then
	refusals   int       // cordons refused in a row
	retry      map[verb]time.Time
	backoff    map[verb]time.Duration
	attempt    int
	list       time.Time       // last fresh list of the pods to evict; zero for none
	known      map[string]bool // UIDs of the pods there were at the last list
	pods       []evictee       // what the last list chose

	forceReport string // the last complaint about the force file
}

// look copies what is true now.
func (c *Component) look() facts {
	now := time.Now()
	f := facts{now: now, running: c.runningVerb()}
	f.status, _ = c.Status.Get(types.Global)
	if c.mem.started.IsZero() {
		c.wakeUp(now, f.status.Status)
	}
	settings, _ := c.Settings.Get(types.Global)
	f.timeout = settings.Duration(types.SettingDrainTimeout, time.Hour, defaultTimeout)
	f.skip = settings.Duration(types.SettingDrainSkipAPI, time.Second, defaultSkipSilence)
	config, _ := c.Config.Get(types.Global)
	f.member = config.Initialized && config.Valid
	f.forced = c.readForce()
	_, err := os.Lstat(c.FaultMarker)
	f.held = err == nil
	c.lookAtCluster(&f, config)
	c.lookAtRequests(&f)
	c.lookAtPods(&f)
	m := &c.mem
	f.since, f.standing, f.newBoot, f.told = m.since, m.standing, m.newBoot, maps.Clone(m.told)
	f.cordonedAt, f.losses, f.refusals, f.retry, f.list = m.cordonedAt, m.losses, m.refusals, maps.Clone(m.retry), m.list
	return f
}

// wakeUp takes the first look's view of what an earlier process left.
func (c *Component) wakeUp(now time.Time, s types.DrainStatus) {
	c.mem = memory{
		started: now, since: now, standing: now, resumed: underWay(s) || final(s), newBoot: s == types.DrainUnknown,
		told: map[types.DrainRequester]bool{}, failed: map[time.Time]bool{},
		retry: map[verb]time.Time{}, backoff: map[verb]time.Duration{},
	}
	if status, ok := c.Status.Get(types.Global); ok && final(s) {
		c.mem.told[status.RequestedBy] = true
	}
}

// lookAtCluster finds the own node, its peers, and how long the API is silent.
func (c *Component) lookAtCluster(f *facts, config types.EdgeNodeClusterConfig) {
	m := &c.mem
	api, ok := c.API.Get(types.Global)
	f.silentSince, f.synced = api.SilentSince, ok && api.Synced
	if !ok {
		f.silentSince = m.started // nothing was ever heard of it
	}
	nodes := c.Nodes.All()
	info, _ := c.Info.Get(types.Global)
	named := info.NodeName() != ""
	f.node, f.known = types.OwnNode(nodes, info)
	f.tieBreaker = f.node.TieBreaker ||
		info.DeviceID != uuid.Nil && info.DeviceID == config.TieBreakerNodeID.UUID
	takers := 0
	for _, n := range nodes {
		if n.Name == f.node.Name {
			continue
		}
		f.others++
		if n.Ready == types.ConditionTrue && !n.Unschedulable {
			takers++
		}
	}
	// The pods of an own node that does not exist are never watched, so nothing
	// is ever synced then; that other nodes are seen tells as much.
	listed := f.synced || len(nodes) > 0
	m.missing = since(m.missing, f.now, !f.known && named && f.living() && listed)
	m.alone = since(m.alone, f.now, f.known && f.synced && f.living() && takers == 0)
	f.missing, f.alone = m.missing, m.alone
	switch {
	case !f.living():
		f.why = "the API server does not answer: " + cmp.Or(api.Reason, "nothing was heard of it yet")
		// It may be back in a moment, and then it is another one.
		clear(m.retry)
		clear(m.backoff)
	case !named:
		f.why = "EdgeNodeInfo has not said yet which node this is"
	case !listed:
		f.why = "the API server has not listed the nodes yet"
	case !f.known:
		f.why = "this node is not one of the cluster's"
	}
	c.lookAtCordon(f)
}

// since is when a condition began to hold; zero while it does not.
func since(was, now time.Time, holds bool) time.Time {
	switch {
	case !holds:
		return time.Time{}
	case was.IsZero():
		return now
	}
	return was
}

// lookAtCordon notices that somebody has undone this drain's cordon.
func (c *Component) lookAtCordon(f *facts) {
	m := &c.mem
	switch {
	case m.cordonedAt.IsZero() || !f.known:
	case f.node.Unschedulable:
		m.cordonSeen = true
	case m.cordonSeen:
		m.cordonSeen, m.cordonedAt = false, time.Time{}
		m.losses++
	}
}

// requests is one requester's topic.
type requests = pubsub.Source[types.NodeDrainRequest]

// lookAtRequests says who asks, since when, and whether that is certain.
func (c *Component) lookAtRequests(f *facts) {
	// A drain that this process began has been asked for by requests it has seen.
	doubt := c.mem.resumed && f.now.Sub(c.mem.started) < doubtFor
	var earliest time.Time
	for _, s := range []struct {
		by    types.DrainRequester
		from  requests
		facts *request
	}{
		{types.DrainRequesterDeviceOp, c.DeviceOp, &f.deviceOp},
		{types.DrainRequesterUpdate, c.Update, &f.update},
	} {
		synced := s.from.Synced() // before Get, or a request that comes in between is overlooked
		r, ok := s.from.Get(types.Global)
		*s.facts = request{stands: ok, doubt: !ok && !synced && doubt}
		if !ok {
			if !s.facts.doubt {
				delete(c.mem.told, s.by)
			}
			continue
		}
		// A failed drain that an earlier process ended failed for whoever still asks.
		if failed(f.status.Status) && (f.now.Equal(c.mem.started) || !synced) {
			c.mem.failed[stamp(r.RequestedAt)] = true
		}
		s.facts.failed = c.mem.failed[stamp(r.RequestedAt)]
		s.facts.context = r.Context
		if earliest.IsZero() || r.RequestedAt.Before(earliest) {
			earliest = r.RequestedAt
		}
	}
	f.asked = c.mem.asked
	if c.mem.resumed {
		f.asked = resumedSince(earliest, f.node.CordonedBy, c.mem.started)
	}
}

// stamp is t as a request carries it: two readings of one JSON text are equal.
func stamp(t time.Time) time.Time { return t.UTC().Round(0) }

// resumedSince is when a drain that an earlier process began was asked for: the
// request says so, and an own cordon made later says that it is not an old one.
// A time that cannot be is replaced by the start of this process.
func resumedSince(requested time.Time, cordon *types.Cordon, started time.Time) time.Time {
	asked := requested
	if cordon != nil && cordon.Since.After(asked) {
		asked = cordon.Since
	}
	if asked.IsZero() || asked.After(started) {
		return started
	}
	// From here on the monotonic clock counts: the wall clock may jump.
	return started.Add(asked.Sub(started))
}

// lookAtPods compares the last fresh list with the pods there are.
func (c *Component) lookAtPods(f *facts) {
	there := map[string]types.Pod{}
	for _, p := range c.NodePods.All() {
		there[p.UID] = p
		if !c.mem.known[p.UID] {
			f.unknown = true
		}
	}
	for _, e := range c.mem.pods {
		p, ok := there[e.pod.UID]
		e.gone = f.synced && !ok
		e.terminating = e.pod.Terminating() || p.Terminating()
		f.pods = append(f.pods, e)
	}
}
