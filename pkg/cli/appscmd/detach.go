package appscmd

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
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
			if err := out.Parse(); err != nil {
				return err
			}
			if timeout < 0 {
				return terminal.ExitWith(terminal.ExitUsage, fmt.Errorf("timeout %s: want 0 (no limit) or more", timeout))
			}
			var err error
			if d.key, err = parseDetach(args[0], args[1]); err != nil {
				return terminal.ExitWith(terminal.ExitUsage, err)
			}
			// Also when the terminal goes away the request is taken back.
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGHUP, syscall.SIGPIPE)
			defer stop()
			if timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, timeout)
				defer cancel()
			}
			d.request.Node, d.request.AppDomain = args[0], args[1]
			d.request.ID, d.request.Asked = uuid.New(), time.Now().UTC()
			log := openDetachLog(o.Paths(), out.Lines(c.OutOrStdout(), terminal.Stamped), c.ErrOrStderr())
			defer log.close()
			d.paths, d.log = o.Paths(), log
			return d.run(ctx)
		},
		ValidArgsFunction: terminal.CompleteArgs(
			func(ctx context.Context) []string { return device.CompleteNodes(ctx, o, nil) },
			func(context.Context) []string { return completeAppUUIDs(o) },
		),
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

// detachEnded is the error for a wait that did not come to its end.
func detachEnded(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return terminal.ExitWith(terminal.ExitDetachTimeout, errors.New("timed out: the request has been withdrawn"))
	}
	return terminal.ExitWith(terminal.ExitUsage, errors.New("interrupted: the request has been withdrawn"))
}

// detachLogFile is where EVE's support looks for what a detach has done.
func detachLogFile(p device.Paths) string {
	return filepath.Join(filepath.Dir(p.RunDir()), "persist/kubelog/detach.log")
}

// requestFile is where the request lies for the agent.
func (d *detaching) requestFile() string {
	return filepath.Join(d.paths.RunDir(), device.CommandAgent, "AppDetachRequest", d.key+".json")
}

// replaced reports that the request that lies there is another command's, which
// came later.
func (d *detaching) replaced() bool {
	lies, _, err := device.ReadRecord[types.AppDetachRequest](d.requestFile())
	return err == nil && lies.ID != d.request.ID
}
