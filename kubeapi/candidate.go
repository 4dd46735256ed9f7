package kubeapi

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// candidate stands between the elector and the Lease, and says what is true.
//
// The elector's callbacks come from goroutines of their own in no certain
// order: they only ring. They also come late. An elector that cannot renew tries
// for renewDeadline, then to give the Lease back for as long again, and tells
// only then; the Lease may have been another node's for long. So the candidate
// sees each write and read of the Lease and judges by the clock.
type candidate struct {
	resourcelock.Interface // the Lease itself

	changed func(leader string, leads bool)
	bell    chan struct{}

	mu      sync.Mutex
	started bool      // the elector says that it leads
	until   time.Time // this node leads until then, if it is not renewed
}

func (p *candidate) elector() (*leaderelection.LeaderElector, error) {
	return leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            p,
		LeaseDuration:   leaseDuration,
		RenewDeadline:   renewDeadline,
		RetryPeriod:     retryPeriod,
		ReleaseOnCancel: true,
		Name:            statsLease,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { p.start() },
			OnStoppedLeading: func() {},
			OnNewLeader:      func(string) { p.ring() },
		},
	})
}

// Get implements resourcelock.Interface.
func (p *candidate) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := p.Interface.Get(ctx)
	if err == nil && record.HolderIdentity != p.Identity() {
		p.hold(time.Time{})
	}
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
	if record.HolderIdentity != p.Identity() { // it is given back
		until = time.Time{}
		p.hold(until)
	}
	err := send()
	if err == nil {
		p.hold(until)
	}
	return err
}

func (p *candidate) hold(until time.Time) {
	p.mu.Lock()
	p.until = until
	p.mu.Unlock()
	p.ring()
}

func (p *candidate) start() {
	p.mu.Lock()
	p.started = true
	p.mu.Unlock()
	p.ring()
}

func (p *candidate) ring() {
	select {
	case p.bell <- struct{}{}:
	default:
	}
}

// left is how much longer this node leads.
func (p *candidate) left() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.started {
		return 0
	}
	return max(0, time.Until(p.until))
}

// report tells of changes until the term is done.
func (p *candidate) report(term context.Context, elector *leaderelection.LeaderElector) {
	leader, leads := "", false
	say := func(l string, is bool) {
		if l != leader || is != leads {
			leader, leads = l, is
			p.changed(l, is)
		}
	}
	defer func() { say("", false) }()
	for {
		left := p.left()
		say(elector.GetLeader(), left > 0)
		var expires <-chan time.Time
		if left > 0 {
			expires = time.After(left)
		}
		select {
		case <-term.Done():
			return
		case <-p.bell:
		case <-expires:
		}
	}
}
