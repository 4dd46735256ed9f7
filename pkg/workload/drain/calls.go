package drain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zedkube/zedkube/pkg/workload/drain/outlook"
	"github.com/zedkube/zedkube/types"
)

// verb is a kind of call to Kubernetes.
type verb int

const (
	none verb = iota
	enter
	cordon
	list
	evict
	check
	cordonAfterDeadAPI
	takeLock
	deleteNode
	uncordon
	unkeep
	uncordonLegacy
	release
	situations
	storage
	conditions
	event
	checkLeave // beside the acting ones: of a node that is in no list any more, or is being deleted
)

var verbNames = map[verb]string{
	enter: "start the drain of", cordon: "cordon", list: "list the pods to evict of", evict: "evict from",
	check: "check whether anything is left on", cordonAfterDeadAPI: "lock and cordon", takeLock: "take the drain lock for", deleteNode: "delete", uncordon: "uncordon",
	unkeep: "release the kept cordon of", uncordonLegacy: "uncordon", release: "release the drain lock of",
	situations: "inspect the pods of", storage: "inspect the volumes of",
	checkLeave: "inspect the volumes of the former",
	conditions: "set the drain conditions of", event: "write an Event about",
}

// A lane has one call under way: one acts on the cluster, the other asks and
// tells, so that a slow question holds no eviction up.
const (
	acting = iota
	reporting
	lanes
)

const (
	// callTimeout bounds a whole call, which may be many requests.
	callTimeout = time.Minute
	parallel    = 8 // evictions at a time
)

// runningCall is a call under way.
type runningCall struct {
	call
	cut bool // cancelled: whatever it brings belongs to a drain that is over
}

// call is what a call is made with.
type call struct {
	observed  // by the step that began it
	verb      verb
	by        types.Cordon
	pods      []types.Pod                // of evict and situations
	alone     bool                       // no other node would take the pods
	stays     map[string]map[string]bool // as of staying
	report    types.Event
	cond      types.DrainConditions
	leaving   bool              // a leave is wanted, among others
	forGood   bool              // the drain is judged as one
	completed map[string]string // as of updateUnlocked
}

// answer is a call that has ended.
type answer struct {
	done runningCall
	out  outcome
}

// outcome is what came of a call.
type outcome struct {
	reading
	err       error
	results   []error // of evict, one per pod
	gates     string  // why enter, release or deleteNode did not go through
	notOurs   bool    // release found no lock of ours
	weighed   bool    // the volumes were listed, and keep the lock with its holder
	check     checked
	volumes   []types.DrainVolume // in the way, of storage and check
	stored    bool                // they were looked at
	situation []types.PodSituation

	only   []types.LeaveVolume // that a leave would lose
	looked bool                // these were looked for
	ended  bool                // deleteNode found that the cluster ends with this node, as was consented to
}

// answers are the calls that have ended since they were last asked for.
func (c *Component) answers() (all []answer) {
	for lane := range lanes {
		if out, ok := c.calls[lane].Take(); ok {
			all = append(all, answer{*c.running[lane], out})
			c.running[lane] = nil
		}
	}
	return all
}

func (c *Component) busy(lane int) bool { return c.running[lane] != nil }

// cancel cuts the call under way short; its outcome still arrives.
func (c *Component) cancel(lane int) {
	if r := c.running[lane]; r != nil {
		r.cut = true
		c.calls[lane].Cancel()
	}
}

// begin starts a call beside the steps.
func (c *Component) begin(ctx context.Context, f facts, lane int, in call) {
	by, why := c.rec.because()
	in.observed, in.answers = f.observed, nil // which would keep the calls before
	if !f.known {
		in.node = types.Node{Name: f.self}
	}
	in.leaving, in.forGood = f.requests[byLeave].active, in.verb == deleteNode || f.onlyLeaves()
	in.completed = f.completed
	c.running[lane] = &runningCall{call: in}
	c.calls[lane].Begin(types.Because(ctx, by, why), callTimeout, func(ctx context.Context) outcome {
		out := c.carryOut(ctx, in)
		if out.err != nil {
			out.err = fmt.Errorf("%s node %s: %w", verbNames[in.verb], in.node.Name, out.err)
		}
		return out
	})
}

