// Package nodescmd is zedkube nodes.
package nodescmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/clusterview"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

// NewNodesCommand shows the cluster's nodes.
func NewNodesCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	cluster, edge := false, false
	c := device.ClusterFlag(out.WatchFlag(terminal.List[overview.ClusterNode](&out, &cobra.Command{
		Use:   "nodes [NODE] [--cluster] [--watch]",
		Short: "Show the cluster's nodes: status and since when, cordoned by whom, which agent",
		Long: "Show the cluster's nodes: status and since when, cordoned by whom, which agent. It asks the agent on this device, which\n" +
			"has them; if none is running it uses the report on this device, or else queries the API server.\n" +
			"With --cluster the agent asks every node of the cluster: how each sees the cluster, its drain and its problems.\n\n" + terminal.ShowExitCodes,
		Args: terminal.Words(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := device.CheckDevice(o.Paths()); err != nil {
				return err
			}
			if cluster {
				only := terminal.Named("node", strings.Join(args, ""))
				return device.ShowCluster(c, o.Paths(), &out, only, func(v device.ClusterView) terminal.View {
					v.Nodes = slices.DeleteFunc(v.Nodes, func(r clusterview.Row) bool {
						return only == "" && len(terminal.Selected(&out, []overview.ClusterNode{r.Node})) == 0
					})
					return viewCluster(v, args)
				})
			}
			a := &device.NodesAsked{Paths: o.Paths()}
			defer a.Close()
			look := func(ctx context.Context) device.NodesView {
				v := a.Look(ctx)
				if edge {
					v.Nodes.List = nil
				}
				if len(args) == 0 {
					v.Nodes.List, v.Nodes.Edge = terminal.Selected(&out, v.Nodes.List), selectedEdge(&out, v.Nodes.Edge)
				}
				return v
			}
			return out.Show(c.Context(), terminal.Of(c.OutOrStdout()), nodesEvery, watched(look, args))
		},
		ValidArgsFunction: terminal.CompleteArgs(device.NodeNames(o)),
	}, "node", NodesTable(overview.Nodes{}, time.Time{}))), &out, &cluster, "show phases, drains, reasons and problems", clusterTable(device.ClusterView{}))
	c.Flags().BoolVar(&edge, "edge", false, "only the nodes of KubeEdge, which are no members of the cluster")
	c.MarkFlagsMutuallyExclusive("edge", "cluster")
	return c
}

// listed is what programs get: Nodes is what Items was called before.
type listed struct {
	Items []overview.ClusterNode
	device.NodesView
}

// nodesEvery is how often nodes are asked for while somebody watches.
const nodesEvery = 2 * time.Second

// watched is what nodes shows again and again. A name that no node has ends it, unless a node
// had it before.
func watched(look func(context.Context) device.NodesView, only []string) func(context.Context) terminal.View {
	known := len(only) == 0
	return func(ctx context.Context) terminal.View {
		n := look(ctx)
		v := viewNodes(n, only)
		known = known || v.Err == nil
		v.Ended = !known && n.Nodes.From != ""
		return v
	}
}

