package overview

import "github.com/zedkube/zedkube/types"

func (r *reader) storage() {
	s, t := one[types.KubeStorageStatus](r, global(plain(self, "KubeStorageStatus")))
	r.o.Storage = Storage{Told: t}
	if t.Known() {
		r.o.Storage.Settings = []StorageSetting{
			{"DiskReservation", s.DiskReservation}, {"SnapshotJob", s.SnapshotJob}, {"DrainPolicy", s.DrainPolicy},
		}
	}
	if !r.o.Report.Info.Known() {
		return
	}
	r.o.Storage.Health, r.o.Storage.Since = r.info.Storage.Health.String(), UTC(r.info.Storage.TransitionTime)
	for _, v := range r.info.Storage.Volumes {
		r.o.Storage.Volumes = append(r.o.Storage.Volumes, volume(v, r.o.Node.Name))
	}
}

func volume(v types.KubeVolumeInfo, own string) Volume {
	out := Volume{
		Name: v.Name, State: v.State.String(), Robustness: v.Robustness.String(), Substate: v.RobustnessSubstate.String(),
		Bytes: v.ProvisionedBytes, Replicas: len(v.Replicas),
	}
	for _, rep := range v.Replicas {
		switch rep.Status {
		case types.StorageVolumeReplicaStatusOnline:
			out.Online++
			out.Here = out.Here || own != "" && rep.OwnerNode == own
		case types.StorageVolumeReplicaStatusRebuilding:
			if done := max(int(rep.RebuildProgressPercentage), 1); out.Rebuilding == 0 || done < out.Rebuilding {
				out.Rebuilding = min(done, 100)
			}
		}
	}
	return out
}