// carryOut is the call. It touches nothing of the component but its verbs.
func (c *Component) carryOut(ctx context.Context, in call) (out outcome) {
	name := in.node.Name
	switch in.verb {
	case cordon:
		out.err = c.Kube.Cordon(ctx, name, in.by)
	case uncordon:
		out.err = c.Kube.Uncordon(ctx, name)
	case unkeep:
		out.err = c.Kube.Unkeep(ctx, name)
	case uncordonLegacy:
		out.err = c.Kube.UncordonLegacy(ctx, name, in.booted)
	case evict:
		out.results = c.evictAll(ctx, in.pods)
	case situations:
		out.situation, out.err = c.Kube.Situations(ctx, name, in.pods)
	case storage:
		var s types.Storage
		s, out.err = c.storage(ctx, in)
		if out.err == nil {
			out.volumes, out.stored = in.blockingVolumes(s, outlook.ReadyNodes(in.nodes), &out), true
		}
	case conditions:
		out.err = c.Kube.SetDrainConditions(ctx, name, in.cond)
	case event:
		out.err = c.Kube.Event(ctx, in.report)
	default:
		out = in.follow(func(n next, r *reading) error { return c.request(ctx, in, n, r) })
	}
	return out
}

// follow makes the requests that the call's rule wants, one after the other, and
// returns what came of them.
func (in call) follow(make func(next, *reading) error) outcome {
	var r reading
	for {
		r.at = time.Now()
		n := rules[in.verb](in, r)
		if n.do == nothing || r.failed != nil && !n.regardless {
			return r.outcomeOf(n)
		}
		switch err := make(n, &r); {
		case err == nil:
			r.done = append(r.done, n.do)
		case errors.Is(err, types.ErrConflict) && (n.do == writeLock || n.do == freeLock):
			r.conflict = err
		default:
			r.failed = errors.Join(r.failed, err)
			if n.regardless {
				return r.outcomeOf(n)
			}
		}
	}
}

// outcomeOf is what came of a call whose rule wanted n last.
func (r reading) outcomeOf(n next) outcome {
	out := n.out
	out.reading = r
	if n.do != nothing {
		out.err = r.failed
	}
	return out
}

// request makes one of them.
func (c *Component) request(ctx context.Context, in call, n next, r *reading) (err error) {
	name := in.node.Name
	switch n.do {
	case readLock:
		r.lock, err = c.Kube.DrainLock(ctx)
	case readNodes:
		r.nodes, err = c.freshNodes(ctx, in)
	case readStorage:
		r.storage, err = c.storage(ctx, in)
	case readBriefly: // what cannot be looked at is not waited for, since Longhorn works badly where the peers are down
		ctx, cancel := context.WithTimeout(ctx, loneLook)
		defer cancel()
		if s, err := c.storage(ctx, in); err == nil {
			r.brief = s
		}
	case readPods:
		r.pods, err = c.Kube.PodsToEvict(ctx, name)
	case readUsers:
		r.users, err = c.Kube.VolumeUsers(ctx, name)
	case writeLock:
		var set types.DrainLock
		if set, err = c.Kube.SetDrainLock(ctx, n.lock); err == nil {
			r.lock = set
		}
	case freeLock:
		if err = c.Kube.FreeDrainLock(ctx, n.lock); err == nil {
			r.lock = types.DrainLock{}
		}
	case cordonNode:
		err = c.Kube.Cordon(ctx, name, in.by)
	case deleteOwnNode:
		err = c.Kube.DeleteNode(ctx, in.node)
	}
	return err
}

// storage lists the volumes. What the controller says of Longhorn's drain policy
// goes before what Longhorn has been told so far.
func (c *Component) storage(ctx context.Context, in call) (types.Storage, error) {
	s, err := c.Kube.Storage(ctx, in.node.Name)
	s.Policy = cmp.Or(in.policy, s.Policy)
	return s, err
}

