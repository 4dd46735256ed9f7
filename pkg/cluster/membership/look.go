package membership

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/base/span"
	"github.com/zedkube/zedkube/types"
)

const (
	// defaultInterval is zedagent's own (docs/wire.md, "Settings").
	defaultInterval = 60 * time.Second
	// missingFor is how long others must have deleted our Node: longer than a
	// kubelet takes to register it again.
	missingFor = 60 * time.Second
)

// look copies what is true now.
func (c *Component) look() facts {
	f := facts{
		now: time.Now().UTC().Round(0), uptime: c.Uptime(), hour: c.Hour, version: c.Version,
		sent: c.mem.sent, sentAt: c.mem.sentAt,
	}
	f.busy = c.running != nil || f.uptime < c.mem.retry
	f.was, f.published = c.Membership.Get(types.Global)
	settings, _ := c.Settings.Get(types.Global)
	f.interval = settings.Duration(types.SettingConfigInterval, time.Second, defaultInterval)
	progress, _ := c.Progress.Get(types.Global)
	f.left = progress.Left
	journal, _ := c.Journal.Get(types.Global)
	f.adopted = journal.Adopted
	c.lookAtConfig(&f)
	c.lookAtRequest(&f)
	c.lookAtWithout(&f)
	c.lookAtCluster(&f)
	c.mem.looked = true
	return f
}

// lookAtConfig hears zedagent's word. At boot zedagent publishes nothing until
// it has read a configuration: what it has not yet said is not gone.
func (c *Component) lookAtConfig(f *facts) {
	agent, _ := c.Agent.Get(types.ZedAgentKey)
	f.fetched = agent.ConfigGetStatus == types.ConfigGetSuccess
	read := f.fetched || agent.ConfigGetStatus == types.ConfigGetReadSaved
	synced := c.Config.Synced() // before Get, or a value that comes in between is overlooked
	config, ok := c.Config.Get(types.Global)
	switch {
	case !ok:
		if synced && (c.mem.told || read) {
			f.configState = gone
		}
	case !config.Initialized:
	case !config.Valid:
		f.configState = invalid
	case config.Lack() == "":
		f.configState, f.config = valid, config
	}
	c.mem.told = c.mem.told || f.configState == valid || f.configState == invalid
	c.mem.doubted.Note(f.uptime, (f.was.Belongs() || f.was.Without != nil) && (f.configState == invalid || f.configState == gone) && f.fetched)
	f.doubted = c.mem.doubted
}

// lookAtRequest says whether an operator's request is to be honoured. One that was
// made while the configuration was valid has been refused, and must not come
// true at the next parse error.
func (c *Component) lookAtRequest(f *facts) {
	m := &c.mem
	synced := c.Leave.Synced() // before Get, as above
	r, ok := c.Leave.Get(types.Global)
	f.requested = ok
	if !ok || r.WithoutCluster != nil || r.Undo { // these are no wish to leave in good order
		f.withdrawnByOperator = ok || synced
		return
	}
	if at := r.RequestedAt.UTC(); !at.Equal(m.leaveRequested) || !m.looked {
		m.leaveRequested, m.requestFound = at, !m.looked
	}
	if f.configState == valid || !f.was.Belongs() {
		m.refused = m.leaveRequested
	}
	// Of a request from before this process only the clocks can tell, and
	// before there is a doubt not even they: it may have been refused.
	since := f.was.InvalidSince
	old := m.requestFound && (since.IsZero() || !r.RequestedAt.After(since))
	f.refused = old || m.leaveRequested.Equal(m.refused)
	f.leaveRequested = !f.refused
	if f.leaveRequested {
		f.consent = r.Consent
	}
}

// lookAtCluster finds the own Node and what the peers were told.
func (c *Component) lookAtCluster(f *facts) {
	api, ok := c.API.Get(types.Global)
	info, _ := c.Info.Get(types.Global)
	nodes := c.Nodes.All()
	f.answers = ok && api.Answers()
	f.node, f.known = types.OwnNode(nodes, info)
	f.booted = f.known && f.sentAt.Holds && f.node.BootID != c.mem.sentBoot
	// The pods of an own Node that does not exist are never watched, so nothing
	// is ever synced then; that other nodes are seen tells as much.
	missing := f.answers && info.DeviceID != uuid.Nil && !f.known && len(nodes) > 0
	f.seen = f.answers && info.DeviceID != uuid.Nil && f.known && api.Synced || missing
	c.mem.missing.Note(f.uptime, missing)
	f.missing = c.mem.missing
	// Without a cluster there is no server to ask, and what the stamp says of it stays.
	cluster, ok := c.Status.Get(types.Global)
	f.tls = ok && strings.TrimSpace(cluster.EncryptedClusterToken) != "" || !ok && f.known && f.node.Agent != nil && f.node.Agent.TLS
	c.lookAtPeers(f, nodes, info.DeviceID)
}

