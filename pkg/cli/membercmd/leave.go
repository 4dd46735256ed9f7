package membercmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/joinplan"
	"github.com/zedkube/zedkube/pkg/workload/drain"
	"github.com/zedkube/zedkube/types"
)

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
			"A leave waits until no data is on this node only, unless root gives that data up.\n\n" +
			"With --without-cluster the last node leaves a cluster that no longer answers: no other node may answer for ten minutes,\n" +
			"each must be named as off, and all data on this node is given up.\n\n" + leaveExitCodes,
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			return out.RunAction(c, func(w io.Writer) error { return f.do(c, w, o.Paths()) })
		},
	}
	out.Flag(c)
	flags := c.Flags()
	flags.BoolVar(&f.cancel, "cancel", false, "withdraw the request")
	flags.StringVar(&f.reason, "reason", "", "the reason, which is recorded")
	flags.BoolVar(&f.giveUp, "give-up-data", false, "consent to the loss of the data that the plan names; asks for confirmation at a terminal")
	flags.StringVar(&f.digest, "digest", "", "the digest of that plan, instead of the confirmation")
	flags.BoolVar(&f.without, "without-cluster", false, "leave although the API server is unreachable, on this node's own evidence; with --dead and --give-up-data")
	flags.StringArrayVar(&f.dead, "dead", nil, "the `NAME` of another node that is known to be off; repeat for each")
	flags.BoolVar(&f.undo, "undo", false, "undo a leave without the cluster that has been decided, within one minute")
	c.MarkFlagsMutuallyExclusive("cancel", "undo", "give-up-data")
	c.MarkFlagsMutuallyExclusive("cancel", "undo", "without-cluster")
	c.AddCommand(newLeavePlanCommand(o))
	return c
}

func (f leaveFlags) do(c *cobra.Command, out io.Writer, p device.Paths) error {
	who := consentingFrom(c.InOrStdin(), f.digest)
	switch {
	case f.cancel:
		return cancelLeave(c.Context(), out, p, time.Now())
	case f.undo:
		return undoLeave(c.Context(), out, p, time.Now())
	case len(f.dead) > 0 && !f.without:
		return terminal.ExitWith(terminal.ExitUsage, errors.New("--dead requires --without-cluster"))
	case f.digest != "" && !f.giveUp:
		return terminal.ExitWith(terminal.ExitUsage, errors.New("--digest requires --give-up-data"))
	case f.without:
		return f.leaveWithout(c.Context(), out, p, who)
	case f.giveUp:
		return giveUpAndLeave(c.Context(), out, p, f.reason, who)
	}
	return publishLeave(out, p, f.reason, nil, time.Now())
}

// publishLeave leaves a request for the agent. Each asking is a new one: what was
// asked for while the controller wanted this node has no effect later.
func publishLeave(out io.Writer, p device.Paths, reason string, consent *types.LeaveConsent, now time.Time) error {
	effect, err := effectOfRequest(p, now)
	if err != nil {
		return err
	}
	if err := device.AskAgent(p, types.ClusterLeaveRequest{RequestedAt: now.UTC(), Context: reason, Consent: consent}); err != nil {
		return err
	}
	fmt.Fprintln(out, "The request to leave the cluster has been made.")
	fmt.Fprintln(out, effect)
	fmt.Fprint(out, "To watch it:    zedkube drain status --watch\nTo withdraw it: zedkube leave --cancel\n")
	return nil
}

