package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/types"
)

// newLeaveCommand asks the agent to take this node out of its cluster.
func newLeaveCommand(o *options) *cobra.Command {
	var cancel bool
	var reason string
	var out outputs
	c := &cobra.Command{
		Use:   "leave [--cancel] [--reason TEXT]",
		Short: "Let this node leave its cluster once the controller no longer configures it",
		Long: "Let this node leave its cluster once the controller no longer configures it: it is drained, its Node is\n" +
			"deleted, and EVE is told. While the controller's configuration is valid the device stays a member.\n\n" + exitCodes,
		Args: words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			return out.doing(c, func(w io.Writer) error {
				if cancel {
					return cancelLeave(w, o.paths())
				}
				return askToLeave(w, o.paths(), reason, time.Now())
			})
		},
	}
	out.flag(c)
	c.Flags().BoolVar(&cancel, "cancel", false, "take it back")
	c.Flags().StringVar(&reason, "reason", "", "why, for those who look at the record")
	c.AddCommand(newLeavePlanCommand(o))
	return c
}

func askToLeave(out io.Writer, p paths, reason string, now time.Time) error {
	obeyed, err := whetherObeyed(p, now)
	if err != nil {
		return err
	}
	topic, err := operatorTopic[types.ClusterLeaveRequest](p)
	if err != nil {
		return err
	}
	// Each asking is a new one: what was asked for while the controller wanted
	// this node is not heeded later.
	if err := topic.Publish(types.Global, types.ClusterLeaveRequest{RequestedAt: now.UTC(), Context: reason}); err != nil {
		return exitError{exitNotPublished, err}
	}
	fmt.Fprintln(out, "The request to leave the cluster is made.")
	fmt.Fprintln(out, obeyed)
	fmt.Fprint(out, "Watch it:     zedkube drain status --watch\nTake it back: zedkube leave --cancel\n")
	return nil
}

// whetherObeyed says what the agent will make of the request; an error where
// there is no cluster to leave.
func whetherObeyed(p paths, now time.Time) (string, error) {
	m, _, err := readRecord[types.ClusterMembership](p.persistentFile(self, "ClusterMembership"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "Nothing is known of a cluster here yet: the agent decides when it has heard of one.", nil
	case err != nil:
		return "", fmt.Errorf("learn whether this device belongs to a cluster: %w", err)
	}
	since := ""
	if !m.InvalidSince.IsZero() {
		since = " since " + stamp(m.InvalidSince, now)
	}
	switch m.State {
	case types.MembershipNever, types.MembershipLeft:
		return "", errors.New("this device belongs to no cluster: there is nothing to leave")
	case types.MembershipMember:
		return "It is NOT obeyed now: the controller's configuration is valid and makes this device a member.\n" +
			"Remove the device from the cluster at the controller, and ask again when that has arrived here.", nil
	case types.MembershipLeaving:
		return "The node leaves already: " + clean(m.Reason), nil
	case types.MembershipDoubtful:
		return "It is obeyed as soon as the API server answers: the controller's configuration is not valid" + since + ".", nil
	}
	return "Its membership is " + clean(string(m.State)) + since + ": " + clean(m.Reason), nil
}

func cancelLeave(out io.Writer, p paths) error {
	removed, err := takeBack[types.ClusterLeaveRequest](p, "ClusterLeaveRequest")
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
