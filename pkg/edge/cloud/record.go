package cloud

import (
	"time"

	"github.com/zedkube/zedkube/pkg/edge/join"
	"github.com/zedkube/zedkube/pkg/edge/object"
)

// RefNodes is the record of who was asked to join.
var RefNodes = object.Ref{Kind: object.ConfigMap, Namespace: Where, Name: Nodes}

// RecordObject is the ConfigMap of the record.
func RecordObject(data m) object.Object { return labelled(RefNodes).With(m{"data": data}) }

// NodeAddresses are the addresses of all Nodes by their names.
func NodeAddresses(seen map[object.Ref]object.Object) map[string]string {
	all := map[string]string{}
	for r, o := range seen {
		if r.Kind == object.Node {
			all[r.Name] = ownAddress(o)
		}
	}
	return all
}

// TakeOver is the record of a cluster that has none yet: the edge nodes that have joined go on.
func TakeOver(seen map[object.Ref]object.Object, now time.Time) join.Record {
	names, _ := edgeNodes(seen)
	addresses, all := map[string]string{}, NodeAddresses(seen)
	for _, name := range names {
		addresses[name] = all[name]
	}
	return join.TakeOver(addresses, now)
}
