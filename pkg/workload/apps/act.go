package apps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	// actTimeout bounds a whole task: many applications are taken from one node.
	actTimeout = 2 * time.Minute
	// heldPause is how long nothing is tried while another node repairs.
	heldPause = 3 * time.Second
	// minPause is how long an application is left alone after a try, whatever came
	// of it; after failures it grows up to maxPause.
	minPause = 5 * time.Second
	maxPause = 2 * time.Minute
	// conflictPause is for a table to catch up with someone who was faster.
	conflictPause = time.Second
	// mostSteps is how many steps of each application are kept for people.
	mostSteps = 12
)

// errLate is why a task about a lost node ends undone: between two looks at the witnesses so long has passed
// that what one has published since may be old.
var errLate = errors.New("the list of nodes came more than " + types.WitnessFresh.String() + " after the last look at what the witnesses publish, so it proves nothing")

// task is what is done in one go under the repair lease.
type task struct {
	act     types.RepairAct
	self    types.Node
	lost    types.Node // for a failover, and to fence or unfence
	deleted bool       // its Node is: lost is what is remembered
	targets []target
	others  []podClaims     // what a fence of the lost node concerns
	known   []types.Pod     // what the table has, for an unfence
	words   types.Witnesses // at the decision
	heard   time.Duration   // uptime when they were
	renewed time.Time       // when the kubelet of the lost node did, by its clock
}

type outcome struct {
	*worker
	err error // of the whole
}

// begin acts beside the steps, while no other node repairs any application.
func (c *Component) begin(ctx context.Context, t task) {
	w := &worker{Kube: c.Kube, task: t, hears: &c.witnesses, now: time.Now, uptime: c.Uptime, steps: map[string][]types.RepairStep{}, fails: map[string]error{}}
	if c.working.Begin(ctx, actTimeout, func(ctx context.Context) outcome { return outcome{w, c.Kube.Repair(ctx, t.self.Name, w.do)} }) {
		c.mem.acting = &t
	}
}

// finish takes in what came of a task, and says when its applications are next.
func (c *Component) finish(out outcome) {
	c.mem.acting = nil
	rest := map[string]pause{}
	for key, p := range c.mem.rest {
		if c.Uptime()-p.until < maxPause {
			rest[key] = p
		}
	}
	c.mem.rest = rest
	delete(rest, held)
	if !errors.Is(out.err, types.ErrHeld) && !errors.Is(out.err, errLate) {
		delete(rest, late(out.lost))
	}
	switch {
	case errors.Is(out.err, types.ErrHeld):
		rest[""] = pause{until: c.Uptime() + heldPause}
		rest[held] = pause{until: c.Uptime() + heldPause, why: out.err.Error()}
		return
	case errors.Is(out.err, errLate):
		rest[""] = pause{until: c.Uptime() + heldPause}
		if len(out.targets) == 0 {
			c.tellLate(out)
		}
	case out.err != nil:
		key := ""
		if len(out.targets) == 0 {
			key = out.lost.UID
		}
		c.complain(key, out.act, out.err, true, c.Log.WithFields(logrus.Fields{"act": out.act, "node": out.lost.Name}))
	case len(out.targets) == 0: // the table of nodes may not show the fence, or its end, for a while
		rest[out.lost.UID] = pause{until: c.Uptime() + minPause}
	}
	for i, t := range out.targets {
		log := c.Log.WithFields(logrus.Fields{"app": t.key, "act": out.act})
		if i >= out.tried && out.err != nil { // which is logged above, once for all
			c.complain(t.key, out.act, out.err, false, nil)
			continue
		}
		c.complain(t.key, out.act, out.fails[t.key], len(out.steps[t.key]) > 0, log)
		c.keep(t.key, out.steps[t.key])
		for _, s := range out.steps[t.key] {
			c.Log.WithFields(logrus.Fields{"app": t.key, "act": s.Act}).Info(s.Step)
		}
	}
}

// tellLate notes that nothing was done about a lost node because a look came late, which is judged again as
// if it had not been tried: with a slow API server that may be so again and again.
func (c *Component) tellLate(out outcome) {
	key, why := late(out.lost), out.err.Error()
	if c.mem.rest[key].why == "" {
		c.Log.WithError(out.err).WithFields(logrus.Fields{"act": out.act, "node": out.lost.Name}).Info("the repair is decided again")
	}
	c.mem.rest[key] = pause{until: c.Uptime(), why: why}
}

