package drain

import (
	"slices"
	"time"

	"github.com/zedkube/zedkube/pkg/base/forcefile"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	defaultTimeout     = 24 // hours
	defaultUnused      = 24 // hours
	defaultSkipSilence = 300 * time.Second
	defaultInterval    = time.Minute
	defaultMultiple    = 2
)

// requestTopic is one requester's topic.
type requestTopic = pubsub.Source[types.NodeDrainRequest]

// observed is what one step reads, before it changes anything. Times are of the
// boot clock, but those of the wall clock that say so.
type observed struct {
	now     time.Duration
	wall    time.Time // by the wall clock
	booted  time.Time // when this boot began, by the wall clock
	bootID  string
	start   *startup // in the first step alone
	answers []answer // of the calls that have ended
	topics  []topic  // of those who may ask for a drain
	force   []forceFile
	agent   types.NodeAgentStatus
	held    bool  // the fault marker exists
	doubted error // why one that exists does not count
	api     types.APIStatus
	apiSeen bool

	config     types.EdgeNodeClusterConfig
	membership types.ClusterMembership
	consent    *types.LeaveConsent // to what a leave would lose; nil for none that holds

	timeout, skip time.Duration
	hour          time.Duration     // COMPLETE that is not used for so long is reported
	unusedAfter   time.Duration     // and for so long is taken back
	window        time.Duration     // for the drains of agents that know no lock
	policy        string            // of Longhorn for drains, as the controller wants it
	markers       map[string]string // the markers that have content: path to mark
	markerPaths   []string          // all of them, in their order

	synced     bool                 // the tables hold what the API server has
	nodes      []types.Node         // as the table shows them
	nodePods   map[string]types.Pod // of this node
	self       string               // the name of the own Node, whether there is one or not
	node       types.Node
	known      bool
	tieBreaker bool
	tie        string // UUID of the cluster's tie-breaker, "" for none
	lockLease  types.Lease
	lockSeen   time.Duration // for which this process has seen it, under whatever Version
	heard      heard
}

// startup is what an earlier process has left.
type startup struct {
	status    types.NodeDrainStatus
	published bool
	journal   types.NodeDrainJournal
	written   bool
	progress  types.NodeDrainProgress
	shown     bool
}

// topic is what one requester's topic holds.
type topic struct {
	requester string
	request   types.NodeDrainRequest
	asks      bool
	synced    bool
}

// now is the time by the boot clock.
func (c *Component) now() time.Duration { return max(c.Uptime(), 1) }

// look copies what is true now.
func (c *Component) look() observed {
	seen := observed{answers: c.answers(), now: c.now(), wall: time.Now(), bootID: c.BootID, hour: c.Hour}
	seen.booted = seen.wall.Add(-c.Uptime())
	if c.mem.started == 0 {
		s := &startup{}
		s.status, s.published = c.Status.Get(types.Global)
		s.journal, s.written = c.Journal.Get(types.Global)
		s.progress, s.shown = c.Progress.Get(types.Global)
		seen.start = s
	}
	settings, _ := c.Settings.Get(types.Global)
	seen.timeout = Timeout(settings, c.Hour)
	seen.skip = settings.Duration(types.SettingDrainSkipAPI, time.Second, defaultSkipSilence)
	seen.unusedAfter = settings.Duration(types.SettingDrainUnused, c.Hour, defaultUnused*c.Hour)
	interval := settings.Duration(types.SettingConfigInterval, time.Second, defaultInterval)
	seen.window = settings.Duration(types.SettingDrainAllNodes, interval, defaultMultiple*interval)
	seen.policy = settings.GlobalSettings[types.SettingNodeDrainPolicy].StrValue
	c.lookAtMembership(&seen)
	for _, path := range c.ForceFiles {
		file, err := forcefile.Read(path)
		seen.force = append(seen.force, forceFile{File: file, path: path, err: err})
	}
	seen.markers, seen.markerPaths = lookAtMarkers(c.Markers), c.Markers
	seen.agent, _ = c.Agent.Get(types.NodeAgentKey)
	seen.held, seen.doubted = readMarker(c.FaultMarker)
	c.lookAtCluster(&seen)
	for requester, from := range map[string]requestTopic{byDeviceOp: c.DeviceOp, byUpdate: c.Update, byOperator: c.Operator} {
		t := topic{requester: requester, synced: from.Synced()} // before Get, or a request that comes in between is overlooked
		t.request, t.asks = from.Get(types.Global)
		seen.topics = append(seen.topics, t)
	}
	k3s, _ := c.Lifecycle.Get(types.Global)
	seen.topics = append(seen.topics, topic{requester: byK3s, request: k3s.Drain, asks: !k3s.Drain.RequestedAt.IsZero(), synced: true})
	seen.nodePods = c.NodePods.All()
	return seen
}

// lookAtMembership finds the cluster that this node is to belong to.
func (c *Component) lookAtMembership(seen *observed) {
	config, _ := c.Config.Get(types.Global)
	membership, _ := c.Membership.Get(types.Global)
	if membership.Without != nil {
		config.Valid = config.Valid && !(membership.State == types.MembershipLeft && membership.WithoutIt(config.ClusterID.UUID))
	} else if membership.State == types.MembershipLeaving && config.Initialized && config.Valid && config.Lack() == "" {
		membership.State = types.MembershipMember // which a full disk may keep it from saying
	}
	if membership.Config != nil && !config.Valid {
		config = *membership.Config
	}
	if w := membership.Consent; w.Holds(c.BootID, config.ClusterID.UUID, seen.now) {
		seen.consent = w
	}
	seen.config, seen.membership = config, membership
}

// lookAtCluster finds the own node and what there is beside it.
func (c *Component) lookAtCluster(seen *observed) {
	seen.api, seen.apiSeen = c.API.Get(types.Global)
	seen.synced = seen.apiSeen && seen.api.Synced
	info, _ := c.Info.Get(types.Global)
	seen.self = info.NodeName()
	nodes := c.Nodes.All()
	seen.node, seen.known = types.OwnNode(nodes, info)
	seen.tie = seen.config.TieBreaker()
	seen.tieBreaker = seen.node.TieBreaker || seen.tie != "" && info.DeviceID.String() == seen.tie
	seen.nodes = types.NodesByName(nodes)
	for i, n := range seen.nodes {
		seen.nodes[i].TieBreaker = n.BreaksTies(seen.tie)
	}
	seen.lockLease, _ = c.Leases.Get(types.DrainLockName)
	holder, answers := nodes[seen.lockLease.Holder], seen.synced && seen.api.Answers()
	c.witnesses, c.stamps = c.witnesses.Hear(nodes, answers, seen.now), c.stamps.Hear(nodes, answers, seen.now)
	seen.heard = heard{holder: holder.Name, silent: c.stamps.Silent(holder.Name, seen.now)}
	if answers && holder.Name != "" && holder.Name != seen.self {
		seen.heard.off, _ = types.Gone(holder, nodes, c.witnesses.Seen(seen.wall, seen.now), seen.wall)
	}
}

// ofThisBoot reports whether a journal makes sense and was written in this boot.
// Where the boot id cannot be had, a journal from later than now is of another one.
func ofThisBoot(j types.NodeDrainJournal, bootID string, now time.Duration) bool {
	return j.Serial > 0 && slices.Contains(phases, j.Phase) && j.BootID == bootID && j.Uptime <= now
}
