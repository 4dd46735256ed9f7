package appscmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const detachExitCodes = `Exit codes:
  0   done: the application is off the node
  1   wrong usage, or interrupted
  2   no agent is running here, or the request could not be passed to it
  3   refused, or given up: the last line gives the reason
  4   the timeout has passed
  99  unknown command`

// detachTimeout is how long the command waits unless told otherwise: a
// replacement starts within a minute, and may have to wait for another node's
// repair first.
const detachTimeout = 10 * time.Minute

// NewVMIDetachCommand runs the failover of one application by hand. Its name and
// the order of its words are EVE's.
func NewVMIDetachCommand(o *device.Options) *cobra.Command {
	d := detaching{settle: detachSettles}
	var timeout time.Duration
	var out terminal.Outputs
	c := &cobra.Command{
		Use:   "vmiDetach [--force] [--timeout 10m] NODE APP",
		Short: "Detach an application from a node that is lost, so that it starts on another node",
		Long: "Detach an application from a node that is lost, so that it starts on another node. APP is its App-Domain-Name or its\n" +
			"UUID. The agent of this device does it, and refuses if the node is not lost or if the application's\n" +
			"storage is not proved to be redundant. What it does is printed and added to /persist/kubelog/detach.log. The request\n" +
			"is withdrawn when the command ends.\n\n" + detachExitCodes,
		Args: terminal.Words(2),
		RunE: func(c *cobra.Command, args []string) error {
			if timeout < 0 {
				return terminal.ExitWith(terminal.ExitUsage, fmt.Errorf("timeout %s: want 0 (no limit) or more", timeout))
			}
			var err error
			if d.key, err = parseDetach(args[0], args[1]); err != nil {
				return terminal.ExitWith(terminal.ExitUsage, err)
			}
			// Also when the terminal goes away the request is taken back.
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGHUP)
			defer stop()
			ctx, stop = terminal.WhileRead(ctx, c.OutOrStdout())
			defer stop()
			if timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, timeout)
				defer cancel()
			}
			d.request.Node, d.request.AppDomain = args[0], args[1]
			d.request.ID, d.request.Asked, d.request.Uptime = uuid.New(), time.Now().UTC(), device.Uptime()
			log := openDetachLog(o.Paths(), c.OutOrStdout(), &out, c.ErrOrStderr())
			defer log.close()
			d.paths, d.log = o.Paths(), log
			return d.run(ctx)
		},
		ValidArgsFunction: terminal.CompleteArgs(device.NodeNames(o), appWords(o, true)),
	}
	out.Flag(c)
	c.Flags().BoolVar(&d.request.Force, "force", false, "even if it is not proved that its storage is redundant and the node is lost: data that only that node has may be lost. Never from a Ready node")
	c.Flags().DurationVar(&timeout, "timeout", detachTimeout, "how long to wait; 0 waits forever")
	return c
}

// parseDetach checks the command's words and returns the application's UUID,
// with which an App-Domain-Name begins (docs/wire.md, "Names of app objects").
func parseDetach(node, app string) (string, error) {
	if !types.IsObjectName(node) {
		return "", fmt.Errorf("node %q: want the name of a Kubernetes node", terminal.Clean(node))
	}
	name, _, _ := strings.Cut(app, ".")
	id, err := uuid.Parse(name)
	if err != nil || len(name) != len(id.String()) || id == uuid.Nil {
		return "", fmt.Errorf("app %q: want an App-Domain-Name, such as %s.1.1, or the UUID alone", terminal.Clean(app), uuid.NameSpaceOID)
	}
	return id.String(), nil
}

func detachEnded(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return terminal.ExitWith(terminal.ExitDetachTimeout, errors.New("timed out: the request has been withdrawn"))
	}
	return terminal.ExitWith(terminal.ExitUsage, errors.New("interrupted: the request has been withdrawn"))
}

// detachLogFile is where EVE's support looks for what a detach has done.
func detachLogFile(p device.Paths) string { return p.In("/persist/kubelog/detach.log") }

// lies is the request that lies there for the agent: ours, none, or another command's.
func (d *detaching) lies() (ours, others bool) {
	lies, _, err := device.ReadRecord[types.AppDetachRequest](filepath.Join(d.paths.RunDir(), device.CommandAgent, "AppDetachRequest", d.key+".json"))
	return err == nil && lies.ID == d.request.ID, err == nil && lies.ID != d.request.ID
}

