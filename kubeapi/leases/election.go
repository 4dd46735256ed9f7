package leases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

// candidate stands between an elector of client-go and the Lease.
//
// It says what is true. An elector that cannot renew tries for renewDeadline
// and tells only then; the Lease may have been another node's for long. So the
// candidate sees each write and read of the Lease and judges by the clock.
//
// It knows more than an elector, which counts a holder's duration from its own
// first look: the watch has seen since when the holder has not renewed.
type candidate struct {
	resourcelock.Interface // the Lease itself

	seen    *Observations
	changed func(leader string, leads bool)
	bell    chan struct{} // rings when something of the below has changed

	leader string // what changed was last called with
	leads  bool
	maybe  atomic.Bool // the Lease may be ours: a write of ours was sent and may have been made
	waits  atomic.Bool // the elector has failed and waits for its next try

	mu    sync.Mutex
	until time.Time   // this node leads until then, if it is not renewed
	tried bool        // a write of ours was sent
	terms []ownTerm   // the last ones
	left  time.Time   // when the Lease was acquired that an earlier election left in our name
	last  observation // the Lease as another node held it
	taken time.Time   // since when the Lease has been as it was last seen to be another's
}

// ownTerm is a time in which the Lease was ours.
type ownTerm struct {
	acquired time.Time
	sent     time.Time // when its last write began that may have been made
}

func (p *candidate) elector() (*leaderelection.LeaderElector, error) {
	return leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          p,
		LeaseDuration: LeaseDuration,
		RenewDeadline: renewDeadline,
		RetryPeriod:   retryPeriod,
		Name:          StatsLease,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {},
			OnStoppedLeading: func() {},
		},
		// giveBack does it, also after a write whose answer has not come.
		ReleaseOnCancel: false,
	})
}

// Get implements resourcelock.Interface. It shows the elector a Lease that has
// run out as one without holder, and the duration that counts.
func (p *candidate) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	p.waits.Store(false)
	record, _, err := p.Interface.Get(ctx)
	seen, _, _ := p.seen.Look(StatsLease)
	switch {
	case err != nil && !access.NotFound(err):
		p.failed()
		return nil, nil, err
	case time.Now().Before(p.vanished(seen)):
		p.hold(time.Time{}, false)
		p.failed()
		return nil, nil, errVanished
	case err != nil:
		p.hold(time.Time{}, false)
		return nil, nil, err
	}
	if !p.wrote(record.HolderIdentity, record.AcquireTime.Time) {
		p.hold(time.Time{}, false)
		if until := seen.until(LeaseDuration); time.Now().Before(until) && !p.inherits(record.HolderIdentity, record.AcquireTime.Time) {
			record.HolderIdentity = "another " + record.HolderIdentity
			record.LeaseDurationSeconds = int(until.Sub(seen.since) / time.Second)
			p.failed()
		} else {
			record.HolderIdentity = ""
		}
	}
	raw, err := json.Marshal(record)
	return record, raw, err
}

func (p *candidate) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return p.write(ctx, record, p.Interface.Create)
}

func (p *candidate) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return p.write(ctx, record, p.Interface.Update)
}

// write counts from the start: the others may have seen it right then. Each write
// has a time of its own. An elector whose first write had no answer dates a second
// one like it, and the others would see no renewal in that.
func (p *candidate) write(ctx context.Context, record resourcelock.LeaderElectionRecord,
	send func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	now := time.Now()
	record.RenewTime = metav1.NewTime(now)
	p.maybe.Store(true)
	at := record.AcquireTime.UTC().Truncate(time.Microsecond)
	before := p.notes(at, now)
	err := send(ctx, record)
	switch {
	case err == nil:
		p.hold(now.Add(leadsFor), true)
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err): // it was certainly not made
		p.notes(at, before)
		fallthrough
	default:
		p.failed()
	}
	return err
}

// notes notes when the last write of the term began that was acquired then, and returns what was
// noted before. Zero forgets the term.
func (p *candidate) notes(acquired, sent time.Time) (before time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tried = true
	p.terms = slices.DeleteFunc(p.terms, func(t ownTerm) bool {
		if !t.acquired.Equal(acquired) {
			return false
		}
		before = t.sent
		return true
	})
	if !sent.IsZero() {
		p.terms = append(p.terms[max(0, len(p.terms)-7):], ownTerm{acquired, sent})
	}
	return before
}