// errNoTime is the result of an eviction for which the call's minute was too
// short. It says nothing about the pod: one that hangs ends sooner by itself.
var errNoTime = errors.New("no time was left")

// evictAll evicts in parallel within a bound; each pod has a result of its own.
func (c *Component) evictAll(ctx context.Context, pods []types.Pod) []error {
	results := make([]error, len(pods))
	var g errgroup.Group
	g.SetLimit(parallel)
	for i, p := range pods {
		g.Go(func() error {
			err := ctx.Err()
			if err == nil {
				err = c.Kube.Evict(ctx, p)
			}
			if err != nil && ctx.Err() != nil {
				err = errNoTime
			}
			results[i] = err
			return nil
		})
	}
	_ = g.Wait()
	return results
}

const (
	// fresh is how recently a node's kubelet has to have renewed its Lease.
	fresh = 20 * time.Second
	// renewsWithin is how long to look for a renewal that no clock confirms: a
	// kubelet renews its Lease every ten seconds.
	renewsWithin = 12 * time.Second
	lookEvery    = 2 * time.Second
	// clocksDiffer is how far two clocks that are in step may differ.
	clocksDiffer = 2 * time.Second
)

// renewal is the last renewal of a node's Lease that was seen.
type renewal struct {
	at     time.Time     // by that node's clock
	after  time.Duration // it came after this, by the boot clock; 0 for unknown
	looked time.Duration // by the boot clock
	ahead  time.Duration // how far in the future a renewal was at most, by our clock
}

var errOtherCluster = errors.New("this node is not in the list of nodes: the list is of another cluster, or the Node has just been deleted")

// freshNodes lists the nodes; one whose kubelet has not renewed its Lease
// within fresh is not Ready, whatever its condition says. The clocks of two
// devices need not agree: where they do not confirm a renewal, one is waited
// for, so that it does not matter how long ago the last look was. A list without
// the own node is an error, but for a look that is made because it is missing.
func (c *Component) freshNodes(ctx context.Context, in call) ([]types.Node, error) {
	begin := c.now()
	for {
		nodes, err := c.Kube.FreshNodes(ctx)
		if err != nil {
			return nil, err
		}
		if _, ok := nodeNamed(nodes, in.node.Name); !ok && (in.verb != checkLeave || len(nodes) == 0) {
			return nil, errOtherCluster
		}
		// To make up for a lost drain is urgent: its cordon comes after this look.
		if c.judgeReady(nodes, in) == 0 || in.verb == cordonAfterDeadAPI || c.now()-begin >= renewsWithin {
			return nodes, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}

// judgeReady makes Ready Unknown where no recent renewal confirms it, and counts
// those nodes.
func (c *Component) judgeReady(nodes []types.Node, in call) (doubted int) {
	now := c.now()
	if c.renewals == nil {
		c.renewals = map[string]renewal{}
	}
	for i := range nodes {
		n := &nodes[i]
		n.TieBreaker = n.BreaksTies(in.tie)
		was := c.renewals[n.Name]
		if !was.at.Equal(n.RenewedAt) {
			was.at, was.after = n.RenewedAt, was.looked
		}
		was.looked, was.ahead = now, max(was.ahead, time.Until(n.RenewedAt))
		c.renewals[n.Name] = was
		if n.Ready == types.ConditionTrue && !c.renewed(n.Name, was, now) {
			n.Ready = types.ConditionUnknown
			doubted++
		}
	}
	return doubted
}

// renewed reports that a node's last renewal is recent: it was seen to come, or
// it is by the clocks. Of a clock that is ahead a renewal looks younger than it
// is, and one that is further ahead than anybody knows proves nothing.
func (c *Component) renewed(node string, r renewal, now time.Duration) bool {
	if r.after != 0 && now-r.after <= fresh {
		return true
	}
	clock, _ := c.Clocks.Get(node)
	ahead := max(0, clock.Ahead)
	return r.ahead <= ahead+clocksDiffer && time.Since(r.at)+ahead <= fresh
}
