// Package kubetest is a cluster in memory for the stories of components: it
// obeys their verbs, shows the result in the tables they read, and fails when
// it is told to. It knows types only, so that a test of a component needs no
// Kubernetes library. All its waiting is done with timers, so it lives happily
// in testing/synctest.
package kubetest

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/zedkube/zedkube/types"
)

// Table is what the cluster shows itself in; *pubsub.Table satisfies it.
type Table[T any] interface {
	Get(key string) (T, bool)
	All() map[string]T
	Publish(key string, v T) error
	Unpublish(key string) error
}

// Fault is how the API server fails.
type Fault int

// The faults: a refused connection fails at once, a hung one when the caller
// gives up.
const (
	None Fault = iota
	Refused
	Hung
)

// Call is one verb the cluster was asked for, whether it succeeded or not.
type Call struct {
	At     time.Time
	Verb   string // cordon, uncordon, list, evict, elect
	Object string // node name, or the pod's namespace/name
}

// Cluster is the fake. Fill the tables before the first call.
type Cluster struct {
	Nodes Table[types.Node]
	Pods  Table[types.Pod] // the pods of every node a test cares for
	API   Table[types.APIStatus]
	// Grace is how long a pod terminates before it is gone.
	Grace time.Duration

	mu      sync.Mutex
	fault   Fault
	latency time.Duration
	fails   map[string]error
	budgets map[string]bool
	calls   []Call

	lease lease
}

// SetFault makes the API server fail in every verb from now on, or work
// again, and says so in the API table.
func (c *Cluster) SetFault(f Fault) {
	c.mu.Lock()
	c.fault = f
	c.mu.Unlock()
	status := types.APIStatus{Synced: true}
	if f != None {
		status = types.APIStatus{SilentSince: time.Now(), Reason: "fault of the test", Synced: true}
	}
	_ = c.API.Publish(types.Global, status)
}

// SetLatency makes every verb take d; the API table goes on saying that the
// server answers: slow is not dead.
func (c *Cluster) SetLatency(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latency = d
}

// FailVerb makes verb answer err; nil lets it work again.
func (c *Cluster) FailVerb(verb string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fails == nil {
		c.fails = map[string]error{}
	}
	c.fails[verb] = err
}

// Block makes a disruption budget refuse the eviction of the pod under key, or
// allow it again.
func (c *Cluster) Block(key string, refuse bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.budgets == nil {
		c.budgets = map[string]bool{}
	}
	c.budgets[key] = refuse
}

// Calls returns the calls of one verb so far, in order; all of them for "".
func (c *Cluster) Calls(verb string) []Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Call
	for _, call := range c.calls {
		if verb == "" || call.Verb == verb {
			out = append(out, call)
		}
	}
	return out
}

// enter notes the call, takes its time and fails as the test wishes.
func (c *Cluster) enter(ctx context.Context, verb, object string) error {
	c.mu.Lock()
	c.calls = append(c.calls, Call{At: time.Now(), Verb: verb, Object: object})
	fault, latency, fail := c.fault, c.latency, c.fails[verb]
	c.mu.Unlock()
	switch fault {
	case Refused:
		return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case Hung:
		<-ctx.Done()
		return ctx.Err()
	}
	if latency > 0 {
		timer := time.NewTimer(latency)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return fail
}

func (c *Cluster) node(name string) (types.Node, error) {
	n, ok := c.Nodes.Get(name)
	if !ok {
		return n, fmt.Errorf("get node %s: not found", name)
	}
	return n, nil
}