// wrote reports that a Lease of that holder, acquired then, is of our writing, and
// that nobody was seen to have it after that: etcd may have been set back to a term
// that is over. A second agent under our name has other times.
func (p *candidate) wrote(holder string, acquired time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := acquired.UTC().Truncate(time.Microsecond)
	return holder == p.Identity() && slices.ContainsFunc(p.terms, func(t ownTerm) bool {
		return t.acquired.Equal(at) && !t.sent.Before(p.taken)
	})
}

// inherits reports that a Lease of that holder, acquired then, is what we left
// behind before this election, and that nobody was seen to have it since.
func (p *candidate) inherits(holder string, acquired time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if holder != p.Identity() || !p.taken.IsZero() {
		return false
	}
	if !p.tried {
		p.left = acquired
	}
	return acquired.Equal(p.left)
}

// errVanished is why the elector takes no Lease that is not there or has no holder.
var errVanished = errors.New("the lease was removed or set back, and its holder may not know it yet")

// sees notes the Lease for vanished.
func (p *candidate) sees(seen observation, ours bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last = seen; ours {
		p.last = observation{}
	} else if seen.Holder != "" {
		p.taken = seen.since
	}
}

// vanished is until when the Lease is another node's that has been removed, or set
// back to a time when nobody held it: its holder may hear of that later than we do,
// as after etcd was restored.
func (p *candidate) vanished(seen observation) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if seen.Name == "" || seen.Holder == "" && older(seen.Version, p.last.Version) {
		return p.last.until(LeaseDuration)
	}
	return time.Time{}
}

// failed notes that the elector's try has failed.
func (p *candidate) failed() {
	p.waits.Store(true)
	p.ring()
}

// hold notes until when this node leads, and whether the Lease may be ours.
func (p *candidate) hold(until time.Time, maybe bool) {
	p.maybe.Store(maybe)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.until.Equal(until) {
		p.until = until
		p.ring()
	}
}

// lose ends the leadership, whatever becomes of a write that is under way.
func (p *candidate) lose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.until.IsZero() {
		p.until = time.Time{}
		p.ring()
	}
}

func (p *candidate) ring() {
	select {
	case p.bell <- struct{}{}:
	default:
	}
}

// leadsUntil is until when this node leads.
func (p *candidate) leadsUntil() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.until
}

// giveBack releases the Lease if it is ours, as client-go does: without holder,
// for a second.
func (p *candidate) giveBack(ctx context.Context) error {
	if !p.maybe.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, GiveBackWithin)
	defer cancel()
	for {
		record, _, err := p.Interface.Get(ctx)
		if err != nil {
			return fmt.Errorf("release the lease: %w", err)
		}
		if !p.wrote(record.HolderIdentity, record.AcquireTime.Time) {
			return nil
		}
		now := metav1.Now()
		err = p.Interface.Update(ctx, resourcelock.LeaderElectionRecord{
			LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, AcquireTime: now, RenewTime: now,
		})
		if err == nil {
			return nil
		}
		if !apierrors.IsConflict(err) { // a write that we no longer waited for
			return fmt.Errorf("release the lease: %w", err)
		}
	}
}

// StatsLease is the name of the Lease of docs/wire.md, "Lease".
const StatsLease = "eve-kube-stats-leader"

// The bounds of that Lease. EVE's own zedkube holds it for
// 300 s at a time. Ours is shorter, so that a dead leader is followed within
// half a minute; in a mixed cluster that is safe, because a candidate judges
// the holder by the duration that the holder wrote into the Lease.
const (
	LeaseDuration = 25 * time.Second
	renewDeadline = 15 * time.Second // longer than one call may take
	retryPeriod   = 5 * time.Second
	// leadsFor is how long after the start of the last renewal this node may
	// call itself the leader: until shortly before another one may.
	leadsFor = LeaseDuration - 2*time.Second
	// GiveBackWithin bounds giving the Lease back: after a shutdown somebody waits.
	GiveBackWithin = 5 * time.Second
)

// Elect takes part in the election of the node that reports for the cluster,
// under the name identity. It calls changed, never twice at a time, whenever
// the leader ("" while none is known to hold the Lease) or our part changes, and
// at the end with "", false if it had said anything else. It returns nil when
// ctx is done, after giving the Lease back if it was ours and the API server
// answers; and an error when there is no connection or a new one is made.
//
// While another node holds the Lease it sends nothing: the watch tells when it
// is given back, and a clock when it has run out. Where there is no watch it
// asks every 5 to 11 s.
func (c *Client) Elect(ctx context.Context, identity string, changed func(leader string, leads bool)) error {
	conn, done, err := c.Use()
	if err != nil {
		return fmt.Errorf("elect stats leader: %w", err)
	}
	defer done()
	term, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(conn.Ctx, cancel)()

	part := &candidate{
		Interface: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: access.Namespace, Name: StatsLease},
			Client:     On(conn),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		seen: access.Kept[Observations](conn), changed: changed, bell: make(chan struct{}, 1),
	}
	err = part.run(term)
	if back := part.giveBack(context.WithoutCancel(ctx)); back != nil {
		c.Logger.WithError(back).Info("the lease could not be released, it will expire")
	}
	switch {
	case err != nil:
		return fmt.Errorf("elect stats leader: %w", err)
	case ctx.Err() != nil:
		return nil
	}
	return fmt.Errorf("elect stats leader: %w: %w", types.ErrNoAPI, access.ErrRetired)
}

