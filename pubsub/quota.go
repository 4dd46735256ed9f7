package pubsub

import (
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/time/rate"
)

const (
	// maxLogged is how many lines of the log one publisher may cause at once.
	maxLogged = 20
	// logEvery is how often it may cause one more.
	logEvery = time.Minute
)

// quota bounds what is logged because of one publisher, in all its topics.
type quota struct {
	mu          sync.Mutex
	limit       *rate.Limiter
	unpublished int // lines that were left out since the last one
}

func newQuota() *quota {
	return &quota{limit: rate.NewLimiter(rate.Every(logEvery), maxLogged)}
}

// take returns the logger for one more line, or false where there were too many.
// The first line that is left out is announced, and the next one that is not tells
// how many were.
func (q *quota) take(log logrus.FieldLogger) (logrus.FieldLogger, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.limit.Allow() {
		if q.unpublished++; q.unpublished == 1 {
			log.Warn("its publisher causes too many log lines: only one a minute is logged; zedkube_pubsub_refused_total counts invalid values")
		}
		return nil, false
	}
	if q.unpublished > 0 {
		log = log.WithField("left_out", q.unpublished)
		q.unpublished = 0
	}
	return log, true
}