// detachSettles is how long an agent that sees nothing to do has to say so: it
// may say so on its way to begin.
const detachSettles = 10 * time.Second

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
	err := d.attempt(ctx)
	if err != nil {
		d.log.record(time.Now(), "ended: "+err.Error()) // main prints it
	}
	return err
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
	if err := d.announce(requests); err != nil {
		return err
	}
	ask := func() error { return requests.Publish(d.key, d.request) }
	if err = ask(); err == nil {
		err = d.follow(ctx, repairs, bell, ask)
	}
	// Also one that failed: an agent that did not answer may write it yet.
	if _, others := d.lies(); !others {
		gone := requests.Unpublish(d.key)
		if ours, _ := d.lies(); gone != nil && ours {
			err = errors.Join(err, fmt.Errorf("the request could not be withdrawn: %w", gone))
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

// announce says what is about to be asked for.
func (d *detaching) announce(requests device.Requested[types.AppDetachRequest]) error {
	if old, ok := requests.Get(d.key); ok {
		if err := d.log.say(d.request.Asked, "the request of %s, for node %s, is replaced", old.Asked.UTC().Format(time.RFC3339), old.Node); err != nil {
			return err
		}
	}
	how := ""
	if d.request.Force {
		how = ", even if its storage is not proved to be redundant"
	}
	// Only now: without an agent nothing is requested.
	return d.log.say(d.request.Asked, "requested: detach application %s from node %s%s", d.request.AppDomain, d.request.Node, how)
}

// renewEvery is how often the request of a command that still waits is renewed: the
// agent ignores one that is older than 15 minutes, as of a command that was killed.
const renewEvery = 5 * time.Minute

// renew asks again, with ask, for what still lies there. Where that fails the next time
// is soon enough.
func (d *detaching) renew(ask func() error) {
	if ours, _ := d.lies(); ours {
		d.request.Asked, d.request.Uptime = time.Now().UTC(), device.Uptime()
		_ = ask()
	}
}

// follow tells what the agent does until it has done with the request, which ask renews.
func (d *detaching) follow(ctx context.Context, repairs pubsub.Reader[types.AppRepairStatus], bell <-chan struct{}, ask func() error) error {
	renew := time.NewTicker(renewEvery)
	defer renew.Stop()
	var settled <-chan time.Time // nil unless the agent sees nothing to do
	for wasHeard := false; ; {
		// What does not name the request does not take it into account yet.
		status, ok := repairs.Get(d.key)
		heard := ok && status.Heard == d.request.ID
		if wasHeard && !heard { // as after a jump of the clock
			d.renew(ask)
		}
		if wasHeard = heard; heard {
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
		case <-renew.C:
			d.renew(ask)
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

var phaseWords = map[types.RepairPhase]string{
	types.RepairWaits: "waits", types.RepairActs: "acts", types.RepairRefused: "refused", types.RepairGaveUp: "given up",
}

func stepKey(s types.RepairStep) string { return fmt.Sprint(s.At.UnixNano(), s.Act, s.Step, s.Failed) }

// detachLog writes what happens for the user at the terminal, and for those who ask
// later.
type detachLog struct {
	out     io.Writer
	outputs *terminal.Outputs
	file    *os.File // nil where it cannot be written
}

// openDetachLog opens the log file, whose lack holds nothing up: a detach is
// most needed where something is broken.
func openDetachLog(p device.Paths, out io.Writer, outputs *terminal.Outputs, warn io.Writer) *detachLog {
	l := &detachLog{out: out, outputs: outputs}
	err := os.MkdirAll(filepath.Dir(detachLogFile(p)), 0o755) //nolint:gosec // EVE's directory of logs
	if err == nil {
		l.file, err = openDetachFile(detachLogFile(p))
	}
	if err != nil {
		fmt.Fprintln(warn, "The log file could not be written:", terminal.Clean(err.Error()))
	}
	return l
}

// openDetachFile opens a log to write at its end: a regular file that has no other name
// and that nobody else may write from now on.
func openDetachFile(path string) (*os.File, error) {
	f, info, err := safefile.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|safefile.NoFollow, 0o640)
	if err != nil {
		return nil, err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Nlink != 1 {
		err = fmt.Errorf("%s is not a regular file with a single hard link", path)
	}
	if err == nil {
		err = f.Chmod(0o640) // an earlier release let everybody write it
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// say writes one line. What the file does not take is to be seen all the same.
func (l *detachLog) say(at time.Time, format string, args ...any) error {
	text := l.record(at, fmt.Sprintf(format, args...))
	var err error
	if l.outputs.People() {
		_, err = fmt.Fprintln(l.out, terminal.Timestamp(at), text)
	} else {
		err = l.outputs.Encode(l.out, detachLine{at.UTC().Truncate(time.Second), text}, "")
	}
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

type detachLine struct {
	At   time.Time
	Text string
}

// record leaves a line in the file, and returns it as it may be printed.
func (l *detachLog) record(at time.Time, text string) string {
	text = terminal.Clean(text)
	if l.file != nil {
		_, _ = fmt.Fprintln(l.file, terminal.Timestamp(at), text)
	}
	return text
}

func (l *detachLog) close() {
	if l.file != nil {
		_ = l.file.Close()
	}
}
