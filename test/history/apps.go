package history

import (
	"maps"
	"slices"
	"strings"
)

// cluster is what the events so far make of nodes, pods and attachments.
type cluster struct {
	nodes       map[string]Object // by name
	pods        map[string]Event  // by name
	attachments map[string]Event  // by name
	up, alone   map[string]bool   // agents; nodes without an API server
}

func newCluster() *cluster {
	return &cluster{map[string]Object{}, map[string]Event{}, map[string]Event{}, map[string]bool{}, map[string]bool{}}
}

func (c *cluster) see(e Event) {
	keep := func(in map[string]Event) {
		if in[e.Object.Name] = e; e.Object.Gone {
			delete(in, e.Object.Name)
		}
	}
	switch e.Kind {
	case AgentUp:
		c.up[e.Node] = true
	case AgentDown, AgentBad, Rebooted:
		c.up[e.Node] = false
	case Alone:
		c.alone[e.Node] = e.On
	case NodeIs:
		if c.nodes[e.Node] = *e.Object; e.Object.Gone {
			delete(c.nodes, e.Node)
		}
	case PodIs:
		keep(c.pods)
	case VolumeIs:
		keep(c.attachments)
	}
}

// oneCopy judges who has an application and its volumes. That two nodes say so
// is wrong where one of them has no pod of it, and only if it stays so.
func oneCopy(v *verdict, events []Event) {
	c, claims, long := newCluster(), map[string]map[string]bool{}, newStreaks()
	for _, e := range events {
		c.see(e)
		switch {
		case e.Kind == VolumeIs && e.Object.Attached && !e.Object.Gone:
			v.checked++
			for _, other := range c.attachments {
				if other.Object.Attached && other.Object.Volume == e.Object.Volume && other.Node != e.Node {
					v.wrong(e.At, e.Node, "volume %s is attached here and to %s", e.Object.Volume, other.Node)
				}
			}
		case e.Kind == PodIs && e.Object.runs():
			v.checked += min(1, len(e.Object.Claims)) // without a volume it may run more than once
			for _, other := range c.pods {
				if other.Object.runs() && other.Node != e.Node && sharesClaim(*e.Object, *other.Object) {
					v.wrong(e.At, e.Node, "%s runs here and %s on %s, with the same volume", e.Object.Name, other.Object.Name, other.Node)
				}
			}
		case e.Kind == Claim:
			v.checked++
			if claims[e.App] == nil {
				claims[e.App] = map[string]bool{}
			}
			claims[e.App][e.Node] = e.On
		}
		for app, by := range claims {
			var all, without []string
			for node, is := range by {
				if !is || !c.up[node] || c.alone[node] {
					continue
				}
				if all = append(all, node); !c.has(app, node) {
					without = append(without, node)
				}
			}
			if long.tooLong(app, len(all) > 1 && len(without) > 0, e.At, v.Settles) {
				slices.Sort(all)
				v.wrong(e.At, all[0], "application %s is claimed by %v, without a pod on %v", app, all, without)
			}
		}
	}
}

func (o Object) runs() bool { return o.Ready && !o.Ending && !o.Gone }

func sharesClaim(a, b Object) bool {
	return slices.ContainsFunc(a.Claims, func(claim string) bool { return slices.Contains(b.Claims, claim) })
}

// has says whether the node has a pod of the application, by its UUID.
func (c *cluster) has(app, node string) bool {
	for _, p := range c.pods {
		if p.Node == node && strings.HasPrefix(p.Object.Domain, app) {
			return true
		}
	}
	return false
}

// runsAgain judges applications while a node is there for them.
func runsAgain(v *verdict, events []Event) {
	c, apps, long := newCluster(), map[string][]string{}, newStreaks()
	for _, e := range events {
		c.see(e)
		if e.Kind == App {
			v.checked++
			apps[e.App] = e.Nodes
		}
		running := map[string]bool{}
		for _, p := range c.pods {
			if p.Object.runs() {
				running[p.Object.App] = true
			}
		}
		for _, app := range slices.Sorted(maps.Keys(apps)) {
			can := slices.ContainsFunc(apps[app], func(node string) bool {
				n, is := c.nodes[node]
				return is && n.Ready && !n.Unschedulable
			})
			if long.tooLong(app, can && !running[app], e.At, v.Runs) {
				v.wrong(e.At, "", "application %s does not run although it could for %s", app, v.Runs)
			}
		}
	}
}
