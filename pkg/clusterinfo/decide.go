package clusterinfo

import "github.com/zedkube/zedkube/types"

// facts is everything decide may look at.
type facts struct {
	leads    bool
	apiKnown bool
	api      types.APIStatus
	nodes    map[string]types.Node
	appPods  map[string]types.Pod
	allPods  map[string]types.Pod
	last     types.KubeClusterInfo // published, perhaps by a former run; zero: none
}

// action is everything decide may ask for.
type action struct {
	withdraw bool
	publish  *types.KubeClusterInfo
	cut      cut
}

// decide says what to publish, from facts alone.
func decide(f facts) action {
	switch {
	case !f.leads:
		// Also what a former run left: two reports would contradict each other.
		return action{withdraw: true}
	case !f.apiKnown || !f.api.Answers() || !f.api.Synced:
		// An old report is better than one that calls an unseen cluster empty.
		return action{}
	}
	r := types.KubeClusterInfo{Nodes: nodes(f.nodes), AppPods: appPods(f.appPods)}
	if f.api.AllPods {
		r.PodNsInfo = namespaces(f.allPods)
	} else {
		r.PodNsInfo = f.last.PodNsInfo // the last complete count, if any
	}
	c := fit(&r)
	return action{publish: &r, cut: c}
}
