// Package services tells nim which ports and addresses the services and
// ingresses of users need on this node.
//
//	reads:  services, ingresses, the configuration of kube-vip, the tables'
//	        health, APIStatus, DeviceNetworkStatus, EdgeNodeClusterStatus
//	writes: KubeUserServices; how good its parts are, for KubeReportHealth
//
// A single node is a cluster of one.
package services

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// period is only a safety net: everything that counts rings.
const period = time.Minute

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
}

// Run steps until ctx is done. What is published stays: nim goes on by it.
func (c *Component) Run(ctx context.Context) {
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step,
		c.Services, c.Ingresses, c.KubeVIP, c.Tables, c.API, c.Ports, c.Cluster)
}

// Step looks once and publishes what changed.
func (c *Component) Step(context.Context) error { return nil }
