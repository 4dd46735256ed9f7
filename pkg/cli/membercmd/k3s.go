package membercmd

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/types"
)

const k3sExitCodes = `Exit codes:
  0   done
  1   wrong usage, interrupted, or failed
  2   the request could not be written
  3   refused: the last line gives the reason
  99  unknown command`

// NewK3sCommand is the parent of what an operator may do about k3s on this node.
func NewK3sCommand(o *device.Options) *cobra.Command {
	return terminal.Group("k3s", "Manage k3s on this node",
		"Manage k3s on this node. See docs/operations.md, \"The version of k3s\".\n\n"+k3sExitCodes,
		newK3sStatusCommand(o), newK3sPlanCommand(o), newK3sStageCommand(o), newK3sSnapshotCommand(o), newK3sReleaseCommand(o),
		newK3sHoldCommand(o), newK3sRetryCommand(o), newK3sRollbackCommand(o))
}

func newK3sReleaseCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	return out.Flag(&cobra.Command{
		Use:   "release VERSION|override",
		Short: "Let this node install the version of k3s in the setting k3s.version, or take its override",
		Long: "Let this node install the version of k3s in the setting k3s.version, although it is not its turn or zedkube does\n" +
			"not know all that it should. One node changes at a time, under the drain lock; quorum, the clock and the certificates\n" +
			"have to be in order all the same. What it waits for: zedkube topics zedkube/KubeLifecycle.\n" +
			"The release is printed: what is in the way at this moment and may be done without. What comes later needs another one.\n" +
			"It lasts until the node reboots. What the rules refuse, as a downgrade, is not released.\n" +
			"The word override instead of a version is for the setting k3s.config.override, likewise.\n\n" + k3sExitCodes,
		Args: terminal.Words(1),
		RunE: func(c *cobra.Command, args []string) error {
			return out.RunAction(c, func(w io.Writer) error { return releaseK3s(w, o.Paths(), args[0], time.Now()) })
		},
	})
}

func releaseK3s(out io.Writer, p device.Paths, version string, now time.Time) error {
	if version == "override" {
		l, err := readLifecycle(p)
		if err != nil {
			return err
		}
		return askRelease(out, p, types.K3sReleaseRequest{RequestedAt: now.UTC(), Version: l.Override.Wanted}, "the override", l.Override.Preconditions, l.Override.Reason)
	}
	s, _, err := device.ReadRecord[types.K3sVersionStatus](p.TopicFile(device.Self, "K3sVersionStatus"))
	if err != nil {
		return fmt.Errorf("read which version of k3s is held back: %w", err)
	}
	switch {
	case s.Wanted != version:
		return terminal.ExitWith(exitRefused, fmt.Errorf("the setting k3s.version is %q, not %q: nothing was changed", terminal.Clean(s.Wanted), terminal.Clean(version)))
	case !s.Held:
		return terminal.ExitWith(exitRefused, fmt.Errorf("version %s is not held back on this node: there is nothing to release", terminal.Clean(version)))
	}
	if err := types.CheckK3sStep(s.Version, version); err != nil {
		return terminal.ExitWith(exitRefused, fmt.Errorf("nothing was changed: %w", err))
	}
	l, err := readLifecycle(p)
	if err != nil {
		return err
	}
	if l.To != version {
		l.Preconditions = nil
	}
	return askRelease(out, p, types.K3sReleaseRequest{RequestedAt: now.UTC(), Version: version}, "version "+version, l.Preconditions, l.Reason)
}

// askRelease requests what does without those preconditions that a release may do without.
func askRelease(out io.Writer, p device.Paths, r types.K3sReleaseRequest, what string, list []types.KubeLifecyclePrecondition, why string) error {
	for _, precondition := range list {
		if precondition.Release {
			r.Without = append(r.Without, precondition.Name)
		}
	}
	if len(r.Without) == 0 {
		return refuse("nothing that a release could do without is in the way of %s: %s", terminal.Clean(what), terminal.Clean(why))
	}
	if err := device.AskAgent(p, r); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s is released on this node, without: %s.\nk3s changes to it under the drain lock when everything else holds.\n",
		terminal.Clean(strings.ToUpper(what[:1])+what[1:]), terminal.Clean(strings.Join(r.Without, ", ")))
	fmt.Fprint(out, "To watch it: zedkube topics zedkube/KubeLifecycle --watch\n")
	return nil
}
