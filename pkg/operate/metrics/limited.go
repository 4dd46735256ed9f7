package metrics

import (
	"net/http"
	"time"

	"github.com/zedkube/zedkube/pkg/base/whole"
)

// limited lets a few answers be made at once, and the others in the order in which
// they were asked for. Each is made whole before it is sent: who takes it slowly
// keeps nobody waiting.
type limited struct {
	places chan struct{}
	next   http.Handler
}

// ServeHTTP implements http.Handler.
func (t *limited) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	late := time.NewTimer(turnTimeout)
	defer late.Stop()
	select {
	case t.places <- struct{}{}:
	case <-late.C:
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many requests for the metrics: ask again soon", http.StatusServiceUnavailable)
		return
	case <-r.Context().Done():
		return
	}
	t.make(r).Send(w)
}

func (t *limited) make(r *http.Request) *whole.Answer {
	defer func() { <-t.places }()
	return whole.Make(t.next, r)
}
