package witness

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zedkube/zedkube/types"
)

// knownFor is how long a Node that is deleted is remembered once no application
// has anything there: a table may show that late.
const knownFor = 24 * time.Hour

// missing are the Nodes that are deleted although an application still has
// something there. Nothing else asks whether their devices answer.
func (c *Component) missing(nodes map[string]types.Node) []types.Node {
	var lost []types.Node
	for name, k := range c.Known.All() {
		if _, there := nodes[name]; !there && c.used(name) {
			lost = append(lost, k.Node())
		}
	}
	slices.SortFunc(lost, func(a, b types.Node) int { return cmp.Compare(a.Name, b.Name) })
	return lost
}

// used reports whether the cluster has anything of an application on a node.
func (c *Component) used(node string) bool {
	for _, p := range c.AppPods.All() {
		if p.NodeName == node {
			return true
		}
	}
	for _, v := range c.VMIs.All() {
		if v.NodeName == node {
			return true
		}
	}
	return false
}

// know remembers where the devices of all Nodes are, for when they are deleted.
func (c *Component) know(nodes map[string]types.Node) error {
	var errs []error
	for name, n := range nodes {
		delete(c.unused, name)
		k := types.KnownNode{Name: name, UID: n.UID, InternalIP: n.InternalIP, ExternalIP: n.ExternalIP}
		if old, ok := c.Known.Get(name); ok && old == k || n.UID == "" || n.InternalIP == "" {
			continue
		}
		if err := c.Known.Publish(name, k); err != nil {
			errs = append(errs, fmt.Errorf("remember node %s: %w", name, err))
		}
	}
	for name := range c.Known.All() {
		if _, there := nodes[name]; there {
			continue
		}
		since, counted := c.unused[name]
		switch {
		case c.used(name):
			delete(c.unused, name)
		case !counted:
			c.unused[name] = c.Uptime()
		case c.Uptime()-since >= knownFor:
			delete(c.unused, name)
			if err := c.Known.Unpublish(name); err != nil {
				errs = append(errs, fmt.Errorf("forget node %s: %w", name, err))
			}
		}
	}
	return errors.Join(errs...)
}
