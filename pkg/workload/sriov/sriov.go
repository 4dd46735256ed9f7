// Package sriov shares the virtual functions of this node's network ports with
// the cluster: it binds them to vfio-pci, keeps this node's part of the
// configuration of the SR-IOV device plug-in, which all nodes share, and has the
// own plug-in read it (docs/wire.md, "SR-IOV").
//
//	reads:  AssignableAdapters, EdgeNodeInfo, nodes, this node's pods, the API's health, sysfs
//	writes: nothing
//	acts:   binds virtual functions; writes ConfigMap kube-system/sriovdp-config;
//	        restarts the plug-in of this node; removes network attachments that
//	        no node serves
package sriov

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// DefaultSysfs is where the kernel shows its devices.
const DefaultSysfs = "/sys"

// period is how often sysfs is looked at: nobody tells when a driver lets go of
// a device. It costs no request to the API server.
const period = time.Minute

const (
	// conflictPause is how long, twice at most, a node leaves the ConfigMap to one
	// that was faster.
	conflictPause = 200 * time.Millisecond
	// writeGap is between two writes that follow one another.
	writeGap = 5 * time.Second
	// patience is how long the end waits for sysfs.
	patience = 2 * time.Second
)

// Kube is what the component does to the cluster. Every verb ends when its
// context does.
type Kube interface {
	// SRIOVConfig reads the ConfigMap again.
	SRIOVConfig(ctx context.Context) (types.SRIOVConfig, error)
	// SetSRIOVConfig changes the keys that are named, "" to remove one, of the
	// ConfigMap of that version, or makes it; all or none. Its error wraps
	// types.ErrConflict where someone else was faster.
	SetSRIOVConfig(ctx context.Context, change types.SRIOVConfig) error
	// SRIOVPlugins lists the plug-in's pods of the node again.
	SRIOVPlugins(ctx context.Context, node string) ([]types.SRIOVPlugin, error)
	// MarkSRIOVPlugin writes Part on this very pod.
	MarkSRIOVPlugin(ctx context.Context, pod types.SRIOVPlugin) error
	// RestartSRIOVPlugin deletes this very pod.
	RestartSRIOVPlugin(ctx context.Context, pod types.SRIOVPlugin) error
	// SRIOVNetworks lists the attachments that a device plug-in serves, none where
	// the cluster knows no attachments.
	SRIOVNetworks(ctx context.Context) ([]types.SRIOVNetwork, error)
	// DeleteSRIOVNetwork deletes this very attachment in this very version.
	DeleteSRIOVNetwork(ctx context.Context, network types.SRIOVNetwork) error
}

// Component is this node's share of SR-IOV. Every exported field is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	Adapters pubsub.Reader[types.AssignableAdapters]
	Info     pubsub.Reader[types.EdgeNodeInfo]
	Nodes    pubsub.Reader[types.Node]
	NodePods pubsub.Reader[types.Pod]
	API      pubsub.Reader[types.APIStatus]
	Kube     Kube

	Operations types.OperationLog

	Sysfs  string // DefaultSysfs, below the root
	BootID string

	// What this process remembers. Losing it costs a repeated look, or one restart
	// of the plug-in.
	memory   memory
	seen     string    // what the last look was for
	next     time.Time // when the next is due, whatever happens
	wrote    time.Time // when the ConfigMap was last written
	foreign  []string
	problems []string
	shown    *scanned           // what sysfs showed last
	shownFor string             // of what
	scanning loop.Call[scanned] // the look at sysfs, which may hang
	asked    string             // what it, or the last one, is for
	again    time.Time          // when the next one is due
}

// Run steps until ctx is done.
func (c *Component) Run(ctx context.Context) {
	defer c.scanning.EndWithin(patience)
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Adapters, c.Info, c.Nodes, c.NodePods, c.API, &c.scanning)
}

