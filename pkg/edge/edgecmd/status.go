package edgecmd

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/edge/cloud"
)

func (c *commands) status() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show whether KubeEdge is on, and what is wrong", Args: terminal.Words(0),
		Long: "Show whether KubeEdge is on, the addresses and ports that edge nodes need, and what is wrong.\n" +
			"Exit code 0: off, or nothing is wrong. 1: it cannot be told. 3: something is.",
		Example: "  zedkube-edge status",
		RunE: func(cmd *cobra.Command, _ []string) error {
			kube, err := c.dial()
			if err != nil {
				return err
			}
			seen, err := look(cmd.Context(), kube)
			if err != nil {
				return err
			}
			r := cloud.Judge(seen, time.Now())
			show(cmd.OutOrStdout(), r)
			if len(r.Problems) > 0 {
				return terminal.ExitWith(terminal.ExitFound, errors.New("there are problems"))
			}
			return nil
		},
	}
}

func show(w io.Writer, r cloud.Report) {
	if !r.Enabled {
		fmt.Fprintln(w, "KubeEdge is off: zedkube-edge enable --dry-run")
	} else {
		fmt.Fprintf(w, "KubeEdge is on, %d of %d cloudcores available\n", r.Available, r.Wanted)
		fmt.Fprintf(w, "  addresses    %s\n", strings.Join(r.Addresses, ", "))
		for i, p := range r.Settings.Open() {
			label := ""
			if i == 0 {
				label = "ports"
			}
			fmt.Fprintf(w, "  %-12s %d/%s  %s\n", label, p.Port, strings.ToLower(p.Protocol), p.Name)
		}
		if r.Stream != nil {
			fmt.Fprintf(w, "  certificate  of the stream, until %s\n", r.Stream.UTC().Format(time.DateOnly))
		}
		fmt.Fprintf(w, "  edge nodes   %d of %d Ready\n", len(r.Ready), len(r.Nodes))
		for _, text := range r.Settings.Warnings() {
			fmt.Fprintf(w, "Warning: %s.\n", text)
		}
	}
	for _, text := range r.Problems {
		fmt.Fprintf(w, "Problem: %s.\n", terminal.Clean(text))
	}
}
