package kubeapi

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"unique"

	longhornv1 "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"

	"github.com/zedkube/zedkube/types"
)

// once is a text that many objects have, held once for all of them.
func once[S ~string](text S) S { return unique.Make(text).Value() }

func diskOf(v *volumePart) disk {
	d := disk{node: once(v.Status.CurrentNodeID), Volume: types.Volume{
		UID:        string(v.UID),
		Name:       once(v.Name),
		State:      once(v.Status.State),
		Robustness: once(v.Status.Robustness),
		Wanted:     v.Spec.NumberOfReplicas,
		Created:    v.CreationTimestamp.Time,
		Size:       v.Spec.Size,
		Used:       v.Status.ActualSize,
		ClaimState: once(v.Status.Kubernetes.PVStatus),
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
	row := engine{name: once(e.Name), node: once(e.Spec.NodeID), state: once(e.Status.CurrentState)}
	row.modes = slices.Grow(row.modes, len(e.Status.Modes))
	for _, name := range slices.Sorted(maps.Keys(e.Status.Modes)) {
		mode := e.Status.Modes[name]
		row.modes = append(row.modes, modeOf{name, once(mode)})
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
	out := replica{engine: once(r.Spec.EngineName), Replica: types.Replica{
		Name: r.Name,
		Node: once(r.Spec.NodeID),
		Running: r.Spec.DesireState != longhornv1.InstanceStateStopped ||
			r.Status.CurrentState != longhornv1.InstanceStateStopped && r.Status.CurrentState != "",
		State:   string(once(r.Status.CurrentState)),
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
