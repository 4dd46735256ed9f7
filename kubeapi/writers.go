package kubeapi

import (
	"bytes"
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/types"
)

// writtenLabels are the labels of docs/wire.md, "Nodes", whose writers are kept.
var writtenLabels = []string{labelNodeUUID, labelTieBreaker, labelControlPlane, labelMaster, labelEtcd}

// marks are what the text of an entry holds that speaks of one of them, or of the
// cordon: entries are long, and most speak of other things.
var marks = [][]byte{[]byte(`"f:unschedulable"`), []byte(`"f:node-uuid"`), []byte(`"f:tie-breaker-node"`), []byte(`"f:node-role.kubernetes.io/`)}

// writersOf are those who wrote the labels, and the cordon where there is one. A
// kubelet's heartbeat is in the status, of which nobody here is asked, so it
// changes nothing.
func writersOf(n *corev1.Node) (list []types.FieldWriter) {
	for _, m := range n.ManagedFields {
		if !speaks(m) {
			continue
		}
		fields, at := fieldsOf(m), metav1.Time{}
		if m.Time != nil {
			at = *m.Time
		}
		for _, label := range writtenLabels {
			if _, ok := fields.Metadata.Labels["f:"+label]; ok {
				list = append(list, types.FieldWriter{Field: label, Manager: m.Manager, At: at.UTC()})
			}
		}
		if _, ok := fields.Spec["f:unschedulable"]; ok && n.Spec.Unschedulable {
			list = append(list, types.FieldWriter{Field: types.FieldCordon, Manager: m.Manager, At: at.UTC()})
		}
	}
	slices.SortFunc(list, func(a, b types.FieldWriter) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), a.At.Compare(b.At), cmp.Compare(a.Manager, b.Manager))
	})
	return list
}

// speaks reports that the entry may tell of a label or of the cordon.
func speaks(m metav1.ManagedFieldsEntry) bool {
	if m.Subresource != "" || m.FieldsV1 == nil {
		return false
	}
	raw := m.FieldsV1.GetRawBytes()
	return slices.ContainsFunc(marks, func(mark []byte) bool { return bytes.Contains(raw, mark) })
}
