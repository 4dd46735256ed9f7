package membercmd

import (
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

// leaveFlags are what is asked for.
type leaveFlags struct {
	cancel, giveUp, without, undo bool
	reason, digest                string
	dead                          []string
}

// NewLeaveCommand asks the agent to take this node out of its cluster.
func NewLeaveCommand(o *device.Options) *cobra.Command {
	var f leaveFlags
	var out terminal.Outputs
	c := &cobra.Command{
		Use:   "leave [--cancel|--undo] [--give-up-data] [--without-cluster]",
		Short: "Let this node leave its cluster once the controller no longer configures it",
		Long: "Let this node leave its cluster once the controller no longer configures it: the node is drained, its Node is\n" +
			"deleted, and EVE is notified. While the controller's configuration is valid the device stays a member.\n" +
			"A leave waits for the data that is on this node alone, unless root gives it up.\n\n" +
			"With --without-cluster a survivor leaves a cluster that is dead: no other node may answer for ten minutes,\n" +
			"each is to be named as off, and all data on this node is given up.\n\n" + leaveExitCodes,
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			return out.RunAction(c, func(w io.Writer) error { return f.do(c, w, o.Paths()) })
		},
	}
	out.Flag(c)
	flags := c.Flags()
	flags.BoolVar(&f.cancel, "cancel", false, "withdraw the request")
	flags.StringVar(&f.reason, "reason", "", "the reason, which is recorded")
	flags.BoolVar(&f.giveUp, "give-up-data", false, "consent to the loss of the data that the plan names; asks at a terminal")
	flags.StringVar(&f.digest, "digest", "", "the digest of that plan, instead of being asked")
	flags.BoolVar(&f.without, "without-cluster", false, "leave although the API server is dead, by this node's own evidence; with --dead and --give-up-data")
	flags.StringArrayVar(&f.dead, "dead", nil, "the `NAME` of another node, which is known to be off; once for each")
	flags.BoolVar(&f.undo, "undo", false, "undo a leave without the cluster that has been decided, within one minute")
	c.MarkFlagsMutuallyExclusive("cancel", "undo", "give-up-data")
	c.MarkFlagsMutuallyExclusive("cancel", "undo", "without-cluster")
	c.AddCommand(newLeavePlanCommand(o))
	return c
}

// do carries out what the flags ask for.
func (f leaveFlags) do(c *cobra.Command, out io.Writer, p device.Paths) error {
	who := consentingFrom(c.InOrStdin(), f.digest)
	switch {
	case f.cancel:
		return cancelLeave(out, p)
	case f.undo:
		return undoLeave(c.Context(), out, p, time.Now())
	case len(f.dead) > 0 && !f.without:
		return terminal.ExitWith(terminal.ExitUsage, errors.New("--dead goes with --without-cluster"))
	case f.digest != "" && !f.giveUp:
		return terminal.ExitWith(terminal.ExitUsage, errors.New("--digest goes with --give-up-data"))
	case f.without:
		return leaveWithout{dead: f.dead, giveUp: f.giveUp, reason: f.reason, who: who}.ask(c.Context(), out, p)
	case f.giveUp:
		return giveUpAndLeave(c.Context(), out, p, f.reason, who)
	}
	return askToLeave(out, p, f.reason, time.Now())
}

func askToLeave(out io.Writer, p device.Paths, reason string, now time.Time) error {
	return publishLeave(out, p, types.ClusterLeaveRequest{RequestedAt: now.UTC(), Context: reason}, now)
}

// publishLeave leaves a request for the agent. Each asking is a new one: what was
// asked for while the controller wanted this node is not heeded later.
func publishLeave(out io.Writer, p device.Paths, r types.ClusterLeaveRequest, now time.Time) error {
	obeyed, err := whetherObeyed(p, now)
	if err != nil {
		return err
	}
	if err := device.AskAgent(p, r); err != nil {
		return err
	}
	fmt.Fprintln(out, "The request to leave the cluster has been made.")
	fmt.Fprintln(out, obeyed)
	fmt.Fprint(out, "To watch it:    zedkube drain status --watch\nTo withdraw it: zedkube leave --cancel\n")
	return nil
}

// whetherObeyed says what the agent will make of the request; an error where
// there is no cluster to leave.
func whetherObeyed(p device.Paths, now time.Time) (string, error) {
	m, _, err := device.ReadRecord[types.ClusterMembership](p.PersistentFile(device.Self, "ClusterMembership"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "This device does not know of a cluster yet: the agent decides when it does.", nil
	case err != nil:
		return "", fmt.Errorf("read whether this device is a member of a cluster: %w", err)
	}
	since := ""
	if !m.InvalidSince.IsZero() {
		since = " since " + terminal.Stamp(m.InvalidSince, now)
	}
	switch m.State {
	case types.MembershipNever, types.MembershipLeft:
		return "", errors.New("this device is not a member of a cluster: there is nothing to leave")
	case types.MembershipMember:
		return "It has NO effect now: the controller's configuration is valid and makes this device a member.\n" +
			"Remove the device from the cluster at the controller, and repeat the request when that has arrived here.", nil
	case types.MembershipLeaving:
		return "The node is already leaving: " + terminal.Clean(m.Reason), nil
	case types.MembershipDoubtful:
		return "It takes effect as soon as the API server answers: the controller's configuration is not valid" + since + ".", nil
	}
	return "Its membership is " + terminal.Clean(string(m.State)) + since + ": " + terminal.Clean(m.Reason), nil
}

func cancelLeave(out io.Writer, p device.Paths) error {
	removed, err := device.Withdraw[types.ClusterLeaveRequest](p, "ClusterLeaveRequest")
	if err != nil {
		return err
	}
	if !removed {
		fmt.Fprintln(out, "There is no request to leave.")
		return nil
	}
	fmt.Fprintln(out, "The request to leave has been withdrawn. What was already decided stays in effect: zedkube drain status")
	return nil
}