// late is where it is kept why nothing was done about a lost node: of its next loss that says nothing.
func late(lost types.Node) string { return "late/" + lost.UID + "/" + lost.ReadySince.String() }

// held is where it is kept that another node repaired.
const held = "held"

// complain sets the pause after a try, and logs a failure once, to log if that is not nil. Where
// nothing was left to be done it is others that take their time.
func (c *Component) complain(key string, act types.RepairAct, err error, did bool, log logrus.FieldLogger) {
	last := c.mem.rest[key]
	longer := min(max(2*last.last, minPause), maxPause)
	p := pause{last: minPause}
	switch {
	case errors.Is(err, types.ErrConflict):
		p = pause{last: min(max(2*last.last, conflictPause), minPause), why: err.Error()}
	case err != nil:
		p = pause{last: longer, why: err.Error()}
	case !did && act != last.act: // of the other act it says nothing
		p = pause{last: longer, why: last.why}
	case !did:
		p.last = longer
	}
	if log != nil && p.why != "" && p.why != last.why {
		log.WithError(err).Warn("repair failed")
	}
	p.until, p.act = c.Uptime()+p.last, act
	if c.mem.rest == nil {
		c.mem.rest = map[string]pause{}
	}
	c.mem.rest[key] = p
}

func (c *Component) keep(key string, steps []types.RepairStep) {
	s, ok := c.Repairs.Get(key)
	if !ok || len(steps) == 0 {
		return
	}
	s.Steps = append(append([]types.RepairStep{}, s.Steps...), steps...)
	s.Steps = s.Steps[max(0, len(s.Steps)-mostSteps):]
	if err := c.Repairs.Publish(key, s); err != nil {
		c.Log.WithError(err).WithField("app", key).Error("repair steps cannot be published")
	}
}

// told is what is published of a verdict.
func (f facts) told(a app, v verdict) types.AppRepairStatus {
	old := f.repairs[a.key]
	s := types.AppRepairStatus{
		AppUUID: a.cfg.UUIDandVersion.UUID, Name: a.cfg.DisplayName, Phase: v.phase, Act: cmp.Or(v.shown, v.act), Reason: v.reason,
		Since: f.now, Lost: v.lost.Name, Stuck: a.set.Note.Stuck, Evidence: v.evidence, Steps: old.Steps,
	}
	if v.act == actSettle {
		s.Act = types.ActNone
	}
	if r, ok := f.request(a); ok {
		s.Heard = r.ID
	}
	if p, ok := a.representativePod(f.self.Name); ok {
		s.Node = p.NodeName
	}
	s.Run = f.run(a, old.Run)
	if !f.unseenSince.IsZero() {
		s.BootID, s.Unseen = f.boot, max(f.uptime-f.unseen(a.key), 1)
	}
	if v.shown == "" { // what goes on beside it must not hide what people have to do something about
		s.Reason += f.failed(a, v)
		if f.acts(a.key) && s.Act != types.ActNone {
			s.Phase = types.RepairActs
		}
	}
	if old.Phase == s.Phase && old.Act == s.Act && old.Reason == s.Reason {
		s.Since = old.Since
	}
	return s
}

// failed says why what a verdict wants has not been done yet, "" for nothing. A failover that only lacks a
// fresh look is tried after each of them; they are rare once a loss has lasted long.
func (f facts) failed(a app, v verdict) string {
	lacksLook := v.act == types.ActFailover && v.reason == f.stale()
	over := v.act == actSettle && f.rest[a.key].act != actSettle // it runs, whatever failed before
	if over || v.target == nil && !lacksLook {
		return ""
	}
	why, fence := f.why(a.key), ""
	if v.act == types.ActFailover {
		why = cmp.Or(f.rest[late(v.lost)].why, why)
		if !v.lost.OutOfService && f.rest[v.lost.UID].act == actFence { // not what failed when its fence was removed
			fence = f.why(v.lost.UID)
		}
	}
	switch why = cmp.Or(why, f.why(held)); {
	case why != "":
		return fmt.Sprintf(" The last attempt failed: %s.", why)
	case fence != "":
		return fmt.Sprintf(" The last attempt to fence node %s failed: %s.", v.lost.Name, fence)
	}
	return ""
}

