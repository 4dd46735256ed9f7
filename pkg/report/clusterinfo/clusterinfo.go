// Package clusterinfo reports on the whole cluster, on the one node that was
// elected to, and tells on every node how far its reports can be trusted.
//
//	reads:  KubeLeaderElectInfo, EdgeNodeInfo, ClusterMembership,
//	        ClusterMembers, nodes, app pods, virtual machine instances, pod
//	        counts, volume claims, Longhorn's volumes, nodes and daemon sets,
//	        how well each of these tables is seen, the sections of other reports
//	writes: KubeClusterInfo, KubeReportHealth
package clusterinfo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	// period is only a safety net: everything that counts rings.
	period = time.Minute
	// minPause is the least time between two reports: pods come and go in
	// bursts, and a change is to be seen within a second.
	minPause = 900 * time.Millisecond
	// maxPause is the same for a report that is so large that it takes more than
	// a hundredth of the time to make it: a change is to be seen within two.
	maxPause    = 1700 * time.Millisecond
	pauseFactor = 100
)

// Component publishes KubeClusterInfo under key "global" while this node is
// the stats leader, and withdraws it otherwise. A section whose source fails
// stays as it was, and KubeReportHealth says so.
type Component struct {
	Log        logrus.FieldLogger
	Pulse      *loop.Pulse
	Leader     pubsub.Reader[types.KubeLeaderElectInfo]
	Info       pubsub.Reader[types.EdgeNodeInfo]
	Membership pubsub.Reader[types.ClusterMembership]
	Members    pubsub.Reader[types.ClusterMembers]
	Tables     pubsub.Reader[types.TableStatus]

	Nodes     pubsub.Reader[types.Node]
	AppPods   pubsub.Reader[types.Pod]
	VMIs      pubsub.Reader[types.VMI]
	PodCounts pubsub.Reader[types.KubePodNameSpaceInfo]
	Claims    pubsub.Reader[types.Claim]
	Volumes   pubsub.Reader[types.Volume]
	Disks     pubsub.Reader[types.LonghornNode]
	Daemons   pubsub.Reader[types.DaemonSet]

	Sections pubsub.Reader[types.ReportSection] // of other reports of this node

	Report pubsub.Writer[types.KubeClusterInfo]
	Health pubsub.Writer[types.KubeReportHealth]

	Former types.FormerReports // of which KubeClusterInfo is left

	changedSections changedSections
	podNews         pubsub.News[types.Pod] // all of it is in mem
	led             time.Time              // when it was first seen that this node leads; zero while it does not
	next            time.Time              // no report before
	took            time.Duration          // the last step
	failed          error                  // of the last step
	mem             memory
	cut             bool // as last logged
	stale           map[string]bool
}

// Run steps until ctx is done. The report ends with it: the Lease is given up
// then, and another node reports.
func (c *Component) Run(ctx context.Context) {
	c.changedSections = newChangedSections(map[string][]loop.Input{
		types.SectionNodes:      {c.Nodes, c.Info, c.Membership, c.Members},
		types.SectionAppPods:    {c.AppPods},
		types.SectionAppVMIs:    {c.VMIs},
		types.SectionNamespaces: {c.PodCounts},
		types.SectionStorage:    {c.Claims, c.Volumes},
	})
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step,
		c.Leader, c.Info, c.Membership, c.Members, c.Tables, c.Nodes, c.AppPods, c.VMIs, c.PodCounts, c.Claims, c.Volumes,
		c.Disks, c.Daemons, c.Sections)
	if err := c.apply(decide(c.look(false))); err != nil {
		c.Log.WithError(err).Error("could not withdraw the cluster report on shutdown")
	}
}

// Step looks once and publishes what changed. A leader looks once a second at
// most: the first change after a quiet second is reported at once.
func (c *Component) Step(context.Context) error {
	leader, _ := c.Leader.Get(types.Global)
	if wait := time.Until(c.next); leader.IsStatsLeader && wait > 0 {
		return errors.Join(c.failed, loop.After(wait)) // a pause does not make a failure good
	}
	began := time.Now()
	a := decide(c.look(leader.IsStatsLeader))
	err := c.apply(a)
	c.failed = err
	if leader.IsStatsLeader && a.again == 0 { // while it waits for lists it looks at nothing else
		now := time.Now()
		took := now.Sub(began)
		// Of two steps the shorter one tells the cost: the processor may have been someone else's.
		c.next = now.Add(min(max(pauseFactor*min(took, c.took), minPause), maxPause))
		c.took = took
	}
	return errors.Join(err, loop.Again(a.again))
}

func (c *Component) look(leads bool) facts {
	f := facts{leads: leads, now: time.Now(), others: values(c.Sections.All())}
	if !leads {
		c.led = time.Time{}
		c.podNews.Drop(c.AppPods)
		return f
	}
	if c.led.IsZero() {
		c.led = f.now
		c.mem = c.former()
		c.changedSections.all()
	}
	f.led, f.since, f.mem = f.now.Sub(c.led), c.led.UTC(), c.mem
	info, _ := c.Info.Get(types.Global)
	membership, _ := c.Membership.Get(types.Global)
	members, _ := c.Members.Get(types.Global)
	f.own, f.membership = info.DeviceID.String(), membership.State
	f.stale = noLongerNamed(members)
	// How well the tables are seen is read first, then what has rung: rows have
	// changed before their table is called whole, and can only be more true.
	f.tables = maps.Clone(c.Tables.All())
	if awaits(f) { // what changes meanwhile still rings afterwards
		return f
	}
	f.changed = c.changedSections.take()
	for section, behind := range f.mem.behind {
		f.changed[section] = f.changed[section] || behind
	}
	// Of storage it matters, too, whether there is any, which rings nothing here.
	f.changed[types.SectionStorageHealth] = true
	c.lookAtTables(&f)
	steady(f.tables, c.Tables.All())
	return f
}

