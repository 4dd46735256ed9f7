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
		Long: "Let this node leave its cluster once the controller no longer configures it: it is drained, its Node is\n" +
			"deleted, and EVE is told. While the controller's configuration is valid the device stays a member.\n" +
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
	flags.BoolVar(&f.cancel, "cancel", false, "take it back")
	flags.StringVar(&f.reason, "reason", "", "why, for those who look at the record")
	flags.BoolVar(&f.giveUp, "give-up-data", false, "consent to the loss of the data that the plan names; asks at a terminal")
	flags.StringVar(&f.digest, "digest", "", "the digest of that plan, instead of being asked")
	flags.BoolVar(&f.without, "without-cluster", false, "leave although the API server is dead, by this node's own evidence; with --dead and --give-up-data")
	flags.StringArrayVar(&f.dead, "dead", nil, "the `NAME` of another node, which is known to be off; once for each")
	flags.BoolVar(&f.undo, "undo", false, "take a decided leave without the cluster back, within its minute")
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
	fmt.Fprintln(out, "The request to leave the cluster is made.")
	fmt.Fprintln(out, obeyed)
	fmt.Fprint(out, "Watch it:     zedkube drain status --watch\nTake it back: zedkube leave --cancel\n")
	return nil
}

// whetherObeyed says what the agent will make of the request; an error where
// there is no cluster to leave.
func whetherObeyed(p device.Paths, now time.Time) (string, error) {
	m, _, err := device.ReadRecord[types.ClusterMembership](p.PersistentFile(device.Self, "ClusterMembership"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "Nothing is known of a cluster here yet: the agent decides when it has heard of one.", nil
	case err != nil:
		return "", fmt.Errorf("learn whether this device belongs to a cluster: %w", err)
	}
	since := ""
	if !m.InvalidSince.IsZero() {
		since = " since " + terminal.Stamp(m.InvalidSince, now)
	}
	switch m.State {
	case types.MembershipNever, types.MembershipLeft:
		return "", errors.New("this device belongs to no cluster: there is nothing to leave")
	case types.MembershipMember:
		return "It is NOT obeyed now: the controller's configuration is valid and makes this device a member.\n" +
			"Remove the device from the cluster at the controller, and ask again when that has arrived here.", nil
	case types.MembershipLeaving:
		return "The node leaves already: " + terminal.Clean(m.Reason), nil
	case types.MembershipDoubtful:
		return "It is obeyed as soon as the API server answers: the controller's configuration is not valid" + since + ".", nil
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
	fmt.Fprintln(out, "The request to leave is taken back. What was decided otherwise stands: zedkube drain status")
	return nil
}
