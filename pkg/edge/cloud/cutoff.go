package cloud

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zedkube/zedkube/pkg/edge/object"
	"github.com/zedkube/zedkube/pkg/edge/settings"
)

// Joined are the names of all edge nodes, offline ones among them, and those that were asked to join.
func (r Report) Joined() (names []string) {
	for _, n := range r.Edge {
		if n.State != "left" && n.State != "refused" {
			names = append(names, n.Name)
		}
	}
	return names
}

// CutOff lists what edge nodes that have joined can no longer use after a change of settings: ports, addresses, the block of addresses. They
// have these in their own files, where the controller cannot change them. joined is how many edge nodes there are.
func CutOff(seen map[object.Ref]object.Object, from, to settings.Settings, joined int) (lost []string) {
	if joined == 0 {
		return nil
	}
	after := to.All()
	for i, p := range from.All() {
		// No edge node dials the one; that there are no logs without the other is what was asked for.
		if p.Setting == "cloudStreamPort" {
			continue
		}
		closed := p.Open && !after[i].Open && p.Setting != "cloudTunnelPort"
		moved := after[i].Port != p.Port && (p.Open || p.Setting == "cloudTunnelPort")
		if closed || moved {
			lost = append(lost, fmt.Sprintf("port %d/%s (%s)", p.Port, strings.ToLower(p.Protocol), p.Name))
		}
	}
	was, _ := advertised(from, seen)
	is, _ := advertised(to, seen)
	for _, address := range was {
		if !slices.Contains(is, address) {
			lost = append(lost, "address "+address)
		}
	}
	if from.EdgeBlock != to.EdgeBlock {
		lost = append(lost, "edgeBlock "+from.EdgeBlock)
	}
	if to.NodeLimit < min(joined, from.NodeLimit) {
		lost = append(lost, fmt.Sprintf("nodeLimit %d", from.NodeLimit))
	}
	return lost
}
