// Package services tells nim which ports and addresses the services and
// ingresses of users need on this node.
//
//	reads:  services, ingresses, the configuration of kube-vip, how well those
//	        tables are seen, APIStatus, DeviceNetworkStatus, EdgeNodeClusterStatus
//	writes: KubeUserServices; how good its parts are, for KubeReportHealth
//
// It needs no cluster configuration: a single node is a cluster of one.
package services

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	// period is only a safety net: everything that counts rings.
	period = time.Minute
	// pause is the least time between two looks: a chart that is installed
	// brings its services one by one, and nim rebuilds its rules at each value.
	pause = time.Second
	// maxWhy bounds the text of a server, in bytes.
	maxWhy = 300
)

// Component publishes KubeUserServices under key "global" on every node
// (docs/wire.md, "KubeUserServices"). Every exported field is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	Services  pubsub.Reader[types.Service]
	Ingresses pubsub.Reader[types.Ingress]
	KubeVIP   pubsub.Reader[types.KubeVIP]
	Tables    pubsub.Reader[types.TableStatus]
	API       pubsub.Reader[types.APIStatus]
	Ports     pubsub.Source[types.DeviceNetworkStatus]
	Cluster   pubsub.Reader[types.EdgeNodeClusterStatus]

	Status   pubsub.Writer[types.KubeUserServices]
	Sections pubsub.Writer[types.ReportSection] // by name: SectionServices, SectionIngresses, SectionLBPool

	Former types.FormerReports // of which KubeUserServices is left

	// What this process remembers: the tables as they were last seen whole.
	// Before that, what is published takes their place.
	began     time.Time
	looked    time.Time // when something was last known
	failed    error     // of the last step
	services  source[types.Service]
	ingresses source[types.Ingress]
	vip       source[types.KubeVIP]
	cut       cut // as last logged
}

// Run steps until ctx is done. What is published stays: nim goes on by it.
func (c *Component) Run(ctx context.Context) {
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step,
		c.Services, c.Ingresses, c.KubeVIP, c.Tables, c.API, c.Ports, c.Cluster)
}

// Step looks once and publishes what changed, once a second at most: the first
// change after a quiet second is published at once.
func (c *Component) Step(context.Context) error {
	now := time.Now() // with the monotonic clock: a wall clock may be set back
	if wait := pause - now.Sub(c.looked); wait > 0 {
		return errors.Join(c.failed, loop.After(wait)) // a pause does not make a failure good
	}
	f := c.look(now.UTC())
	a := decide(f)
	if a.publish != nil { // while nothing is known, what is is told at once
		c.looked = now
	}
	c.failed = c.apply(f, a)
	return c.failed
}

func (c *Component) look(now time.Time) facts {
	if c.began.IsZero() {
		c.began = now
	}
	// How well the tables are seen is read before them: they can only be more
	// complete than it says.
	api, known := c.API.Get(types.Global)
	views := tableView{tables: c.Tables.All(), silent: !known || !api.Answers(), api: api}
	left := func(section string) time.Time { return c.Former.Since(section, c.began) }
	f := facts{
		now: now, left: left(types.SectionIngresses),
		services:  c.services.look(types.TableServices, c.Services, views, left(types.SectionServices)),
		ingresses: c.ingresses.look(types.TableIngresses, c.Ingresses, views, left(types.SectionIngresses)),
		vip:       c.vip.look(types.TableKubeVIP, c.KubeVIP, views, left(types.SectionLBPool)),
		sections:  c.Sections.All(),
	}
	// Whether they are known is asked first: they can only be more since.
	f.portsKnown = c.Ports.Synced()
	ports, ok := c.Ports.Get(types.Global)
	f.ports, f.portsKnown = ports.Ports, f.portsKnown || ok
	f.cluster, _ = c.Cluster.Get(types.Global)
	f.last, _ = c.Status.Get(types.Global)
	return f
}

// tableView is how well the cluster is seen.
type tableView struct {
	tables map[string]types.TableStatus
	silent bool
	api    types.APIStatus
}

// look takes the table over if it is whole, and notes since when it is not. What
// is published before it ever was is as old as left.
func (s *source[T]) look(name string, table pubsub.Reader[T], views tableView, left time.Time) source[T] {
	st, kept := views.tables[name]
	if st.Complete && !views.silent {
		*s = source[T]{rows: table.All(), known: true, absent: st.Absent}
		return *s
	}
	since, why := left, "no list has been received yet"
	switch {
	case kept && !st.Complete:
		since, why = st.Since, st.Why
	case views.silent && !views.api.SilentSince.IsZero():
		since, why = views.api.SilentSince, phrase.Cut(views.api.Reason, maxWhy)
	}
	if !s.known && left.Before(since) {
		since = left
	}
	s.stale.why = why
	if s.stale.since.IsZero() || since.Before(s.stale.since) {
		s.stale.since = since
	}
	return *s
}

func (c *Component) apply(f facts, a action) error {
	var failed error
	if a.publish != nil {
		if err := c.Status.Publish(types.Global, *a.publish); err != nil {
			failed = fmt.Errorf("publish the users' services: %w", err)
		}
	}
	errs := []error{failed}
	for _, s := range a.sections {
		if failed != nil && s.StaleSince.IsZero() {
			continue // a section is called true only after it is
		}
		if err := c.Sections.Publish(s.Name, s); err != nil {
			errs = append(errs, fmt.Errorf("publish the status of %s: %w", s.Name, err))
		}
	}
	if a.publish == nil || failed != nil {
		return errors.Join(errs...)
	}
	c.logCut(a.cut)
	switch now, before := a.publish.ServiceError.Error, f.last.ServiceError.Error; {
	case now == before:
	case now != "":
		c.Log.Warn(now)
	default:
		c.Log.Info("all load balancer addresses are served by kube-vip again")
	}
	return errors.Join(errs...)
}

// logCut logs that something is left out, and that nothing is any more.
func (c *Component) logCut(now cut) {
	switch {
	case now.any() && !c.cut.any():
		c.Log.WithFields(logrus.Fields{
			"services": now.services, "ingresses": now.ingresses, "addresses": now.addresses,
		}).Warn("too many user services for one message: those that nim needs are kept first, then the first by name")
	case !now.any() && c.cut.any():
		c.Log.Info("all user services are reported again")
	}
	c.cut = now
}
