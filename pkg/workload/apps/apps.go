// Package apps tells zedmanager where each configured application stands in
// the cluster, and gets it back where it is lost or stuck.
//
//	reads:  AppInstanceConfig, ConfigItemValueMap, AppDetachRequest, EdgeNodeInfo, ZedAgentStatus, KnownNode, MountRecovery, WorkloadsStatus,
//	        nodes, app pods, virtual machines, replica sets, the API's health
//	writes: ENClusterAppStatus, AppRepairStatus
//	acts:   under the repair lease: takes applications away from nodes that are gone, makes stuck virtual
//	        machines again, moves affinities and applications to the designated node. Writes on the own Node of
//	        which applications it is the designated one
//
// It needs no cluster configuration: a single node is a cluster of one.
package apps

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

// period is only a safety net: everything that counts rings.
const period = time.Minute

// Kube is what the component does to the cluster. Every verb ends when its
// context does; what is to be removed and is not there is success.
type Kube interface {
	// Repair calls do while this node, and no other, holds the repair lease.
	// Its error wraps types.ErrHeld where another node holds it.
	Repair(ctx context.Context, identity string, do func(ctx context.Context) error) error
	// FreshNodes lists the nodes with the renewals of their kubelets.
	FreshNodes(ctx context.Context) ([]types.Node, error)
	// NodeLease returns when the kubelet of a node last renewed its Lease, by its own
	// clock; zero where there is no Lease, which says nothing.
	NodeLease(ctx context.Context, node string) (time.Time, error)
	// Storage lists the volumes of Longhorn.
	Storage(ctx context.Context, node string) (types.Storage, error)
	// NodeAttachments lists the VolumeAttachments of a node.
	NodeAttachments(ctx context.Context, node string) ([]types.Attachment, error)
	// AppPodsNow lists the pods of eve-kube-app, on whatever node.
	AppPodsNow(ctx context.Context) ([]types.Pod, error)
	// RunningPods lists what the runtime of a node really runs.
	RunningPods(ctx context.Context, node types.Node) ([]types.PodRef, error)

	// NoteRepair, SetWanted and SetAffinity change a set of that Version, or fail
	// with an error that wraps types.ErrConflict.
	NoteRepair(ctx context.Context, set types.AppSet, note types.RepairNote) error
	SetWanted(ctx context.Context, set types.AppSet, replicas int32) error
	// SetAffinity writes a note with it.
	SetAffinity(ctx context.Context, set types.AppSet, node string, required bool, note types.RepairNote) error
	// ForceDeletePod, DeleteVMI, ForgetVMI and DeleteAttachment remove this very
	// object, not a namesake; ForgetVMI does not wait for its node to agree.
	ForceDeletePod(ctx context.Context, pod types.Pod) error
	DeleteVMI(ctx context.Context, vmi types.VMI) error
	ForgetVMI(ctx context.Context, vmi types.VMI) error
	DeleteAttachment(ctx context.Context, a types.Attachment) error
	// Evict asks for the eviction of the pod.
	Evict(ctx context.Context, pod types.Pod) error
	// Fence takes a node that is not ready out of service; Unfence undoes only that.
	Fence(ctx context.Context, node types.Node, fence types.Fence) error
	Unfence(ctx context.Context, node types.Node) error
	// Designate replaces what a node says of the applications whose designated node
	// it is; a zero d is removed.
	Designate(ctx context.Context, node string, d types.Designations) error
	// Event tells people.
	Event(ctx context.Context, e types.Event) error
}

// Component publishes one ENClusterAppStatus and one AppRepairStatus per
// AppInstanceConfig, under the key of the configuration: the UUID of the
// application.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	Configs  pubsub.Source[types.AppInstanceConfig]
	Settings pubsub.Reader[types.ConfigItemValueMap]
	Requests pubsub.Reader[types.AppDetachRequest]
	Info     pubsub.Reader[types.EdgeNodeInfo]
	Agent    pubsub.Reader[types.ZedAgentStatus]
	Nodes    pubsub.Reader[types.Node]
	AppPods  pubsub.Reader[types.Pod]
	VMIs     pubsub.Reader[types.VMI]
	Sets     pubsub.Reader[types.AppSet]
	API      pubsub.Reader[types.APIStatus]
	Known    pubsub.Reader[types.KnownNode]
	Mounts   pubsub.Reader[types.MountRecovery]
	Off      pubsub.Reader[types.WorkloadsStatus]
	Kube     Kube

	BootID string
	Uptime func() time.Duration // since the boot, with the time asleep; no clock that anyone sets

	Status  pubsub.Writer[types.ENClusterAppStatus]
	Repairs pubsub.Writer[types.AppRepairStatus]

	blind     bool          // the cluster, or this node in it, is not fully known
	unseenAt  time.Duration // uptime, since when
	mem       memory
	witnesses pubsub.Table[heard]    // for the repair under way
	pick      pubsub.Pick[types.Pod] // the pods that look tells of
	looking   loop.Call[fresh]
	working   loop.Call[outcome]
	telling   loop.Call[error] // what this node is the designated one of, on its way
}

