//go:build linux

package report

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/zedkube/zedkube/types"
)

// The sections that are judged, by the topic that tells them.
var (
	clusterSections = []string{types.SectionNodes, types.SectionAppPods, types.SectionAppVMIs, types.SectionStorage, types.SectionAllocated, types.SectionNamespaces}
	serviceSections = []string{types.SectionServices, types.SectionIngresses}
)

// told takes a report on the cluster apart. What is not judged here, the golden
// reports show.
func told(r types.KubeClusterInfo) map[thing]string {
	facts := map[thing]string{}
	for _, n := range r.Nodes {
		facts[thing{types.SectionNodes, n.Name}] = nodeFact(n)
	}
	for _, p := range r.AppPods {
		facts[thing{types.SectionAppPods, p.Name}] = podFact(p)
	}
	for _, v := range r.AppVMIs {
		facts[thing{types.SectionAppVMIs, v.Name}] = vmiFact(v)
	}
	for _, n := range r.PodNsInfo {
		facts[thing{types.SectionNamespaces, n.Name}] = fact(n)
	}
	for _, v := range r.Storage.Volumes {
		volumeFacts(facts, v)
	}
	return facts
}

func toldServices(r types.KubeUserServices) map[thing]string {
	facts := map[thing]string{}
	for _, s := range r.UserService {
		facts[serviceThing(s)] = fact(s)
	}
	for _, i := range r.UserIngress {
		facts[ingressThing(i)] = fact(i)
	}
	return facts
}

// fact is a value as text.
func fact(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// nodeFact leaves out when the node was made and its address, which do not change, and
// what is not so.
func nodeFact(n types.KubeNodeInfo) string {
	var set []string
	for _, c := range n.Conditions {
		if c.Set {
			set = append(set, fmt.Sprintf("%s since %d", c.Type, c.Since.Unix()))
		}
	}
	slices.Sort(set)
	return fmt.Sprintf("%s since %d, master %t, etcd %t, schedulable %t, %s, %s %q",
		n.Status, n.LastTransitionTime.Unix(), n.IsMaster, n.UsesEtcd, n.Schedulable, n.Admission, n.NodeID, set)
}

func podFact(p types.KubePodInfo) string {
	return fmt.Sprintf("%s %q, %d restarts, %s on %q", p.Status, p.Reason, p.RestartCount, p.PodIP, p.NodeName)
}

func vmiFact(v types.KubeVMIInfo) string {
	return fmt.Sprintf("%s, ready %t, on %q", v.Status, v.IsReady, v.NodeName)
}

// volumeFacts are one for each source of what is told of a volume.
func volumeFacts(facts map[thing]string, v types.KubeVolumeInfo) {
	for part, value := range map[string]string{
		"":          fmt.Sprintf("%s, %s, %d bytes", v.State, v.Robustness, v.ProvisionedBytes),
		" claim":    v.PvcStatus.String(),
		" substate": substate(v),
	} {
		facts[thing{types.SectionStorage, v.Name + part}] = value
	}
	facts[thing{types.SectionAllocated, v.Name}] = fact(v.AllocatedBytes)
	for _, r := range v.Replicas {
		facts[thing{types.SectionStorage, v.Name + " " + r.Name}] = replicaFact(r)
	}
}

func replicaFact(r types.KubeVolumeReplicaInfo) string {
	return fmt.Sprintf("%s at %d %% on %s", r.Status, r.RebuildProgressPercentage, r.OwnerNode)
}

// fitting is the substate of a volume that is what its replicas and its
// robustness make of it (docs/wire.md, "KubeClusterInfo").
const fitting = "fits"

// substate says how that of a volume does not fit what is told beside it. All
// replicas of these volumes run.
func substate(v types.KubeVolumeInfo) string {
	good := 0
	for _, r := range v.Replicas {
		if r.Status == types.StorageVolumeReplicaStatusOnline {
			good++
		}
	}
	want := types.StorageHealthStatusUnknown
	switch all := len(v.Replicas); {
	case v.Robustness == types.StorageVolumeRobustnessFaulted:
		want = types.StorageHealthStatusFailed
	case v.Robustness == types.StorageVolumeRobustnessHealthy && good == all:
		want = types.StorageHealthStatusHealthy
	case all == 1:
		want = types.StorageHealthStatusDegraded1ReplicaAvailableNotReplicating
	case good == 1:
		want = types.StorageHealthStatusDegraded1ReplicaAvailableReplicating
	case all == 2 && good == 2:
		want = types.StorageHealthStatusDegraded2ReplicaAvailableNotReplicating
	case all == 3 && good == 2:
		want = types.StorageHealthStatusDegraded2ReplicaAvailableReplicating
	}
	if v.RobustnessSubstate == want {
		return fitting
	}
	return fmt.Sprintf("%s, %d of %d replicas good, is %s", v.Robustness, good, len(v.Replicas), v.RobustnessSubstate)
}

func serviceThing(s types.KubeUserService) thing {
	return thing{types.SectionServices, fmt.Sprintf("%s/%s:%d", s.Namespace, s.Name, s.Port)}
}

func ingressThing(i types.KubeUserIngress) thing {
	return thing{types.SectionIngresses, fmt.Sprintf("%s/%s %s%s", i.Namespace, i.Name, i.Hostname, i.Path)}
}