// why is what came of the last try, "" for nothing and where that is so long ago that it was about
// something else: what goes on failing is tried again before.
func (f facts) why(key string) string {
	p := f.rest[key]
	if f.uptime-p.until >= maxPause {
		return ""
	}
	return p.why
}

// run is how the application's pods fare; what they last said while they are not seen.
func (f facts) run(a app, old types.AppRun) types.AppRun {
	if !f.unseenSince.IsZero() {
		return old
	}
	pod, ok := a.representativePod(f.self.Name)
	if !ok {
		if old.Pod != "" || old.Since.IsZero() {
			old = types.AppRun{Since: f.now.UTC()}
		}
		return old
	}
	run := types.AppRun{Pod: pod.Name, Since: pod.Created.UTC()}
	for _, p := range a.pods {
		run.Restarts += int(p.RestartCount)
	}
	for _, c := range pod.Containers {
		at := c.Now.Started
		if pod.Phase != types.PodRunning {
			at = c.Now.Finished
		}
		if at.After(run.Since) {
			run.Since = at.UTC()
		}
	}
	return run
}

// acts reports whether this node acts for the application right now.
func (f facts) acts(key string) bool {
	return f.acting != nil && slices.ContainsFunc(f.acting.targets, func(t target) bool { return t.key == key })
}

// worker acts under the repair lease.
type worker struct {
	Kube
	task
	hears    pubsub.Reader[heard]
	now      func() time.Time
	uptime   func() time.Duration
	snapshot snapshot                      // the last look under the repair lease, for a failover
	dropped  []string                      // applications that are not to be taken any more
	steps    map[string][]types.RepairStep // by application
	fails    map[string]error              // by application
	tried    int                           // how many of the targets have had their turn
}

