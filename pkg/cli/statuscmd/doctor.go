package statuscmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/health"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// NewDoctorCommand examines the preconditions of a healthy node.
func NewDoctorCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	var only []string
	c := &cobra.Command{
		Use:   "doctor [--only CHECK,...]",
		Short: "Check what a healthy node needs: verdict, evidence, remedy",
		Long: "Check what a healthy node needs, all at the same time, each within two seconds: verdict, evidence and remedy.\n" +
			"It needs neither agent nor API server: what cannot be known without them is unknown. On a copy of another device's\n" +
			"files (--root) only what the files show is checked.\n\nChecks:\n" + checkNames() + "\n" + doctorExitCodes,
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := out.Parse(); err != nil {
				return err
			}
			d, err := newDoctor(o.Paths(), time.Now())
			if err != nil {
				return err
			}
			defer d.close()
			checks, unknown := health.Named(d.device.Checks(), only)
			if len(unknown) > 0 {
				return terminal.ExitWith(terminal.ExitUsage, fmt.Errorf("there is no check %s; zedkube doctor --help lists them", terminal.Clean(strings.Join(unknown, ", "))))
			}
			return out.Show(c.Context(), terminal.Of(c.OutOrStdout()), time.Second, func(ctx context.Context) terminal.View {
				return viewFindings(health.Examine(ctx, checks))
			})
		},
	}
	out.Flag(c)
	c.Flags().StringSliceVar(&only, "only", nil, "run only these checks, by name")
	_ = c.RegisterFlagCompletionFunc("only", func(*cobra.Command, []string, string) (names []string, d cobra.ShellCompDirective) {
		for _, c := range new(health.Device).Checks() {
			names = append(names, c.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
	return c
}

const doctorExitCodes = `Exit codes:
  0   nothing is wrong, or it cannot be known
  1   wrong usage, or the output could not be written
  3   a check fails
  99  unknown command`

func checkNames() string {
	var b strings.Builder
	for _, c := range new(health.Device).Checks() {
		fmt.Fprintf(&b, "  %-20s%s\n", c.Name, c.What)
	}
	return b.String()
}

// examination is a doctor with its ways to the cluster.
type examination struct {
	device *health.Device
	asked  *device.NodesAsked
}

func (e *examination) close() { e.asked.Close() }

func newDoctor(p device.Paths, now time.Time) (*examination, error) {
	root := p.Root
	if root != "" {
		abs, err := filepath.Abs(root)
		if err != nil {
			return nil, fmt.Errorf("find %s: %w", root, err)
		}
		root = abs
	}
	seen := health.Read(p.Root, now)
	e := &examination{asked: &device.NodesAsked{Paths: p}}
	e.device = &health.Device{
		Root: root, Kubeconfig: p.Kubeconfig, Socket: p.Socket, Seen: seen,
		Nodes: e.nodes,
		ReadKubeconfig: func(path string, copied bool) (health.Kubeconfig, error) {
			k, err := kubeapi.ReadKubeconfig(path, copied)
			return health.Kubeconfig(k), err
		},
		Lock: func(ctx context.Context) (lock types.DrainLock, err error) {
			err = device.WithAPI(ctx, p, func(kube *kubeapi.Client) error {
				lock, err = kube.DrainLock(ctx)
				return err
			})
			return lock, err
		},
	}
	return e, nil
}

// nodes asks the sources that may know, in order, until one answers.
func (e *examination) nodes(ctx context.Context) (overview.Nodes, error) {
	v := e.asked.Look(ctx)
	if len(v.Nodes.List) == 0 {
		return v.Nodes, errors.New(cmp.Or(strings.Join(v.Problems, "; "), "no source has them"))
	}
	return v.Nodes, nil
}

// viewFindings are the findings for people and programs.
func viewFindings(found []types.Finding) terminal.View {
	s := terminal.View{Data: printed(found), Draw: func(s *terminal.Screen) { putFindings(s, found) }}
	var failed []string
	for _, f := range found {
		if f.Severity == types.SeverityBad {
			failed = append(failed, f.Rule)
		}
	}
	if len(failed) > 0 {
		s.Err = terminal.ExitWith(terminal.ExitFound, fmt.Errorf("failed checks: %s", strings.Join(failed, ", ")))
	}
	return s
}

// bad is what a check says that the severity calls so.
const bad = "fail"

// check is a finding as doctor prints it for programs.
type check struct {
	Check    string
	Verdict  string
	Evidence string
	Remedy   string `json:",omitzero"`
}

func printed(found []types.Finding) []check {
	list := make([]check, len(found))
	for i, f := range found {
		list[i] = check{f.Rule, f.Severity.Word(bad), f.Evidence, f.Remedy}
	}
	return list
}

// putFindings are a line for each finding, with its remedy below.
func putFindings(s *terminal.Screen, found []types.Finding) {
	looks := map[types.Severity]terminal.Style{types.SeverityOK: terminal.Green, types.SeverityWarn: terminal.Yellow, types.SeverityBad: terminal.Red, types.SeverityUnknown: terminal.Plain}
	count := map[types.Severity]int{}
	for _, f := range found {
		count[f.Severity]++
		s.Hang(fmt.Sprintf("%-8s%-20s", f.Severity.Word(bad), f.Rule), 28, looks[f.Severity], terminal.Clean(f.Evidence))
		if f.Remedy != "" {
			s.Hang(strings.Repeat(" ", 28)+"-> ", 31, terminal.Plain, terminal.Clean(f.Remedy))
		}
	}
	s.Gap()
	s.Put(0, terminal.Bold, fmt.Sprintf("%d ok, %d warn, %d fail, %d unknown", count[types.SeverityOK], count[types.SeverityWarn], count[types.SeverityBad], count[types.SeverityUnknown]))
}
