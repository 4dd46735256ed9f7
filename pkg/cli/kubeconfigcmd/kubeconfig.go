// Package kubeconfigcmd is zedkube kubeconfig.
package kubeconfigcmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/kubeconfigs"
	"github.com/zedkube/zedkube/types"
)

const (
	exitCodes = `Exit codes:
  0   done
  1   wrong usage, interrupted, or failed
  2   the agent or the API server did not answer
  3   refused: the last line gives the reason
  99  unknown command`

	exitRefused   = 3
	answerWithin  = time.Minute // longer than the agent tries
	maxKubeconfig = 64 << 10    // of an answer, in bytes
)

// NewKubeconfigCommand issues a kubeconfig, and is the parent of what can be done about
// those that were issued.
func NewKubeconfigCommand(o *device.Options) *cobra.Command {
	var ask kubeconfigs.Request
	c := &cobra.Command{
		Use:   "kubeconfig --reason TEXT [--for 1h] [--role view|edit]",
		Short: "Issue a kubeconfig that expires and can be revoked",
		Long: "Issue a kubeconfig that expires and can be revoked, and print it. It leads to the cluster address of this node. Nobody\n" +
			"keeps a copy of its token. Role edit can start pods, and so become root on every node, and can make credentials that\n" +
			"outlive the kubeconfig and its revocation.\n" +
			"See docs/operations.md, \"A kubeconfig for kubectl\".\n\n" + exitCodes,
		Example: "  (umask 077; zedkube kubeconfig --reason 'ticket 4711' > kubeconfig)\n  kubectl --kubeconfig kubeconfig get pods -A",
		Args:    terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			text, err := issue(c.Context(), o.Paths(), ask)
			if err == nil {
				_, err = c.OutOrStdout().Write(text)
			}
			return err
		},
	}
	flags := c.Flags()
	flags.StringVar(&ask.For, "for", "1h", "how long it is valid: 10m to 24h")
	flags.StringVar(&ask.Role, "role", "view", "what it may do in the whole cluster: the ClusterRole view or edit of Kubernetes")
	flags.StringVar(&ask.Reason, "reason", "", "the reason, which is recorded")
	terminal.Completed(c, "role", "view", "edit")
	c.AddCommand(newListCommand(o), newRevokeCommand(o), newAgentCommand(o))
	return c
}

// exits are the exit codes of what the agent answers; 1 for all else.
var exits = map[int]int{
	http.StatusForbidden: exitRefused, http.StatusConflict: exitRefused,
	http.StatusNotFound: terminal.ExitNotPublished, http.StatusServiceUnavailable: terminal.ExitNotPublished,
}

// issue asks the agent. It is not asked of the API server itself: an agent that runs removes
// what has expired.
func issue(ctx context.Context, p device.Paths, ask kubeconfigs.Request) ([]byte, error) {
	body, err := json.Marshal(ask)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://zedkube"+kubeconfigs.Path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	client := boundedhttp.NewSocketClient(p.Socket)
	defer client.CloseIdleConnections()
	answer, err := boundedhttp.Do(client, r, maxKubeconfig)
	said := terminal.Clean(strings.TrimSpace(string(answer.Body)))
	switch {
	case err != nil:
		return nil, terminal.ExitWith(terminal.ExitNotPublished, fmt.Errorf("ask the agent: %w", err))
	case answer.Code == http.StatusCreated && len(answer.Body) <= maxKubeconfig:
		return answer.Body, nil
	case answer.Code == http.StatusNotFound:
		said = "the running agent has another version, which does not support this. Restart it with this version"
	case said == "" || answer.Code < http.StatusBadRequest:
		said = fmt.Sprintf("the agent did not issue a kubeconfig: HTTP %d", answer.Code)
	}
	return nil, terminal.ExitWith(cmp.Or(exits[answer.Code], 1), errors.New(said))
}

// Bounds of the certificate of an agent. k3s signs none for longer than a year.
const (
	agentAtLeast = time.Hour
	agentAtMost  = 365 * 24 * time.Hour
)

func newAgentCommand(o *device.Options) *cobra.Command {
	var lasts time.Duration
	c := &cobra.Command{
		Use:   "agent NODE",
		Short: "Issue a kubeconfig for zedkube itself, which may do no more than it needs",
		Long: "Issue a kubeconfig for zedkube on that node, and print it. It may do only what deploy/rbac.yaml says, once that is\n" +
			"applied, and leads to the same API server as the kubeconfig of this command, which has to be an administrator's.\n" +
			"It cannot be revoked. See docs/operations.md, \"A kubeconfig for zedkube alone\".\n\n" + exitCodes,
		Example: "  (umask 077; zedkube kubeconfig agent node-1 > zedkube.kubeconfig)",
		Args:    terminal.Words(1),
		RunE: func(c *cobra.Command, args []string) error {
			if lasts < agentAtLeast || lasts > agentAtMost {
				return fmt.Errorf("the kubeconfig of an agent is issued for %s to %s", agentAtLeast, agentAtMost)
			}
			text, err := issueAgent(types.Because(types.ActAs(c.Context(), "command"), "OPERATOR", "zedkube kubeconfig agent "+args[0]), o.Paths(), args[0], lasts)
			if err == nil {
				_, err = c.OutOrStdout().Write(text)
			}
			return err
		},
	}
	c.Flags().DurationVar(&lasts, "for", agentAtMost, "how long it is valid")
	return c
}

