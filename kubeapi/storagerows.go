package kubeapi

import (
	"fmt"
	"net"
	"strconv"

	longhornv1 "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"

	"github.com/zedkube/zedkube/types"
)

func diskOf(v *volumePart) disk {
	d := disk{node: v.Status.CurrentNodeID, Volume: types.Volume{
		Name:       v.Name,
		State:      v.Status.State,
		Robustness: v.Status.Robustness,
		Wanted:     v.Spec.NumberOfReplicas,
		Created:    v.CreationTimestamp.Time,
		Size:       v.Spec.Size,
		Used:       v.Status.ActualSize,
		ClaimState: v.Status.Kubernetes.PVStatus,
	}}
	// LastPVCRefAt is set once the claim is not its any more: another volume may be
	// of that name by now.
	switch claim := v.Status.Kubernetes; {
	case claim.PVCName == "":
	case claim.LastPVCRefAt == "":
		d.Claim = claim.Namespace + "/" + claim.PVCName
	default:
		d.LastClaim = claim.Namespace + "/" + claim.PVCName
	}
	return d
}

// engineOf keeps of the addresses and of the rebuilds, of which the last ones
// stay, only what a rebuild under way needs.
func engineOf(e *enginePart) engine {
	row := engine{name: e.Name, node: e.Spec.NodeID, state: e.Status.CurrentState, modes: e.Status.Modes}
	for _, mode := range row.modes {
		if mode == longhornv1.ReplicaModeWO {
			row.addresses, row.rebuilds = e.Status.Addresses, e.Status.Rebuilds
		}
	}
	return row
}

// replicaOf takes a replica for running unless it is known to be stopped and to
// stay so, as Longhorn does by its drain policy.
func replicaOf(r *replicaPart) (replica, error) {
	if r.Name == "" {
		return replica{}, errNoName
	}
	out := replica{engine: r.Spec.EngineName, Replica: types.Replica{
		Name: r.Name,
		Node: r.Spec.NodeID,
		Running: r.Spec.DesireState != longhornv1.InstanceStateStopped ||
			r.Status.CurrentState != longhornv1.InstanceStateStopped && r.Status.CurrentState != "",
		State:   string(r.Status.CurrentState),
		Started: r.Status.OwnerID != "" || r.Status.InstanceManagerName != "" || r.Status.CurrentImage != "",
	}}
	if r.Status.IP != "" {
		out.address = net.JoinHostPort(r.Status.IP, strconv.Itoa(r.Status.Port))
	}
	var err error
	if out.HealthyAt, err = longhornTime(r.Spec.HealthyAt); err != nil {
		return replica{}, fmt.Errorf("replica %s: %w", r.Name, err)
	}
	if out.FailedAt, err = longhornTime(r.Spec.FailedAt); err != nil {
		return replica{}, fmt.Errorf("replica %s: %w", r.Name, err)
	}
	return out, nil
}