// Step looks, decides and acts once.
func (c *Component) Step(ctx context.Context) error {
	shown := c.scan(ctx)
	f, due, err := c.look(ctx, shown)
	if err != nil || !due {
		return err
	}
	return c.apply(ctx, f, decide(f))
}

// apply writes the ConfigMap, or has the plug-in read it and drops attachments.
func (c *Component) apply(ctx context.Context, f facts, a action) error {
	was := c.memory
	c.memory = a.memory
	c.tell(f, was, a)
	var err error
	if a.change != nil {
		ctx := types.Because(ctx, "domainmgr", "configuration of the SR-IOV device plug-in: "+string(a.why))
		switch err = c.Kube.SetSRIOVConfig(ctx, *a.change); {
		case errors.Is(err, types.ErrConflict): // another node corrects as much
		case err != nil:
			c.memory.repaired, c.memory.pause = was.repaired, was.pause
		default:
			c.Log.WithFields(logrus.Fields{"node": f.own, "why": string(a.why)}).Info("configuration of the SR-IOV device plug-in written")
		}
	}
	if failed := c.restart(ctx, a); failed != nil {
		c.memory.settled, c.memory.wrote = was.settled, was.wrote
		err = errors.Join(err, failed)
	}
	err = errors.Join(err, c.drop(ctx, f, a.drop))
	switch {
	case errors.Is(err, types.ErrConflict): // another node was faster
		c.seen = ""
		return loop.After(conflictPause + rand.N(conflictPause))
	case err != nil:
		c.seen = ""
		return err
	}
	return c.wait(f.now, a)
}

// drop removes attachments, for as long as no node tells of other functions: a
// look may be many seconds old by now.
func (c *Component) drop(ctx context.Context, f facts, networks []types.SRIOVNetwork) error {
	for _, n := range networks {
		ctx := types.Because(ctx, "domainmgr", "no node provides resource "+n.Resource+" any more")
		switch now, err := c.Kube.SRIOVConfig(ctx); {
		case err != nil:
			return err
		case now.Version != f.config.Version:
			return fmt.Errorf("%w: another node has published its functions", types.ErrConflict)
		}
		if err := c.Kube.DeleteSRIOVNetwork(ctx, n); err != nil {
			return err
		}
		c.Log.WithField("resource", n.Resource).Infof("network attachment %s removed: no node provides its resource", n.Name)
	}
	return nil
}

func (c *Component) restart(ctx context.Context, a action) error {
	ctx = types.Because(ctx, "domainmgr", "the plug-in must read its new configuration")
	var err error
	for _, pod := range a.mark {
		err = errors.Join(err, c.Kube.MarkSRIOVPlugin(ctx, pod))
	}
	for _, pod := range a.restart {
		failed := c.Kube.RestartSRIOVPlugin(ctx, pod)
		if failed == nil {
			c.Log.WithField("pod", pod.Name).Info("SR-IOV device plug-in restarted: what it can offer has changed")
		}
		err = errors.Join(err, failed)
	}
	return err
}

// wait says when to look again; after a change at once, but not time and again.
func (c *Component) wait(now time.Time, a action) error {
	c.next = now.Add(a.again)
	if a.change != nil {
		if now.Sub(c.wrote) < writeGap {
			c.next = now.Add(writeGap)
		}
		c.wrote = now
	}
	return loop.After(c.next.Sub(now))
}

func (c *Component) tell(f facts, was memory, a action) {
	log := c.Log.WithField("node", f.own)
	if a.why == correct && was.pause == 0 {
		log.Warn("another agent overwrites the configuration of the SR-IOV device plug-in; it is merged with this node's")
	}
	if !slices.Equal(c.foreign, a.foreign) && len(a.foreign) > 0 {
		log.WithField("resources", a.foreign).Info("SR-IOV resources of nodes that have not published theirs are kept")
	}
	c.foreign = a.foreign
}

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
	f = facts{now: time.Now(), own: own.Name, boot: c.BootID, scanned: shown, memory: c.memory}
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
