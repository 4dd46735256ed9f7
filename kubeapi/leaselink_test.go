package kubeapi

import (
	"encoding/json"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/kubetest"
)

// link is the way of one node to the server, with all that may befall it.
type link struct {
	server *leaseServer
	base   *fakeAPI

	mu       sync.Mutex
	cut      bool          // nothing gets through
	stuck    bool          // nothing that concerns Leases does
	deaf     bool          // writes are made, their answers are lost
	late     time.Duration // requests take so long to arrive
	slow     time.Duration // answers take so long
	blind    bool          // watches of Leases are refused
	ahead    time.Duration // the node's clock is
	lie      any           // the answer to all about one Lease, which changes nothing
	requests map[string]int
}

func (l *link) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// heal is called with mu held.
func (l *link) heal() {
	l.cut, l.stuck, l.deaf, l.blind, l.late, l.slow, l.lie = false, false, false, false, 0, 0, nil
}

// asked counts one kind of request: method and the last part of the path.
func (l *link) asked(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requests[what]
}

func (l *link) count() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, of := range l.requests {
		n += of
	}
	return n
}

func (l *link) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	watches, ofLeases := isWatch(r), strings.Contains(r.URL.Path, "/leases")
	l.mu.Lock()
	if l.requests == nil {
		l.requests = map[string]int{}
	}
	l.requests[r.Method+" "+path.Base(r.URL.Path)]++
	now := &link{cut: l.cut, stuck: l.stuck, deaf: l.deaf, late: l.late, slow: l.slow, blind: l.blind, lie: l.lie, ahead: l.ahead}
	l.mu.Unlock()
	switch {
	case now.cut || now.stuck && ofLeases:
		hang(w, r)
	case !ofLeases:
		l.base.ServeHTTP(w, r)
	case now.blind && (watches || strings.HasSuffix(r.URL.Path, "/leases") && r.Method == http.MethodGet):
		reply(w, 403, failure(403, metav1.StatusReasonForbidden))
	case watches:
		l.watch(w, r)
	case now.lie != nil && !strings.HasSuffix(r.URL.Path, "/leases"):
		reply(w, 200, now.lie)
	default:
		l.answer(w, r, now)
	}
}

func (l *link) answer(w http.ResponseWriter, r *http.Request, now *link) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	time.Sleep(now.late) // a request on its way is not called back
	code, answer := l.server.serve(r, body, now.ahead)
	if now.deaf && r.Method != http.MethodGet {
		hang(w, r)
		return
	}
	select {
	case <-time.After(now.slow):
		reply(w, code, answer)
	case <-r.Context().Done():
	}
}

func (l *link) watch(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		l.base.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	last, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	long, _ := time.ParseDuration(r.URL.Query().Get("timeoutSeconds") + "s")
	ended := time.After(long)
	l.server.mu.Lock()
	restored := l.server.restored
	l.server.mu.Unlock()
	for {
		l.server.mu.Lock()
		if l.server.restored != restored {
			l.server.mu.Unlock()
			gone := map[string]any{"type": "ERROR", "object": failure(410, metav1.StatusReasonExpired)}
			_ = json.NewEncoder(w).Encode(gone) // what follows is a list, as where the connection is cut
			return
		}
		i := slices.IndexFunc(l.server.events, func(e leaseEvent) bool { return e.version > last })
		changed := l.server.changed
		var next leaseEvent
		if i >= 0 {
			next = l.server.events[i]
		}
		l.server.mu.Unlock()
		var through bool
		l.set(func() { through = !l.cut && !l.stuck })
		switch {
		case i < 0:
			select {
			case <-changed:
			case <-ended:
				return
			case <-r.Context().Done():
				return
			}
		case !through:
			select {
			case <-time.After(50 * time.Millisecond):
			case <-r.Context().Done():
				return
			}
		default:
			if json.NewEncoder(w).Encode(next) != nil {
				return
			}
			last = next.version
		}
	}
}

// seat is one node: a client behind its own link, which is prepared first.
func seat(t *testing.T, s *leaseServer, prepare ...func(*link)) (*Client, *link, *tables) {
	t.Helper()
	c, tb := newTestClient(t)
	l := &link{server: s, base: someCluster()}
	for _, p := range prepare {
		p(l)
	}
	end := startInMemory(t, c, &kubetest.InMemory{Handler: l})
	t.Cleanup(func() { end(); time.Sleep(15 * time.Second) }) // until what was late has arrived
	return c, l, tb
}
