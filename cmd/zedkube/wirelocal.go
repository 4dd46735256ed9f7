package main

import (
	"net/http"
	"net/http/pprof"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/localserver"
	"github.com/zedkube/zedkube/pkg/loop"
	"github.com/zedkube/zedkube/pkg/metrics"
	"github.com/zedkube/zedkube/pkg/page"
)

// wireLocal is the part of the map that answers people and programs on the
// device.
func wireLocal(p paths, t topics, log *logrus.Logger, pulses map[string]*loop.Pulse, kube *kubeapi.Client, requests *metrics.Requests, operations *metrics.Operations) map[string]component {
	numbers := &metrics.Metrics{
		Version: version, Lease: kubeapi.StatsLease, Pulses: pulses, Bus: t.bus, Requests: requests, Operations: operations,
		Info: t.info, Nodes: kube.Nodes, API: kube.API, Leases: kube.Leases,
		Leader: t.leaderInfo, Progress: t.drainProgress, Health: t.reportHealth, Conditions: t.nodeConditions,
	}
	everywhere := wirePage(p, t, log, kube, requests)
	everywhere["/metrics"] = numbers.Handler()
	everywhere[nodesPath] = nodesHandler(kube.Nodes, t.info, kube.API)
	return map[string]component{
		"localserver": &localserver.Component{
			Log: log.WithField("component", "localserver"), Pulse: pulses["localserver"],
			Status: t.clusterStatus,
			Socket: p.socket, Address: p.pageAddress, ClusterPort: p.pageOnCluster,
			Everywhere: everywhere,
			SocketOnly: map[string]http.Handler{
				"/debug/pprof/":        http.HandlerFunc(pprof.Index),
				"/debug/pprof/profile": http.HandlerFunc(pprof.Profile),
				"/debug/pprof/symbol":  http.HandlerFunc(pprof.Symbol),
				"/debug/pprof/trace":   http.HandlerFunc(pprof.Trace),
			},
			Streams: page.Streams(),
		},
	}
}
