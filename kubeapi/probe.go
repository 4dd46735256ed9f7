package kubeapi

import (
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// probeEvery is how long the server may go unasked. With answerWithin it
	// bounds the time in which a hung server is found out.
	probeEvery = 10 * time.Second
	// probeUnwell is the least time between probes of a silent server; a
	// fifth more at random keeps the nodes of a cluster out of step. Short,
	// because the tables are to be right within five seconds of its return.
	probeUnwell = 3 * time.Second
	// inVain is how long a probe must have waited to be believed alone. One that
	// fails sooner costs nothing to repeat.
	inVain = 2 * time.Second
)

// probes asks the server for a sign of life when nothing else did for a while,
// and at once when it is in doubt. A hung probe does not keep the next one from
// being sent: that one may find a way that is open again.
func (conn *connection) probes(s *silence) {
	var last time.Time
	gap := probeUnwell
	pulse := conn.pulses[loopProbes]
	for {
		pulse.Begin()
		timer := time.NewTimer(s.due(last, gap))
		pulse.End(probeEvery, false)
		select {
		case <-conn.ctx.Done():
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
		conn.work.Go(func() { conn.probe(s, settles) })
	}
}

func (conn *connection) probe(s *silence, settles bool) {
	start := time.Now()
	result := conn.prober.CoreV1().RESTClient().Get().Resource("namespaces").Name(Namespace).
		MaxRetries(0).Do(conn.ctx)
	err := result.Error()
	if err != nil && conn.ctx.Err() == nil {
		s.probed(start, settles)
	}
	var ns corev1.Namespace
	if err == nil && result.Into(&ns) == nil { // what it is does not matter to a sign of life
		conn.told.probed(ns)
	}
}
