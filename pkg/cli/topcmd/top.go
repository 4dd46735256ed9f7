// Package topcmd is zedkube top.
package topcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/types"
)

const topExitCodes = `Exit codes:
  0   it was shown
  1   wrong usage, or it could not be printed
  2   there is nothing to show: no agent is running here, and the API server cannot be queried
  99  unknown command`

// What a table is of.
const (
	topNodes      = "nodes"
	topPods       = "pods"
	topContainers = "containers"
)

type topOptions struct {
	of    string
	all   bool // pods of every namespace
	sort  string
	once  bool
	json  bool // data is wanted, in the form of out
	out   terminal.Outputs
	ascii bool
}

// NewTopCommand shows what nodes, pods and containers use.
func NewTopCommand(o *device.Options) *cobra.Command {
	t := topOptions{}
	c := &cobra.Command{
		Use:   "top [nodes|pods|containers] [--all] [--sort cpu|memory|name] [--once]",
		Short: "Show the resource usage of nodes, pods and containers, live",
		Long: "Show live the resource usage of all nodes of the cluster, or of the pods or containers of this one.\n" +
			"This node's values come from the agent, which measures every 5 s while this command runs. Other nodes'\n" +
			"kubelets are asked through the API server. A value older than 15 s is marked with !; for pods and containers,\n" +
			"one older than 25 s, because kubelets measure them every 10 to 15 s. Unknown values are shown as -.\n" +
			"q quits, c m n sort by cpu, memory or name, the arrow keys, space and b scroll.\n\n" + topExitCodes,
		RunE: func(c *cobra.Command, args []string) error {
			if err := t.parse(args); err != nil {
				return err
			}
			// Also when the terminal goes away the agent is told that nobody looks.
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGHUP, syscall.SIGPIPE)
			defer stop()
			return showTop(ctx, o.Paths(), t, terminal.Of(c.OutOrStdout()))
		},
		ValidArgs: []string{topNodes, topPods, topContainers},
	}
	flags := c.Flags()
	flags.BoolVar(&t.all, "all", false, "pods and containers of every namespace, not only those of applications")
	flags.StringVar(&t.sort, "sort", sortCPU, "cpu, memory or name")
	flags.BoolVar(&t.once, "once", false, "print one table and exit; the default if there is no terminal")
	flags.BoolVar(&t.json, "json", false, "the same as -o json: a line of JSON every 5 s; with --once a single one")
	t.out.Flag(c)
	terminal.Completed(c, "sort", sortCPU, sortMemory, sortName)
	flags.BoolVar(&t.ascii, "ascii", !localeIsUTF8(), "digits instead of blocks; the default if the locale is not UTF-8")
	return c
}

// parse checks the command's words.
func (t *topOptions) parse(args []string) error {
	t.of, t.json = topNodes, t.json || !t.out.People()
	if len(args) == 1 {
		t.of = args[0]
	}
	switch {
	case len(args) > 1:
		return terminal.ExitWith(terminal.ExitUsage, errors.New("usage: zedkube top [nodes|pods|containers]"))
	case !slices.Contains([]string{topNodes, topPods, topContainers}, t.of):
		return terminal.ExitWith(terminal.ExitUsage, fmt.Errorf("table %q: want nodes, pods or containers", terminal.Clean(t.of)))
	case !slices.Contains([]string{sortCPU, sortMemory, sortName}, t.sort):
		return terminal.ExitWith(terminal.ExitUsage, fmt.Errorf("sort %q: want cpu, memory or name", terminal.Clean(t.sort)))
	case t.all && t.of == topNodes:
		return terminal.ExitWith(terminal.ExitUsage, errors.New("--all is for pods and containers: all nodes are shown anyway"))
	}
	return nil
}

// localeIsUTF8 reads the locale's character set as the C library does.
func localeIsUTF8() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := os.Getenv(name); v != "" {
			v = strings.ToLower(v)
			return strings.HasSuffix(v, "utf-8") || strings.HasSuffix(v, "utf8")
		}
	}
	return false
}

// showTop asks the agent to look often for as long as it shows.
func showTop(ctx context.Context, p device.Paths, o topOptions, out terminal.Terminal) error {
	if err := device.CheckDevice(p); err != nil {
		return err
	}
	measuring, err := startMeasuring(p)
	if err != nil {
		return err
	}
	defer measuring.end()
	t := &top{options: o, out: out, measuring: measuring, files: newTopFiles(p), paths: p, wake: make(chan struct{}, 1)}
	t.asking.wake = t.wake
	if o.of == topNodes {
		kube, done, err := kubeapi.Dial(ctx, device.Silent(), p.Kubeconfig, types.NoOperations{})
		if err == nil {
			defer done()
			t.asking.kube = kube
		}
		t.asking.err = err
	}
	return t.run(ctx)
}
