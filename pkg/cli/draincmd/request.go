package draincmd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/types"
)

// newDrainRequestCommand asks the agent for a drain in the operator's name.
func newDrainRequestCommand(o *device.Options) *cobra.Command {
	var reason string
	var out terminal.Outputs
	c := &cobra.Command{
		Use:   "request [--reason TEXT]",
		Short: "Request a drain of this node, without a reboot afterwards",
		Long: "Request a drain of this node. It stays schedulable until its turn comes, then it is cordoned and drained,\n" +
			"and stays cordoned until the request is withdrawn or the device reboots.\n\n" + exitCodes,
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			return out.RunAction(c, func(w io.Writer) error { return requestDrain(w, o.Paths(), reason, time.Now()) })
		},
	}
	out.Flag(c)
	c.Flags().StringVar(&reason, "reason", "", "the reason, which is recorded")
	return c
}

// requestDrain leaves the request for the agent. One that stands is kept, so
// that asking twice is asking once, unless its drain has failed.
func requestDrain(out io.Writer, p device.Paths, reason string, now time.Time) error {
	if err := checkMember(p); err != nil {
		return err
	}
	topic, err := device.OperatorTopic[types.NodeDrainRequest](p)
	if err != nil {
		return err
	}
	record := readDrain(p, now)
	standing, stands := topic.Get(types.Global)
	if stands && !(record.failed() && !record.askedAnew()) {
		fmt.Fprintf(out, "There is already a request, made at %s. It stays in effect.\n", terminal.Stamp(standing.RequestedAt, now))
	} else {
		request := types.NodeDrainRequest{RequestedAt: now.UTC(), RequestedBy: types.DrainRequesterNone, Context: reason}
		if err := topic.Publish(types.Global, request); err != nil {
			return terminal.ExitWith(terminal.ExitNotPublished, err)
		}
		fmt.Fprintln(out, "A drain of this node has been requested.")
	}
	if !record.Agent.Runs {
		fmt.Fprintf(out, "The agent does not run (%s): the drain starts when the agent runs.\n", terminal.Clean(record.Agent.Why))
	}
	fmt.Fprint(out, "To watch it:    zedkube drain status --watch\nTo withdraw it: zedkube drain cancel\n")
	return nil
}

// checkMember refuses a drain where there is nothing to drain: a request that
// lies there would surprise whoever joins a cluster later.
func checkMember(p device.Paths) error {
	if _, err := os.Stat(p.RunDir()); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", device.ErrNoDevice, err)
	}
	m, _, err := device.ReadRecord[types.ClusterMembership](p.PersistentFile(device.Self, "ClusterMembership"))
	if err == nil && (m.State == types.MembershipNever || m.State == types.MembershipLeft) {
		return errors.New("this device is not a member of a cluster: there is nothing to drain, and nothing was requested")
	}
	return nil // a file that is not there says nothing
}

// newDrainCancelCommand takes the operator's request back.
func newDrainCancelCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	c := &cobra.Command{
		Use:   "cancel",
		Short: `Withdraw the request of "zedkube drain request"`,
		Long:  "Withdraw the request of \"zedkube drain request\". Requests of EVE's agents stay in effect.\n\n" + exitCodes,
		Args:  terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			return out.RunAction(c, func(w io.Writer) error { return cancelDrain(w, o.Paths(), time.Now()) })
		},
	}
	out.Flag(c)
	return c
}

func cancelDrain(out io.Writer, p device.Paths, now time.Time) error {
	removed, err := device.Withdraw[types.NodeDrainRequest](p, "NodeDrainRequest")
	if err != nil {
		return err
	}
	record := readDrain(p, now)
	if removed {
		fmt.Fprintln(out, "The operator's request has been withdrawn.")
	} else {
		fmt.Fprintln(out, "There is no operator's request.")
	}
	var others []string
	if record.Progress != nil {
		others = slices.DeleteFunc(slices.Clone(record.Progress.Requesters), func(r string) bool { return r == "OPERATOR" })
	}
	switch {
	case len(others) > 0:
		fmt.Fprintf(out, "The drain continues: %s still requests it.\n", strings.ToUpper(terminal.Listed(others)))
	case removed && record.Progress != nil && record.Progress.Cordon == "kept":
		fmt.Fprintln(out, "Its cordon is kept, as you asked. To make the node schedulable again: kubectl uncordon "+terminal.Clean(record.Node))
	case removed && record.Agent.Runs:
		fmt.Fprintln(out, "The node becomes schedulable again as soon as the API server answers: zedkube drain status")
	case removed:
		fmt.Fprintf(out, "The agent does not run (%s): the node becomes schedulable again when the agent runs.\n", terminal.Clean(record.Agent.Why))
	}
	return nil
}
