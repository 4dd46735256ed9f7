package outlook

import (
	"cmp"
	"slices"
	"strings"

	"github.com/zedkube/zedkube/types"
)

// detached is the state of a volume of Longhorn of which no engine runs.
const detached = "detached"

// BlockingVolumes returns the volumes that keep the drain of node from being complete,
// by name: those that are attached here, by a VolumeAttachment or by an engine,
// and those that have a replica here and no healthy one on another node that is
// ready. What is not known to be healthy, ready or detached is not.
func BlockingVolumes(s types.Storage, node string, ready map[string]bool) []types.DrainVolume {
	attached := map[string]string{} // name of the attachment, by volume
	for _, a := range s.Attachments {
		if a.Daemons { // they stay, and go down with the device
			continue
		}
		attached[cmp.Or(a.Volume, a.Name)] = a.Name
	}
	var out []types.DrainVolume
	for _, v := range s.Volumes {
		if !s.Longhorn {
			break
		}
		_, claimed := attached[v.Name]
		delete(attached, v.Name)
		if d := blockingVolume(v, s.Policy, node, ready, claimed); d.Why != "" {
			out = append(out, d)
		}
	}
	for volume := range attached { // of another driver
		out = append(out, types.DrainVolume{Name: volume, Why: claimHere, Outlook: types.OutlookSlow})
	}
	slices.SortFunc(out, func(a, b types.DrainVolume) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

const (
	claimHere  = "it is attached to this node until the pods that use it are gone"
	engineOnly = "its engine is on this node until the pods that use it are gone"
)

// blockingVolume says how a volume of Longhorn is in the way; Why is "" for not at all.
func blockingVolume(v types.Volume, policy, node string, ready map[string]bool, claimed bool) types.DrainVolume {
	d := types.DrainVolume{Name: v.Name, Claim: v.Claim, Replicas: v.Wanted, Healthy: healthyReplicas(v)}
	here := 0
	for _, r := range v.Replicas {
		if r.Node == node && isHealthy(v, r) {
			here++
		}
	}
	d.LastHere = here > 0 && here == d.Healthy
	d.Rebuilding, d.Percent = rebuildOf(v, node)
	var why []string
	switch {
	case engineHere(v, node):
		why = append(why, engineOnly)
	case claimed:
		why = append(why, claimHere)
	}
	if len(why) > 0 {
		d.Outlook = types.OutlookSlow
	}
	if needsReplica(v, policy, node) && !survives(v, node, ready) {
		f := replicaElsewhere(v, policy, node, ready, d)
		why = append(why, f.why)
		if f.never || d.Outlook == "" {
			d.Outlook, d.Remedy = f.outlook(), f.remedy
		}
	}
	d.Why = strings.Join(why, "; ")
	return d
}

// rebuildOf returns the node that a replica is rebuilt on, and how far that is:
// of several the furthest, but rather one elsewhere than on this node.
func rebuildOf(v types.Volume, node string) (on string, percent int) {
	for _, r := range v.Replicas {
		better := on == "" || on == node && r.Node != node || (on == node) == (r.Node == node) && r.Percent > percent
		if v.Running && r.Mode == "WO" && r.Deleted.IsZero() && r.Node != "" && better {
			on, percent = r.Node, r.Percent
		}
	}
	return on, percent
}

// engineHere reports whether an engine is on node and not known to be stopped.
func engineHere(v types.Volume, node string) bool {
	return v.Engine == node && (v.Running || v.State != detached) || slices.Contains(v.Also, node)
}

// needsReplica reports whether the volume must not lose the replica on node, if
// there is one. Replicas that never held data are nobody's loss: those of a
// volume that was never attached.
func needsReplica(v types.Volume, policy, node string) bool {
	if !v.On(node) || policy == types.DrainPolicyAlwaysAllow {
		return false
	}
	running := slices.ContainsFunc(v.Replicas, func(r types.Replica) bool { return r.Node == node && r.Running })
	if policy == types.DrainPolicyAllowStopped && !running {
		return false
	}
	used := slices.ContainsFunc(v.Replicas, func(r types.Replica) bool {
		return r.Running || !r.HealthyAt.IsZero() || !r.FailedAt.IsZero()
	})
	return used || v.Running || v.State != detached
}

// survives reports whether another node that is ready has a healthy replica.
func survives(v types.Volume, node string, ready map[string]bool) bool {
	return slices.ContainsFunc(v.Replicas, func(r types.Replica) bool {
		return r.Node != node && ready[r.Node] && isHealthy(v, r)
	})
}

// isHealthy is Volume.Healthy where that is known: not between attached and
// detached, nor where the engine is lost.
func isHealthy(v types.Volume, r types.Replica) bool {
	return (v.Running || v.State == detached) && v.Healthy(r)
}

func healthyReplicas(v types.Volume) int {
	n := 0
	for _, r := range v.Replicas {
		if isHealthy(v, r) {
			n++
		}
	}
	return n
}

// HealthyReplicas returns the healthy replicas now of each volume with a replica
// on node. Where that is not known it is what there was when it last was.
func HealthyReplicas(s types.Storage, node string) map[string]int {
	was := map[string]int{}
	for _, v := range s.Volumes {
		if s.Longhorn && v.On(node) {
			was[v.Name] = v.HealthyReplicas()
		}
	}
	return was
}

// StillInUse says of a volume that is in the way by nothing but its use here, and
// whose pods are gone for a while, that waiting does not help.
func StillInUse(vol *types.DrainVolume) {
	if vol.Why != claimHere && vol.Why != engineOnly {
		return
	}
	vol.Why = "it is still in use on this node, although the pods that the drain evicts are gone"
	vol.Outlook = types.OutlookNever
	vol.Remedy = "see what attaches it: kubectl get volumeattachment; a pod that stays may use it, or the attacher of its CSI driver is not running"
}

// ReadyNodes is the set of nodes that are Ready.
func ReadyNodes(nodes []types.Node) map[string]bool {
	ready := map[string]bool{}
	for _, n := range nodes {
		ready[n.Name] = n.Ready == types.ConditionTrue
	}
	return ready
}

// ReadyPeer reports whether a node other than own is Ready.
func ReadyPeer(ready map[string]bool, own string) bool {
	for name, is := range ready {
		if is && name != own {
			return true
		}
	}
	return false
}

// InUse reports whether a volume is attached to node.
func InUse(s types.Storage, node string) bool {
	return len(s.Attachments) > 0 || slices.ContainsFunc(s.Volumes, func(v types.Volume) bool { return engineHere(v, node) })
}

// WithoutUse is the storage without the use of those volumes on node for which
// ignore returns true. That a volume needs its replica there counts as before.
func WithoutUse(s types.Storage, node string, ignore func(volume string) bool) types.Storage {
	s.Attachments = slices.DeleteFunc(slices.Clone(s.Attachments), func(a types.Attachment) bool { return ignore(a.Volume) })
	s.Volumes = slices.Clone(s.Volumes)
	for i := range s.Volumes {
		if v := &s.Volumes[i]; ignore(v.Name) {
			v.Also = slices.DeleteFunc(slices.Clone(v.Also), func(on string) bool { return on == node })
			if v.Engine == node {
				v.Engine = ""
			}
		}
	}
	return s
}

// RemedyGiveUpData is the remedy that is left where data is to be lost.
const RemedyGiveUpData = "if the data may be lost: zedkube leave plan, then zedkube leave --give-up-data"

// BlockingVolumesOfLeave is inTheWay for a leave: a drain policy is nothing to go by, and
// what an operator has consented to lose is in nobody's way.
func BlockingVolumesOfLeave(s types.Storage, node string, ready map[string]bool, consent *types.LeaveConsent) []types.DrainVolume {
	lost := LostByLeave(s, node, ready)
	volumes := BlockingVolumes(forGood(s, consent), node, ready)
	for i := range volumes {
		v := &volumes[i]
		v.Remedy = strings.ReplaceAll(v.Remedy, allow, RemedyGiveUpData)
		isLost := slices.ContainsFunc(lost, func(l types.LeaveVolume) bool { return l.Name == v.Name })
		if v.Remedy != "" && !strings.Contains(v.Remedy, RemedyGiveUpData) && isLost {
			v.Remedy += "; " + RemedyGiveUpData
		}
	}
	return volumes
}

// forGood is the storage as a leave sees it.
func forGood(s types.Storage, consent *types.LeaveConsent) types.Storage {
	if s.Policy == types.DrainPolicyAlwaysAllow || s.Policy == types.DrainPolicyAllowStopped {
		s.Policy = ""
	}
	given := map[string]bool{}
	keep := func(v types.Volume) bool {
		return len(consent.Lacks([]types.LeaveVolume{{UID: v.UID}})) > 0
	}
	all := s.Volumes
	s.Volumes = nil
	for _, v := range all {
		if given[v.Name] = !keep(v); !given[v.Name] {
			s.Volumes = append(s.Volumes, v)
		}
	}
	s.Attachments = slices.DeleteFunc(slices.Clone(s.Attachments), func(a types.Attachment) bool { return given[a.Volume] })
	return s
}

// LostByLeave returns, by name, the volumes that would lose their data with node: it
// has a replica that has held data, and no other node that is Ready has one that
// is known to be healthy. Longhorn's node-drain-policy is for reboots and has no
// say here.
func LostByLeave(s types.Storage, node string, ready map[string]bool) []types.LeaveVolume {
	var lost []types.LeaveVolume
	for _, v := range s.Volumes {
		if s.Longhorn && needsReplica(v, "", node) && !survives(v, node, ready) {
			lost = append(lost, types.LeaveVolume{UID: v.UID, Name: v.Name, Claim: v.Claim})
		}
	}
	slices.SortFunc(lost, func(a, b types.LeaveVolume) int { return strings.Compare(a.Name, b.Name) })
	return lost
}