// Run steps until ctx is done and returns after what is under way has ended.
func (c *Component) Run(ctx context.Context) {
	defer c.looking.End()
	defer c.working.End()
	defer c.telling.End()
	loop.Run(ctx, c.Log, c.Pulse, period, loop.Throttled(c.Step, loop.Prompt), c.Configs, c.Settings, c.Requests, c.Info,
		c.Agent, c.Nodes, &c.pick, c.VMIs, c.Sets, c.API, c.Mounts, c.Off, &c.looking, &c.working, &c.telling)
}

// Step looks once, publishes what changed and begins what is to be done.
func (c *Component) Step(ctx context.Context) error {
	c.collect()
	f := c.look()
	return c.apply(ctx, f.self.Name, decide(f))
}

func (c *Component) apply(ctx context.Context, self string, a action) error {
	c.mem.since = a.since
	var errs []error
	for _, app := range slices.Sorted(maps.Keys(a.publish)) {
		old, _ := c.Status.Get(app)
		if err := c.Status.Publish(app, a.publish[app]); err != nil {
			errs = append(errs, fmt.Errorf("publish status of app %s: %w", app, err))
			continue
		}
		c.logChange(app, old, a.publish[app])
	}
	for _, app := range slices.Sorted(maps.Keys(a.repairs)) {
		old, _ := c.Repairs.Get(app)
		if err := c.Repairs.Publish(app, a.repairs[app]); err != nil {
			errs = append(errs, fmt.Errorf("publish repair status of app %s: %w", app, err))
			continue
		}
		c.logPhase(app, old, a.repairs[app])
	}
	for _, app := range a.unpublish {
		if err := errors.Join(c.Status.Unpublish(app), c.Repairs.Unpublish(app)); err != nil {
			errs = append(errs, fmt.Errorf("unpublish status of app %s: %w", app, err))
			continue
		}
		c.Log.WithField("app", app).Info("application is no longer configured")
	}
	if a.tell != nil {
		ctx := types.Because(ctx, "", "the applications whose designated node this is are published to the other nodes")
		c.telling.Begin(ctx, tellTimeout, func(ctx context.Context) error { return c.Kube.Designate(ctx, self, *a.tell) })
	}
	if a.look {
		c.looking.Begin(ctx, lookTimeout, func(ctx context.Context) fresh { return c.readAgain(ctx, a.deleted) })
	}
	if a.act != nil {
		c.begin(ctx, *a.act)
	}
	return errors.Join(append(errs, loop.Again(a.again))...)
}

func (c *Component) logChange(app string, old, s types.ENClusterAppStatus) {
	if old.AppKubeStatus == s.AppKubeStatus && old.ScheduledOnThisNode == s.ScheduledOnThisNode {
		return
	}
	c.Log.WithFields(logrus.Fields{
		"app": app, "status": s.AppKubeStatus.String(), "here": s.ScheduledOnThisNode, "designated": s.IsDNidNode,
	}).Info("application status changed")
}

// logPhase logs what people have to know once, not at every look.
func (c *Component) logPhase(app string, old, s types.AppRepairStatus) {
	if old.Phase == s.Phase && old.Act == s.Act || s.Phase == types.RepairWaits && old.Act == s.Act {
		return
	}
	log := c.Log.WithFields(logrus.Fields{"app": app, "phase": s.Phase, "act": s.Act})
	if s.Phase == types.RepairRefused || s.Phase == types.RepairGaveUp {
		log.Warn(s.Reason)
		return
	}
	log.Info(s.Reason)
}
