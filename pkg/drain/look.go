package drain

import (
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
	told     map[types.DrainRequester]bool
	failed   map[time.Time]bool // RequestedAt of the requests that have failed

	cordoned bool // a Cordon call of this drain succeeded
	refusals int  // cordons refused so far
	retry    map[verb]time.Time
	attempt  int
	list     time.Time       // last fresh list of the pods to evict; zero for none
	known    map[string]bool // UIDs of the pods there were at the last list
	pods     []evictee       // what the last list chose

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
	f.cordoned, f.refusals, f.retry, f.list = m.cordoned, m.refusals, maps.Clone(m.retry), m.list
	return f
}

// wakeUp takes the first look's view of what an earlier process left.
func (c *Component) wakeUp(now time.Time, s types.DrainStatus) {
	c.mem = memory{
		started: now, since: now, standing: now, resumed: underWay(s) || final(s), newBoot: s == types.DrainUnknown,
		told: map[types.DrainRequester]bool{}, failed: map[time.Time]bool{}, retry: map[verb]time.Time{},
	}
	if status, ok := c.Status.Get(types.Global); ok && final(s) {
		c.mem.told[status.RequestedBy] = true
	}
}

// lookAtCluster finds the own node, its peers, and how long the API is silent.
func (c *Component) lookAtCluster(f *facts, config types.EdgeNodeClusterConfig) {
	api, ok := c.API.Get(types.Global)
	switch {
	case !ok:
		f.silentSince = c.mem.started // nothing was ever heard of it
	default:
		f.silentSince = api.SilentSince
	}
	f.synced = ok && api.Synced
	nodes := c.Nodes.All()
	info, _ := c.Info.Get(types.Global)
	f.node, f.known = types.OwnNode(nodes, info)
	f.tieBreaker = f.node.TieBreaker ||
		info.DeviceID != uuid.Nil && info.DeviceID == config.TieBreakerNodeID.UUID
	for _, n := range nodes {
		if n.Name != f.node.Name && n.Ready == types.ConditionTrue && !n.Unschedulable {
			f.peers = true
		}
	}
	// The pods of an own node that does not exist are never watched, so nothing
	// is ever synced then; that other nodes are seen tells as much.
	listed := f.synced || len(nodes) > 0
	switch {
	case f.known || !f.living() || !listed:
		c.mem.missing = time.Time{}
	case c.mem.missing.IsZero():
		c.mem.missing = f.now
	}
	f.missing = c.mem.missing
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
		r, ok := s.from.Get(types.Global)
		*s.facts = request{stands: ok, doubt: !ok && !s.from.Synced() && doubt}
		if !ok {
			if !s.facts.doubt {
				delete(c.mem.told, s.by)
			}
			continue
		}
		// A failed drain that an earlier process ended failed for whoever still asks.
		if failed(f.status.Status) && (f.now.Equal(c.mem.started) || !s.from.Synced()) {
			c.mem.failed[r.RequestedAt] = true
		}
		s.facts.failed = c.mem.failed[r.RequestedAt]
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
	return asked
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
