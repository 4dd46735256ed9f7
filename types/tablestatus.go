package types

import "time"

// The tables of the cluster, as TableStatus names them.
const (
	TableNodes             = "nodes"
	TableAppPods           = "app pods"
	TableVMIs              = "virtual machine instances"
	TablePodCounts         = "pod counts"
	TableClaims            = "volume claims"
	TableLonghornVolumes   = "volumes of Longhorn"
	TableLonghornEngines   = "engines of Longhorn"
	TableLonghornReplicas  = "replicas of Longhorn"
	TableLonghornSnapshots = "snapshots of Longhorn"
	TableLonghornNodes     = "nodes of Longhorn"
	TableLonghornDaemons   = "daemon sets of Longhorn"
	TableServices          = "services"
	TableIngresses         = "ingresses"
	TableKubeVIP           = "configuration of kube-vip"
	TableLonghornNode      = "own node of Longhorn"
	TableDrainPolicy       = "drain policy of Longhorn"
	TableSnapshotJob       = "snapshot job of Longhorn"
)

// TableStatus says how well one table of the cluster is seen, under its name.
// A table that is not kept, because this node does not report for the cluster,
// has none.
type TableStatus struct {
	Whole  bool      // it holds a complete list and follows the changes
	Since  time.Time // when Whole last changed, wall clock
	Why    string    // why it is incomplete, a sentence; "" while it is
	Absent bool      // the cluster has no such kind of object: the table is whole, and empty
}
