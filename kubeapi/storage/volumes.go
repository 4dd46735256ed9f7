package storage

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"unique"

	longhornv1 "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

// disks is what Longhorn keeps of its volumes in three kinds of object.
type disks map[string]*disk

// disk is a volume with its replicas and engines.
type disk struct {
	types.Volume
	node     string // the one it is attached to, "" for none
	engines  []engine
	replicas []replica
}

type engine struct {
	name, node string
	state      longhornv1.InstanceState
	modes      []modeOf
	addresses  map[string]string       // by replica, while one is rebuilt
	rebuilds   map[string]*rebuildPart // by URL of a replica, while one is rebuilt
}

// modeOf is how an engine uses a replica.
type modeOf struct {
	replica string
	mode    longhornv1.ReplicaMode
}

// mode is "" for a replica that the engine has not.
func (e *engine) mode(replica string) longhornv1.ReplicaMode {
	for _, m := range e.modes {
		if m.replica == replica {
			return m.mode
		}
	}
	return ""
}

type replica struct {
	types.Replica
	engine  string
	address string
	err     error // why it is invalid, of one that is watched
}

// listDisks lists volumes before their parts: a part without a volume belongs to a
// volume that is newer than the list, or deleted. So without volumes there is
// nothing more to list.
func listDisks(ctx context.Context, conn *access.Connection) (disks, error) {
	d, api := disks{}, access.Kept[Clients](conn)
	err := access.Each(ctx, "Longhorn volumes", access.StoragePage, api.Volumes.List, func(o *VolumePart) error {
		v := DiskOf(o)
		d[v.Name] = &v
		return nil
	})
	if err != nil || len(d) == 0 {
		return d, err
	}
	err = access.Each(ctx, "Longhorn engines", access.StoragePage, api.Engines.List, func(o *EnginePart) error {
		if v := d[o.Spec.VolumeName]; v != nil {
			v.engines = append(v.engines, EngineOf(o))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return d, access.Each(ctx, "Longhorn replicas", access.StoragePage, api.Replicas.List, func(o *ReplicaPart) error {
		r, err := ReplicaOf(o)
		if v := d[o.Spec.VolumeName]; v != nil {
			v.replicas = append(v.replicas, r)
		}
		return err
	})
}

// volumes joins them.
func (d disks) volumes() ([]types.Volume, error) {
	out := make([]types.Volume, 0, len(d))
	for _, v := range d {
		if err := v.join(); err != nil {
			return nil, fmt.Errorf("volume %s of Longhorn: %w", v.Name, err)
		}
		out = append(out, v.Volume)
	}
	slices.SortFunc(out, func(a, b types.Volume) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// join fills in the engine and the replicas, and refuses lists that contradict
// one another: one of them is not whole, or they are of different moments.
func (v *disk) join() error {
	for _, r := range v.replicas {
		if r.err != nil {
			return r.err
		}
	}
	own := v.engine()
	for _, e := range v.engines {
		v.Running = v.Running || e.state == longhornv1.InstanceStateRunning
		if (own == nil || e.name != own.name) && e.mayRun() && e.node != "" {
			v.Also = append(v.Also, e.node)
		}
	}
	if own != nil {
		v.Engine = own.node
	}
	v.Replicas = slices.Grow(v.Replicas, len(v.replicas))
	for _, r := range v.replicas {
		if own != nil && r.engine != own.name && v.has(r.engine) {
			continue // the same data, shown to the engine that it migrates to
		}
		v.Replicas = append(v.Replicas, own.Shows(r))
	}
	slices.SortFunc(v.Replicas, func(a, b types.Replica) int { return cmp.Compare(a.Name, b.Name) })
	attached := v.State == string(longhornv1.VolumeStateAttached)
	switch name := v.missing(); {
	case name != "":
		return fmt.Errorf("its engine uses replica %s, which is not listed", name)
	case attached && len(v.engines) == 0:
		return fmt.Errorf("it is attached and none of its engines is listed")
	case attached && len(v.replicas) == 0:
		return fmt.Errorf("it is attached and none of its replicas is listed")
	}
	return nil
}

// engine returns the one that the volume is used by: with several, the one on
// the node that it is attached to; nil for unknown.
func (v *disk) engine() *engine {
	if len(v.engines) == 1 {
		return &v.engines[0]
	}
	i := slices.IndexFunc(v.engines, func(e engine) bool { return e.node != "" && e.node == v.node })
	if i < 0 {
		return nil
	}
	return &v.engines[i]
}

func (v *disk) has(name string) bool {
	return slices.ContainsFunc(v.engines, func(e engine) bool { return e.name == name })
}

// missing returns the name of a replica that an engine reads and writes and
// that is not listed, "" for none. What an engine that does not run last knew
// counts for nothing: Longhorn's manager keeps the modes of the engines that it
// monitors, and deletes the replicas of others without them.
func (v *disk) missing() string {
	for _, e := range v.engines {
		if !e.mayRun() {
			continue
		}
		for _, m := range e.modes {
			listed := func(r replica) bool { return r.Name == m.replica }
			if m.mode == longhornv1.ReplicaModeRW && !slices.ContainsFunc(v.replicas, listed) {
				return m.replica
			}
		}
	}
	return ""
}

func (e *engine) mayRun() bool {
	switch e.state {
	case "", longhornv1.InstanceStateStopped, longhornv1.InstanceStateError, longhornv1.InstanceStateTerminated:
		return false
	}
	return true
}

// Shows returns the replica as the engine sees it, or last saw it (docs/wire.md,
// "KubeClusterInfo").
func (e *engine) Shows(r replica) types.Replica {
	if e == nil || !e.mayRun() {
		return r.Replica
	}
	mode := e.mode(r.Name)
	if e.state != longhornv1.InstanceStateRunning {
		r.LastMode = string(mode)
		return r.Replica
	}
	r.Mode = string(mode)
	if mode != longhornv1.ReplicaModeWO {
		return r.Replica
	}
	for _, address := range []string{e.addresses[r.Name], r.address} {
		if now := e.rebuilds["tcp://"+address]; now != nil {
			r.Percent = min(max(now.Progress, 0), 100)
			break
		}
	}
	return r.Replica
}

// once is a text that many objects have, held once for all of them.
func once[S ~string](text S) S { return unique.Make(text).Value() }

// DiskOf is what is known of a volume from its own object.
func DiskOf(v *VolumePart) disk {
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

// VolumeOf is what DiskOf is to those who need neither engine nor replicas.
func VolumeOf(v *VolumePart) types.Volume { return DiskOf(v).Volume }

// EngineOf keeps of the addresses and of the rebuilds, of which the last ones
// stay, only what a rebuild under way needs.
func EngineOf(e *EnginePart) engine {
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

// ReplicaOf takes a replica for running unless it is known to be stopped and to
// stay so, as Longhorn does by its drain policy.
func ReplicaOf(r *ReplicaPart) (replica, error) {
	if r.Name == "" {
		return replica{}, access.ErrNoName
	}
	out := replica{engine: once(r.Spec.EngineName), Replica: types.Replica{
		Name: r.Name,
		Node: once(r.Spec.NodeID),
		Running: r.Spec.DesireState != longhornv1.InstanceStateStopped ||
			r.Status.CurrentState != longhornv1.InstanceStateStopped && r.Status.CurrentState != "",
		State:   string(once(r.Status.CurrentState)),
		Started: r.Status.OwnerID != "" || r.Status.InstanceManagerName != "" || r.Status.CurrentImage != "",
		Deleted: ptr.Deref(r.DeletionTimestamp, metav1.Time{}).Time,
	}}
	if r.Status.IP != "" {
		out.address = net.JoinHostPort(r.Status.IP, strconv.Itoa(r.Status.Port))
	}
	var healthy, failed error
	out.HealthyAt, healthy = longhornTime(r.Spec.HealthyAt)
	out.FailedAt, failed = longhornTime(r.Spec.FailedAt)
	if err := cmp.Or(healthy, failed); err != nil {
		return replica{}, fmt.Errorf("replica %s: %w", r.Name, err)
	}
	return out, nil
}
