package drain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	// unheardFor is how long after a start a request that nobody has spoken of
	// yet may still turn up; the agents start in any order.
	unheardFor         = 2 * time.Minute
	defaultTimeout     = 24 // hours
	defaultSkipSilence = 300 * time.Second
	defaultInterval    = time.Minute
	defaultMultiple    = 2
	// enteredFor is how long the lock and the quorum just found may be relied
	// on for the cordon.
	enteredFor = 10 * time.Second
)

// requests is one requester's topic.
type requests = pubsub.Source[types.NodeDrainRequest]

// memory is what one process knows beyond its record. Losing it costs time,
// never correctness.
type memory struct {
	started   time.Time              // first look
	missing   time.Time              // since when a living API knows no own node; zero while it does
	seen      bool                   // it was known once
	alone     time.Time              // since when no other node is Ready and takes pods
	mute      time.Time              // since when writes have got no answer; zero while they do
	freed     time.Time              // when the lock was last given back
	late      time.Time              // when a write last ended without an answer
	waits     string                 // what the drain was last reported to wait for
	journal   types.NodeDrainJournal // as last written down, or tried to
	unwritten bool                   // that failed
	unsaid    bool                   // NodeDrainStatus could not be published
	bootWall  time.Time              // when this boot began, by the wall clock

	cordonAgain time.Time // when a Cordon call of this drain last succeeded
	cordonSeen  bool      // and the table has shown it
	gates       string
	quorum      string // what of it is for want of quorum
	entered     time.Time
	check       checked
	holds       string
	deleted     bool                 // the own Node, as was answered
	cordons     map[string]time.Time // since when foreign cordons of other nodes have been seen, by node
	lock        types.DrainLock
	lockKnown   bool
	notLock     string // version of the lock in this node's name that is held for something else
	retry       map[verb]time.Time
	backoff     map[verb]time.Duration
	errVerb     verb              // whose error lastErr is
	lastErr     error             // of the last acting call; nil once one has worked
	tellErr     string            // what was last logged about the telling lane
	list        time.Time         // last fresh list of the pods to evict; zero for none
	known       map[string]bool   // UIDs of the pods there were at the last list
	chosen      map[string]bool   // UIDs of all that were ever chosen
	makers      map[string]*maker // of those that were evicted, by makerOf
	pods        []evictee         // what the last list chose
	emptied     time.Time         // since when none of them is left
	view        view              // what the progress record was made of

	forceReport  string // the last complaint about a force file
	markerReport string // and about the fault marker
	heeded       string // what was last put on record of one
	unused       bool   // it was reported that nobody uses COMPLETE

	looked time.Time // when the last look at what a leave would lose began
	ended  bool      // the cluster ends with this node, as was consented to: its Node stays
}

// now is the time by the boot clock.
func (c *Component) now() time.Time { return boot.Add(c.Uptime()) }

