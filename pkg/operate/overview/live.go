package overview

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// NodesPath is where the agent answers with its table of nodes, as Nodes.
const NodesPath = "/api/nodes"

// fromAgent is the source of nodes that the agent knows itself.
const fromAgent = "the agent of this node"

// Live is what the running agent knows beside the files below root: its own table of
// nodes, which every member of a cluster has, and not only the one that reports.
type Live struct {
	Root string
	Node pubsub.Reader[types.Node]
	Info pubsub.Reader[types.EdgeNodeInfo]
	API  pubsub.Reader[types.APIStatus]
}

// Overview is that of the files with the agent's own table of nodes.
func (l Live) Overview(now time.Time) Overview {
	o := Read(l.Root, now)
	if nodes := l.Nodes(now); len(nodes.List) > 0 {
		o.Nodes = nodes
	}
	return o
}

// Nodes is what the agent knows of the nodes. While the API server is silent that is of
// the moment before.
func (l Live) Nodes(now time.Time) Nodes {
	all := l.Node.All()
	list := make([]types.Node, 0, len(all))
	for _, n := range all {
		list = append(list, n)
	}
	own := ""
	if who, ok := l.Info.Get(types.Global); ok {
		if n, found := types.OwnNode(all, who); found {
			own = n.Name
		}
	}
	v := Nodes{Told: Told{At: now.UTC()}, From: fromAgent, List: NodesOf(list, own)}
	if status, ok := l.API.Get(types.Global); ok && !status.Answers() {
		v.At = status.SilentSince.UTC()
	}
	return v
}

// ServeHTTP answers with the agent's table of nodes.
func (l Live) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(l.Nodes(time.Now())) // who asked may be gone
}
