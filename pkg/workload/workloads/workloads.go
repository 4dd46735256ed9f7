// Package workloads disables the workloads of the whole cluster, for maintenance of the site,
// and enables them again as they were (docs/wire.md, "Disabled workloads").
//
//	reads:  WorkloadsRequest, DisabledWorkloads, EdgeNodeInfo, nodes, app pods, virtual machines, replica sets, the API's health
//	writes: WorkloadsStatus
//	acts:   makes and deletes the object that disables them; under the repair lease: cordons nodes, scales replica
//	        sets to 0 and halts virtual machines, and takes that back
package workloads

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	// period is only a safety net: everything that counts rings.
	period = time.Minute
	// lookTimeout bounds a look at the volumes.
	lookTimeout = 30 * time.Second
	// actTimeout bounds a task: there may be hundreds of sets.
	actTimeout = 2 * time.Minute
	// watchLag is how far the table may be behind what the API server answers.
	watchLag = 2 * time.Second
	// pause is how long nothing is tried after a task that failed.
	pause = 5 * time.Second
	// longestReason bounds a text that goes into the cluster.
	longestReason = 300
)

// Kube is what the component does to the cluster. Every verb ends when its context does.
type Kube interface {
	// Repair calls do while this node, and no other, holds the repair lease. Its error
	// wraps types.ErrHeld where another node holds it.
	Repair(ctx context.Context, identity string, do func(ctx context.Context) error) error
	// DisabledWorkloads reads the object past all caches, DisableWorkloads makes it unless
	// there is one, EnableWorkloads deletes that one.
	DisabledWorkloads(ctx context.Context) (types.DisabledWorkloads, error)
	DisableWorkloads(ctx context.Context, d types.DisabledWorkloads) error
	EnableWorkloads(ctx context.Context, d types.DisabledWorkloads) error
	// Cordon keeps new pods off the node; UncordonWorkloads undoes only that of this kind.
	Cordon(ctx context.Context, node string, cordon types.Cordon) error
	UncordonWorkloads(ctx context.Context, node string) error
	// ScaleSet and RunMachine change an object of that Version, or fail with an error that
	// wraps types.ErrConflict.
	ScaleSet(ctx context.Context, set types.AppSet, to types.SetScale) error
	RunMachine(ctx context.Context, m types.VirtualMachine, to types.RunState, former *types.FormerRun) error
	// Storage lists the volumes of Longhorn.
	Storage(ctx context.Context, node string) (types.Storage, error)
}

// Component is the workloads of the cluster. Every exported field is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	Request  pubsub.Reader[types.WorkloadsRequest]
	Disabled pubsub.Reader[types.DisabledWorkloads]
	Info     pubsub.Reader[types.EdgeNodeInfo]
	Nodes    pubsub.Reader[types.Node]
	AppPods  pubsub.Reader[types.Pod]
	VMIs     pubsub.Reader[types.VMI]
	Sets     pubsub.Reader[types.AppSet]
	Machines pubsub.Reader[types.VirtualMachine]
	Tables   pubsub.Reader[types.TableStatus]
	API      pubsub.Reader[types.APIStatus]
	Kube     Kube

	Uptime func() time.Duration // since the boot, with the time asleep; no clock that anyone sets

	Status pubsub.Writer[types.WorkloadsStatus]

	memory
	pods    pubsub.Pick[types.Pod] // of the sets that are disabled
	looking loop.Call[volumes]
	working loop.Call[outcome]
	failed  error // of the last task
}

// outcome is what came of a task.
type outcome struct {
	heard  time.Time // of a request that was carried out
	unmade time.Time // of one that certainly was not
	err    error
}

// Run steps until ctx is done and returns after what is under way has ended.
func (c *Component) Run(ctx context.Context) {
	defer c.looking.End()
	defer c.working.End()
	loop.Run(ctx, c.Log, c.Pulse, period, loop.Throttled(c.Step, loop.Sparing), c.Request, c.Disabled, c.Info, c.Nodes, &c.pods, c.VMIs,
		c.Sets, c.Machines, c.Tables, c.API, &c.looking, &c.working)
}

// Step looks once, publishes what changed and begins what is to be done.
func (c *Component) Step(ctx context.Context) error {
	if v, ok := c.looking.Take(); ok {
		c.memory.volumes = v
	}
	if out, ok := c.working.Take(); ok {
		c.finish(out)
	}
	f := c.look()
	return c.apply(ctx, f, decide(f))
}