// look copies what is true now.
func (c *Component) look() facts {
	now := c.now()
	if c.mem.started.IsZero() {
		c.wakeUp(now)
	}
	f := facts{now: now, booted: time.Now().Add(-c.Uptime())}
	settings, _ := c.Settings.Get(types.Global)
	f.timeout = Timeout(settings, c.Hour)
	f.skip = settings.Duration(types.SettingDrainSkipAPI, time.Second, defaultSkipSilence)
	f.hour, f.unusedAfter = c.Hour, settings.Duration(types.SettingDrainUnused, c.Hour, defaultUnused*c.Hour)
	interval := settings.Duration(types.SettingConfigInterval, time.Second, defaultInterval)
	f.window = settings.Duration(types.SettingDrainAllNodes, interval, defaultMultiple*interval)
	f.policy = settings.GlobalSettings[types.SettingNodeDrainPolicy].StrValue
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
	f.member = config.Initialized && config.Valid || membership.Belongs() ||
		membership.State != types.MembershipLeft && c.rec.status.Status >= types.DrainNotRequested
	f.forced = c.readForce()
	f.markers = c.lookAtMarkers()
	if c.rec.phase == types.PhaseComplete || c.rec.unused {
		if c.rec.markers == nil { // an agent without a journal, or a former one, said it
			c.rec.markers = f.markers
		}
		f.inUse = c.lookAtUse(f.markers)
	}
	f.held = c.marked()
	f.bootID = c.BootID
	if w := membership.Consent; w.Holds(c.BootID, config.ClusterID.UUID, now.Sub(boot)) {
		f.consent = w
	}
	c.lookAtCluster(&f, config)
	c.boundUnlocked(&f)
	c.lookAtRequests(&f, membership)
	c.lookAtPods(&f)
	m := &c.mem
	f.cordonAgain, f.retry, f.list = m.cordonAgain, maps.Clone(m.retry), m.list
	f.gates, f.check, f.holds, f.deleted, f.unsaid = m.gates, m.check, m.holds, m.deleted, m.unsaid
	f.gates, f.check.lock = cmp.Or(f.unlocked, f.gates), cmp.Or(f.unlocked, f.check.lock)
	f.ended, f.looked = m.ended, m.looked
	if l := c.rec.look; f.looked.IsZero() && l != nil && l.BootID == c.BootID {
		f.looked = boot.Add(l.Uptime) // of an earlier process
	}
	f.entered = !m.entered.IsZero() && now.Sub(m.entered) < enteredFor
	if m.lastErr != nil {
		f.trouble = clip(m.lastErr.Error())
	}
	f.rec = c.rec
	return f
}

// boundUnlocked ends the wait for cordons that may be drains without the lock
// while there is a tenth of the drain's time left for the lock, the quorum and the
// pods: such a cordon may be as young as the drain, and stand for longer.
func (c *Component) boundUnlocked(f *facts) {
	r := c.rec
	began := r.asked
	if r.phase == types.PhaseEmptying {
		began = r.cordoned
	}
	if f.unlocked == "" || !drains(r.phase) {
		return
	}
	end := began.Add(f.timeout - f.timeout/10)
	if f.now.Before(end) {
		f.unlocked += fmt.Sprintf(", or the drain has %s left", f.timeout/10)
		return
	}
	f.warnings = append(f.warnings, "the drain waits no longer, for it would not end in time: "+f.unlocked)
	f.unlocked = ""
}

// wakeUp takes up what an earlier process left: of this boot its drain, of a
// former one what has to be given back.
func (c *Component) wakeUp(now time.Time) {
	c.mem = memory{started: now}
	c.forget()
	c.renewals = map[string]renewal{}
	status, published := c.Status.Get(types.Global)
	j, known := c.Journal.Get(types.Global)
	if p, ok := c.Progress.Get(types.Global); ok && c.ofThisBoot(p.Journal, now) &&
		(!known || !c.ofThisBoot(j, now) || p.Journal.Serial > j.Serial) {
		j, known = p.Journal, true // the disk was full
	}
	switch {
	case known && c.ofThisBoot(j, now):
		c.rec = recall(j, now)
		c.square(status, published, now)
	case published && status.Status >= types.DrainRequested:
		c.rec = fromStatus(status, now)
		c.rec.serial, c.rec.adopted = j.Serial, j.Adopted
	default:
		c.rec = recall(j, now).afterBoot()
		c.rec.status = status
	}
	if !published && !(known && c.ofThisBoot(j, now)) {
		c.dropOldForce()
	}
	if drains(c.rec.phase) {
		c.Log.WithField("phase", c.rec.phase).Info("cordonAndDrainNode nodedrain-step: the drain of an earlier run goes on")
	}
}

// square sets the record, which was written first, beside what was really said:
// what nobody has heard yet is said again, so that every state is seen, and seen
// for as long as it has to be.
func (c *Component) square(said types.NodeDrainStatus, published bool, now time.Time) {
	r := &c.rec
	was := r.status
	forced := c.readForce()
	switch {
	case !published, forced != nil && forced.Status != types.DrainComplete:
		r.standing = later(r.standing, now) // for all we know
	case said == was:
	case said.Status == types.DrainComplete && drains(r.phase) && was.Status > types.DrainRequested:
		// Nothing could be written but this. A failure may have been an operator's
		// mask; a real one comes again.
		f := fromStatus(said, now)
		r.phase, r.reason, r.status, r.said, r.told, r.ended = f.phase, f.reason, f.status, f.said, f.told, f.ended
	default:
		r.status, r.said = said, now
		if final(said.Status) {
			r.told = slices.DeleteFunc(slices.Clone(r.told), func(by types.DrainRequester) bool { return by == was.RequestedBy })
		}
	}
}

