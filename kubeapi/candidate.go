package kubeapi

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
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

	seen    *sightings
	changed func(leader string, leads bool)
	bell    chan struct{} // rings when something of the below has changed

	leader string // what changed was told last
	leads  bool

	mu    sync.Mutex
	until time.Time   // this node leads until then, if it is not renewed
	maybe bool        // the Lease may be ours: a write of ours was sent and may have been made
	waits bool        // the elector has failed and waits for its next try
	terms []time.Time // when the Lease was acquired by the last writes of ours
	left  time.Time   // when the Lease was acquired that an earlier election left in our name
}

func (p *candidate) elector() (*leaderelection.LeaderElector, error) {
	return leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          p,
		LeaseDuration: leaseDuration,
		RenewDeadline: renewDeadline,
		RetryPeriod:   retryPeriod,
		Name:          statsLease,
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
	p.tries()
	record, _, err := p.Interface.Get(ctx)
	switch {
	case absent(err):
		p.hold(time.Time{}, false)
		return nil, nil, err
	case err != nil:
		p.failed()
		return nil, nil, err
	}
	if !p.wrote(record.HolderIdentity, record.AcquireTime.Time) {
		p.hold(time.Time{}, false)
		seen, _, _ := p.seen.look(statsLease)
		if until := seen.until(leaseDuration); time.Now().Before(until) && !p.inherits(record.HolderIdentity, record.AcquireTime.Time) {
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

// Create implements resourcelock.Interface.
func (p *candidate) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return p.write(record, func() error { return p.Interface.Create(ctx, record) })
}

// Update implements resourcelock.Interface.
func (p *candidate) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return p.write(record, func() error { return p.Interface.Update(ctx, record) })
}

// write counts from the start: the others may have seen it right then.
func (p *candidate) write(record resourcelock.LeaderElectionRecord, send func() error) error {
	until := time.Now().Add(leadsFor)
	p.mu.Lock()
	p.maybe = true
	if at := record.AcquireTime.UTC().Truncate(time.Microsecond); !slices.Contains(p.terms, at) {
		p.terms = append(p.terms[max(0, len(p.terms)-7):], at)
	}
	p.mu.Unlock()
	err := send()
	if err == nil {
		p.hold(until, true)
	} else {
		p.failed()
	}
	return err
}

// wrote reports that a Lease of that holder, acquired then, is of our writing. A
// second agent under our name has other times.
func (p *candidate) wrote(holder string, acquired time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return holder == p.Identity() && slices.Contains(p.terms, acquired.UTC().Truncate(time.Microsecond))
}

// inherits reports that a Lease of that holder, acquired then, is what we left
// behind before this election.
func (p *candidate) inherits(holder string, acquired time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if holder != p.Identity() {
		return false
	}
	if len(p.terms) == 0 {
		p.left = acquired
	}
	return acquired.Equal(p.left)
}

// tries notes that the elector begins to try.
func (p *candidate) tries() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waits = false
}

// failed notes that the elector's try was in vain.
func (p *candidate) failed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waits = true
	p.ring()
}

func (p *candidate) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waits
}

// hold notes until when this node leads, and whether the Lease may be ours.
func (p *candidate) hold(until time.Time, maybe bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.maybe = maybe
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
	p.mu.Lock()
	maybe := p.maybe
	p.mu.Unlock()
	if !maybe {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, giveBackWithin)
	defer cancel()
	for {
		record, _, err := p.Interface.Get(ctx)
		if err != nil {
			return fmt.Errorf("give the lease back: %w", err)
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
			return fmt.Errorf("give the lease back: %w", err)
		}
	}
}
