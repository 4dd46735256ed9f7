package appscmd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// detachSettles is how long an agent that sees nothing to do has to say so: it
// may say so on its way to begin.
const detachSettles = 10 * time.Second

// detaching is one call of the command.
type detaching struct {
	paths   device.Paths
	log     *detachLog
	request types.AppDetachRequest
	key     string // the application's UUID
	settle  time.Duration

	printed map[string]bool // steps that are printed, or are from before
	state   string          // as printed last
	acted   bool
}

// run does it and leaves its outcome in the log.
func (d *detaching) run(ctx context.Context) error {
	how := ""
	if d.request.Force {
		how = ", even if its storage is not proved to be redundant"
	}
	if err := d.log.say(d.request.Asked, "requested: detach application %s from node %s%s", d.request.AppDomain, d.request.Node, how); err != nil {
		return err
	}
	return d.end(d.attempt(ctx))
}

// attempt leaves the request for the running agent, tells what that does, and
// takes the request back at the end: nobody may be surprised by it later.
func (d *detaching) attempt(ctx context.Context) error {
	bus := pubsub.NewBus(d.paths.Root, device.Silent())
	repairs := pubsub.NewSubscription[types.AppRepairStatus](bus, device.Self, pubsub.SocketOnly())
	if err := bus.Open(); err != nil {
		return terminal.ExitWith(terminal.ExitNotPublished, fmt.Errorf("open pubsub: %w", err))
	}
	bell := make(chan struct{}, 1)
	repairs.Notify(bell)
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { bus.Run(serving) })
	defer running.Wait()
	defer stop()
	if err := greet(ctx, repairs, bell); err != nil {
		return err
	}
	requests, err := device.OperatorTopic[types.AppDetachRequest](d.paths)
	if err != nil {
		return err
	}
	before, _ := repairs.Get(d.key)
	d.printed = map[string]bool{}
	for _, s := range before.Steps {
		d.printed[stepKey(s)] = true
	}
	if err := d.ask(requests); err != nil {
		return err
	}
	err = d.follow(ctx, repairs, bell)
	if !d.replaced() {
		if gone := requests.Unpublish(d.key); gone != nil {
			err = errors.Join(err, terminal.ExitWith(terminal.ExitNotPublished, fmt.Errorf("the request could not be withdrawn: %w", gone)))
		}
	}
	return err
}

// greet waits until the agent has said all it knows: where none runs the request
// would lie there until one does, and come true when nobody expects it.
func greet(ctx context.Context, repairs pubsub.Source[types.AppRepairStatus], bell <-chan struct{}) error {
	late := time.After(device.GreetingTimeout)
	for !repairs.Synced() {
		select {
		case <-bell:
		case <-late:
			return terminal.ExitWith(terminal.ExitNotPublished, errors.New("the agent on this device does not answer: nothing was requested"))
		case <-ctx.Done():
			return detachEnded(ctx.Err())
		}
	}
	return nil
}

func (d *detaching) ask(requests device.Requested[types.AppDetachRequest]) error {
	if old, ok := requests.Get(d.key); ok {
		if err := d.log.say(d.request.Asked, "the request of %s, for node %s, is replaced", old.Asked.UTC().Format(time.RFC3339), old.Node); err != nil {
			return err
		}
	}
	if err := requests.Publish(d.key, d.request); err != nil {
		return terminal.ExitWith(terminal.ExitNotPublished, err)
	}
	return nil
}

// follow tells what the agent does until it has done with the request.
func (d *detaching) follow(ctx context.Context, repairs pubsub.Reader[types.AppRepairStatus], bell <-chan struct{}) error {
	var settled <-chan time.Time // nil unless the agent sees nothing to do
	for {
		// What does not name the request does not take it into account yet.
		status, ok := repairs.Get(d.key)
		heard := ok && status.Heard == d.request.ID
		if heard {
			if err := d.tell(status); err != nil {
				return err
			}
			if over, err := d.ending(status); over {
				return err
			}
		}
		switch {
		case !heard || status.Phase != types.RepairWell:
			settled = nil
		case settled == nil:
			settled = time.After(d.settle)
		}
		select {
		case <-bell:
		case <-settled:
			return d.log.say(time.Now(), "done: there was nothing to do")
		case <-ctx.Done():
			return detachEnded(ctx.Err())
		}
	}
}

// ending says how the repair has ended; over is false while it has not.
func (d *detaching) ending(s types.AppRepairStatus) (over bool, err error) {
	switch s.Phase {
	case types.RepairActs:
		d.acted = true
	case types.RepairWell:
		if d.acted {
			return true, d.log.say(time.Now(), "done: the application is on node %s", s.Node)
		}
	case types.RepairRefused, types.RepairGaveUp:
		for _, e := range s.Evidence {
			if err := d.log.say(time.Now(), "evidence: %s", e); err != nil {
				return true, err
			}
		}
		return true, terminal.ExitWith(terminal.ExitDetachRefused, fmt.Errorf("%s: %s", phaseWords[s.Phase], terminal.Clean(s.Reason)))
	}
	return false, nil
}

// tell prints what is new in the status.
func (d *detaching) tell(s types.AppRepairStatus) error {
	for _, step := range s.Steps {
		if d.printed[stepKey(step)] {
			continue
		}
		d.printed[stepKey(step)], d.acted = true, true
		text := step.Step
		if step.Failed != "" {
			text += ": failed: " + step.Failed
		}
		if err := d.log.say(step.At, "step: %s", text); err != nil {
			return err
		}
	}
	state := phaseWords[s.Phase]
	if s.Reason != "" {
		state += ": " + s.Reason
	}
	if s.Phase != types.RepairWaits && s.Phase != types.RepairActs || state == d.state {
		return nil
	}
	d.state = state
	return d.log.say(time.Now(), "%s", state)
}

// end leaves the outcome in the log too; main prints it.
func (d *detaching) end(err error) error {
	if err != nil && d.log.file != nil {
		file := detachLog{out: d.log.file}
		_ = file.say(time.Now(), "ended: %s", err.Error())
	}
	return err
}

// phaseWords are what a line begins with.
var phaseWords = map[types.RepairPhase]string{
	types.RepairWaits: "waits", types.RepairActs: "acts", types.RepairRefused: "refused", types.RepairGaveUp: "given up",
}

// stepKey tells steps apart.
func stepKey(s types.RepairStep) string {
	return fmt.Sprint(s.At.UnixNano(), s.Act, s.Step, s.Failed)
}
