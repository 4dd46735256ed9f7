package main

import (
	"net/http"
	"net/http/pprof"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/operate/localserver"
	"github.com/zedkube/zedkube/pkg/operate/metrics"
	"github.com/zedkube/zedkube/pkg/operate/operator"
)

// wireLocal is the part of the map that answers people and programs on the
// device.
func wireLocal(p paths, t topics, log *logrus.Logger, pulses map[string]*loop.Pulse, kube *kubeapi.Client, requests *metrics.Requests, operations *metrics.Operations) map[string]component {
	numbers := &metrics.Metrics{
		Version: p.version, Lease: kubeapi.StatsLease, Pulses: pulses, Bus: t.bus, Requests: requests, Operations: operations,
		Info: t.info, Nodes: kube.Nodes, API: kube.API, Leases: kube.Leases,
		Leader: t.leaderInfo, Progress: t.drainProgress, Health: t.reportHealth, Conditions: t.nodeConditions,
	}
	routes := routesOf(wirePage(p, t, log, kube, requests))
	routes["/metrics"] = localserver.Route{Handler: numbers.Handler(), Access: localserver.Always, Apart: true}
	routes[nodesPath] = localserver.Route{Handler: nodesHandler(kube.Nodes, t.info, kube.API), Access: localserver.WithToken}
	routes[operator.Path] = localserver.Route{
		Handler: &operator.Handler{Root: p.root, Operations: operations, Topics: operatorTopics()},
		Methods: []string{http.MethodPut, http.MethodDelete}, Effect: "a request to the agent is made, or taken back",
	}
	for path, profile := range map[string]http.HandlerFunc{"": pprof.Index, "profile": pprof.Profile, "symbol": pprof.Symbol, "trace": pprof.Trace} {
		routes["/debug/pprof/"+path] = localserver.Route{Handler: profile}
	}
	return map[string]component{
		"localserver": &localserver.Component{
			Log: log.WithField("component", "localserver"), Pulse: pulses["localserver"],
			Status: t.clusterStatus,
			Socket: p.socket, Address: p.pageAddress, PageToo: p.pageToo, TokenFile: p.pageToken, ClusterPort: p.pageOnCluster,
			Routes: routes,
		},
	}
}
