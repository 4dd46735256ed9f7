package drain

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/types"
)

const (
	// notReceivedFor is how long after a start a request that nobody has spoken of
	// yet may still turn up; the agents start in any order.
	notReceivedFor = 2 * time.Minute
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

// memory is what one process knows beyond its record. Losing it costs time, never
// correctness, but for completed: a node that is off by then is no longer waited for.
type memory struct {
	started      time.Duration            // the first look
	missing      time.Duration            // since when a living API knows no own node; 0 while it does
	seen         bool                     // it was known once
	alone        time.Duration            // since when no other node is Ready and schedulable
	mute         time.Duration            // since when writes have got no answer; 0 while they do
	freed        time.Duration            // when the lock was last given back
	late         time.Duration            // when a write last ended without an answer
	journal      types.NodeDrainJournal   // as last written, or tried to
	unwritten    bool                     // that failed
	notPublished bool                     // the present NodeDrainStatus could not be published
	bootWall     time.Time                // when this boot began, by the wall clock
	cordons      map[string]time.Duration // since when foreign cordons of other nodes have been seen, by node
	completed    map[string]string        // boots in which other nodes have said that their drain is complete, by node
	lease        types.Lease              // the lock as the table shows it
	leased       time.Duration            // since when it shows it, under whatever Version
	lock         types.DrainLock          // as last read, here or by an earlier process
	lockKnown    bool
	notLock      string        // version of the lock in this node's name that is held for something else
	errVerb      verb          // whose error lastErr is
	looked       time.Duration // when the last look at what a leave would lose began; 0 for never in this boot

	reportErr    string // what was last logged about the reporting lane
	forceReport  string // about a force file
	markerReport string // and about the fault marker
	recorded     string // what was last put on record of a force file

	drainMemory
}

// drainMemory is what belongs to one drain.
type drainMemory struct {
	waits       string        // what the drain was last reported to wait for
	cordonAgain time.Duration // when a Cordon call last succeeded
	cordonSeen  bool          // and the table has shown it
	unseen      int           // cordons in a row that were undone before it did
	gates       string        // what the way to the cordon waits for
	quorum      string        // what of it is for want of quorum
	waiting     time.Duration // since when it has waited, for whatever it is
	enteredAt   time.Duration // when lock and quorum were had
	check       checked
	holds       string // what keeps the lock from being given back, or the Node from being deleted
	deleted     bool   // the own Node, as was answered: the table has to show it
	ended       bool   // the cluster ends with this node, as was consented to: its Node stays
	retry       map[verb]time.Duration
	backoff     map[verb]time.Duration
	lastErr     error               // of the last acting call; nil once one has worked
	list        time.Duration       // last fresh list of the pods to evict; 0 for none
	listed      map[string]bool     // UIDs of the pods there were at the last list
	chosen      map[string]bool     // UIDs of all that were ever chosen
	creators    map[string]*creator // of those that were evicted, by creatorOf
	pods        []podEviction       // what the last list chose
	emptied     time.Duration       // since when none of them is left
	unused      bool                // it was reported that COMPLETE is not used
	view        view                // what the progress record was made of
}

// update is the facts that follow from what was observed, beside what was known.
func (s *state) update(seen observed) facts {
	f := facts{observed: seen}
	if seen.start != nil {
		s.restore(&f, *seen.start)
	}
	// Steady to the second, or every record would differ from the one before.
	if d := seen.booted.Sub(s.mem.bootWall); d.Abs() > 2*time.Second {
		s.mem.bootWall = seen.booted
	}
	for _, a := range seen.answers {
		s.applyAnswer(seen, a)
	}
	f.member = seen.config.Initialized && seen.config.Valid || seen.membership.Belongs() ||
		seen.membership.State != types.MembershipLeft && s.rec.Status.Status >= types.DrainNotRequested
	if !f.dropForce {
		f.forced = s.forced(seen)
	}
	if s.rec.Phase == types.PhaseComplete || s.rec.Unused {
		if s.rec.Markers == nil { // an agent without a journal, or a former one, said it
			s.rec.Markers = seen.markers
		}
		f.inUse = usedBy(seen, s.rec)
	}
	s.reportOnce(&s.mem.markerReport, seen.doubted, "fault marker ignored")
	s.updateCluster(&f)
	s.boundUnlocked(&f)
	s.updateUnlocked(&f)
	s.updateRequests(&f)
	s.updatePods(&f)
	gates := cmp.Or(f.unlocked, s.mem.gates)
	s.mem.waiting = since(s.mem.waiting, f.now, gates != "" || s.mem.waiting != 0 && s.mem.enteredAt == 0) // an error is no end
	f.rec, f.memory = s.rec, s.mem
	f.pods = slices.Clone(s.mem.pods)
	f.gates, f.check.lock = gates, cmp.Or(f.unlocked, f.check.lock, f.goes)
	f.entered = f.enteredAt != 0 && f.now-f.enteredAt < enteredFor && f.goes == ""
	if f.lastErr != nil {
		f.trouble = phrase.Cut(f.lastErr.Error(), maxError)
	}
	return f
}

// restore takes up what an earlier process left: of this boot its drain, of a
// former one what has to be given back.
func (s *state) restore(f *facts, left startup) {
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
		s.rec.Serial, s.rec.Adopted = j.Serial, j.Adopted
	default:
		s.rec = recall(j, f.now).afterBoot()
		s.rec.Status = left.status
	}
	f.dropForce = !left.published && !current
	if l := s.rec.Look; l != nil && l.BootID == f.bootID {
		s.mem.looked = l.Uptime
	}
	if drains(s.rec.Phase) {
		s.note(logrus.InfoLevel, "cordonAndDrainNode nodedrain-step: the drain of an earlier run goes on", logrus.Fields{"phase": s.rec.Phase})
	}
}