func viewNodes(v device.NodesView, only []string) terminal.View {
	if len(only) > 0 {
		name := terminal.Named("node", only[0])
		v.Nodes.List = slices.DeleteFunc(slices.Clone(v.Nodes.List), func(n overview.ClusterNode) bool { return n.Name != name })
		v.Nodes.Edge = slices.DeleteFunc(slices.Clone(v.Nodes.Edge), func(n overview.EdgeNode) bool { return n.Name != name })
	}
	steady := v
	steady.ReadAt, steady.Nodes.At, steady.Nodes.Edge = time.Time{}, time.Time{}, overview.SteadyEdge(v.Nodes.Edge)
	s := terminal.View{
		Data: listed{v.Nodes.List, v}, Steady: steady,
		Draw: func(s *terminal.Screen) { putNodes(s, v, len(only) > 0) },
	}
	for _, n := range v.Nodes.List {
		s.Rows = append(s.Rows, terminal.Row{Key: terminal.Clean(n.Name), Text: NodeState(n)})
		s.Names = append(s.Names, n.Name)
	}
	for _, n := range v.Nodes.Edge {
		s.Rows = append(s.Rows, terminal.Row{Key: terminal.Clean(n.Name), Text: edgeStatus(n)})
		s.Names = append(s.Names, n.Name)
	}
	switch {
	case len(v.Nodes.List)+len(v.Nodes.Edge) > 0:
	case len(only) > 0 && v.Nodes.From != "":
		s.Err = fmt.Errorf("the cluster has no node %q", terminal.Clean(only[0]))
	case len(v.Problems) > 0: // said once, by the error
		s.Err = terminal.ExitWith(terminal.ExitNotPublished, errors.New("the nodes could not be read: "+terminal.Clean(strings.Join(v.Problems, "; "))))
		s.Draw = nil
	default:
		s.Err = terminal.ExitWith(terminal.ExitNotPublished, errors.New("there are no such nodes"))
	}
	return s
}

// putNodes are the nodes, or all that is known of the only one.
func putNodes(s *terminal.Screen, v device.NodesView, whole bool) {
	for _, p := range v.Problems {
		s.Put(0, terminal.Yellow, terminal.Clean(p))
	}
	if len(v.Nodes.List)+len(v.Nodes.Edge) == 0 {
		return
	}
	if whole {
		for _, n := range v.Nodes.Edge {
			putEdge(s, n, v.ReadAt)
		}
		for _, n := range v.Nodes.List {
			putNode(s, n, v.ReadAt)
		}
	} else {
		NodesTable(v.Nodes, v.ReadAt).Draw(s)
		for _, n := range v.Nodes.List {
			if n.Lost != "" {
				s.Put(0, terminal.Yellow, terminal.Clean(n.Name)+": "+terminal.Clean(n.Lost))
			}
		}
	}
	PutSource(s, v.Nodes, v.ReadAt)
}

// PutSource says who has the nodes so, and when that was.
func PutSource(s *terminal.Screen, nodes overview.Nodes, now time.Time) {
	if nodes.At.After(now) {
		now = nodes.At // they were asked for after the files were read
	}
	s.Foot("by " + terminal.Clean(nodes.From) + ", " + terminal.Age(nodes.At, now))
}

// NodesTable is a row for each node.
func NodesTable(nodes overview.Nodes, now time.Time) terminal.Table {
	t := terminal.Table{Columns: []terminal.Column{
		{Title: "NODE", Keep: 0, Right: false},
		{Title: "STATUS", Keep: 0, Right: false},
		{Title: "FOR", Keep: 9, Right: true},
		{Title: "ROLES", Keep: 5, Right: false},
		{Title: "CORDON", Keep: 8, Right: false},
		{Title: "DRAIN", Keep: 7, Right: false},
		{Title: "AGENT", Keep: 4, Right: false},
		{Title: "ADDRESS", Keep: 6, Right: false},
		{Title: "KUBELET", Keep: 3, Right: false},
		{Title: "AGE", Keep: 2, Right: true},
	}}
	for _, n := range nodes.List {
		cordon := terminal.Cell{}
		if n.Cordoned {
			cordon = terminal.Cell{Text: cmp.Or(terminal.Clean(n.CordonedBy), "yes"), Look: terminal.Yellow}
		}
		name := terminal.Clean(n.Name)
		if n.Own {
			name += " *"
		}
		t.Rows = append(t.Rows, []terminal.Cell{
			{Text: name},
			{Text: nodeStatus(n), Look: nodeLook(n)},
			{Text: terminal.ShortAge(n.Since, now)},
			{Text: terminal.Clean(strings.Join(n.Roles, ","))},
			cordon,
			{Text: drainText(n), Look: terminal.Yellow},
			nodeAgent(n),
			{Text: terminal.Clean(n.Address)},
			{Text: terminal.Clean(n.Kubelet)},
			{Text: terminal.ShortAge(n.Created, now)},
		})
	}
	for _, n := range nodes.Edge {
		t.Rows = append(t.Rows, edgeRow(n, now))
	}
	return t
}

