package kubeapi

import (
	"maps"
	"slices"

	"github.com/zedkube/zedkube/types"
)

func longhornNodeRows(table Writer[types.LonghornNode]) rowStore {
	return &rows[*nodePart, types.LonghornNode]{
		table: table, row: longhornNodeOf, slim: slimNodePart,
		key: func(n types.LonghornNode) string { return n.Name },
	}
}

// longhornNodeOf is the row of a node of Longhorn without what changes time and
// again: the version and the free space.
func longhornNodeOf(n *nodePart) types.LonghornNode {
	row := types.LonghornNode{
		Name: n.Name, UID: string(n.UID),
		Ready:       partCondition(n.Status.Conditions, "Ready"),
		Schedulable: partCondition(n.Status.Conditions, "Schedulable"),
		Allowed:     n.Spec.AllowScheduling,
	}
	for _, name := range slices.Sorted(maps.Keys(n.Spec.Disks)) {
		d := n.Spec.Disks[name]
		disk := types.LonghornDisk{Name: name, Path: d.Path, Allowed: d.AllowScheduling, Reserved: d.StorageReserved}
		if s := n.Status.Disks[name]; s != nil {
			disk.Maximum = s.StorageMaximum
			disk.Ready, disk.Schedulable = partCondition(s.Conditions, "Ready"), partCondition(s.Conditions, "Schedulable")
		}
		row.Disks = append(row.Disks, disk)
	}
	return row
}

func partCondition(conditions []conditionPart, kind string) types.ConditionStatus {
	for _, c := range conditions {
		if c.Type == kind {
			return types.ConditionStatus(c.Status)
		}
	}
	return ""
}

// slimNodePart keeps what longhornNodeOf reads.
func slimNodePart(n *nodePart) *nodePart {
	slim := *n
	slim.ObjectMeta = slimMeta(n.ObjectMeta)
	return &slim
}
