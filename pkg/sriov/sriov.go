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
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// DefaultSysfs is where the kernel shows its devices.
const DefaultSysfs = "/sys"

// period is how often sysfs is looked at: nobody tells when a driver lets go of
// a device. It costs no request to the API server.
const period = time.Minute

// Kube is what the component does to the cluster. Every verb ends when its
// context does.
type Kube interface {
	// SRIOVConfig reads the ConfigMap afresh.
	SRIOVConfig(ctx context.Context) (types.SRIOVConfig, error)
	// SetSRIOVConfig changes the keys that are named, "" to remove one, of the
	// ConfigMap of that version, or makes it; all or none. Its error wraps
	// types.ErrConflict where somebody else was faster.
	SetSRIOVConfig(ctx context.Context, change types.SRIOVConfig) error
	// SRIOVPlugins lists the plug-in's pods of the node afresh.
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

	Sysfs string // DefaultSysfs, below the root

	calls sync.WaitGroup
}

// Run steps until ctx is done.
func (c *Component) Run(ctx context.Context) {
	defer c.calls.Wait()
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Adapters, c.Info, c.Nodes, c.NodePods, c.API)
}

// Step looks, decides and acts once.
func (c *Component) Step(context.Context) error { return nil }