// drainText is the drain of a node, as its agent wrote it there: one that is gone did long ago.
func drainText(n overview.ClusterNode) string {
	if n.Drain != "" && n.AgentStale {
		return terminal.Clean(n.Drain) + " (stale)"
	}
	return terminal.Clean(n.Drain)
}

// nodeAgent is the version of a node's agent, and whether it is one of the past.
func nodeAgent(n overview.ClusterNode) terminal.Cell {
	if n.AgentStale {
		return terminal.Cell{Text: terminal.Clean(n.Agent) + " (stale)", Look: terminal.Yellow}
	}
	return terminal.Cell{Text: terminal.Clean(n.Agent)}
}

func nodeLook(n overview.ClusterNode) terminal.Style {
	switch n.Status {
	case types.KubeNodeReady.String():
		if len(n.Pressures) > 0 {
			return terminal.Yellow
		}
		return terminal.Green
	case types.KubeNodeUnknown.String():
		return terminal.Yellow
	}
	return terminal.Red
}

// nodeStatus is a node's status with the pressures that it is under.
func nodeStatus(n overview.ClusterNode) string {
	text := terminal.Clean(n.Status)
	for _, p := range n.Pressures {
		text += "," + terminal.Clean(p)
	}
	return text
}

// NodeState is a node in a line, without what changes by itself.
func NodeState(n overview.ClusterNode) string {
	text := nodeStatus(n)
	if n.Cordoned {
		text += ", " + terminal.Clean(overview.Cordoned(n.CordonedBy))
	}
	for _, more := range []string{drainText(n), terminal.Clean(n.Lost)} {
		if more != "" {
			text += ", " + more
		}
	}
	return text
}

// statusProtocols are those that a node's stamp names; "" where no fresh one does.
func statusProtocols(n overview.ClusterNode) string {
	switch {
	case n.Agent == "" || n.AgentStale:
		return ""
	case n.StatusTLS:
		return "TLS with the cluster token, and plain HTTP for nodes with an older EVE"
	}
	return "plain HTTP only: a node with EVE's cluster-status-probe cannot join through it"
}

func putNode(s *terminal.Screen, n overview.ClusterNode, now time.Time) {
	s.Put(0, nodeLook(n), terminal.Clean(n.Name)+": "+nodeStatus(n)+", since "+terminal.Stamp(n.Since, now))
	for _, f := range []struct{ label, text string }{
		{"roles", strings.Join(n.Roles, ", ")},
		{"UUID", n.UUID},
		{"address", n.Address},
		{"external", n.External},
		{"kubelet", n.Kubelet},
		{"agent", n.Agent},
		{"port 12346", statusProtocols(n)},
		{"drain", drainText(n)},
		{"device", n.Lost},
		{"admission", n.Admission},
	} {
		if f.text != "" {
			s.Field(f.label, terminal.Plain, terminal.Clean(f.text))
		}
	}
	if n.Cordoned {
		text := cmp.Or(terminal.Clean(n.CordonedBy), "by an unknown user")
		if n.CordonWhy != "" {
			text += ": " + terminal.Clean(n.CordonWhy)
		}
		if !n.CordonSince.IsZero() {
			text += ", since " + terminal.Stamp(n.CordonSince, now)
		}
		s.Field("cordon", terminal.Yellow, text)
	}
	if !n.AgentAt.IsZero() {
		s.Field("stamp", terminal.Plain, "last written by its agent "+terminal.Stamp(n.AgentAt, now))
	}
	if n.AgentStale {
		s.Field("stamp", terminal.Yellow, fmt.Sprintf("it has not been renewed for %s or longer: zedkube may no longer run there. If it does not: zedkube nodes forget %s", types.StampFresh, terminal.Clean(n.Name)))
	}
	if !n.Created.IsZero() {
		s.Field("created", terminal.Plain, terminal.Stamp(n.Created, now))
	}
}
