package kubeapi

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	longhornv1 "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"

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
}

// listDisks lists volumes before their parts: a part without a volume belongs to a
// volume that is newer than the list, or deleted. So without volumes there is
// nothing more to list.
func listDisks(ctx context.Context, conn *connection) (disks, error) {
	d, api := disks{}, kept[longhornClients](conn)
	if err := pages(ctx, api.volumes.List, d.addVolumes); err != nil {
		return nil, fmt.Errorf("list volumes of Longhorn: %w", err)
	}
	if len(d) == 0 {
		return d, nil
	}
	if err := pages(ctx, api.engines.List, d.addEngines); err != nil {
		return nil, fmt.Errorf("list engines of Longhorn: %w", err)
	}
	if err := pages(ctx, api.replicas.List, d.addReplicas); err != nil {
		return nil, fmt.Errorf("list replicas of Longhorn: %w", err)
	}
	return d, nil
}

func (d disks) addVolumes(l *partList[volumePart]) error {
	for i := range l.Items {
		if l.Items[i].Name == "" {
			return errNoName
		}
		v := diskOf(&l.Items[i])
		d[v.Name] = &v
	}
	return nil
}

func (d disks) addEngines(l *partList[enginePart]) error {
	for i := range l.Items {
		if l.Items[i].Name == "" {
			return errNoName
		}
		if v := d[l.Items[i].Spec.VolumeName]; v != nil {
			v.engines = append(v.engines, engineOf(&l.Items[i]))
		}
	}
	return nil
}

func (d disks) addReplicas(l *partList[replicaPart]) error {
	for i := range l.Items {
		r, err := replicaOf(&l.Items[i])
		if err != nil {
			return err
		}
		if v := d[l.Items[i].Spec.VolumeName]; v != nil {
			v.replicas = append(v.replicas, r)
		}
	}
	return nil
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
		v.Replicas = append(v.Replicas, own.shows(r))
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
// that is not listed, "" for none.
func (v *disk) missing() string {
	for _, e := range v.engines {
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

// shows returns the replica as the engine sees it, or last saw it (docs/wire.md,
// "KubeClusterInfo").
func (e *engine) shows(r replica) types.Replica {
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
