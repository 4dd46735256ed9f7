package drain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zedkube/zedkube/pkg/workload/drain/outlook"
	"github.com/zedkube/zedkube/types"
	"golang.org/x/sync/errgroup"
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
	makeUp
	depart
	uncordon
	unkeep
	adopt
	release
	situations
	storage
	conditions
	event
	lookHere // beside the acting ones: of a node that is in no list any more, or is being deleted
)

var verbNames = map[verb]string{
	enter: "enter the drain of", cordon: "cordon", list: "list the pods to evict of", evict: "evict from",
	check: "look whether anything is left on", makeUp: "lock and cordon", depart: "delete", uncordon: "uncordon",
	unkeep: "release the kept cordon of", adopt: "uncordon", release: "give back the drain lock of",
	situations: "look into the pods of", storage: "look into the volumes of",
	lookHere:   "look into the volumes of the former",
	conditions: "set the drain conditions of", event: "report about",
}

// A lane has one call under way: one acts on the cluster, the other asks and
// tells, so that a slow question holds no eviction up.
const (
	acting = iota
	telling
	lanes
)

const (
	// callTimeout bounds a whole call, which may be many requests.
	callTimeout = time.Minute
	parallel    = 8 // evictions at a time
)

// call is a call under way.
type call struct {
	n      int
	verb   verb
	began  time.Time // boot clock
	node   types.Node
	by     types.Cordon
	booted time.Time
	pods   []types.Pod                // of evict and situations
	tie    string                     // UUID of the tie-breaker, "" for none
	policy string                     // of Longhorn for drains, as the controller wants it; "" where it does not say
	rows   []types.Node               // as the table shows them
	alone  bool                       // no other node would take the pods
	stays  map[string]map[string]bool // as of staying
	report types.Event
	cond   types.DrainConditions

	known  map[string]bool // of list and check: UIDs of the pods there were before it began
	cancel context.CancelFunc
	cut    bool // cancelled: whatever it brings belongs to a drain that is over

	// What a leave is judged by.
	leaving bool                // one is wanted, among others
	forGood bool                // the drain is judged as one
	consent *types.LeaveConsent // to what it loses; nil for none
}

// breaksTies reports that n is the cluster's tie-breaker, by its label or by the
// configuration.
func (in call) breaksTies(n types.Node) bool {
	return n.TieBreaker || in.tie != "" && n.UUID == in.tie
}

// outcome is what came of a call.
type outcome struct {
	n         int
	err       error
	pods      []types.Pod // of list and check
	listed    bool
	results   []error // of evict, one per pod
	gates     string  // why enter, release or depart did not go through
	freed     bool    // release gave the lock back
	notOurs   bool    // release found no lock of ours
	weighed   bool    // the volumes were listed, and keep the lock with its holder
	check     checked
	volumes   []types.DrainVolume // in the way, of storage and check
	stored    bool                // they were looked at
	lock      types.DrainLock
	locked    bool // lock was looked at
	wrote     bool // the lock was written
	situation []types.PodSituation

	only   []types.LeaveVolume // that a leave would lose
	looked bool                // these were looked for
	ended  bool                // depart found that the cluster ends with this node, as was consented to
}

func (c *Component) busy(lane int) bool { return c.running[lane] != nil }

// cancel cuts the call under way short; its outcome still arrives.
func (c *Component) cancel(lane int) {
	if r := c.running[lane]; r != nil {
		r.cut = true
		r.cancel()
	}
}

// begin starts a call beside the steps, under a context that outlives this one.
func (c *Component) begin(ctx context.Context, lane int, in call) {
	last, _ := c.mail[lane].Get(types.Global)
	by, why := c.rec.because()
	ctx, in.cancel = context.WithTimeout(types.Because(context.WithoutCancel(ctx), by, why), callTimeout)
	in.n, in.began = last.n+1, c.now()
	if in.verb == list || in.verb == check {
		in.known = map[string]bool{}
		for _, p := range c.NodePods.All() {
			in.known[p.UID] = true
		}
	}
	for _, n := range c.Nodes.All() {
		n.TieBreaker = in.breaksTies(n)
		in.rows = append(in.rows, n)
	}
	under := in // cancel writes to it while the call reads its own
	c.running[lane] = &under
	cancel := in.cancel
	c.calls.Go(func() {
		defer cancel()
		out := c.carryOut(ctx, in)
		out.n = in.n
		if out.err != nil {
			out.err = fmt.Errorf("%s node %s: %w", verbNames[in.verb], in.node.Name, out.err)
		}
		_ = c.mail[lane].Publish(types.Global, out)
	})
}

// carryOut is the call. It touches nothing of the component but its verbs.
func (c *Component) carryOut(ctx context.Context, in call) (out outcome) {
	name := in.node.Name
	switch in.verb {
	case enter:
		out.err = c.enter(ctx, in, &out)
	case cordon:
		out.err = c.Kube.Cordon(ctx, name, in.by)
	case makeUp:
		out.err = c.makeUp(ctx, in, &out)
	case uncordon:
		out.err = c.Kube.Uncordon(ctx, name)
	case unkeep:
		out.err = c.Kube.Unkeep(ctx, name)
	case adopt:
		out.err = c.Kube.UncordonLegacy(ctx, name, in.booted)
	case release:
		out.err = c.release(ctx, in, &out)
	case depart:
		out.err = c.depart(ctx, in, &out)
	case lookHere:
		out.err = c.lookAtVolumes(ctx, in, &out)
	case list:
		out.pods, out.err = c.Kube.PodsToEvict(ctx, name)
		out.listed = out.err == nil
	case evict:
		out.results = c.evictAll(ctx, in.pods)
	case check:
		out.err = c.checkAll(ctx, in, &out)
	case situations:
		out.situation, out.err = c.Kube.Situations(ctx, name, in.pods)
	case storage:
		var s types.Storage
		s, out.err = c.storage(ctx, in)
		if out.err == nil {
			out.volumes, out.stored = in.inTheWay(s, outlook.ReadyNodes(in.rows), &out), true
		}
	case conditions:
		out.err = c.Kube.SetDrainConditions(ctx, name, in.cond)
	case event:
		out.err = c.Kube.Event(ctx, in.report)
	}
	return out
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

// conflict turns "somebody else was faster" into something to wait for.
func conflict(err error, out *outcome) error {
	if errors.Is(err, types.ErrConflict) {
		out.gates = "the drain lock was changed by another node a moment ago"
		return nil
	}
	return err
}
