package membercmd

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/base/peer"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/cluster/k3supdate"
	"github.com/zedkube/zedkube/types"
)

func newK3sRetryCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	return out.Flag(&cobra.Command{
		Use:   "retry",
		Short: "Let k3s change again to the version or override to which this node could not change",
		Long: "Let k3s change again to the version to which this node could not change, or else to the override with which k3s did not\n" +
			"come up here. Until then, or until the setting k3s.version or k3s.config.override is another one, no node of the cluster\n" +
			"changes to it.\n\n" + k3sExitCodes,
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			return out.RunAction(c, func(w io.Writer) error { return retryK3s(w, o.Paths(), time.Now()) })
		},
	})
}

func readLifecycle(p device.Paths) (types.KubeLifecycle, error) {
	l, _, err := device.ReadRecord[types.KubeLifecycle](p.TopicFile(device.Self, "KubeLifecycle"))
	if err != nil {
		return l, fmt.Errorf("read how far a change of k3s has come: %w", err)
	}
	return l, nil
}

func retryK3s(out io.Writer, p device.Paths, now time.Time) error {
	l, err := readLifecycle(p)
	failed, what := l.Failed, "Version"
	if failed.To == "" {
		failed, what = l.Override.Failed, "Override"
	}
	switch {
	case err != nil:
		return err
	case failed.To == "":
		for _, c := range slices.Concat(l.Preconditions, l.Override.Preconditions) {
			if c.Name == "OthersNotFailed" && !c.Holds {
				return refuse("this node did not fail. %s Run it there: zedkube k3s retry", terminal.Clean(c.Reason))
			}
		}
		return refuse("there is no version or override to which this node failed to change")
	case l.Phase == types.LifecycleReturns || l.Phase == types.LifecycleStuck:
		return refuse("k3s has not returned to what was before: %s", terminal.Clean(l.Reason))
	}
	if err := device.AskAgent(p, types.K3sRetryRequest{RequestedAt: now.UTC(), Version: failed.To, FailedAt: failed.At}); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s %s no longer counts as failed.\nTo watch it: zedkube topics zedkube/KubeLifecycle --watch\n", what, terminal.Clean(failed.To))
	return nil
}

func newK3sRollbackCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	var lose, yes bool
	c := out.Flag(&cobra.Command{
		Use:   "rollback [--lose-changes] --yes",
		Short: "Let this node return from a version of k3s to the one before",
		Long: "Let this node return from the version of k3s to which it changes to the one before, without waiting until that has\n" +
			"failed by its time. The version counts as failed then: no node changes to it until zedkube k3s retry, or another setting.\n" +
			"Once the version has run on the last server, nothing returns. A single node returns with its datastore of before the change,\n" +
			"which an operator puts back first, and with --lose-changes. Without --yes it only says what would be lost.\n\n" + k3sExitCodes,
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			return out.RunAction(c, func(w io.Writer) error { return rollbackK3s(w, o.Paths(), lose, yes, time.Now()) })
		},
	})
	c.Flags().BoolVar(&lose, "lose-changes", false, "what was written to the datastore since the change may be lost")
	c.Flags().BoolVar(&yes, "yes", false, "do it; what is refused stays refused")
	return c
}

func rollbackK3s(out io.Writer, p device.Paths, lose, yes bool, now time.Time) error {
	l, err := readLifecycle(p)
	can := l.Rollback
	switch {
	case err != nil:
		return err
	case can.To == "":
		return refuse("there is no change of k3s on this node to take back; it is %s. The change of a single node may be taken back afterwards. %s",
			cmp.Or(terminal.Clean(string(l.Phase)), "unknown"), k3supdate.TakeBackRecipe)
	case can.Lacks != "":
		return refuse("%s", terminal.Clean(can.Lacks))
	}
	fmt.Fprintf(out, "k3s returns from %s to %s on this node. %s\n", terminal.Clean(l.To), terminal.Clean(can.To), cmp.Or(terminal.Clean(can.Loses), "No data is lost."))
	switch {
	case can.Loses != "" && !lose:
		return refuse("consent to that loss with --lose-changes")
	case !yes:
		return refuse("confirm it with --yes")
	}
	if err := device.AskAgent(p, types.K3sRollbackRequest{RequestedAt: now.UTC(), RequestedBy: peer.Self().Who(), Version: l.To, LoseChanges: lose}); err != nil {
		return err
	}
	fmt.Fprint(out, "It is requested.\nTo watch it: zedkube topics zedkube/KubeLifecycle --watch\n")
	return nil
}
