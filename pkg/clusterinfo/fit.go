package clusterinfo

import (
	"encoding/json"

	"github.com/zedkube/zedkube/types"
)

const (
	// maxMessage bounds the JSON of Nodes and PodNsInfo together. They travel
	// in one packet of less than 65535 bytes, in base64, which leaves 49 KB of
	// JSON; a kilobyte of it is for the names of the fields and the references
	// to the parts that travel by file (docs/wire.md, "Large fields").
	maxMessage = 48_000
	// maxLarge bounds the JSON of a part that travels by file, of less than
	// 1 MiB.
	maxLarge = 1_040_000
)

// cut counts what a report leaves out.
type cut struct{ nodes, namespaces, pods int }

func (c cut) any() bool { return c != cut{} }

// fit cuts r to what one message can carry: a report that is too large would
// be refused as a whole. The first entries by name stay, so that the same ones
// are reported every time; nodes go before namespaces, which no EVE agent
// reads.
func fit(r *types.KubeClusterInfo) cut {
	var c cut
	var used int
	r.Nodes, used, c.nodes = prefix(r.Nodes, maxMessage)
	r.PodNsInfo, _, c.namespaces = prefix(r.PodNsInfo, maxMessage-used)
	r.AppPods, _, c.pods = prefix(r.AppPods, maxLarge)
	return c
}

// prefix returns as many first entries of list as fit into limit bytes of
// JSON, the size of those, and how many it left out.
func prefix[T any](list []T, limit int) (kept []T, size, left int) {
	for i, entry := range list {
		data, err := json.Marshal(entry)
		if err != nil || size+len(data)+1 > limit {
			return list[:i:i], size, len(list) - i
		}
		size += len(data) + 1 // the comma
	}
	return list, size, 0
}
