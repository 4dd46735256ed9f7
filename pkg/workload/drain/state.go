package drain

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/types"
)

const (
	// unheardFor is how long after a start a request that nobody has spoken of
	// yet may still turn up; the agents start in any order.
	unheardFor = 2 * time.Minute
	// enteredFor is how long the lock and the quorum just found may be relied
	// on for the cordon.
	enteredFor = 10 * time.Second
)

// state is what a process knows from the steps before. It changes by what a step
// has observed, and then by what was decided.
type state struct {
	rec   record // what the journal holds, or is about to
	mem   memory // what may be lost in a restart
	notes []note // to be logged
}

// note is a line of the log.
type note struct {
	level  logrus.Level
	text   string
	fields logrus.Fields
}

// memory is what one process knows beyond its record. Losing it costs time,
// never correctness. Times are of the boot clock.
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
	unsaid    bool                   // the present NodeDrainStatus could not be published, so nobody has heard of it
	bootWall  time.Time              // when this boot began, by the wall clock

	cordonAgain time.Time // when a Cordon call of this drain last succeeded
	cordonSeen  bool      // and the table has shown it
	gates       string    // what the way to the cordon waits for
	quorum      string    // what of it is for want of quorum
	enteredAt   time.Time // when lock and quorum were had
	check       checked
	holds       string               // what keeps the lock from being given back, or the Node from being deleted
	deleted     bool                 // the own Node, as was answered: the table has to show it
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
	listed      map[string]bool   // UIDs of the pods there were at the last list
	chosen      map[string]bool   // UIDs of all that were ever chosen
	makers      map[string]*maker // of those that were evicted, by makerOf
	pods        []podEviction     // what the last list chose
	emptied     time.Time         // since when none of them is left
	view        view              // what the progress record was made of

	forceReport  string // the last complaint about a force file
	markerReport string // and about the fault marker
	recorded     string // what was last put on record of a force file
	unused       bool   // it was reported that nobody uses COMPLETE

	looked time.Time // when the last look at what a leave would lose began; zero for never in this boot
	ended  bool      // the cluster ends with this node, as a look found and was consented to: its Node stays
}

// takeIn is the facts that follow from what was observed, beside what was known.
func (s *state) takeIn(seen observed) facts {
	f := facts{observed: seen}
	if seen.start != nil {
		s.wakeUp(&f, *seen.start)
	}
	// Steady to the second, or every record would differ from the one before.
	if d := seen.booted.Sub(s.mem.bootWall); d.Abs() > 2*time.Second {
		s.mem.bootWall = seen.booted
	}
	for _, a := range seen.answers {
		s.takeAnswer(seen, a)
	}
	f.member = seen.config.Initialized && seen.config.Valid || seen.membership.Belongs() ||
		seen.membership.State != types.MembershipLeft && s.rec.status.Status >= types.DrainNotRequested
	if !f.dropForce {
		f.forced = s.forced(seen)
	}
	if s.rec.phase == types.PhaseComplete || s.rec.unused {
		if s.rec.markers == nil { // an agent without a journal, or a former one, said it
			s.rec.markers = seen.markers
		}
		f.inUse = usedBy(seen, s.rec)
	}
	s.report1(&s.mem.markerReport, seen.doubted, "fault marker ignored")
	s.takeCluster(&f)
	s.boundUnlocked(&f)
	s.takeRequests(&f)
	s.takePods(&f)
	f.rec, f.memory = s.rec, s.mem
	f.pods = slices.Clone(s.mem.pods)
	f.gates, f.check.lock = cmp.Or(f.unlocked, f.gates), cmp.Or(f.unlocked, f.check.lock)
	f.entered = !f.enteredAt.IsZero() && f.now.Sub(f.enteredAt) < enteredFor
	if f.lastErr != nil {
		f.trouble = clip(f.lastErr.Error())
	}
	return f
}

// wakeUp takes up what an earlier process left: of this boot its drain, of a
// former one what has to be given back.
func (s *state) wakeUp(f *facts, left startup) {
	s.mem = memory{started: f.now}
	s.forget()
	j, known := left.journal, left.written
	if p := left.progress.Journal; left.shown && ofThisBoot(p, f.bootID, f.now) &&
		(!known || !ofThisBoot(j, f.bootID, f.now) || p.Serial > j.Serial) {
		j, known = p, true // the disk was full
	}
	current := known && ofThisBoot(j, f.bootID, f.now)
	switch {
	case current:
		s.rec = recall(j, f.now)
		s.reconcileWithPublished(f.observed, left)
	case left.published && left.status.Status >= types.DrainRequested:
		s.rec = fromStatus(left.status, f.now)
		s.rec.serial, s.rec.adopted = j.Serial, j.Adopted
	default:
		s.rec = recall(j, f.now).afterBoot()
		s.rec.status = left.status
	}
	f.dropForce = !left.published && !current
	if l := s.rec.look; l != nil && l.BootID == f.bootID {
		s.mem.looked = boot.Add(l.Uptime)
	}
	if drains(s.rec.phase) {
		s.note(logrus.InfoLevel, "cordonAndDrainNode nodedrain-step: the drain of an earlier run goes on", logrus.Fields{"phase": s.rec.phase})
	}
}

