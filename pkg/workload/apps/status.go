package apps

import (
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

// trust is how long the last word on an application is believed when nothing
// new is seen, because the API server is silent, its lists are incomplete or
// this node does not find itself: long enough for a restart of k3s, short enough
// that the node does not go on claiming what was moved away meanwhile.
const trust = 2 * time.Minute

// restarts is how long a virtual machine that is on no node stays claimed by the
// node that had it: between the end of its launcher and the node of the next one.
const restarts = time.Minute

// firstVNCPort is the port of VNC display 0.
const firstVNCPort = 5900

// status is what to publish of one application.
func (f facts) status(a app) types.ENClusterAppStatus {
	switch {
	case f.unseenSince.IsZero():
		return seen(a.cfg, a.pods, f.self.Name)
	case f.now.Sub(f.unseenSince) < trust:
		return lastKnown(a.cfg, f.statuses[a.key])
	}
	return unreachable(a.cfg)
}

// configured is the part of a status that needs no cluster.
func configured(cfg types.AppInstanceConfig) types.ENClusterAppStatus {
	return types.ENClusterAppStatus{
		AppUUID:    cfg.UUIDandVersion.UUID,
		IsDNidNode: cfg.IsDesignatedNodeID,
		AppIsVMI:   cfg.IsVMI(),
	}
}

// restarting keeps the claim on a virtual machine that was here and is on no node
// now: its set makes another launcher, which has no node yet. Off its designated
// node the application would be made inactive for that moment (docs/wire.md,
// "zedmanager").
func (f facts) restarting(a app, s types.ENClusterAppStatus) (types.ENClusterAppStatus, verdict) {
	last := f.statuses[a.key]
	was := last.ScheduledOnThisNode && (last.VMIName == "" || strings.HasPrefix(last.VMIName, a.cfg.KubeName()))
	pod, ok := a.representativePod(f.self.Name)
	elsewhere, gone := ok && pod.NodeName != "", a.set.Name == "" || !a.set.Deleted.IsZero()
	key := "restarts/" + a.key
	wait := restarts - f.lasted(key)
	if !f.unseenSince.IsZero() || !s.AppIsVMI || !was || elsewhere || gone || wait <= 0 {
		return s, verdict{}
	}
	s.ScheduledOnThisNode, s.AppKubeStatus = true, types.AppKubeNotRunning
	return s, verdict{keys: []string{key}, again: wait}
}

// unreachable claims nothing: another node may run the application by now. It
// must not say "not in the cluster" either, or the designated node would claim
// the application (docs/wire.md, "ENClusterAppStatus").
func unreachable(cfg types.AppInstanceConfig) types.ENClusterAppStatus {
	s := configured(cfg)
	s.AppKubeStatus = types.AppKubeAPIUnreachable
	return s
}

// lastKnown repeats what was seen last; for an application that was never
// looked for that is "unknown".
func lastKnown(cfg types.AppInstanceConfig, last types.ENClusterAppStatus) types.ENClusterAppStatus {
	s := configured(cfg)
	s.ScheduledOnThisNode = last.ScheduledOnThisNode
	s.AppKubeStatus = last.AppKubeStatus
	s.StatusRunning = last.AppKubeStatus == types.AppKubeRunning
	s.VMIName, s.VNCPort = last.VMIName, last.VNCPort
	return s
}

// seen tells what the pods of a complete table say.
func seen(cfg types.AppInstanceConfig, pods []types.Pod, self string) types.ENClusterAppStatus {
	s := configured(cfg)
	pod, ok := choose(cfg, pods, self)
	if !ok {
		s.AppKubeStatus = types.AppKubeNotInCluster
		return s
	}
	s.AppKubeStatus = types.AppKubeNotRunning
	if pod.Phase == types.PodRunning {
		s.AppKubeStatus, s.StatusRunning = types.AppKubeRunning, true
	}
	s.ScheduledOnThisNode = self != "" && pod.NodeName == self
	if s.AppIsVMI {
		s.VMIName = pod.VMIName()
		s.VNCPort = firstVNCPort + cfg.FixedResources.VncDisplay
	}
	return s
}
