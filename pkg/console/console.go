// Package console asks the kube container for the remote console of an
// application whose virtual machine runs on this node (docs/wire.md, "Console
// file").
//
//	reads:  AppInstanceConfig, ENClusterAppStatus, the console file, /proc
//	writes: AppConsoleStatus
//	acts:   keeps the console file, one for each node; never takes a live one of edgeview's away
package console

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	// DefaultFile is where the kube container looks for the console that it is to open.
	DefaultFile = "/run/edgeview/VncParams/vmiVNC.run"
	// DefaultProc is where the kernel tells of processes and ports.
	DefaultProc = "/proc"
)

// period is in case an event was missed; what is due earlier is asked for.
const period = 10 * time.Second

// Component is the remote console of this node. Every exported field but AlsoIn
// is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	Configs pubsub.Source[types.AppInstanceConfig]
	Apps    pubsub.Reader[types.ENClusterAppStatus]
	File    string   // DefaultFile, below the root
	AlsoIn  []string // further files that other kube containers read, whose directories others make
	Proc    string   // DefaultProc, below the root

	Status pubsub.Writer[types.AppConsoleStatus] // it reads back what a former run published
}

// Run steps until ctx is done.
func (c *Component) Run(ctx context.Context) {
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Configs, c.Apps)
}

// Step looks, decides and acts once.
func (c *Component) Step(context.Context) error { return c.apply(decide(c.look())) }

func (c *Component) look() facts { return facts{} }

func (c *Component) apply(action) error { return nil }