// effectOfRequest says what the agent will make of the request; an error where
// there is no cluster to leave, or where it would have no effect.
func effectOfRequest(p device.Paths, now time.Time) (string, error) {
	m, _, err := device.ReadRecord[types.ClusterMembership](p.PersistentFile(device.Self, "ClusterMembership"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "This device does not know its cluster yet: the agent decides once it does.", nil
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
		return "", refuse("the controller's configuration is valid and makes this device a member: remove the device from the cluster there, and repeat this when it has received the change")
	case types.MembershipLeaving:
		return "The node is already leaving: " + terminal.Clean(m.Reason), nil
	case types.MembershipDoubtful:
		return "It takes effect as soon as the API server answers: the controller's configuration is not valid" + since + ".", nil
	}
	return "Its membership is " + terminal.Clean(string(m.State)) + since + ": " + terminal.Clean(m.Reason), nil
}

func cancelLeave(ctx context.Context, out io.Writer, p device.Paths, now time.Time) error {
	m, _, err := device.ReadRecord[types.ClusterMembership](p.PersistentFile(device.Self, "ClusterMembership"))
	if err == nil && m.Without != nil && m.State == types.MembershipLeaving { // which outlasts its request
		return undoLeave(ctx, out, p, now)
	}
	byRequest := err == nil && m.State == types.MembershipLeaving && m.ByOperator // the decision outlasts a reboot, its request does not
	removed, err := device.Withdraw[types.ClusterLeaveRequest](p, "ClusterLeaveRequest")
	if err == nil && byRequest && !removed {
		err = withdrawWithoutRequest(p)
	}
	switch {
	case err != nil:
		return err
	case byRequest:
		fmt.Fprintln(out, "The leave has been withdrawn, unless this node has left the cluster by now: zedkube status")
	case removed:
		fmt.Fprintln(out, "The request to leave has been withdrawn. What was already decided stays in effect: zedkube drain status")
	default:
		fmt.Fprintln(out, "There is no request to leave.")
	}
	return nil
}

// withdrawWithoutRequest makes the topic's directory, without a request: while there is none,
// the agent does not know whether the leave is still asked for.
func withdrawWithoutRequest(p device.Paths) error {
	topic, err := device.OperatorTopic[types.ClusterLeaveRequest](p)
	if err != nil {
		return err
	}
	return topic.Unpublish(types.Global)
}

const leaveExitCodes = `Exit codes:
  0   done
  1   wrong usage, interrupted, or failed
  2   the request could not be written
  3   refused: nothing was changed
  99  unknown command`

// refuse is an error that says that nothing was changed, and why.
func refuse(format string, args ...any) error {
	return terminal.ExitWith(exitRefused, fmt.Errorf("refused, nothing was changed: "+format, args...))
}

// consenting is who consents to the loss of data, and how.
type consenting struct {
	in       io.Reader // where an answer is typed
	terminal bool      // in is one
	root     bool
	digest   string // of the plan, where a script consents; "" for none
}

// consentingFrom is for the command's own input.
func consentingFrom(in io.Reader, digest string) consenting {
	f, ok := in.(*os.File)
	return consenting{in: in, terminal: ok && term.IsTerminal(int(f.Fd())), root: os.Geteuid() == 0, digest: digest}
}

// confirm asks for the consent to what is in g, on the node of that name. Only
// root may give it: at a terminal by typing the node's name, elsewhere by the
// digest of the plan that was read.
func (c consenting) confirm(ctx context.Context, out io.Writer, node string, g joinplan.GiveUp) error {
	if !c.root {
		return refuse("only root may consent to the loss of data")
	}
	for _, line := range giveUpLines(g) {
		fmt.Fprintln(out, line)
	}
	switch {
	case c.digest == g.Digest:
		return nil
	case c.digest != "":
		return refuse("the digest of the plan is now %s, not %s: read the plan again", g.Digest, terminal.Clean(c.digest))
	case !c.terminal:
		return refuse("this is not a terminal, so nobody can confirm: read the plan and give its digest with --digest")
	case node == "":
		return refuse("the name of this node is not known")
	}
	fmt.Fprintf(out, "Type the name of this node, %s, if all of that may be lost: ", terminal.Clean(node))
	answer, err := terminal.ReadAnswer(ctx, c.in)
	if err != nil {
		return err
	}
	if answer != node {
		return refuse("the name typed is not that of this node")
	}
	return nil
}

func giveUpLines(g joinplan.GiveUp) []string {
	asOf := ""
	if !g.AsOf.IsZero() {
		asOf = ", as of " + terminal.Timestamp(g.AsOf)
	}
	var lines []string
	switch {
	case g.Unknown && g.AsOf.IsZero():
		lines = append(lines, "It is NOT KNOWN which volumes have data here: all data of this node is lost.")
	case len(g.Volumes) > 0:
		lines = append(lines, "The data of "+phrase.Counted(len(g.Volumes), "volume")+" is lost"+asOf+":")
	default:
		lines = append(lines, "No volume has data here"+asOf+".")
	}
	for _, v := range g.Volumes {
		line := "  " + terminal.Clean(v.Name)
		if v.Claim != "" {
			line += " (" + terminal.Clean(v.Claim) + ")"
		}
		lines = append(lines, line)
	}
	if g.Unknown && !g.AsOf.IsZero() {
		lines = append(lines, "It is NOT KNOWN which volumes have come here since then: their data is lost as well.")
	}
	if g.Ends {
		lines = append(lines, "The cluster ceases to exist with this node: all its objects are lost.")
	}
	return lines
}

// giveUpAndLeave asks for the leave with a consent to what the plan says is lost.
func giveUpAndLeave(ctx context.Context, out io.Writer, p device.Paths, reason string, who consenting) error {
	now := time.Now()
	if _, err := effectOfRequest(p, now); err != nil {
		return err
	}
	facts := lookAtLeave(ctx, p, now.UTC())
	if facts.Membership == nil {
		return refuse("it is not known whether this device is a member of a cluster")
	}
	plan := joinplan.Leave(facts)
	if plan.GiveUp == nil {
		if len(facts.Unknown) > 0 {
			return refuse("it is not known what would be lost: %s", terminal.Clean(strings.Join(facts.Unknown, "; ")))
		}
		fmt.Fprintln(out, "Nothing would be lost: no consent is needed.")
		return publishLeave(out, p, reason, nil, now)
	}
	if err := who.confirm(ctx, out, facts.Node, *plan.GiveUp); err != nil {
		return err
	}
	consent := *facts.Loss
	consent.Given, consent.Uptime = now.UTC(), device.Uptime()
	recordConsent(ctx, p, consent, "zedkube leave --give-up-data", facts.Node)
	return publishLeave(out, p, reason, &consent, now)
}

// recordConsent puts a consent on record before anybody can act on it.
func recordConsent(ctx context.Context, p device.Paths, w types.LeaveConsent, how, node string) {
	names := make([]string, 0, len(w.Volumes))
	for _, v := range w.Volumes {
		names = append(names, v.Name)
	}
	what := fmt.Sprintf("%s: %s", phrase.Counted(len(names), "volume"), strings.Join(names, " "))
	switch {
	case w.Unknown && len(names) == 0:
		what = "volumes that are not known"
	case w.Unknown:
		what = "volumes that are not known, and " + what
	}
	ctx = types.Because(types.ActAs(ctx, "command"), "OPERATOR", fmt.Sprintf("%s: digest %s, %s", how, w.Digest(), what))
	types.Did(ctx, device.CommandRecord(p), "consent to the loss of data", "node/"+node, nil)
}

// lossOf is what a consent to this leave has to name, nil where nothing is lost
// or nobody can say; and from when that is, where the cluster cannot be asked.
func lossOf(p device.Paths, f joinplan.LeaveFacts) (*types.LeaveConsent, time.Time) {
	m := f.Membership
	boot, err := device.ReadBootID(p.BootID)
	if err != nil || m == nil || !m.Belongs() || m.Config == nil {
		return nil, time.Time{}
	}
	w := &types.LeaveConsent{BootID: boot, Cluster: m.Config.ClusterID.UUID}
	var asOf time.Time
	switch {
	case f.Storage != nil:
		w.Volumes = drain.OnlyHere(*f.Storage, f.Nodes, f.Node, f.Now) // by the rules of the drain
		w.Ends, _ = types.LastOf(f.Nodes, f.Node)
	case f.Nodes != nil:
		return nil, time.Time{} // it can be asked, and asked again
	default:
		j, _, err := device.ReadRecord[types.NodeDrainJournal](p.PersistentFile(device.Self, "NodeDrainJournal"))
		if w.Unknown = err != nil || j.Look == nil || j.Look.BootID != boot; !w.Unknown {
			w.Volumes, asOf = j.Look.Volumes, j.Look.At
		}
	}
	if len(w.Volumes) == 0 && !w.Unknown && !w.Ends {
		return nil, time.Time{}
	}
	return w, asOf
}

// standingConsent is the consent that holds now, nil for none.
func standingConsent(p device.Paths, m *types.ClusterMembership) *types.LeaveConsent {
	if m == nil || m.Config == nil {
		return nil
	}
	boot, err := device.ReadBootID(p.BootID)
	if err != nil || !m.Consent.Holds(boot, m.Config.ClusterID.UUID, device.Uptime()) {
		return nil
	}
	return m.Consent
}
