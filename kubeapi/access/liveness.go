package access

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

const (
	// ProbeEvery is how long the server may go unasked. With AnswerWithin it
	// bounds the time in which a hung server is found out.
	ProbeEvery = 10 * time.Second
	// probeUnwell is the least time between probes of a silent server; a
	// fifth more at random keeps the nodes of a cluster out of step. Short,
	// because the tables are to be right within five seconds of its return.
	probeUnwell = 3 * time.Second
	// believed is how long a probe that failed must have waited to be believed alone.
	// One that fails sooner costs nothing to repeat.
	believed = 2 * time.Second
)

// Probes sends the server a request when nothing else did for a while,
// and at once when it is in doubt. A hung probe does not keep the next one from
// being sent: that one may find a way that is open again.
func (conn *Connection) Probes(s *Liveness) {
	var last time.Time
	gap := probeUnwell
	pulse := conn.Pulses[loopProbes]
	for {
		pulse.Begin()
		timer := time.NewTimer(s.due(last, gap))
		pulse.End(ProbeEvery, false)
		select {
		case <-conn.Ctx.Done():
			timer.Stop()
			return
		case <-s.wake:
			timer.Stop()
			continue
		case <-timer.C:
		}
		if s.due(last, gap) > 0 { // an answer came meanwhile
			continue
		}
		settles := s.probing()
		last, gap = time.Now(), probeUnwell+rand.N(probeUnwell/5)
		conn.Work.Go(func() { conn.probe(s, settles) })
	}
}

func (conn *Connection) probe(s *Liveness, settles bool) {
	start := time.Now()
	ask := func() rest.Result {
		return conn.Prober.CoreV1().RESTClient().Get().Resource("namespaces").Name(Namespace).MaxRetries(0).Do(conn.Ctx)
	}
	result := ask()
	// A connection carries many requests, and ends with a fault of any of them:
	// a probe that failed with it at once has not settled the doubt.
	if settles && conn.Ctx.Err() == nil && s.unsettled(start) {
		result = ask()
	}
	err := result.Error()
	if err != nil && conn.Ctx.Err() == nil {
		s.probed(start, settles)
	}
	var ns corev1.Namespace
	if err == nil && result.Into(&ns) == nil { // any answer shows that the server lives
		conn.Credentials.probed(ns)
	}
}

// Liveness knows since when the API server has not answered. It outlives the
// connections. One request that goes unanswered is a doubt, and a probe is sent
// to settle it. Once that one goes unanswered too, the server is silent, and was
// from the start of the first such request until the next answer of any kind;
// slow is not silent. Only probes are sent to a silent server.
type Liveness struct {
	log    logrus.FieldLogger
	ctx    context.Context
	report func(since time.Time, reason string)
	wake   chan struct{} // rings when the next probe may be due sooner

	mu     sync.Mutex
	last   time.Time // when an answer last came
	doubt  time.Time // start of the first request that went unanswered after that; zero: none did
	reason string
	asked  bool // a probe was sent because of the doubt
	gone   bool // it went unanswered: the server is silent

	said     bool      // the silence was reported
	mistaken time.Time // when a doubt last turned out to be none

	alive context.Context // ends when the server is found silent
	kill  context.CancelFunc
	open  chan struct{} // closed while views may list and watch
}

// NewLiveness returns the judgement of one connection, which calls report with each change, and ends with ctx.
func NewLiveness(ctx context.Context, log logrus.FieldLogger, report func(time.Time, string)) *Liveness {
	s := &Liveness{log: log, ctx: ctx, report: report, wake: make(chan struct{}, 1), open: make(chan struct{})}
	close(s.open)
	s.alive, s.kill = context.WithCancel(ctx)
	return s
}

// answered notes an answer that has just come.
func (s *Liveness) answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Now()
	if !s.doubt.IsZero() && !s.said {
		s.mistaken = s.last
	}
	if s.gone {
		s.log.WithField("silent", s.last.Sub(s.doubt).Round(time.Millisecond)).Info("API server answers again")
	}
	s.doubt, s.reason, s.asked, s.said = time.Time{}, "", false, false
	s.set(false)
	s.report(s.doubt, s.reason)
}

// unanswered notes that a request sent at start will get no answer. That is no
// news if another one got its answer after start.
func (s *Liveness) unanswered(start time.Time, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if start.Before(s.last) {
		return
	}
	s.suspect(start, reason)
	if s.gone {
		s.report(s.doubt, s.reason)
	}
	s.ring()
}

// Unreachable notes that there has been no way to ask since start.
func (s *Liveness) Unreachable(start time.Time, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.suspect(start, reason)
	s.said = true
	s.report(s.doubt, s.reason)
}

// suspect is called with the lock held.
func (s *Liveness) suspect(start time.Time, reason string) {
	if s.doubt.IsZero() || start.Before(s.doubt) {
		s.doubt = start
	}
	s.reason = reason
}

// probing notes that a probe is on its way, and returns whether it settles a doubt.
func (s *Liveness) probing() (settles bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = !s.doubt.IsZero()
	return s.asked
}

// probed judges the probe sent at start. One that failed at once and raised the
// doubt itself is not believed yet; one that waited is.
func (s *Liveness) probed(start time.Time, settles bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	failed := !s.doubt.IsZero() && s.last.Before(start)
	if !failed || s.gone || !settles && time.Since(start) < believed {
		return
	}
	s.log.WithField("reason", s.reason).Warn("API server does not answer")
	s.set(true)
	s.said = true
	s.report(s.doubt, s.reason)
	s.ring()
}

// unsettled reports that the probe sent at start failed at once, and that no
// other request has been answered since. A silent server is not asked twice.
func (s *Liveness) unsettled(start time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.gone && !s.doubt.IsZero() && s.last.Before(start) && time.Since(start) < believed
}

// Reset lets a new connection try at once.
func (s *Liveness) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = false
	s.set(false)
	s.ring()
}

// set moves the gates. The caller holds the lock.
func (s *Liveness) set(gone bool) {
	switch {
	case gone && !s.gone:
		s.kill()
		s.open = make(chan struct{})
	case !gone && s.gone:
		s.alive, s.kill = context.WithCancel(s.ctx)
		close(s.open)
	}
	s.gone = gone
}

func (s *Liveness) ring() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Dead reports, with the reason, that only probes are to be sent.
func (s *Liveness) Dead() (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason, s.gone
}

// Gates returns a context that ends when the server is found silent, and a
// channel that is closed once views may list and watch.
func (s *Liveness) Gates() (alive context.Context, open <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alive, s.open
}

// due returns how long the next probe has to wait. The last one was sent at
// last and is followed by the next one after gap while the server is silent or
// may be. A doubt soon after one that was none waits: requests that fail among
// others that do not are no reason for a probe each.
func (s *Liveness) due(last time.Time, gap time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.gone || s.asked:
		return time.Until(last.Add(gap))
	case !s.doubt.IsZero():
		return time.Until(s.mistaken.Add(ProbeEvery))
	case s.last.After(last):
		last = s.last
	}
	return time.Until(last.Add(ProbeEvery))
}