// lookAtTables looks only at the tables that have changed, or are small.
func (c *Component) lookAtTables(f *facts) {
	if f.changed[types.SectionNodes] {
		f.nodes = c.Nodes.All()
	}
	if f.changed[types.SectionAppPods] {
		f.appPods, f.gone = c.podNews.Of(c.AppPods)
	}
	if f.changed[types.SectionAppVMIs] {
		f.vmis = c.VMIs.All()
	}
	if f.changed[types.SectionNamespaces] {
		f.counts = c.PodCounts.All()
	}
	if f.changed[types.SectionStorage] {
		f.claims, f.volumes = c.Claims.All(), c.Volumes.All()
	}
	f.disks, f.daemons = c.Disks.All(), c.Daemons.All()
}

// former is what a run before this one has left in the report.
func (c *Component) former() memory {
	r, reported := c.Report.Get(types.Global)
	h, _ := c.Health.Get(types.Global)
	updated, left := map[string]time.Time{}, map[string]time.Time{}
	for _, s := range h.Sections {
		updated[s.Name] = s.Updated
	}
	for section := range made() {
		if reported {
			left[section] = c.Former.Since(section, c.led.UTC())
		}
	}
	return memory{
		left:       left,
		nodes:      had(r.Nodes, updated[types.SectionNodes]),
		pods:       had(r.AppPods, updated[types.SectionAppPods]),
		vmis:       had(r.AppVMIs, updated[types.SectionAppVMIs]),
		volumes:    had(r.Storage.Volumes, updated[types.SectionStorage]),
		namespaces: had(r.PodNsInfo, updated[types.SectionNamespaces]),
		health:     health{status: r.Storage.Health, since: r.Storage.TransitionTime},
	}
}

func had[T any](all []T, updated time.Time) list[T] {
	return list[T]{all: all, sent: all, updated: updated}
}

// apply publishes the report before what is said of it: a section is called
// true only after it is.
func (c *Component) apply(a action) error {
	if a.withdraw {
		_, had := c.Report.Get(types.Global)
		if err := c.Report.Unpublish(types.Global); err != nil {
			return fmt.Errorf("withdraw the cluster's report: %w", err)
		}
		if had {
			c.Log.Info("this node does not report for the cluster")
		}
		c.mem, c.cut = memory{}, false
		for section := range made() { // the others go on
			delete(c.stale, section)
		}
	}
	if a.publish != nil {
		_, had := c.Report.Get(types.Global)
		if err := c.Report.Publish(types.Global, *a.publish); err != nil {
			c.changedSections.all()
			c.mem.appPods = a.mem.appPods
			return fmt.Errorf("publish the cluster's report: %w", err)
		}
		if !had {
			c.Log.Info("this node reports for the cluster")
		}
	}
	if !a.withdraw {
		c.mem = a.mem
	}
	if err := c.Health.Publish(types.Global, a.health); err != nil {
		return fmt.Errorf("publish the health of the cluster's report: %w", err)
	}
	c.logSections(a.health.Sections)
	return nil
}

// logSections logs that the report leaves something out, or that a section of
// it is old, when that begins and when it ends.
func (c *Component) logSections(sections []types.ReportSection) {
	if c.stale == nil {
		c.stale = map[string]bool{}
	}
	cut := false
	for _, s := range sections {
		cut = cut || s.Truncated > 0
		log := c.Log.WithField("section", s.Name)
		switch stale := !s.StaleSince.IsZero(); {
		case stale && s.Known && !c.stale[s.Name]:
			log.Warn("a section of the report is stale: " + s.Why)
			c.stale[s.Name] = true
		case !stale && c.stale[s.Name]:
			log.Info("the section of the report is current again")
			c.stale[s.Name] = false
		}
	}
	switch {
	case cut && !c.cut:
		c.Log.Warn("the report is truncated: the last entries by name are left out")
	case !cut && c.cut:
		c.Log.Info("the report is complete again")
	}
	c.cut = cut
}

// changedSections tells which sections have news, so that the others are not made again:
// a large cluster changes in one place at a time.
type changedSections map[string]chan struct{}

func newChangedSections(sections map[string][]loop.Input) changedSections {
	r := changedSections{}
	for name, inputs := range sections {
		r[name] = make(chan struct{}, 1)
		for _, in := range inputs {
			in.Notify(r[name])
		}
	}
	return r
}

// all rings all of them.
func (r changedSections) all() {
	for _, bell := range r {
		pubsub.Ring(bell)
	}
}

// take returns those that have rung since the last time.
func (r changedSections) take() map[string]bool {
	news := map[string]bool{}
	for name, bell := range r {
		select {
		case <-bell:
			news[name] = true
		default:
		}
	}
	return news
}

func values[T any](table map[string]T) []T { return slices.Collect(maps.Values(table)) }
