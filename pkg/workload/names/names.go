// Package names gives workloads on EVE's networks names in the cluster's DNS, where
// orchestration is native (docs/wire.md, "Names of workloads").
//
//	reads:  AppNetworkStatus, NetworkInstanceStatus, ENClusterAppStatus, ClusterMembership,
//	        EdgeNodeInfo, leadership, nodes, the ConfigMaps with addresses, what CoreDNS has of them
//	writes: nothing
//	acts:   keeps this node's addresses in the ConfigMaps of the networks; as the leader
//	        takes those of removed nodes off, writes all names into CoreDNS'
//	        configuration, and restarts CoreDNS for it
package names

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// period is a safety net, everything that counts rings; and how seldom the log says
// what is left out, which is other workloads with each change in a burst.
const period = time.Minute

// Kube is what the component does to the cluster. Every verb ends when its context does.
type Kube interface {
	// EditAllocations has edit change what a ConfigMap with addresses holds now. One that
	// is not EVE's is left alone, with an error.
	EditAllocations(ctx context.Context, name string, edit func(types.NetworkAllocations) types.NetworkAllocations) error
	// PublishNames writes zedkube's part of CoreDNS' configuration, "" to remove it, and
	// has CoreDNS restarted if it does not run with that hash.
	PublishNames(ctx context.Context, text, hash string) error
}

// Component gives names. Every exported field is required.
type Component struct {
	Log         logrus.FieldLogger
	Pulse       *loop.Pulse
	Apps        pubsub.Source[types.AppNetworkStatus]
	Networks    pubsub.Source[types.NetworkInstanceStatus]
	AppStatus   pubsub.Reader[types.ENClusterAppStatus]
	Membership  pubsub.Reader[types.ClusterMembership]
	Info        pubsub.Reader[types.EdgeNodeInfo]
	Leader      pubsub.Reader[types.KubeLeaderElectInfo]
	Nodes       pubsub.Reader[types.Node]
	Tables      pubsub.Reader[types.TableStatus]
	Allocations pubsub.Reader[types.NetworkAllocations]
	DNSServer   pubsub.Reader[types.DNSServer]
	DNSRollout  pubsub.Reader[types.DNSRollout]
	Kube        Kube

	memory
	left   string    // what was last logged as left out
	logged time.Time // when
}

// Run steps until ctx is done.
func (c *Component) Run(ctx context.Context) {
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Apps, c.Networks, c.AppStatus, c.Membership, c.Info, c.Leader,
		c.Nodes, c.Tables, c.Allocations, c.DNSServer, c.DNSRollout)
}

// Step looks, decides and acts once.
func (c *Component) Step(ctx context.Context) error {
	a := decide(c.look())
	c.memory = a.memory
	if left := phrase.Few(a.left, 5); left != c.left && time.Since(c.logged) >= period {
		if c.left = left; left != "" {
			c.logged = time.Now()
			c.Log.Warn("names of workloads are left out: " + left)
		}
	}
	return errors.Join(c.apply(ctx, a), loop.Again(a.again))
}

func (c *Component) look() facts {
	tables := c.Tables.All() // before what is in them, which can only be more complete since
	membership, _ := c.Membership.Get(types.Global)
	leader, _ := c.Leader.Get(types.Global)
	f := facts{now: time.Now(), native: membership.NativeOrchestration(), known: c.Apps.Synced() && c.Networks.Synced(), memory: c.memory}
	f.apps, f.networks, f.statuses = c.Apps.All(), c.Networks.All(), c.AppStatus.All()
	f.nodes, f.configMaps = c.Nodes.All(), c.Allocations.All()
	if info, ok := c.Info.Get(types.Global); ok && tables[types.TableAllocations].Complete && tables[types.TableNodes].Complete {
		own, _ := types.OwnNode(f.nodes, info)
		f.own = own.Name
	}
	f.leads = leader.IsStatsLeader && tables[types.TableDNSServer].Complete && tables[types.TableDNSRollout].Complete
	f.server, _ = c.DNSServer.Get(types.DNSConfigMap)
	f.rollout, f.deployed = c.DNSRollout.Get(types.DNSDeployment)
	return f
}

func (c *Component) apply(ctx context.Context, a action) (failed error) {
	for _, name := range slices.Sorted(maps.Keys(a.edits)) {
		err := c.Kube.EditAllocations(types.Because(ctx, "zedrouter", "addresses of workloads changed"), name, a.edits[name].change)
		if err == nil {
			c.written[name] = a.edits[name].mine
			delete(c.settling, name)
		}
		failed = errors.Join(failed, err)
	}
	if !a.publish {
		return failed
	}
	err := c.Kube.PublishNames(types.Because(ctx, "zedrouter", "names of workloads changed"), a.text, a.hash)
	if err == nil {
		c.Log.Info("names of workloads published; CoreDNS restarts with them")
		delete(c.settling, "")
		c.restarted = time.Now()
	}
	return errors.Join(failed, err)
}