// reconcileWithPublished sets the record, which was written first, beside what was
// really said: what nobody has heard yet is said again, so that every state is
// seen, and seen for as long as it has to be.
func (s *state) reconcileWithPublished(seen observed, left startup) {
	r, said := &s.rec, left.status
	was := r.Status
	forced := s.forced(seen)
	switch {
	case !left.published, forced != nil && forced.Status != types.DrainComplete:
		r.Standing = max(r.Standing, seen.now) // for all we know
	case said == was:
	case said.Status == types.DrainComplete && drains(r.Phase) && was.Status > types.DrainRequested:
		// Nothing could be written but this. A failure may have been an operator's
		// mask; a real one comes again.
		f := fromStatus(said, seen.now)
		r.Phase, r.Reason, r.Status, r.Said, r.Told, r.Ended = f.Phase, f.Reason, f.Status, f.Said, f.Told, f.Ended
	default:
		r.Status, r.Said = said, seen.now
		if final(said.Status) {
			r.Told = slices.DeleteFunc(slices.Clone(r.Told), func(by types.DrainRequester) bool { return by == was.RequestedBy })
		}
	}
}

// forget drops what belongs to one drain, but for the Events that are still to be written.
func (s *state) forget() {
	s.mem.drainMemory = drainMemory{
		chosen: map[string]bool{}, creators: map[string]*creator{},
		retry: map[verb]time.Duration{}, backoff: map[verb]time.Duration{}, view: view{events: s.mem.view.events},
	}
}

// since is when a condition began to hold; zero while it does not.
func since(was, now time.Duration, holds bool) time.Duration {
	if !holds {
		return 0
	}
	return cmp.Or(was, now)
}

func (s *state) note(level logrus.Level, text string, fields logrus.Fields) {
	s.notes = append(s.notes, note{level, text, fields})
}

// reportOnce notes an error once, until it is another one.
func (s *state) reportOnce(was *string, err error, text string) {
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
func (s *state) wallTime(t time.Duration) time.Time {
	if t == 0 {
		return time.Time{}
	}
	return s.mem.bootWall.Add(t).UTC().Truncate(time.Millisecond)
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
		case v.err == nil && forced == nil && s.rec.Spent[v.path] != v.Mark:
			forced = &v.NodeDrainStatus
		}
	}
	var err error
	if len(wrong) > 0 {
		err = errors.New(strings.Join(wrong, "; "))
	}
	s.reportOnce(&s.mem.forceReport, err, "NodeDrainStatus force file ignored")
	return forced
}

// updateRequests says who asks, and whether that is certain.
func (s *state) updateRequests(f *facts) {
	f.requests = map[string]request{}
	for _, t := range f.topics {
		was, stood := s.rec.Requests[t.requester]
		switch {
		case t.asks:
			f.requests[t.requester] = request{NodeDrainRequest: t.request, active: true}
			if stood && was.RequestedAt.IsZero() && was.Context == "" && len(s.rec.Failed) > 0 {
				s.rec.Failed = []time.Time{t.request.RequestedAt} // only the status was left of it
			}
		case stood && !t.synced: // silence is no withdrawal
			f.requests[t.requester] = request{NodeDrainRequest: was}
		}
		if !t.synced && f.now-s.mem.started < notReceivedFor {
			f.notReceived = true
		}
	}
	if m := f.membership; m.State == types.MembershipLeaving && m.Without == nil { // without the cluster nothing can be drained
		f.requests[byLeave] = request{active: true, NodeDrainRequest: types.NodeDrainRequest{RequestedAt: m.InvalidSince, Context: m.Reason}}
	}
}

// updatePods compares the last fresh list with the pods there are.
func (s *state) updatePods(f *facts) {
	m := &s.mem
	deleted := make(map[string]time.Time, len(f.nodePods)) // by UID
	for _, p := range f.nodePods {
		deleted[p.UID] = p.Deleted
		if !m.listed[p.UID] && !m.creators[creatorOf(p)].stays(p.UID) {
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
		if k := m.creators[creatorOf(e.pod)]; k != nil {
			e.returns, e.shared, e.stays = k.returns, k.shared, k.stays(e.pod.UID)
		}
	}
	slices.Sort(f.came)
	m.emptied = since(m.emptied, f.now, m.list != 0 && sortEvictions(f.now, m.pods).left() == 0)
}
