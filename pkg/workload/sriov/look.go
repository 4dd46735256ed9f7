package sriov

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/types"
)

// scan has sysfs looked at beside the steps, and returns what it shows of what
// domainmgr names now, nil while that is not known.
func (c *Component) scan(ctx context.Context) *scanned {
	adapters, ok := c.Adapters.Get(types.Global)
	if !ok || !adapters.Initialized {
		return nil
	}
	var bundles []types.IoBundle
	for _, b := range adapters.IoBundleList {
		if b.Type == types.IoNetEthVF && b.PciLong != "" {
			bundles = append(bundles, b)
		}
	}
	if shown, ok := c.scanning.Take(); ok {
		c.shown, c.shownFor = &shown, c.asked
		c.report(ctx, shown)
	}
	asked := fmt.Sprintf("%+v", bundles)
	if now := time.Now(); !c.scanning.Busy() && (c.asked != asked || !now.Before(c.again)) {
		c.asked, c.again = asked, now.Add(period)
		c.scanning.Begin(ctx, period, func(context.Context) scanned { return sysfs(c.Sysfs).scan(bundles) })
	}
	if c.shownFor != asked {
		return nil
	}
	return c.shown
}

// report logs what is new of the functions.
func (c *Component) report(ctx context.Context, s scanned) {
	ctx = types.Because(ctx, "domainmgr", "the function is assigned and has no driver")
	for _, address := range s.bound {
		types.Did(ctx, c.Operations, "bind function", "pci/"+address, nil)
		c.Log.WithField("device", address).Info("virtual function bound to " + vfioDriver)
	}
	for address, err := range s.unbound {
		types.Did(ctx, c.Operations, "bind function", "pci/"+address, err)
	}
	for _, problem := range s.problems {
		if !slices.Contains(c.problems, problem) {
			c.Log.Warn("virtual function " + problem)
		}
	}
	c.problems = s.problems
}

// look asks the cluster when something has changed, or not for long. The pods
// are listed after the ConfigMap was read: one that is not among them is younger.
func (c *Component) look(ctx context.Context, shown *scanned) (f facts, due bool, err error) {
	api, ok := c.API.Get(types.Global)
	info, named := c.Info.Get(types.Global)
	nodes := c.Nodes.All()
	own, found := types.OwnNode(nodes, info)
	if !ok || !api.Answers() || !api.Synced || !named || !found {
		c.seen = "" // by the time it is known again anything may have changed
		return facts{}, false, nil
	}
	f = facts{now: time.Now(), own: own.Name, scanned: shown, memory: c.memory}
	f.nodes = slices.Sorted(maps.Keys(nodes))
	seen := c.situation(f)
	if seen == c.seen && f.now.Before(c.next) {
		return facts{}, false, loop.After(c.next.Sub(f.now))
	}
	c.seen = ""
	if f.config, err = c.Kube.SRIOVConfig(ctx); err != nil {
		return facts{}, false, err
	}
	if f.config.Version != "" {
		if f.plugins, err = c.Kube.SRIOVPlugins(ctx, own.Name); err != nil {
			return facts{}, false, err
		}
		if f.networks, err = c.Kube.SRIOVNetworks(ctx); err != nil {
			return facts{}, false, err
		}
	}
	c.seen = seen
	return f, true, nil
}

// situation changes with everything that makes a look worth its while.
func (c *Component) situation(f facts) string {
	var shown []any
	if f.scanned != nil {
		shown = append(shown, f.scanned.vfs, f.scanned.unread)
	}
	var pods []string
	for _, p := range c.NodePods.All() {
		if p.Namespace == types.NamespaceSystem && p.App == "sriovdp" && p.NodeName == f.own {
			pods = append(pods, fmt.Sprint(p.UID, p.Terminating()))
		}
	}
	slices.Sort(pods)
	return fmt.Sprint(f.own, f.nodes, shown, pods)
}
