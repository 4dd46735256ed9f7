// Package statuscmd is what is wrong here and what to do about it: zedkube status and
// doctor.
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
	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/cli/appscmd"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/draincmd"
	"github.com/zedkube/zedkube/pkg/cli/nodescmd"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/health"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// NewStatusCommand shows what a device's files say, what is wrong first.
func NewStatusCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	var check bool
	c := &cobra.Command{
		Use:   "status [--check] [--watch]",
		Short: "Show problems and what to do about them, and the state of node, cluster, drain, applications and storage",
		Long: "Show problems of this node, since when and what to do about them; then the state of node, cluster, drain, applications\n" +
			"and storage, each with its age. It reads files; neither the agent nor the API server has to run. An agent\n" +
			"that is running is asked for the nodes if no file has them. With --root it reads a copy of a device's files.\n\n" + terminal.ShowExitCodes,
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := device.CheckDevice(o.Paths()); err != nil {
				return err
			}
			a := &device.NodesAsked{Paths: o.Paths()}
			defer a.Close()
			return out.Show(c.Context(), terminal.Of(c.OutOrStdout()), terminal.WatchEvery, func(ctx context.Context) terminal.View {
				return viewStatus(a.Overview(ctx, time.Now()), check)
			})
		},
	}
	terminal.Lists(&out, c)
	out.WatchFlag(c)
	c.Flags().BoolVar(&check, "check", false, "exit with code 3 if there is a problem")
	return c
}

func viewStatus(o overview.Overview, check bool) terminal.View {
	s := terminal.View{
		Data: o, Steady: overview.Steady(o), Rows: statusRows(o),
		Draw: func(s *terminal.Screen) { putStatus(s, o) },
	}
	for _, p := range o.Problems {
		s.Names = append(s.Names, "problem/"+p.Rule)
	}
	for _, a := range o.Apps.List {
		s.Names = append(s.Names, "app/"+a.UUID)
	}
	for _, n := range o.Nodes.List {
		s.Names = append(s.Names, "node/"+n.Name)
	}
	if n := len(o.Problems); check && n > 0 {
		s.Err = terminal.ExitWith(terminal.ExitFound, errors.New(problemsText(n)))
	}
	return s
}

func problemsText(n int) string {
	if n == 0 {
		return "no problem, as far as this node knows"
	}
	return phrase.Counted(n, "problem")
}

// statusRows are the lines of status --watch in a pipe: problems as they come
// and go, and the state of what changes by nature.
func statusRows(o overview.Overview) (rows []terminal.Row) {
	add := func(key, text string) { rows = append(rows, terminal.Row{Key: key, Text: text}) }
	for _, p := range o.Problems {
		add("problem "+terminal.Clean(p.Rule+" "+p.Subject), terminal.Clean(p.Evidence))
	}
	if len(o.Problems) == 0 {
		add("problems", "none")
	}
	if p := o.Drain.Progress; p != nil {
		_, text := draincmd.PhaseText(*p)
		add("drain", text)
	}
	if o.Lease.Known() {
		add("leader", terminal.OrNone(terminal.Clean(o.Lease.Leader)))
	}
	for _, n := range o.Nodes.List {
		add("node "+terminal.Clean(n.Name), nodescmd.NodeState(n))
	}
	for _, a := range o.Apps.List {
		add("app "+terminal.Clean(a.Name), appscmd.AppState(a)+" on "+terminal.OrNone(terminal.Clean(a.Node)))
	}
	return rows
}

// NewDoctorCommand examines the preconditions of a healthy node.
func NewDoctorCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	var only, names []string
	help := ""
	for _, c := range new(health.Device).Checks() {
		names = append(names, c.Name)
		help += fmt.Sprintf("  %-20s%s\n", c.Name, c.What)
	}
	c := &cobra.Command{
		Use:   "doctor [--only CHECK,...]",
		Short: "Check what a healthy node needs: verdict, evidence, remedy",
		Long: "Check what a healthy node needs, all at the same time, each within two seconds: verdict, evidence and remedy.\n" +
			"It needs neither agent nor API server: what cannot be known without them is unknown. On a copy of another device's\n" +
			"files (--root) only what the files show is checked.\n\nChecks:\n" + help + "\n" + doctorExitCodes,
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error {
			asked := &device.NodesAsked{Paths: o.Paths()}
			d, err := newDoctor(asked, time.Now())
			if err != nil {
				return err
			}
			defer asked.Close()
			for i, name := range only {
				only[i] = terminal.Named("check", name)
			}
			checks, unknown := health.Named(d.Checks(), only)
			if len(unknown) > 0 {
				return terminal.ExitWith(terminal.ExitUsage, fmt.Errorf("there is no check %s; zedkube doctor --help lists them", terminal.Clean(strings.Join(unknown, ", "))))
			}
			return out.Show(c.Context(), terminal.Of(c.OutOrStdout()), time.Second, func(ctx context.Context) terminal.View {
				return viewFindings(health.Examine(ctx, checks))
			})
		},
	}
	terminal.Lists(&out, c)
	c.Flags().StringSliceVar(&only, "only", nil, "run only these checks, by name")
	terminal.Completed(c, "only", names...)
	return c
}

const doctorExitCodes = `Exit codes:
  0   nothing is wrong, or it cannot be known
  1   wrong usage, or the output could not be written
  3   a check fails
  99  unknown command`

func newDoctor(asked *device.NodesAsked, now time.Time) (*health.Device, error) {
	p := asked.Paths
	root := p.Root
	if root != "" {
		abs, err := filepath.Abs(root)
		if err != nil {
			return nil, fmt.Errorf("find %s: %w", root, err)
		}
		root = abs
	}
	seen := health.Read(p.Root, now)
	return &health.Device{
		Root: root, Kubeconfig: p.Kubeconfig, Socket: p.Socket, Seen: seen,
		Nodes: func(ctx context.Context) (overview.Nodes, error) { // of the sources that may know, in order, until one answers
			v := asked.Look(ctx)
			if len(v.Nodes.List) == 0 {
				return v.Nodes, errors.New(cmp.Or(strings.Join(v.Problems, "; "), "no source has them"))
			}
			return v.Nodes, nil
		},
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
	}, nil
}

func viewFindings(found []types.Finding) terminal.View {
	s := terminal.View{Data: printed(found), Draw: func(s *terminal.Screen) { putFindings(s, found) }}
	var failed []string
	for _, f := range found {
		s.Names = append(s.Names, "check/"+f.Rule)
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
