package types

import "time"

// KubeStorageStatus says how far Longhorn is as the device's settings want it,
// under key "global" (docs/wire.md, "KubeStorageStatus"). It is for people: no
// agent reads it.
type KubeStorageStatus struct {
	DiskReservation StorageLevel // storageReserved of each disk of this node, bytes
	SnapshotJob     StorageLevel // the schedule of Longhorn's snapshots
	DrainPolicy     StorageLevel // Longhorn's node-drain-policy
}

// StorageLevel is one thing that zedkube keeps in Longhorn.
type StorageLevel struct {
	Kept   bool      // by this node: by each for its own disks, by the elected one for the cluster
	Wanted string    // by the settings; "" for nothing, or while Why says that they are invalid
	Actual string    // as the cluster shows it; "" for nothing, or where this node does not see it
	Since  time.Time // when the rest last changed, wall clock
	Why    string    // what keeps it from being as wanted, or from staying so, a sentence; "" for nothing
}
