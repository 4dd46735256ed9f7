package leader

import (
	"time"

	"github.com/zedkube/zedkube/types"
)

// facts is everything a decision rests on.
type facts struct {
	now       time.Time
	eligible  bool   // the controller's word, fresh or saved, is known
	identity  string // "" while the own node's name is not known
	answers   bool   // the API server does
	running   bool   // an election runs
	runsAs    string
	dropped   bool // it has been told to end
	next      time.Time
	leader    string
	leads     bool
	since     time.Time // when the leader took the Lease; zero for not seen yet
	published types.KubeLeaderElectInfo
}

// seenWithin is how soon the table of Leases has what the election knows.
const seenWithin = 2 * time.Second

// action is what to do about the facts.
type action struct {
	start, stop bool
	again       time.Duration
	info        types.KubeLeaderElectInfo
}

// decide starts an election when there is a reason and a name to run under,
// and ends it when either is gone. A silent API does not end it: the Lease does
// that in its own time.
func decide(f facts) action {
	var a action
	switch {
	case f.running:
		a.stop = !f.dropped && (!f.eligible || f.identity != "" && f.identity != f.runsAs)
	case !f.eligible || f.identity == "" || !f.answers:
	case f.now.Before(f.next):
		a.again = f.next.Sub(f.now)
	default:
		a.start = true
	}
	stays := f.running && !a.stop && !f.dropped
	a.info = types.KubeLeaderElectInfo{
		InLeaderElection: f.eligible && (f.identity != "" || stays),
		ElectionRunning:  f.running || a.start,
		IsStatsLeader:    stays && f.leads,
		LatestChange:     f.published.LatestChange,
	}
	if stays {
		a.info.LeaderIdentity, a.info.LeaderSince = f.leader, f.since
		if f.leader != "" && f.since.IsZero() {
			a.again = seenWithin
			if f.leader == f.published.LeaderIdentity {
				a.info.LeaderSince = f.published.LeaderSince
			}
		}
	}
	was := f.published
	was.LeaderSince = a.info.LeaderSince // which is seen later, and changes nothing
	if a.info != was || f.published.LatestChange.IsZero() {
		a.info.LatestChange = f.now
	}
	return a
}
