package kubeapi

import (
	"context"
	"time"
)

// tryGap is how far apart the beginnings of tries are at least, whatever the
// Lease looks like meanwhile.
const tryGap = time.Second

// bout is an elector at work: one that tries for the Lease, or leads.
type bout struct {
	end  context.CancelFunc
	over chan struct{} // closed when it has ended
}

func (b *bout) ended() <-chan struct{} {
	if b == nil {
		return nil
	}
	return b.over
}

// prospect is what the sightings say of the Lease.
type prospect struct {
	whole bool // it is watched
	holds string
	until time.Time // whoever holds it holds it until then; zero for nobody
	ours  bool
}

func (p *candidate) prospect(now time.Time) (prospect, <-chan struct{}) {
	seen, whole, changed := p.seen.look(statsLease)
	is := prospect{whole: whole, until: seen.until(leaseDuration)}
	is.ours = p.wrote(seen.Holder, seen.Acquired) || p.inherits(seen.Holder, seen.Acquired)
	if now.Before(is.until) {
		is.holds = seen.Holder
	}
	return is, changed
}

// open reports that nothing is known that keeps the Lease from us.
func (is prospect) open() bool { return is.ours || is.holds == "" }

// run takes part until term is done. An elector is at work only while the Lease
// is free, has run out, is ours, or is not watched.
func (p *candidate) run(term context.Context) error {
	var at *bout
	defer func() {
		p.lose()
		p.say("", false)
		if at != nil {
			at.end()
			<-at.over
		}
	}()
	var next time.Time
	var was prospect
	news := false // worth a try at once
	for term.Err() == nil {
		now := time.Now()
		is, changed := p.prospect(now)
		if is.whole && !is.ours { // taken away from us by force
			p.lose()
		}
		leads := now.Before(p.leadsUntil())
		p.report(is, leads)
		news = news || is.open() && (!was.open() || is.whole && !was.whole)
		was = is
		switch {
		case at != nil && !leads && p.idle() && (news || is.whole && !is.open()):
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
func (p *candidate) begin(term context.Context) (*bout, error) {
	elector, err := p.elector()
	if err != nil {
		return nil, err
	}
	p.tries()
	ctx, cancel := context.WithCancel(term)
	b := &bout{end: cancel, over: make(chan struct{})}
	go func() {
		defer close(b.over)
		elector.Run(ctx)
	}()
	return b, nil
}

// report says who leads, as far as it is known.
func (p *candidate) report(is prospect, leads bool) {
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
func (p *candidate) alarm(now time.Time, is prospect, next time.Time) time.Duration {
	first := now.Add(longestLease)
	for _, at := range []time.Time{p.leadsUntil(), is.until, next} {
		if at.After(now) && at.Before(first) {
			first = at
		}
	}
	return first.Sub(now)
}