// ofThisBoot reports whether a journal makes sense and was written in this boot.
// Where the boot id cannot be had, a journal from later than now is of another one.
func (c *Component) ofThisBoot(j types.NodeDrainJournal, now time.Time) bool {
	return j.Serial > 0 && slices.Contains(phases, j.Phase) && j.BootID == c.BootID && !boot.Add(j.Uptime).After(now)
}

// forget drops what belongs to one drain.
func (c *Component) forget() {
	m := &c.mem
	m.waits, m.gates, m.quorum, m.holds, m.deleted = "", "", "", "", false
	m.unused = false
	m.ended = false
	m.cordonAgain, m.cordonSeen, m.entered, m.check = time.Time{}, false, time.Time{}, checked{}
	m.list, m.known, m.pods, m.emptied = time.Time{}, nil, nil, time.Time{}
	m.chosen, m.makers = map[string]bool{}, map[string]*maker{}
	m.retry, m.backoff = map[verb]time.Time{}, map[verb]time.Duration{}
	m.lastErr = nil
	m.view = view{events: m.view.events}
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

// lookAtRequests says who asks, and whether that is certain.
func (c *Component) lookAtRequests(f *facts, m types.ClusterMembership) {
	f.requests = map[string]request{}
	for name, from := range map[string]requests{byDeviceOp: c.DeviceOp, byUpdate: c.Update, byOperator: c.Operator} {
		synced := from.Synced() // before Get, or a request that comes in between is overlooked
		r, ok := from.Get(types.Global)
		was, stood := c.rec.requests[name]
		switch {
		case ok:
			f.requests[name] = request{NodeDrainRequest: r, stands: true}
			if stood && was.RequestedAt.IsZero() && was.Context == "" && len(c.rec.failed) > 0 {
				c.rec.failed = []time.Time{r.RequestedAt} // only the status was left of it
			}
		case stood && !synced: // silence is no withdrawal
			f.requests[name] = request{NodeDrainRequest: was, doubt: true}
		}
		if !synced && f.now.Sub(c.mem.started) < unheardFor {
			f.unheard = true
		}
	}
	if m.State == types.MembershipLeaving && m.Without == nil { // without the cluster nothing can be drained
		f.requests[byLeave] = request{stands: true, NodeDrainRequest: types.NodeDrainRequest{RequestedAt: m.InvalidSince, Context: m.Reason}}
	}
}

// lookAtPods compares the last fresh list with the pods there are.
func (c *Component) lookAtPods(f *facts) {
	m := &c.mem
	pods := c.NodePods.All()
	deleted := make(map[string]time.Time, len(pods)) // by UID
	for _, p := range pods {
		deleted[p.UID] = p.Deleted
		if !m.known[p.UID] && !m.makers[makerOf(p)].stays(p.UID) {
			f.came = append(f.came, p.Key())
		}
	}
	for i := range m.pods {
		e := &m.pods[i]
		at, there := deleted[e.pod.UID]
		switch {
		case there:
			e.seen, e.gone = true, false
		case f.synced && e.seen: // what a list holds that came first is not gone
			e.gone = true
		}
		if !e.pod.Terminating() {
			e.pod.Deleted = at
		}
		e.terminating = e.pod.Terminating()
		if k := m.makers[makerOf(e.pod)]; k != nil {
			e.returns, e.shared, e.stays = k.returns, k.shared, k.stays(e.pod.UID)
		}
	}
	slices.Sort(f.came)
	f.pods = slices.Clone(m.pods)
	m.emptied = since(m.emptied, f.now, !m.list.IsZero() && left(f.pods) == 0)
}