// tryGap is how far apart the beginnings of tries are at least, whatever the
// Lease looks like meanwhile.
const tryGap = time.Second

// attempt is an elector at work: one that tries for the Lease, or leads.
type attempt struct {
	end  context.CancelFunc
	over chan struct{} // closed when it has ended
}

func (b *attempt) ended() <-chan struct{} {
	if b == nil {
		return nil
	}
	return b.over
}

// leaseView is what the sightings say of the Lease.
type leaseView struct {
	whole bool // it is watched
	holds string
	until time.Time // its holder has it until then; zero for nobody
	ours  bool
}

func (p *candidate) leaseView(now time.Time) (leaseView, <-chan struct{}) {
	seen, whole, changed := p.seen.Look(StatsLease)
	is := leaseView{whole: whole, until: seen.until(LeaseDuration)}
	is.ours = p.wrote(seen.Holder, seen.Acquired) || p.inherits(seen.Holder, seen.Acquired)
	switch until := p.vanished(seen); {
	case now.Before(until):
		seen.Holder, is.until = p.last.Holder, until
	case seen.Name != "": // released too
		p.sees(seen, is.ours)
	}
	if now.Before(is.until) {
		is.holds = seen.Holder
	}
	return is, changed
}

// open reports that nothing is known that keeps the Lease from us.
func (is leaseView) open() bool { return is.ours || is.holds == "" }

// run takes part until term is done. An elector is at work only while the Lease
// is free, has run out, is ours, or is not watched.
func (p *candidate) run(term context.Context) error {
	var at *attempt
	defer func() {
		p.lose()
		p.say("", false)
		if at != nil {
			at.end()
			<-at.over
		}
	}()
	var next time.Time
	var was leaseView
	news := false // worth a try at once
	for term.Err() == nil {
		now := time.Now()
		is, changed := p.leaseView(now)
		if is.whole && !is.ours { // taken away from us by force
			p.lose()
		}
		leads := now.Before(p.leadsUntil())
		p.report(is, leads)
		news = news || is.open() && (!was.open() || is.whole && !was.whole)
		was = is
		switch {
		case at != nil && !leads && p.waits.Load() && (news || is.whole && !is.open()):
			at.end() // to begin another one at once, or to watch
		case at == nil && !now.Before(next) && (is.open() || !is.whole):
			var err error
			if at, err = p.begin(term); err != nil {
				return err
			}
			next, news = now.Add(tryGap), false
		}
		alarm := time.NewTimer(p.alarm(now, is, next))
		select {
		case <-term.Done():
		case <-changed:
		case <-p.bell:
		case <-alarm.C:
		case <-at.ended():
			at.end()
			at = nil
		}
		alarm.Stop()
	}
	return nil
}

// begin sets an elector to work.
func (p *candidate) begin(term context.Context) (*attempt, error) {
	elector, err := p.elector()
	if err != nil {
		return nil, err
	}
	p.waits.Store(false)
	ctx, cancel := context.WithCancel(term)
	b := &attempt{end: cancel, over: make(chan struct{})}
	go func() {
		defer close(b.over)
		elector.Run(ctx)
	}()
	return b, nil
}

// report says who leads, as far as it is known.
func (p *candidate) report(is leaseView, leads bool) {
	switch {
	case leads:
		p.say(p.Identity(), true)
	case is.ours: // from an earlier time, or it cannot be renewed
		p.say("", false)
	default:
		p.say(is.holds, false)
	}
}

func (p *candidate) say(leader string, leads bool) {
	if leader != p.leader || leads != p.leads {
		p.leader, p.leads = leader, leads
		p.changed(leader, leads)
	}
}

// alarm is how long nothing changes by itself.
func (p *candidate) alarm(now time.Time, is leaseView, next time.Time) time.Duration {
	first := now.Add(longestLease)
	for _, at := range []time.Time{p.leadsUntil(), is.until, next} {
		if at.After(now) && at.Before(first) {
			first = at
		}
	}
	return first.Sub(now)
}
