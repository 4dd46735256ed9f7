package appscmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/types"
)

const workloadsExitCodes = `Exit codes:
  0   done
  1   wrong usage, interrupted, or failed
  2   the request could not be written, or the status cannot be read
  99  unknown command`

// NewWorkloadsCommand is the parent of what an operator may do about all workloads at once.
func NewWorkloadsCommand(o *device.Options) *cobra.Command {
	return terminal.Group("workloads", "Disable the workloads of the whole cluster, and enable them again",
		"Disable the workloads of the whole cluster, for maintenance of the site, and enable them again as they were.\n"+
			"See docs/operations.md, \"Switching workloads off\".\n\n"+workloadsExitCodes,
		newWorkloadsStatusCommand(o),
		newWorkloadsRequestCommand(o, "disable", true, "Stop all workloads of the cluster, on every node, until they are enabled",
			"Nothing is evicted: all nodes are cordoned, the replica sets of applications are scaled to 0 and VirtualMachines halted.\n"+
				"It lasts over reboots, of all nodes too. What the controller adds meanwhile waits, and what it deletes is deleted."),
		newWorkloadsRequestCommand(o, "enable", false, "Start all workloads of the cluster as they were before they were disabled",
			"The cordons of zedkube workloads disable go, and each set and VirtualMachine is what it was, as soon as its volumes\n"+
				"have a healthy replica on a Ready node."))
}

func newWorkloadsRequestCommand(o *device.Options, use string, disable bool, short, long string) *cobra.Command {
	var out terminal.Outputs
	var reason string
	c := out.Flag(&cobra.Command{
		Use: use + " [--reason TEXT]", Short: short, Long: short + ".\n" + long + "\n\n" + workloadsExitCodes, Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			return out.RunAction(c, func(w io.Writer) error {
				if err := device.AskAgent(o.Paths(), types.WorkloadsRequest{RequestedAt: time.Now().UTC(), Uptime: device.Uptime(), Disable: disable, Reason: reason}); err != nil {
					return err
				}
				fmt.Fprintf(w, "The request to %s the workloads of the cluster has been made.\nTo watch it: zedkube workloads status --watch\n", use)
				return nil
			})
		},
	})
	c.Flags().StringVar(&reason, "reason", "", "the reason, which every node shows and the audit trail records")
	return c
}

func newWorkloadsStatusCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	return out.WatchFlag(out.Flag(&cobra.Command{
		Use: "status [--watch]", Short: "Show whether the workloads of the cluster are disabled, and what that still waits for",
		Long: "Show whether the workloads of the cluster are disabled, and what that still waits for.\n" +
			"It reads a file of the agent: neither the agent nor the API server has to run.\n\n" + workloadsExitCodes,
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			look := func(context.Context) terminal.View { return workloadsView(o.Paths()) }
			return out.Show(c.Context(), terminal.Of(c.OutOrStdout()), terminal.WatchEvery, look)
		},
	}))
}

func workloadsView(p device.Paths) terminal.View {
	s, _, err := device.ReadRecord[types.WorkloadsStatus](p.PersistentFile(device.Self, "WorkloadsStatus"))
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && s.Phase == "":
		return terminal.View{Data: s, Err: terminal.ExitWith(terminal.ExitNotPublished, errors.New("the agent has not seen the cluster yet"))}
	case err != nil:
		return terminal.View{Data: s, Err: terminal.ExitWith(terminal.ExitNotPublished, fmt.Errorf("read the status of workloads: %w", err))}
	}
	text := "Workloads: " + terminal.Clean(string(s.Phase)) + " since " + terminal.Timestamp(s.Since)
	if s.By != "" {
		text += ", asked for on " + terminal.Clean(s.By)
	}
	if s.Reason != "" {
		text += ": " + terminal.Clean(s.Reason)
	}
	return terminal.View{Data: s, Rows: []terminal.Row{{Text: text}}, Draw: func(screen *terminal.Screen) {
		device.PutAgent(screen, p, device.Now(p.Root))
		screen.Put(0, terminal.Plain, text)
		for _, wait := range s.Waits {
			screen.Put(2, terminal.Yellow, terminal.Clean(wait))
		}
	}}
}
