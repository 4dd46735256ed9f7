package k3supdate

import (
	"strings"

	"github.com/zedkube/zedkube/types"
)

// Plan is what a change of k3s would be, as the versions and the nodes tell.
type Plan struct {
	From, To string
	Kind     types.K3sChange
	Refused  types.K3sRefusal
	Why      string                    // a sentence, where it is refused
	Nodes    []types.KubeLifecycleNode // in the order in which they change
	Commit   string                    // the last server of these, after which the cluster cannot return; "" for none
}

// Judge plans a change by the rules. It changes nothing.
func Judge(from, to string, nodes []types.Node) Plan {
	v, ordered := judge(from, to, nodes), order(nodes)
	p := Plan{From: from, To: to, Kind: v.kind, Refused: v.refused, Why: strings.TrimPrefix(v.why, refusedSetting), Nodes: listed(ordered, to)}
	for _, n := range ordered {
		if n.IsServer() {
			p.Commit = n.Name
		}
	}
	return p
}
