// Package edgecmd has the commands of zedkube-edge (docs/edge.md, "Commands").
package edgecmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/edge/cloud"
	"github.com/zedkube/zedkube/pkg/edge/object"
	"github.com/zedkube/zedkube/pkg/edge/settings"
	"github.com/zedkube/zedkube/types"
)

// Kubeconfig is where k3s has that of an administrator, on a device.
const Kubeconfig = "/run/.kube/k3s/k3s.yaml"

// Cluster is what commands need of the cluster.
type Cluster interface {
	Get(ctx context.Context, r object.Ref) (object.Object, error)
	List(ctx context.Context, v cloud.View) ([]object.Object, error)
	Apply(ctx context.Context, r object.Ref, o object.Object, dry bool) (object.Object, error)
	Create(ctx context.Context, r object.Ref, o object.Object) error
	Update(ctx context.Context, r object.Ref, o object.Object) error
	Delete(ctx context.Context, r object.Ref, uid string) error
	Evict(ctx context.Context, r object.Ref, uid string) (blocked string, err error)
}

// Program is what the commands are given by main.
type Program struct {
	Version string
	Connect func(kubeconfig string) (Cluster, error)
	Control func(ctx context.Context, kubeconfig string) error // the controller, until ctx is done
	Stream  func(ctx context.Context, kubeconfig string) error // what stands before cloudcore's stream, until ctx is done
	Close   func() error                                       // closes the ports that cloudcore itself has, to others than its pod
	// Certificates stands before the port at which devices get certificates, in a pod, until ctx is done.
	Certificates func(ctx context.Context, kubeconfig string) error
	// Tunnel stands before the port at which edge nodes open their tunnels, in a pod, until ctx is done.
	Tunnel func(ctx context.Context, kubeconfig string) error
	Path   func(ctx context.Context, kubeconfig string) error // the path on one server, until ctx is done
	Record func(root string) types.OperationLog               // the audit trail of the device
}

// New is the command line. It is "zedkube edge", too, which runs this program.
func New(p Program) *cobra.Command {
	root := &cobra.Command{
		Use:   "zedkube-edge",
		Short: "KubeEdge in the cluster: nodes beyond it",
		Long: "KubeEdge in the cluster: its cloud side for nodes beyond it, which are too small for k3s, behind NAT or away for hours.\n" +
			"Off until \"zedkube-edge enable\". As \"zedkube edge\" it is the same.",
		Example: "  zedkube-edge status\n  zedkube-edge enable --dry-run",
		Args:    terminal.NoCommand, SilenceUsage: true, SilenceErrors: true, Version: p.Version,
	}
	terminal.Helpful(root)
	c := &commands{Program: p}
	root.PersistentFlags().StringVar(&c.root, "root", "", "directory that prefixes the default of --kubeconfig")
	root.PersistentFlags().StringVar(&c.kubeconfig, "kubeconfig", "", "kubeconfig file (default <root>"+Kubeconfig+"; of controller: what its pod is given)")
	root.AddCommand(c.enable(), c.disable(), c.set(), c.status(), c.join(), c.wait(), c.leave())
	root.AddCommand(c.pods()...)
	return root
}

type commands struct {
	Program
	root, kubeconfig string
}

// dial connects as an administrator.
func (c *commands) dial() (Cluster, error) {
	return c.Connect(cmp.Or(c.kubeconfig, filepath.Join(c.root, Kubeconfig)))
}

// audited does what was confirmed, with a line of the audit trail.
func (c *commands) audited(o types.Operation, do func() error) error {
	o.Component, o.By = "command", "OPERATOR"
	end := c.Record(c.root).Begin(o)
	err := do()
	switch {
	case err == nil:
		end(types.OperationOK, nil)
	case terminal.ExitCode(err) == terminal.ExitFound:
		end(types.OperationRefused, err)
	default:
		end(types.OperationFailed, err)
	}
	return err
}

// pods are what the containers in the cluster run.
func (c *commands) pods() []*cobra.Command {
	of := func(name, short string, run func(ctx context.Context, kubeconfig string) error) *cobra.Command {
		return &cobra.Command{
			Use: name, Short: short, Args: terminal.Words(0), Hidden: true,
			RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), c.kubeconfig) },
		}
	}
	return []*cobra.Command{
		of("controller", "Keep KubeEdge as the settings say, once elected", c.Control),
		of("close-ports", "Close the ports of cloudcore before which others stand", func(context.Context, string) error { return c.Close() }),
		of("stream", "Pass on requests for edge nodes to cloudcore, of those who may", c.Stream),
		of("certificates", "Pass on requests for certificates to cloudcore, of devices for their own names", c.Certificates),
		of("tunnel", "Pass on tunnels to cloudcore, of edge nodes for their own names", c.Tunnel),
		of("path", "Lead requests for edge nodes to cloudcore, on this server", c.Path),
	}
}

// acting is a command that shows its plan first.
type acting struct {
	yes, dry, force bool
	in              io.Reader
	out             io.Writer
}

func (a *acting) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.yes, "yes", false, "do not ask for confirmation; what is refused stays refused")
	cmd.Flags().BoolVar(&a.dry, "dry-run", false, "show the plan, and change nothing")
}

func (a *acting) on(cmd *cobra.Command) { a.in, a.out = cmd.InOrStdin(), cmd.OutOrStdout() }

func (a *acting) say(format string, v ...any) { fmt.Fprintf(a.out, format+"\n", v...) }

// confirm reports whether to go on.
func (a *acting) confirm(ctx context.Context) (bool, error) {
	if a.dry {
		a.say("Nothing was changed.")
		return false, nil
	}
	if a.yes {
		return true, nil
	}
	f, isFile := a.in.(*os.File)
	err := terminal.Confirm(ctx, a.in, a.out, !isFile || terminal.Of(f).Fd >= 0, "To continue, type yes: ", "yes")
	return err == nil, err
}

// refused is the error for what a rule does not allow.
func refused(err error) error {
	return terminal.ExitWith(terminal.ExitFound, fmt.Errorf("refused: %w", err))
}

// current are the settings in the cluster, and their object; nil for none.
func current(ctx context.Context, kube Cluster) (settings.Settings, object.Object, error) {
	at, err := kube.Get(ctx, cloud.RefSettings)
	if err != nil || at == nil {
		return settings.Default(), nil, err
	}
	s, err := settings.Parse([]byte(at.Text("data", cloud.SettingsAt)))
	if err != nil {
		err = fmt.Errorf("the present settings cannot be used, see kubectl -n %s edit configmap %s: %w", cloud.Where, cloud.Controller, err)
	}
	return s, at, err
}

// write writes the settings, if they are still those that were read.
func write(ctx context.Context, kube Cluster, at object.Object, s settings.Settings) error {
	text, err := s.Text()
	if err != nil {
		return err
	}
	content := object.Map{"data": object.Map{cloud.SettingsAt: text}}
	if at == nil {
		return kube.Create(ctx, cloud.RefSettings, object.New(cloud.RefSettings).With(content))
	}
	return kube.Update(ctx, cloud.RefSettings, at.With(content))
}
