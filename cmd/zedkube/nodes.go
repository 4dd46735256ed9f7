package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// newNodesCommand shows the cluster's nodes.
func newNodesCommand(o *options) *cobra.Command {
	var out outputs
	c := &cobra.Command{
		Use:   "nodes [NODE] [--watch]",
		Short: "Show the cluster's nodes: Ready since when, cordoned by whom, which agent",
		Long: "Show the cluster's nodes: Ready since when, cordoned by whom, which agent. It asks the agent on this device, which\n" +
			"holds them; where none runs it takes the report that lies here, and else asks the API server.\n\n" + showExitCodes,
		Args: words(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := cmp.Or(out.parse(), checkDevice(*o)); err != nil {
				return err
			}
			a := &nodesAsked{paths: o.paths()}
			defer a.close()
			return out.show(c.Context(), terminalOf(c.OutOrStdout()), nodesEvery, func(ctx context.Context) shown {
				return shownNodes(a.look(ctx), args)
			})
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return completeNodes(c.Context(), o, args), cobra.ShellCompDirectiveNoFileComp
		},
	}
	out.flag(c)
	out.watchFlag(c)
	return c
}

// nodesEvery is how often nodes are asked for while somebody watches.
const nodesEvery = 2 * time.Second

// nodesView is what nodes shows.
type nodesView struct {
	ReadAt   time.Time
	Nodes    overview.Nodes
	Problems []string // why a better source could not be had
}

// shownNodes is a look at all nodes, or at the one that is named.
func shownNodes(v nodesView, only []string) shown {
	if len(only) > 0 {
		v.Nodes.List = slices.DeleteFunc(slices.Clone(v.Nodes.List), func(n overview.ClusterNode) bool { return n.Name != only[0] })
	}
	steady := v
	steady.ReadAt, steady.Nodes.At = time.Time{}, time.Time{}
	s := shown{
		data: v, steady: steady,
		lines: func(width int, colour bool) []string { return nodesLines(v, len(only) > 0, width, colour) },
	}
	for _, n := range v.Nodes.List {
		s.facts = append(s.facts, fact{clean(n.Name), nodeState(n)})
	}
	switch {
	case len(v.Nodes.List) > 0:
	case len(only) > 0 && v.Nodes.From != "":
		s.err = fmt.Errorf("the cluster has no node %q", clean(only[0]))
	case len(v.Problems) > 0: // said once, by the error
		s.err = exitWith(exitNotPublished, errors.New("the nodes cannot be had: "+clean(strings.Join(v.Problems, "; "))))
		s.lines = func(int, bool) []string { return nil }
	default:
		s.err = exitWith(exitNotPublished, errors.New("there are no nodes"))
	}
	return s
}

// nodesLines are the nodes as a screen.
func nodesLines(v nodesView, whole bool, width int, colour bool) []string {
	s := &screen{width: width, colour: colour}
	for _, p := range v.Problems {
		s.put(0, yellow, clean(p))
	}
	if len(v.Nodes.List) == 0 {
		return s.lines
	}
	if whole {
		for _, n := range v.Nodes.List {
			putNode(s, n, v.ReadAt)
		}
	} else {
		s.lines = append(s.lines, nodesTable(v.Nodes, v.ReadAt).lines(width, colour)...)
		for _, n := range v.Nodes.List {
			if n.Lost != "" {
				s.put(0, yellow, clean(n.Name)+": "+clean(n.Lost))
			}
		}
	}
	s.put(0, plain, "by "+clean(v.Nodes.From)+", "+age(v.Nodes.At, v.ReadAt))
	return s.lines
}

// nodesTable is a row for each node.
func nodesTable(nodes overview.Nodes, now time.Time) table {
	t := table{columns: []column{
		{"NODE", 0, false},
		{"STATUS", 0, false},
		{"FOR", 9, true},
		{"ROLES", 5, false},
		{"CORDON", 8, false},
		{"DRAIN", 7, false},
		{"AGENT", 4, false},
		{"ADDRESS", 6, false},
		{"KUBELET", 3, false},
		{"AGE", 2, true},
	}}
	for _, n := range nodes.List {
		cordon := cell{}
		if n.Cordoned {
			cordon = cell{cmp.Or(clean(n.CordonedBy), "yes"), yellow}
		}
		name := clean(n.Name)
		if n.Own {
			name += " *"
		}
		t.rows = append(t.rows, []cell{
			{text: name},
			{nodeStatus(n), nodeLook(n)},
			{text: shortAge(n.Since, now)},
			{text: clean(strings.Join(n.Roles, ","))},
			cordon,
			{clean(n.Drain), yellow},
			nodeAgent(n),
			{text: clean(n.Address)},
			{text: clean(n.Kubelet)},
			{text: shortAge(n.Created, now)},
		})
	}
	return t
}

// nodeAgent is the version of a node's agent, and whether it is one of the past.
func nodeAgent(n overview.ClusterNode) cell {
	if n.AgentStale {
		return cell{clean(n.Agent) + " (stale)", yellow}
	}
	return cell{text: clean(n.Agent)}
}

func nodeLook(n overview.ClusterNode) style {
	switch n.Status {
	case types.KubeNodeReady.String():
		if len(n.Pressures) > 0 {
			return yellow
		}
		return green
	case types.KubeNodeUnknown.String():
		return yellow
	}
	return red
}

// nodeStatus is a node's status with the pressures that it is under.
func nodeStatus(n overview.ClusterNode) string {
	text := clean(n.Status)
	for _, p := range n.Pressures {
		text += "," + clean(p)
	}
	return text
}

// nodeState is a node in a line, without what changes by itself.
func nodeState(n overview.ClusterNode) string {
	text := nodeStatus(n)
	if n.Cordoned {
		text += ", cordoned"
		if n.CordonedBy != "" {
			text += " by " + clean(n.CordonedBy)
		}
	}
	for _, more := range []string{n.Drain, n.Lost} {
		if more != "" {
			text += ", " + clean(more)
		}
	}
	return text
}

// putNode is all that is known of one node.
func putNode(s *screen, n overview.ClusterNode, now time.Time) {
	s.put(0, nodeLook(n), clean(n.Name)+": "+nodeStatus(n)+", since "+stamp(n.Since, now))
	for _, f := range []struct{ label, text string }{
		{"roles", strings.Join(n.Roles, ", ")},
		{"UUID", n.UUID},
		{"address", n.Address},
		{"external", n.External},
		{"kubelet", n.Kubelet},
		{"agent", n.Agent},
		{"drain", n.Drain},
		{"device", n.Lost},
		{"admission", n.Admission},
	} {
		if f.text != "" {
			s.field(f.label, plain, clean(f.text))
		}
	}
	if n.Cordoned {
		text := cmp.Or(clean(n.CordonedBy), "by whom is not known")
		if n.CordonWhy != "" {
			text += ": " + clean(n.CordonWhy)
		}
		if !n.CordonSince.IsZero() {
			text += ", since " + stamp(n.CordonSince, now)
		}
		s.field("cordon", yellow, text)
	}
	if !n.AgentAt.IsZero() {
		s.field("stamp", plain, "its agent wrote to the Node "+stamp(n.AgentAt, now))
	}
	if n.AgentStale {
		s.field("stamp", yellow, fmt.Sprintf("it has not been renewed for %s or longer: no zedkube may run there any more. If it does not: zedkube members forget %s", types.StampFresh, clean(n.Name)))
	}
	if !n.Created.IsZero() {
		s.field("created", plain, stamp(n.Created, now))
	}
}
