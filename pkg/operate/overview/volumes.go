package overview

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

// Volume is a replicated volume.
type Volume struct {
	Name       string    // of its claim; of the volume where it has none
	Namespace  string    `json:",omitzero"` // of its claim; "" for none
	State      string    // StorageVolumeState
	Robustness string    // StorageVolumeRobustness
	Substate   string    // StorageHealthStatus
	Created    time.Time `json:",omitzero"`
	Bytes      uint64
	Used       uint64 `json:",omitzero"` // bytes on each disk, with its snapshots
	Replicas   int
	Wanted     int             `json:",omitzero"` // replicas; 0 for unknown
	Online     int             // replicas that its engine reads and writes
	Healthy    int             // replicas whose data is whole, of one that is not attached when it was detached
	Here       bool            `json:",omitzero"` // an online replica is on this node
	Rebuilding int             `json:",omitzero"` // percent of the rebuild furthest from its end; 0 for none
	Attached   string          `json:",omitzero"` // the node it is attached to, where the source tells
	Copies     []VolumeReplica `json:",omitempty"`
	Users      []VolumeUser    `json:",omitempty"` // by name
}

// VolumeReplica is one of a volume's replicas.
type VolumeReplica struct {
	Name    string
	Node    string
	Status  string // StorageVolumeReplicaStatus
	Percent int    `json:",omitzero"` // of its rebuild
}

// VolumeUser is an application or a pod that uses a volume.
type VolumeUser struct {
	App  string `json:",omitzero"` // name at the controller; "" for none that this device knows
	Pod  string `json:",omitzero"` // "" where none is known to exist
	Node string `json:",omitzero"`
}

// Last reports that the data is in one healthy replica only, where there should be more.
func (v Volume) Last() bool {
	degraded := v.Robustness == types.StorageVolumeRobustnessDegraded.String() // where the object of a lost replica is gone, too
	return v.Healthy == 1 && (degraded || max(v.Replicas, v.Wanted) > 1)
}

// LastHere reports that this node has the only healthy replica, where there should be more.
func (v Volume) LastHere() bool { return v.Here && v.Last() }

// Lost reports that the data is whole nowhere.
func (v Volume) Lost() bool {
	return v.Robustness == types.StorageVolumeRobustnessFaulted.String() || v.Replicas > 0 && v.Healthy == 0
}

// ByUrgency brings those to the front whose data depends on one replica, then those without
// any, then those that lack replicas.
func ByUrgency(volumes []Volume) {
	rank := func(v Volume) int {
		switch {
		case v.Lost():
			return 1
		case v.Last():
			return 0
		case v.Robustness == types.StorageVolumeRobustnessDegraded.String(), v.Rebuilding > 0:
			return 2
		}
		return 3
	}
	slices.SortStableFunc(volumes, func(a, b Volume) int {
		return cmp.Or(rank(a)-rank(b), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
}

// volumes are those of the report.
func (r *reader) volumes() {
	if !r.o.Report.Info.Known() {
		return
	}
	for _, info := range r.info.Storage.Volumes {
		v := reportedVolume(info, r.o.Node.Name)
		for _, a := range r.o.Apps.List {
			if !a.has(v) {
				continue
			}
			user := VolumeUser{App: a.Name, Node: a.Node}
			for _, p := range a.Pods {
				if p.Status == types.KubePodRunning {
					user.Pod, user.Node = p.Name, p.NodeName
				}
			}
			v.Users = append(v.Users, user)
		}
		r.o.Storage.Volumes = append(r.o.Storage.Volumes, v)
	}
}

// has reports that the volume is one of the application's (docs/wire.md, "AppInstanceConfig").
func (a App) has(v Volume) bool {
	return v.Namespace == types.NamespaceApps && slices.ContainsFunc(a.VolumeIDs, func(id string) bool { return strings.HasPrefix(v.Name, id+"-pvc-") })
}

func reportedVolume(v types.KubeVolumeInfo, own string) Volume {
	out := Volume{
		Name: v.Name, Namespace: types.NamespaceApps, State: v.State.String(), Robustness: v.Robustness.String(), Substate: v.RobustnessSubstate.String(),
		Created: UTC(v.CreatedAt), Bytes: v.ProvisionedBytes, Used: v.AllocatedBytes, Replicas: len(v.Replicas),
	}
	for _, rep := range v.Replicas {
		c := VolumeReplica{Name: rep.Name, Node: rep.OwnerNode, Status: rep.Status.String()}
		switch rep.Status {
		case types.StorageVolumeReplicaStatusOnline:
			out.Online++
			out.Here = out.Here || own != "" && rep.OwnerNode == own
		case types.StorageVolumeReplicaStatusRebuilding:
			c.Percent = min(int(rep.RebuildProgressPercentage), 100)
			if done := max(c.Percent, 1); out.Rebuilding == 0 || done < out.Rebuilding {
				out.Rebuilding = done
			}
		case types.StorageVolumeReplicaStatusOffline: // Longhorn calls one failed that is not whole
			out.Healthy++
		}
		out.Copies = append(out.Copies, c)
	}
	if out.Online > 0 || v.State == types.StorageVolumeStateAttached {
		out.Healthy = out.Online
	}
	return out
}

// VolumesOf are the volumes as the API server has them, for who has asked it, with the pods of
// the applications and the applications that this device knows.
func VolumesOf(volumes []types.Volume, pods []types.Pod, apps []App, own string) []Volume {
	list := make([]Volume, 0, len(volumes))
	for _, v := range volumes {
		namespace, claim, _ := strings.Cut(v.Claim, "/")
		out := reportedVolume(types.KubeVolumeInfoOf(cmp.Or(claim, v.Name), v), own)
		out.Namespace, out.Wanted, out.Healthy, out.Attached = namespace, v.Wanted, v.HealthyReplicas(), v.Engine
		out.use(pods, apps)
		list = append(list, out)
	}
	return list
}

// use notes the pods that mount the volume, and the applications whose it is.
func (v *Volume) use(pods []types.Pod, apps []App) {
	app := ""
	for _, a := range apps {
		if a.has(*v) {
			app = a.Name
		}
	}
	for _, p := range pods {
		if p.Namespace == v.Namespace && v.Namespace != "" && slices.Contains(p.Claims, v.Name) && p.Phase != types.PodSucceeded && p.Phase != types.PodFailed {
			v.Users = append(v.Users, VolumeUser{App: app, Pod: p.Name, Node: p.NodeName})
		}
	}
	if app != "" && len(v.Users) == 0 {
		v.Users = []VolumeUser{{App: app}}
	}
	slices.SortFunc(v.Users, func(a, b VolumeUser) int { return strings.Compare(a.Pod, b.Pod) })
}
