package nodescmd

import (
	"strconv"
	"time"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

const edgeRole = "edge"

// edgeRow is a node of KubeEdge in the table of nodes. It has no zedkube, no drain and no etcd.
func edgeRow(n overview.EdgeNode, now time.Time) []terminal.Cell {
	cordon := terminal.Cell{}
	if n.Cordoned {
		cordon = terminal.Cell{Text: "yes", Look: terminal.Yellow}
	}
	return []terminal.Cell{
		{Text: terminal.Clean(n.Name)},
		{Text: edgeStatus(n), Look: edgeLook(n)},
		{Text: terminal.ShortAge(n.Since, now)},
		{Text: edgeRole},
		cordon,
		{},
		{},
		{Text: terminal.Clean(n.Address)},
		{Text: terminal.Clean(n.Kubelet)},
		{Text: terminal.ShortAge(n.Created, now)},
	}
}

// edgeStatus is offline where Kubernetes says that it is not Ready: it may be so for days.
func edgeStatus(n overview.EdgeNode) string {
	if n.Ready {
		return types.KubeNodeReady.String()
	}
	return "offline"
}

func edgeLook(n overview.EdgeNode) terminal.Style {
	if n.Ready {
		return terminal.Green
	}
	return terminal.Plain
}

func putEdge(s *terminal.Screen, n overview.EdgeNode, now time.Time) {
	s.Put(0, edgeLook(n), terminal.Clean(n.Name)+": "+edgeStatus(n)+" since "+terminal.Stamp(n.Since, now))
	s.Field("roles", terminal.Plain, edgeRole+", of KubeEdge: it is no member of the cluster")
	s.Field("address", terminal.Plain, terminal.OrNone(terminal.Clean(n.Address)))
	s.Field("kubelet", terminal.Plain, terminal.OrNone(terminal.Clean(n.Kubelet)))
	if n.Cordoned {
		s.Field("cordon", terminal.Yellow, "yes")
	}
	if m := n.Measured; m != nil {
		s.Field("CPU", terminal.Plain, terminal.CoresText(m.CPU)+", "+terminal.Percent(m.CPU, float64(m.Cores)*1e9)+" of "+phrase.Counted(m.Cores, "core"))
		s.Field("memory", terminal.Plain, terminal.BytesText(m.MemoryWorking)+" in the working set, "+terminal.BytesText(m.MemoryUsage)+" with caches, "+terminal.BytesText(&n.Memory)+" in all")
		s.Field("network", terminal.Plain, terminal.BytesText(m.NetworkReceived)+" received, "+terminal.BytesText(m.NetworkSent)+" sent")
		if fs := m.FS; fs != nil {
			s.Field("disk", terminal.Plain, terminal.BytesText(fs.Used)+" used, "+terminal.BytesText(fs.Available)+" available, "+terminal.BytesText(fs.Capacity)+" in all")
		}
		s.Field("pods", terminal.Plain, strconv.Itoa(n.Pods)+" then")
		s.Field("measured", terminal.Plain, terminal.Stamp(n.MeasuredAt, now))
	} else if n.Ready {
		s.Field("measured", terminal.Plain, "not by the agent that was asked: zedkube top nodes --edge")
	}
	if !n.Created.IsZero() {
		s.Field("created", terminal.Plain, terminal.Stamp(n.Created, now))
	}
}

// selectedEdge are the nodes of KubeEdge that the selectors let through.
func selectedEdge(out *terminal.Outputs, list []overview.EdgeNode) (some []overview.EdgeNode) {
	for _, n := range list {
		row := overview.ClusterNode{
			Name: n.Name, Status: edgeStatus(n), Roles: []string{edgeRole}, Cordoned: n.Cordoned, Address: n.Address, Kubelet: n.Kubelet,
		}
		if len(terminal.Selected(out, []overview.ClusterNode{row})) > 0 {
			some = append(some, n)
		}
	}
	return some
}