func (c *Component) finish(out outcome) {
	c.failed, c.rest, c.unmade = nil, 0, out.unmade
	if !out.heard.IsZero() {
		c.heard = out.heard
	}
	if out.err != nil {
		c.rest = c.Uptime() + pause
		if !errors.Is(out.err, types.ErrHeld) && !errors.Is(out.err, types.ErrConflict) {
			c.failed = out.err
		}
	}
}

func (c *Component) look() facts {
	f := facts{now: time.Now().Round(0), uptime: c.Uptime(), memory: c.memory, working: c.working.Busy()}
	if c.failed != nil {
		f.failed = c.failed.Error()
	}
	f.last, _ = c.Status.Get(types.Global)
	f.request, _ = c.Request.Get(types.Global)
	// How complete the tables are is read before the tables: they can only be more complete.
	f.unseen = c.unseen()
	for _, d := range c.Disabled.All() {
		f.disabled = d
	}
	info, _ := c.Info.Get(types.Global)
	f.nodes, f.sets, f.machines = c.Nodes.All(), c.Sets.All(), c.Machines.All()
	f.self, _ = types.OwnNode(f.nodes, info)
	if f.self.Name == "" && f.unseen == "" {
		f.unseen = "the cluster has no Node for this device"
	}
	f.copies, f.paused = c.copies(f.sets), c.paused(f.sets)
	return f
}

// unseen says why the cluster is not fully known, "" where it is.
func (c *Component) unseen() string {
	api, known := c.API.Get(types.Global)
	if !known || !api.Answers() || !api.Synced || !api.Apps {
		return "the API server does not answer, or not with everything"
	}
	for _, table := range []string{types.TableMachines, types.TableDisabled} {
		if s, _ := c.Tables.Get(table); !s.Complete {
			return "the table of " + table + " is not complete: " + s.Why
		}
	}
	return ""
}

// copies are the pods and the instances that there still are of each set that is disabled or
// being deleted, by its UID. EVE deletes a set in the background: that is gone before they are.
func (c *Component) copies(sets map[string]types.AppSet) map[string][]running {
	stops := map[string]bool{} // false for the other sets
	for _, s := range sets {
		stops[s.UID] = s.Former != nil || !s.Deleted.IsZero() && !s.Owned
	}
	counts := func(kind string, owner types.Owner, ends bool) bool {
		stop, there := stops[owner.UID]
		return stop || !there && ends && owner.Kind == kind
	}
	of := map[string][]running{}
	for _, p := range c.pods.Of(c.AppPods, stops, func(p types.Pod) bool { return counts(types.KindReplicaSet, p.Owner, p.Terminating()) }) {
		if p.Phase != types.PodSucceeded && p.Phase != types.PodFailed {
			of[p.Owner.UID] = append(of[p.Owner.UID], running{"pod " + p.Name, p.Owner.Name, p.NodeName, p.Terminating(), false, p.Claims})
		}
	}
	for _, v := range c.VMIs.All() {
		if ends := !v.Deleted.IsZero(); counts(types.KindVMIReplicaSet, v.Owner, ends) {
			of[v.Owner.UID] = append(of[v.Owner.UID], running{"virtual machine instance " + v.Name, v.Owner.Name, v.NodeName, ends, v.Phase.IsFinal(), v.Claims})
		}
	}
	return of
}

// paused counts the instances of each set that is paused and not disabled, by its UID.
func (c *Component) paused(sets map[string]types.AppSet) map[string]int32 {
	has := map[string]int32{}
	for _, s := range sets {
		if s.Paused && s.Former == nil {
			has[s.UID] = 0
		}
	}
	if len(has) == 0 {
		return nil
	}
	for _, v := range c.VMIs.All() {
		if _, of := has[v.Owner.UID]; of && v.Deleted.IsZero() && !v.Phase.IsFinal() {
			has[v.Owner.UID]++
		}
	}
	return has
}

