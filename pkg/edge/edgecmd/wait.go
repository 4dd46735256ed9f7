package edgecmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/edge/cloud"
	"github.com/zedkube/zedkube/pkg/edge/join"
	"github.com/zedkube/zedkube/pkg/edge/object"
)

// every is how often the cluster is asked while somebody waits.
const every = time.Second

// errPending is why something has not happened yet.
type errPending struct{ why string }

func (e errPending) Error() string { return e.why }

// eventually asks until it is so, or cannot be, at most for within. What is pending by then is the reason.
func eventually(ctx context.Context, within time.Duration, is func() error) error {
	deadline, next := time.After(within), time.NewTicker(every)
	defer next.Stop()
	for {
		err := is()
		var pending errPending
		if !errors.As(err, &pending) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the edge node: %w", ctx.Err())
		case <-deadline:
			return terminal.ExitWith(terminal.ExitFound, fmt.Errorf("not within %s: %s", within, pending.why))
		case <-next.C:
		}
	}
}

func (c *commands) wait() *cobra.Command {
	var within time.Duration
	cmd := &cobra.Command{
		Use: "wait NAME [--timeout 2m]", Short: "Wait until an edge node is Ready", Args: terminal.Words(1),
		Long: "Wait until the device that was asked to join is an edge node and Ready, and say what it has come to.\n" +
			"Exit code 0: it is Ready. 1: it cannot be told. 3: not in time, with the reason.",
		Example: "  zedkube-edge wait camera-7",
		RunE: func(cmd *cobra.Command, args []string) error {
			var a acting
			a.on(cmd)
			kube, err := c.dial()
			if err != nil {
				return err
			}
			return waitFor(cmd.Context(), kube, &a, args[0], within)
		},
	}
	cmd.Flags().DurationVar(&within, "timeout", 2*time.Minute, "how long to wait")
	return cmd
}

// waitFor says each stage once.
func waitFor(ctx context.Context, kube Cluster, a *acting, name string, within time.Duration) error {
	_, record, _, err := lookFor(ctx, kube, name)
	if err != nil {
		return err
	}
	asked, is := record.Asked[name]
	if !is {
		return refused(fmt.Errorf("%s was not asked to join: zedkube-edge join %s", name, name))
	}
	a.say("%s was asked to join at %s", name, asked.AskedAt.Format(time.RFC3339))
	registered := false
	return eventually(ctx, within, func() error {
		node, err := kube.Get(ctx, object.Ref{Kind: object.Node, Name: name})
		if err != nil {
			return errPending{err.Error()} // it could be asked before: a server may start again meanwhile
		}
		if node == nil {
			return errPending{notRegistered(asked, time.Now())}
		}
		if !registered {
			registered = true
			a.say("Node %s is registered", name)
		}
		if node.Condition("Ready") == "True" {
			a.say("%s is Ready", name)
			return nil
		}
		return errPending{fmt.Sprintf("Node %s is not Ready: %s", name, terminal.Clean(cloud.Unready(node)))}
	})
}

// notRegistered says why there may be no Node yet.
func notRegistered(asked join.Asked, now time.Time) string {
	if !asked.TokenUntil.IsZero() && now.After(asked.TokenUntil) {
		return fmt.Sprintf("no device has registered, and the token has expired at %s: ask again with zedkube-edge join", asked.TokenUntil.Format(time.RFC3339))
	}
	return "no device has registered. Has join.sh run there? The log of edgecore says what it tries"
}