func issueAgent(ctx context.Context, p device.Paths, name string, lasts time.Duration) (text []byte, err error) {
	nodes, err := device.FreshNodes(ctx, p)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(nodes, func(n types.Node) bool { return n.Name == name })
	if i < 0 {
		return nil, terminal.ExitWith(exitRefused, fmt.Errorf("the cluster has no node %q: zedkube nodes", terminal.Clean(name)))
	}
	err = device.WithAPI(ctx, p, func(kube *kubeapi.Client) error {
		text, err = kube.IssueAgentKubeconfig(ctx, nodes[i], lasts)
		return err
	})
	return text, err
}

// issued is what the list shows.
type issued struct {
	ReadAt      time.Time
	Items       []types.IssuedKubeconfig
	Kubeconfigs []types.IssuedKubeconfig // what Items was called before
}

func newListCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	return terminal.List[types.IssuedKubeconfig](&out, &cobra.Command{
		Use:   "list",
		Short: "List the kubeconfigs that were issued and have not expired, of all nodes",
		Long:  "List the kubeconfigs that were issued and have not expired, of all nodes, without their tokens.\n\n" + exitCodes,
		Args:  terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := listed(c.Context(), o.Paths())
			if err != nil {
				return err
			}
			list = terminal.Selected(&out, list)
			v := issued{device.Now(o.Root), list, list}
			view := terminal.View{Data: v, Draw: v.draw}
			for _, k := range list {
				view.Names = append(view.Names, k.Name)
			}
			return out.Print(terminal.Of(c.OutOrStdout()), view)
		},
	}, "kubeconfig", issuedTable())
}

func issuedTable() terminal.Table {
	return terminal.Table{Columns: []terminal.Column{{Title: "NAME"}, {Title: "ROLE"}, {Title: "EXPIRES"}, {Title: "NODE", Keep: 3}, {Title: "REASON", Keep: 2}, {Title: "ASKED BY", Keep: 1}}}
}

// listed are the issued kubeconfigs, by what expires first.
func listed(ctx context.Context, p device.Paths) (list []types.IssuedKubeconfig, err error) {
	err = device.WithAPI(ctx, p, func(kube *kubeapi.Client) error {
		list, err = kube.Kubeconfigs(ctx)
		return err
	})
	slices.SortFunc(list, func(a, b types.IssuedKubeconfig) int { return a.Expires.Compare(b.Expires) })
	return list, err
}

func (v issued) draw(s *terminal.Screen) {
	if len(v.Kubeconfigs) == 0 {
		s.Put(0, terminal.Plain, "No issued kubeconfig is valid.")
		return
	}
	t := issuedTable()
	for _, k := range v.Kubeconfigs {
		var row []terminal.Cell
		for _, text := range []string{k.Name, k.Role, terminal.Stamp(k.Expires, v.ReadAt), k.Node, k.Reason, k.From} {
			row = append(row, terminal.Cell{Text: terminal.Clean(text)})
		}
		t.Rows = append(t.Rows, row)
	}
	t.Draw(s)
}

func newRevokeCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	return out.Flag(&cobra.Command{
		Use:   "revoke NAME",
		Short: "Revoke a kubeconfig that was issued, on whatever node",
		Long:  "Revoke a kubeconfig that was issued, on whatever node. The API server refuses its token within ten seconds.\n\n" + exitCodes,
		Args:  terminal.Words(1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx := types.Because(types.ActAs(c.Context(), "command"), "OPERATOR", "zedkube kubeconfig revoke "+args[0])
			return out.RunAction(c, func(w io.Writer) error { return revoke(ctx, w, o.Paths(), terminal.Named("kubeconfig", args[0])) })
		},
	})
}

func revoke(ctx context.Context, out io.Writer, p device.Paths, name string) error {
	list, err := listed(ctx, p)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(k types.IssuedKubeconfig) bool { return k.Name == name })
	if i < 0 {
		return terminal.ExitWith(exitRefused, fmt.Errorf("no issued kubeconfig %q is valid: zedkube kubeconfig list", terminal.Clean(name)))
	}
	if err := device.WithAPI(ctx, p, func(kube *kubeapi.Client) error { return kube.RevokeKubeconfig(ctx, list[i]) }); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s is revoked: the API server refuses its token within ten seconds.\n", name)
	return nil
}