// do takes one application after the other; what fails for one does not hold up
// the next, unless the right is lost.
func (w *worker) do(ctx context.Context) error {
	switch w.act {
	case actUnfence:
		return w.unfence(w.because(ctx, target{}))
	case actFence:
		return w.fence(w.because(ctx, target{}))
	}
	for i, t := range w.targets {
		if w.act == types.ActFailover && w.uptime()-w.snapshot.at > freshFor {
			if err := w.lookAgain(ctx); err != nil {
				if errors.Is(err, errLate) {
					w.targets = w.targets[:i] // the others are judged again, as if they had not been tried
				}
				return err
			}
			if err := w.fenceFirst(w.because(ctx, target{})); err != nil {
				return err
			}
		}
		w.tried = i + 1
		if slices.Contains(w.dropped, t.key) {
			continue
		}
		if err := w.one(ctx, t); err != nil {
			w.fails[t.key] = err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

func (w *worker) because(ctx context.Context, t target) context.Context {
	by, why := "", whys[w.act]
	if w.lost.Name != "" && w.act != actUnfence {
		why = "node " + w.lost.Name + " is gone"
	}
	switch {
	case t.force:
		by, why = "OPERATOR", "an operator detaches it from node "+w.lost.Name+" by force: it is proved neither that its device is off nor that its storage is redundant"
	case t.asked:
		by = "OPERATOR"
	}
	return types.Because(ctx, by, why)
}

var whys = map[types.RepairAct]string{
	types.ActFailover: "its node is lost", types.ActUnstick: "its virtual machine is stuck",
	types.ActRevive: "its replica set was left scaled to 0", types.ActMove: "this node is its designated node",
	types.ActFailback: "it prefers its designated node, which is available again", actSettle: "it runs again",
	actUnfence: "the node is back",
}

func (w *worker) one(ctx context.Context, t target) error {
	ctx = w.because(ctx, t)
	switch w.act {
	case types.ActFailover:
		return w.release(ctx, t)
	case types.ActUnstick:
		return w.renew(ctx, t)
	case types.ActRevive:
		return w.step(ctx, t, "Its replica set is scaled to 1 again.", func() error { return w.SetWanted(ctx, t.set, 1) })
	case types.ActMove:
		return w.step(ctx, t, "Its affinity now names "+t.node+".", func() error {
			return w.SetAffinity(ctx, t.set, t.node, t.cfg.AffinityType == types.AffinityRequired, t.note)
		})
	case types.ActFailback:
		return w.evictForFailback(ctx, t)
	}
	return w.NoteRepair(ctx, t.set, t.note)
}

// step does one thing and tells of it: in the topic, and as an Event of the set.
func (w *worker) step(ctx context.Context, t target, what string, do func() error) error {
	err := do()
	s := types.RepairStep{At: w.now().Round(0), Act: w.act, Step: what}
	e := types.Event{Set: t.set, Reason: reasons[w.act], Message: what}
	if err != nil {
		s.Failed, e.Warning = err.Error(), true
		e.Message += " It failed: " + err.Error()
	}
	w.steps[t.key] = append(w.steps[t.key], s)
	if told := w.Event(ctx, e); err == nil && told != nil && ctx.Err() != nil {
		return told
	}
	if err != nil {
		return fmt.Errorf("%s of %s: %w", w.act, t.set.Name, err)
	}
	return nil
}

var reasons = map[types.RepairAct]string{
	types.ActFailover: "Failover", types.ActUnstick: "UnstickVM", types.ActRevive: "ReviveReplicaSet",
	types.ActMove: "MoveAffinity", types.ActFailback: "Failback",
}

// renew deletes one stuck virtual machine. It is counted before, and once: after a
// death in between, or an error, this very one is deleted without being counted again.
func (w *worker) renew(ctx context.Context, t target) error {
	if t.note != t.set.Note {
		if err := w.NoteRepair(ctx, t.set, t.note); err != nil {
			return fmt.Errorf("annotate %s: %w", t.set.Name, err)
		}
	}
	vmi := t.vmis[0]
	return w.step(ctx, t, fmt.Sprintf("Stuck virtual machine %s is deleted, attempt %d of %d.", vmi.Name, t.note.Stuck, mostStuck),
		func() error { return w.DeleteVMI(ctx, vmi) })
}

// evictForFailback evicts the pod of an application that prefers this node.
func (w *worker) evictForFailback(ctx context.Context, t target) error {
	if err := w.NoteRepair(ctx, t.set, t.note); err != nil {
		return fmt.Errorf("annotate %s: %w", t.set.Name, err)
	}
	pod := t.pods[0]
	return w.step(ctx, t, fmt.Sprintf("Pod %s on %s is evicted, so that it starts on %s.", pod.Name, pod.NodeName, t.node),
		func() error { return w.Evict(ctx, pod) })
}

// release takes what an application has on the lost node: its pods, its virtual
// machine, the attachments of its volumes, in this order. Each step may be
// repeated; nobody else's objects are touched, and no replica is deleted.
func (w *worker) release(ctx context.Context, t target) error {
	if err := w.refusalReason(t); err != nil {
		return err
	}
	if old := t.set.Note; old.Act != t.note.Act || old.Node != t.note.Node || old.NodeUID != t.note.NodeUID {
		if err := w.NoteRepair(ctx, t.set, t.note); err != nil {
			return fmt.Errorf("annotate %s: %w", t.set.Name, err)
		}
	}
	for _, p := range t.pods {
		if p.NodeName != w.lost.Name {
			continue
		}
		if err := w.step(ctx, t, fmt.Sprintf("Pod %s on %s is deleted.", p.Name, p.NodeName), func() error { return w.ForceDeletePod(ctx, p) }); err != nil {
			return err
		}
	}
	for _, v := range t.vmis {
		if v.NodeName != w.lost.Name {
			continue
		}
		if err := w.step(ctx, t, fmt.Sprintf("Virtual machine %s on %s is deleted.", v.Name, v.NodeName), func() error { return w.ForgetVMI(ctx, v) }); err != nil {
			return err
		}
	}
	if w.deleted && !t.asked {
		return nil // Kubernetes does so itself, six minutes after the pods: not before it
	}
	return w.detach(ctx, t)
}

func (w *worker) detach(ctx context.Context, t target) error {
	for _, a := range w.snapshot.attachments {
		mine := slices.ContainsFunc(w.snapshot.storage.Volumes, func(v types.Volume) bool {
			return v.Name == a.Volume && slices.Contains(t.claims, v.Claim)
		})
		if !mine {
			continue
		}
		if err := w.step(ctx, t, fmt.Sprintf("Volume %s is detached from %s.", a.Volume, a.Node), func() error { return w.DeleteAttachment(ctx, a) }); err != nil {
			return err
		}
	}
	return nil
}
