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
	"github.com/zedkube/zedkube/pkg/edge/settings"
)

func (c *commands) status() *cobra.Command {
	var out terminal.Outputs
	return out.Flag(&cobra.Command{
		Use: "status", Short: "Show whether KubeEdge is on, and what is wrong", Args: terminal.Words(0),
		Long: "Show whether KubeEdge is on, the addresses and ports that edge nodes need, and what is wrong.\n" +
			"Exit code 0: off, or nothing is wrong. 1: it cannot be told. 3: something is.",
		Example: "  zedkube-edge status\n  zedkube-edge status -o json",
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
			if out.People() {
				show(cmd.OutOrStdout(), r)
			} else if err := out.Encode(cmd.OutOrStdout(), newDocument(r), "  "); err != nil {
				return err
			}
			if len(r.Problems) > 0 {
				return terminal.ExitWith(terminal.ExitFound, errors.New("there are problems"))
			}
			return nil
		},
	})
}

// document is what -o json says.
type document struct {
	Enabled     bool
	Wanted      int // cloudcores
	Available   int // of them
	Addresses   []string
	Ports       []port           // that a firewall has to let through
	Certificate *time.Time       // until when that of the stream is valid
	Nodes       []cloud.EdgeNode // and the names that were asked to join, or were edge nodes
	Warnings    []string
	Problems    []string
	Settings    []settings.Row
}

type port struct {
	Port           int
	Protocol, Name string
}

func newDocument(r cloud.Report) document {
	d := document{
		Enabled: r.Enabled, Wanted: r.Wanted, Available: r.Available, Addresses: r.Addresses, Certificate: r.Stream,
		Warnings: r.Settings.Warnings(), Problems: r.Problems, Settings: r.Settings.Rows(), Nodes: r.Edge,
	}
	for _, p := range r.Settings.Open() {
		d.Ports = append(d.Ports, port{p.Port, strings.ToLower(p.Protocol), p.Name})
	}
	return d
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
		showEdge(w, r.Edge)
		for _, text := range r.Settings.Warnings() {
			fmt.Fprintf(w, "Warning: %s.\n", text)
		}
	}
	for _, text := range r.Problems {
		fmt.Fprintf(w, "Problem: %s.\n", terminal.Clean(text))
	}
}

// showEdge prints one line for each edge node, and each name that was asked to join or was one.
func showEdge(w io.Writer, list []cloud.EdgeNode) {
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	for _, n := range list {
		text := n.State
		if !n.Since.IsZero() {
			text += " since " + at(n.Since)
		}
		switch {
		case n.State == "asked" && !n.TokenUntil.IsZero():
			text += ", token until " + at(n.TokenUntil)
		case n.Unknown:
			text += ", not asked to join: cloudcore writes nothing of it until zedkube-edge join " + n.Name
		case n.TakenOver:
			text += ", joined before the record"
		case n.State == "refused":
			text += ", as lost"
		case n.State == "Ready":
			text += ", asked at " + at(n.AskedAt)
		}
		fmt.Fprintf(w, "    %-20s %-15s %s\n", n.Name, n.Address, text)
	}
}