func (c *Component) apply(ctx context.Context, f facts, a action) error {
	if c.memory = a.memory; a.over {
		c.failed = nil
	}
	if err := c.Status.Publish(types.Global, a.status); err != nil {
		c.unmade = f.unmade // the status that says so was not written
		return fmt.Errorf("publish status of workloads: %w", err)
	}
	if a.status.Phase != f.last.Phase {
		c.Log.WithFields(logrus.Fields{"phase": a.status.Phase, "reason": a.status.Reason}).Info("workloads of the cluster changed")
	}
	if a.look {
		c.looking.Begin(ctx, lookTimeout, c.readVolumes)
	}
	switch {
	case a.ask:
		c.working.Begin(ctx, actTimeout, func(ctx context.Context) outcome { return c.ask(ctx, f, a.retry) })
	case len(a.changes) > 0:
		c.working.Begin(ctx, actTimeout, func(ctx context.Context) outcome {
			return outcome{err: c.Kube.Repair(ctx, f.self.Name, func(ctx context.Context) error { return c.carryOut(ctx, f, a.changes) })}
		})
	}
	return errors.Join(c.failed, loop.Again(a.again))
}

func (c *Component) readVolumes(ctx context.Context) volumes {
	v := volumes{at: c.Uptime()}
	var err error
	if v.storage, err = c.Kube.Storage(ctx, ""); err != nil {
		v.err = err.Error()
	}
	return v
}

// ask writes into the cluster what an operator has asked for here. In a retry, or by a read that was answered
// late, another object than the table shows may have been made after the request.
func (c *Component) ask(ctx context.Context, f facts, retry bool) outcome {
	r := f.request
	reason := phrase.Cut(strings.ToValidUTF8(r.Reason, "?"), longestReason)
	ctx = types.Because(ctx, "OPERATOR", reason)
	var err error
	if r.Disable {
		err = c.Kube.DisableWorkloads(ctx, types.DisabledWorkloads{By: f.self.Name, Reason: reason, Since: f.now.UTC()})
	} else if d, failed := c.Kube.DisabledWorkloads(ctx); failed != nil {
		return outcome{err: failed}
	} else if d.UID != "" && d.UID != f.disabled.UID {
		out := outcome{err: fmt.Errorf("enable workloads: %w", types.ErrConflict)}
		if !retry && c.Uptime() < f.uptime+watchLag {
			out.unmade = r.RequestedAt
		}
		return out
	} else if d.UID != "" {
		err = c.Kube.EnableWorkloads(ctx, d)
	}
	switch {
	case err == nil:
		return outcome{heard: r.RequestedAt}
	case !unsent(err) && (errors.Is(err, types.ErrNoAnswer) || ctx.Err() != nil):
		return outcome{err: fmt.Errorf("it is not known whether the workloads were %s: %w", map[bool]string{true: "disabled", false: "enabled"}[r.Disable], err)}
	case !r.Disable:
		return outcome{err: err} // it is tried again, for the same object alone
	}
	return outcome{unmade: r.RequestedAt, err: err}
}

// unsent reports that a request did not reach the API server.
func unsent(err error) bool {
	var dialed *net.OpError
	return errors.Is(err, types.ErrNoAPI) || errors.As(err, &dialed) && dialed.Op == "dial"
}

// carryOut makes the changes, if what they are for still holds.
func (c *Component) carryOut(ctx context.Context, f facts, changes []change) error {
	d, err := c.Kube.DisabledWorkloads(ctx)
	switch {
	case err != nil:
		return err
	case d.UID != f.disabled.UID:
		return fmt.Errorf("disable or enable workloads: %w", types.ErrConflict)
	}
	why := "workloads are enabled"
	if d.UID != "" {
		why = strings.TrimSuffix("workloads are disabled: "+d.Reason, ": ")
	}
	ctx = types.Because(ctx, "OPERATOR", why)
	var errs []error
	for _, ch := range changes {
		switch {
		case ch.cordon != "":
			err = c.Kube.Cordon(ctx, ch.cordon, types.Cordon{Kind: types.CordonWorkloads, Since: d.Since, Reason: why})
		case ch.uncordon != "":
			err = c.Kube.UncordonWorkloads(ctx, ch.uncordon)
		case ch.set != nil:
			err = c.Kube.ScaleSet(ctx, *ch.set, ch.scale)
		default:
			err = c.Kube.RunMachine(ctx, *ch.machine, ch.run, ch.former)
		}
		if errs = append(errs, err); ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}
