package main

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/cli/auditcmd"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/nodescmd"
	"github.com/zedkube/zedkube/pkg/operate/localserver"
	"github.com/zedkube/zedkube/pkg/operate/metrics"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/pkg/operate/page"
	"github.com/zedkube/zedkube/pubsub"
)

// wirePage is what the page shows, by path.
func wirePage(p device.Paths, t topics, log *logrus.Logger, kube *kubeapi.Client, requests *metrics.Requests) map[string]http.Handler {
	shown := &page.Page{
		Log:      log.WithField("component", "page"),
		Overview: withNodes(p.Root, t, kube),
		Metrics:  t.nodeMetrics, Configs: t.appConfigs, AppPods: kube.AppPods, Kube: kube,
		Audit: (&auditcmd.AuditAnswers{Dir: p.Audit}).Answer, Requests: requests.Total, Looks: t.pageLooks,
	}
	return shown.Handlers()
}

// routesOf are the page's paths: its own files anyone may see, and what they
// show only who may read all of the device.
func routesOf(handlers map[string]http.Handler) map[string]localserver.Route {
	routes := map[string]localserver.Route{}
	for path, h := range handlers {
		r := localserver.Route{Handler: h, Access: localserver.WithPage, Stream: slices.Contains(page.Streams(), path)}
		if strings.HasPrefix(path, "/api/") {
			r.Access = localserver.WithToken
		}
		if slices.Contains(page.Looking(), path) {
			r.Effect = "measuring more often for 15 s"
		}
		routes[path] = r
	}
	return routes
}

// withNodes is the overview of the files with the agent's own table of nodes,
// which every member of a cluster has, and not only the one that reports.
func withNodes(root string, t topics, kube *kubeapi.Client) func(now time.Time) overview.Overview {
	return func(now time.Time) overview.Overview {
		o := overview.Read(root, now)
		if nodes := nodescmd.TableOfNodes(kube.Nodes, t.info, kube.API, now); len(nodes.List) > 0 {
			o.Nodes = nodes
			o.Problems = overview.Problems(o)
		}
		return o
	}
}

// either is a topic and a table of this process as one. They share no key.
type either[T any] struct {
	pubsub.Source[T]
	here pubsub.Reader[T]
}

// Get implements pubsub.Reader.
func (e either[T]) Get(key string) (T, bool) {
	if v, ok := e.here.Get(key); ok {
		return v, true
	}
	return e.Source.Get(key)
}

// All implements pubsub.Reader.
func (e either[T]) All() map[string]T {
	all := map[string]T{}
	maps.Copy(all, e.Source.All()) // an empty table is nil
	maps.Copy(all, e.here.All())
	return all
}

// Notify implements pubsub.Reader.
func (e either[T]) Notify(bell chan<- struct{}) {
	e.Source.Notify(bell)
	e.here.Notify(bell)
}

// String names it as the topic does.
func (e either[T]) String() string {
	if topic, ok := e.Source.(interface{ String() string }); ok {
		return topic.String() + ", page.Looks"
	}
	return "page.Looks"
}
