package outlook

import (
	"slices"
	"strings"

	"github.com/zedkube/zedkube/types"
)

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

// LostByLeave are the volumes of Longhorn that have data on node and no healthy
// replica on another one that is Ready, by name.
func LostByLeave(s types.Storage, node string, ready map[string]bool) []types.LeaveVolume {
	var only []types.LeaveVolume
	for _, v := range LostVolumes(s, node, ready) {
		only = append(only, types.LeaveVolume{UID: v.UID, Name: v.Name, Claim: v.Claim})
	}
	return only
}

// LostVolumes returns, by name, the volumes that would lose their data with node: it
// has a replica that has held data, and no other node that is Ready has one that
// is known to be healthy. Longhorn's node-drain-policy is for reboots and has no
// say here.
func LostVolumes(s types.Storage, node string, ready map[string]bool) []types.Volume {
	var last []types.Volume
	for _, v := range s.Volumes {
		if s.Longhorn && needsReplica(v, "", node) && !survives(v, node, ready) {
			last = append(last, v)
		}
	}
	slices.SortFunc(last, func(a, b types.Volume) int { return strings.Compare(a.Name, b.Name) })
	return last
}
