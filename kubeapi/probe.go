package kubeapi

import (
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// probeEvery is how long the server may go unasked. With answerWithin it
	// bounds the time in which a hung server is found out.
	probeEvery = 10 * time.Second
	// probeUnwell is the least time between probes of a silent server; a
	// third more at random keeps the nodes of a cluster out of step. Short,
	// because the tables are to be right within five seconds of its return.
	probeUnwell = 3 * time.Second
)

// probes asks the server for a sign of life when nothing else did for a while.
// A hung probe does not keep the next one from being sent: that one may find
// a way that is open again.
func (conn *connection) probes(s *silence) {
	var last time.Time
	gap := probeUnwell
	for {
		timer := time.NewTimer(untilProbe(s, last, gap))
		select {
		case <-conn.ctx.Done():
			timer.Stop()
			return
		case <-s.wake:
			timer.Stop()
			continue
		case <-timer.C:
		}
		if untilProbe(s, last, gap) > 0 { // an answer came meanwhile
			continue
		}
		last, gap = time.Now(), probeUnwell+rand.N(probeUnwell/3)
		conn.work.Go(func() { conn.probe(s) })
	}
}

// untilProbe is how long the next probe has to wait after the last one; gap is
// its distance while the server is not well.
func untilProbe(s *silence, last time.Time, gap time.Duration) time.Duration {
	answered, unwell := s.state()
	if unwell {
		return time.Until(last.Add(gap))
	}
	if answered.After(last) {
		last = answered
	}
	return time.Until(last.Add(probeEvery))
}

func (conn *connection) probe(s *silence) {
	start := time.Now()
	err := conn.prober.CoreV1().RESTClient().Get().Resource("namespaces").Name(Namespace).
		MaxRetries(0).Do(conn.ctx).Error()
	if conn.ctx.Err() == nil {
		s.probed(start, apierrors.IsTooManyRequests(err))
	}
}