// reconcileWithPublished sets the record, which was written first, beside what was
// really said: what nobody has heard yet is said again, so that every state is
// seen, and seen for as long as it has to be.
func (s *state) reconcileWithPublished(seen observed, left startup) {
	r, said := &s.rec, left.status
	was := r.status
	forced := s.forced(seen)
	switch {
	case !left.published, forced != nil && forced.Status != types.DrainComplete:
		r.standing = later(r.standing, seen.now) // for all we know
	case said == was:
	case said.Status == types.DrainComplete && drains(r.phase) && was.Status > types.DrainRequested:
		// Nothing could be written but this. A failure may have been an operator's
		// mask; a real one comes again.
		f := fromStatus(said, seen.now)
		r.phase, r.reason, r.status, r.said, r.told, r.ended = f.phase, f.reason, f.status, f.said, f.told, f.ended
	default:
		r.status, r.said = said, seen.now
		if final(said.Status) {
			r.told = slices.DeleteFunc(slices.Clone(r.told), func(by types.DrainRequester) bool { return by == was.RequestedBy })
		}
	}
}

// forget drops what belongs to one drain.
func (s *state) forget() {
	m := &s.mem
	m.waits, m.gates, m.quorum, m.holds, m.deleted = "", "", "", "", false
	m.unused, m.ended = false, false
	m.cordonAgain, m.cordonSeen, m.enteredAt, m.check = time.Time{}, false, time.Time{}, checked{}
	m.list, m.listed, m.pods, m.emptied = time.Time{}, nil, nil, time.Time{}
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

func (s *state) note(level logrus.Level, text string, fields logrus.Fields) {
	s.notes = append(s.notes, note{level, text, fields})
}

// report1 notes an error once, until it is another one.
func (s *state) report1(was *string, err error, text string) {
	is := ""
	if err != nil {
		is = err.Error()
	}
	if is != "" && is != *was {
		s.note(logrus.WarnLevel, text, logrus.Fields{"err": is})
	}
	*was = is
}

// report says to people who look at the cluster what has happened here.
func (s *state) report(warning bool, reason, message string) {
	level := logrus.InfoLevel
	if warning {
		level = logrus.WarnLevel
	}
	s.note(level, "cordonAndDrainNode: "+reason, logrus.Fields{"reason": message})
	s.queue(types.Event{Warning: warning, Reason: reason, Message: message})
}

// wallTime is a boot-clock time for people; the zero time stays zero.
func (s *state) wallTime(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return s.mem.bootWall.Add(t.Sub(boot)).UTC().Truncate(time.Millisecond)
}

// forced is the operator's word, nil for none: that of the first force file that
// has one. One that has had its effect and could not be removed says nothing any
// longer.
func (s *state) forced(seen observed) *types.NodeDrainStatus {
	var forced *types.NodeDrainStatus
	var wrong []string
	for _, v := range seen.force {
		switch {
		case v.err != nil && !errors.Is(v.err, fs.ErrNotExist):
			wrong = append(wrong, v.err.Error())
		case v.err == nil && forced == nil && s.rec.spent[v.path] != v.mark:
			forced = &v.NodeDrainStatus
		}
	}
	var err error
	if len(wrong) > 0 {
		err = errors.New(strings.Join(wrong, "; "))
	}
	s.report1(&s.mem.forceReport, err, "NodeDrainStatus force file ignored")
	return forced
}

// takeRequests says who asks, and whether that is certain.
func (s *state) takeRequests(f *facts) {
	f.requests = map[string]request{}
	for _, t := range f.topics {
		was, stood := s.rec.requests[t.requester]
		switch {
		case t.asks:
			f.requests[t.requester] = request{NodeDrainRequest: t.request, stands: true}
			if stood && was.RequestedAt.IsZero() && was.Context == "" && len(s.rec.failed) > 0 {
				s.rec.failed = []time.Time{t.request.RequestedAt} // only the status was left of it
			}
		case stood && !t.synced: // silence is no withdrawal
			f.requests[t.requester] = request{NodeDrainRequest: was, doubt: true}
		}
		if !t.synced && f.now.Sub(s.mem.started) < unheardFor {
			f.unheard = true
		}
	}
	if m := f.membership; m.State == types.MembershipLeaving && m.Without == nil { // without the cluster nothing can be drained
		f.requests[byLeave] = request{stands: true, NodeDrainRequest: types.NodeDrainRequest{RequestedAt: m.InvalidSince, Context: m.Reason}}
	}
}

// takePods compares the last fresh list with the pods there are.
func (s *state) takePods(f *facts) {
	m := &s.mem
	deleted := make(map[string]time.Time, len(f.nodePods)) // by UID
	for _, p := range f.nodePods {
		deleted[p.UID] = p.Deleted
		if !m.listed[p.UID] && !m.makers[makerOf(p)].stays(p.UID) {
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
		if k := m.makers[makerOf(e.pod)]; k != nil {
			e.returns, e.shared, e.stays = k.returns, k.shared, k.stays(e.pod.UID)
		}
	}
	slices.Sort(f.came)
	m.emptied = since(m.emptied, f.now, !m.list.IsZero() && sortEvictions(f.now, m.pods).left() == 0)
}

// takeCluster says what the own node and its peers are, and for how long.
func (s *state) takeCluster(f *facts) {
	m := &s.mem
	s.takeSilence(f)
	f.up = f.known && f.node.Ready == types.ConditionTrue &&
		(s.rec.nodeBoot == "" || f.node.BootID == f.bootID || f.node.BootID != s.rec.nodeBoot)
	s.takePeers(f)
	s.takeCordons(f)
	f.lease = f.known && f.lockLease.Holder == f.node.Name && f.lockLease.Version != m.notLock
	// The pods of an own node that does not exist are never watched, so nothing
	// is ever synced then; that other nodes are seen tells as much.
	listed := f.synced || len(f.nodes) > 0
	m.missing = since(m.missing, f.now, !f.known && f.self != "" && f.living() && listed)
	m.seen = m.seen || f.known
	f.registered = m.seen || !s.rec.cordoned.IsZero()
	switch {
	case !f.living():
		f.why = "the API server does not answer: " + cmp.Or(f.api.Reason, "nothing was heard of it yet")
		// It may be back in a moment, and then it is another one.
		clear(m.retry)
		clear(m.backoff)
	case f.self == "":
		f.why = "EdgeNodeInfo has not said yet which node this is"
	case !listed:
		f.why = "the API server has not listed the nodes yet"
	case !f.known:
		f.why = "this node is not one of the cluster's"
		if !f.registered {
			f.why += ", or not yet: it has not registered since this agent started"
		}
	}
	s.takeCordonLoss(f)
}

// takePeers says whether another node would take the pods, and whether all the
// others know the lock.
func (s *state) takePeers(f *facts) {
	all := slices.Collect(maps.Values(f.nodes))
	for i := range all {
		all[i].TieBreaker = breaksTies(all[i], f.tie)
	}
	f.ends, _ = types.LastOf(all, f.node.Name)
	takers, foreign := 0, 0
	for _, n := range f.nodes {
		if n.Name == f.node.Name {
			continue
		}
		f.others++
		if n.Ready == types.ConditionTrue && !n.Unschedulable {
			takers++
		}
		if n.DrainInProgress == types.ConditionTrue {
			f.queued = true
		}
		if n.MaybeForeign() {
			foreign++
		}
	}
	if foreign == 0 {
		f.window = 0
	}
	s.mem.alone = since(s.mem.alone, f.now, f.known && f.synced && f.living() && takers == 0)
}

// takeSilence says since when the API server is silent. What an earlier process of
// this boot saw of the same silence counts, once this one sees it too.
func (s *state) takeSilence(f *facts) {
	m, r := &s.mem, &s.rec
	switch {
	case !f.apiSeen:
		f.silentSince = m.started // nothing was ever heard of it
	case !f.api.Answers():
		// The monotonic clock has the last word on how long ago that was.
		f.silentSince = f.now.Add(-max(0, f.wall.Sub(f.api.SilentSince)))
	}
	if f.living() && f.now.Sub(m.late) > muteFor {
		m.mute = time.Time{} // an answer that was lost is no silence
	}
	f.deadSince = f.silentSince
	if f.living() {
		f.deadSince = m.mute
	} else if f.apiSeen && !r.silent.IsZero() && r.silent.Before(f.silentSince) {
		f.deadSince = r.silent
	} else if !m.mute.IsZero() && m.mute.Before(f.silentSince) {
		f.deadSince = m.mute
	}
	switch {
	case f.living() || !drains(r.phase) && r.phase != types.PhaseComplete:
		r.silent = time.Time{}
	case r.silent.IsZero():
		r.silent = f.deadSince
	}
}

// takeCordonLoss notices that somebody has undone this drain's cordon; what a
// failure gives back is not lost.
func (s *state) takeCordonLoss(f *facts) {
	m := &s.mem
	wanted := drains(s.rec.phase) || s.rec.phase == types.PhaseComplete
	switch {
	case m.cordonAgain.IsZero() || !f.known || !wanted:
	case f.node.Unschedulable:
		m.cordonSeen = true
	case m.cordonSeen:
		m.cordonSeen, m.cordonAgain = false, time.Time{}
		s.rec.losses++
		s.report(true, "CordonLost", "the node was uncordoned by another client during its drain")
	}
}

// boundUnlocked ends the wait for cordons that may be drains without the lock
// while there is a tenth of the drain's time left for the lock, the quorum and the
// pods: such a cordon may be as young as the drain, and stand for longer.
func (s *state) boundUnlocked(f *facts) {
	began := s.rec.asked
	if s.rec.phase == types.PhaseEmptying {
		began = s.rec.cordoned
	}
	if f.unlocked == "" || !drains(s.rec.phase) {
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