// lookAtPeers collects the lists stamped after ours was withdrawn. The order is
// that of the cluster's own writes as the watch brings them: once the own
// withdrawal is seen, every stamp before it is, and one that changes from then
// on was written later. No two clocks are compared.
func (c *Component) lookAtPeers(f *facts, nodes map[string]types.Node, device uuid.UUID) {
	m := &c.mem
	withdrawn := f.known && isWithdrawal(f.node.Agent, f.was.InvalidSince) || f.missing.Reached(f.uptime, missingFor)
	switch {
	case f.was.State != types.MembershipDoubtful:
		m.before = nil
	case m.before == nil && f.seen && withdrawn:
		m.before = map[string]mark{}
		for name, n := range nodes {
			m.before[name] = markOf(n)
		}
	}
	m.watched.Note(f.uptime, m.before != nil && f.seen && m.doubted.Holds)
	f.watched = m.watched
	if m.before == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		n := nodes[name]
		if name == f.node.Name || n.Ready != types.ConditionTrue || n.Foreign() {
			continue
		}
		named := slices.Contains(n.Agent.Masters, device)
		switch isNew := markOf(n) != m.before[name]; {
		case withdrew(*n.Agent):
			f.invalidPeer = name
		case len(n.Agent.Masters) == 0:
		case isNew && (named || ofCluster(f.was, *n.Agent)):
			f.lists = append(f.lists, list{node: name, names: named})
		case !isNew && named:
			f.lastPeer = name
		}
	}
}

// withdrew reports whether a stamp is of an agent whose own configuration turned
// invalid. One that names a cluster has a valid one, and one that was never
// given a time has had none yet.
func withdrew(stamp types.AgentStamp) bool {
	return len(stamp.Masters) == 0 && stamp.Cluster == uuid.Nil && !stamp.Given.IsZero()
}

// ofCluster reports whether a stamp's masters are those of the cluster that m
// is in. A device that its controller moves to another cluster shows that one's
// on a Node that is still here.
func ofCluster(m types.ClusterMembership, stamp types.AgentStamp) bool {
	return m.Config != nil && stamp.Cluster == m.Config.ClusterID.UUID
}

// lookAtWithout says whether an operator's request to leave without the cluster
// is proved, and whether a decision for it is taken back.
func (c *Component) lookAtWithout(f *facts) {
	r, ok := c.Leave.Get(types.Global)
	w, _ := c.Without.Get(types.Global)
	c.mem.decided.Note(f.uptime, f.was.State == types.MembershipLeaving && f.was.Without != nil)
	f.decided = c.mem.decided
	switch {
	case !ok:
	case r.Undo:
		f.undo = true
	case r.WithoutCluster != nil && w.Fresh(c.Uptime()) && w.RequestedAt.Equal(r.RequestedAt) && f.was.Belongs() && f.was.Config != nil:
		f.without = &types.WithoutDecision{
			Cluster: f.was.Config.ClusterID.UUID, At: f.now, Dead: r.WithoutCluster.Dead, Consent: r.Consent,
		}
	}
}

const (
	stampTimeout = 10 * time.Second
	minBackoff   = time.Second
	maxBackoff   = time.Minute
)

// call is the stamp under way.
type call struct {
	stamp types.AgentStamp
	boot  string // the boot ID that the own Node shows
	began time.Duration
}

// begin stamps beside the steps, under a context that outlives this one: a
// hanging API server must not keep the configuration from being heard.
func (c *Component) begin(ctx context.Context, f facts, stamp types.AgentStamp) {
	ctx = types.Because(ctx, "CONTROLLER", "the list of masters is published to the other nodes")
	c.running = &call{stamp: stamp, boot: f.node.BootID, began: f.uptime}
	c.stamping.Begin(ctx, stampTimeout, func(ctx context.Context) error { return c.Kube.Stamp(ctx, f.node.Name, stamp) })
}

// collect takes in the outcome of the stamp that has ended, if one has.
func (c *Component) collect() {
	err, ok := c.stamping.Take()
	if !ok {
		return
	}
	m, done := &c.mem, c.running
	c.running, c.lastErr = nil, err
	if err != nil {
		m.backoff = min(max(2*m.backoff, minBackoff), maxBackoff)
		m.retry = c.Uptime() + m.backoff
		return
	}
	m.backoff, m.sent, m.sentAt, m.sentBoot = 0, done.stamp, span.Span{Holds: true, Began: done.began}, done.boot
}
