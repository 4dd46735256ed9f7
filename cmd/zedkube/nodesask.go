package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/operate/localserver"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// nodesPath is where the agent answers with its table of nodes, as
// overview.Nodes.
const nodesPath = "/api/nodes"

const (
	agentPatience = 2 * time.Second // on a socket of this device
	maxNodes      = 8 << 20         // bytes of an answer: a thousand nodes take half a megabyte
	// apiNodesEvery is how often the API server is asked while somebody watches.
	apiNodesEvery = 10 * time.Second
)

// The sources of nodes.
const (
	fromAgent = "the agent of this node"
	fromFile  = "the report of this node"
	fromAPI   = "the API server"
)

// nodesAsked asks for the nodes, again and again.
type nodesAsked struct {
	paths paths

	client *http.Client
	kube   *kubeapi.Client
	done   func()
	last   nodesView // of the API server
}

// close ends the connections.
func (a *nodesAsked) close() {
	if a.client != nil {
		a.client.CloseIdleConnections()
	}
	if a.done != nil {
		a.done()
	}
}

// look takes the nodes from the best source there is.
func (a *nodesAsked) look(ctx context.Context) nodesView {
	now := time.Now()
	v := nodesView{ReadAt: now.UTC(), Problems: []string{}}
	o := overview.Read(a.paths.root, now)
	if o.Copied {
		v.ReadAt = o.ReadAt
	} else if o.Agent.Runs {
		nodes, err := a.ofAgent(ctx)
		if err == nil && len(nodes.List) > 0 {
			v.Nodes, v.ReadAt = nodes, time.Now().UTC() // it was asked meanwhile
			return v
		}
		if err != nil {
			v.Problems = append(v.Problems, err.Error())
		}
	} else {
		v.Problems = append(v.Problems, "the agent does not run: "+o.Agent.Why)
	}
	if o.Nodes.Known() && len(o.Nodes.List) > 0 {
		v.Nodes, v.Nodes.From = o.Nodes, fromFile
		return v
	}
	if o.Copied {
		v.Problems = append(v.Problems, "this copy holds no report on the nodes: they are on the node that reports")
		return v
	}
	return a.ofAPI(ctx, v, o.Node)
}

// overview is what the files say, with the agent's nodes where they name none.
func (a *nodesAsked) overview(ctx context.Context, now time.Time) overview.Overview {
	o := overview.Read(a.paths.root, now)
	if !o.Agent.Runs || o.Copied || len(o.Nodes.List) > 0 {
		return o
	}
	if nodes, err := a.ofAgent(ctx); err == nil && len(nodes.List) > 0 {
		o.Nodes = nodes
		o.Problems = overview.Problems(o)
	}
	return o
}

// ofAgent asks the agent through its socket.
func (a *nodesAsked) ofAgent(ctx context.Context) (overview.Nodes, error) {
	if a.client == nil {
		a.client = localserver.NewClient(a.paths.socket)
	}
	ctx, cancel := context.WithTimeout(ctx, agentPatience)
	defer cancel()
	var nodes overview.Nodes
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://zedkube"+nodesPath, nil)
	if err != nil {
		return nodes, err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return nodes, fmt.Errorf("ask the agent for the nodes: %w", err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxNodes+1))
	switch {
	case err != nil:
		return nodes, fmt.Errorf("ask the agent for the nodes: %w", err)
	case resp.StatusCode != http.StatusOK:
		return nodes, fmt.Errorf("ask the agent for the nodes: it answers %d", resp.StatusCode)
	case len(raw) > maxNodes:
		return nodes, fmt.Errorf("ask the agent for the nodes: it answers with more than %d bytes", maxNodes)
	}
	if err := json.Unmarshal(raw, &nodes); err != nil {
		return overview.Nodes{}, fmt.Errorf("ask the agent for the nodes: %w", err)
	}
	return nodes, nil
}

// ofAPI asks the API server, not too often. What it said last is kept while it
// says nothing.
func (a *nodesAsked) ofAPI(ctx context.Context, v nodesView, own overview.Node) nodesView {
	if v.ReadAt.Sub(a.last.ReadAt) < apiNodesEvery {
		v.Nodes, v.Problems = a.last.Nodes, a.last.Problems
		return v
	}
	fail := func(err error) nodesView {
		v.Nodes, v.Problems = a.last.Nodes, append(v.Problems, err.Error())
		a.last = v
		return v
	}
	if a.kube == nil {
		kube, done, err := kubeapi.Dial(ctx, silent(), a.paths.kubeconfig, types.NoOperations{})
		if err != nil {
			return fail(err)
		}
		a.kube, a.done = kube, done
	}
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	nodes, err := a.kube.FreshNodes(ctx)
	if err != nil {
		return fail(err)
	}
	v.Nodes = overview.Nodes{Told: overview.Told{At: time.Now().UTC()}, From: fromAPI, List: overview.NodesOf(nodes, own.Name)}
	a.last = v
	return v
}

// nodesHandler answers with the agent's table of nodes.
func nodesHandler(nodes pubsub.Reader[types.Node], info pubsub.Reader[types.EdgeNodeInfo], api pubsub.Reader[types.APIStatus]) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(tableOfNodes(nodes, info, api, time.Now())) // who asked may be gone
	})
}

// tableOfNodes is what the agent knows of the nodes. While the API server is
// silent that is of the moment before.
func tableOfNodes(nodes pubsub.Reader[types.Node], info pubsub.Reader[types.EdgeNodeInfo], api pubsub.Reader[types.APIStatus], now time.Time) overview.Nodes {
	all := nodes.All()
	list := make([]types.Node, 0, len(all))
	for _, n := range all {
		list = append(list, n)
	}
	own := ""
	if who, ok := info.Get(types.Global); ok {
		if n, found := types.OwnNode(all, who); found {
			own = n.Name
		}
	}
	v := overview.Nodes{Told: overview.Told{At: now.UTC()}, From: fromAgent, List: overview.NodesOf(list, own)}
	if status, ok := api.Get(types.Global); ok && !status.Answers() {
		v.At = status.SilentSince.UTC()
	}
	return v
}

// completeNodes are the names of nodes that the files here tell.
func completeNodes(ctx context.Context, o *options, args []string) (names []string) {
	if len(args) > 0 {
		return nil
	}
	a := &nodesAsked{paths: o.paths()}
	defer a.close()
	seen := overview.Read(o.root, time.Now())
	nodes := seen.Nodes
	if seen.Agent.Runs {
		if asked, err := a.ofAgent(ctx); err == nil {
			nodes = asked
		}
	}
	for _, n := range nodes.List {
		names = append(names, clean(n.Name))
	}
	return names
}
