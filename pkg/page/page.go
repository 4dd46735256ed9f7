// Package page shows people this device in a browser: what is wrong, the nodes,
// the applications, the drain, measurements, the audit trail and the logs of
// applications. It only shows; nothing can be changed with it.
//
//	reads:  an overview of the device's files, KubeNodeMetrics, AppInstanceConfig, app pods
//	writes: MetricsLook, while somebody looks
//	serves: handlers for the local server, see docs/wire.md, "Local server"
//
// Nothing is read or kept while nobody looks.
package page

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// Kube is what the page asks of the cluster.
type Kube interface {
	// Logs opens a container's log. Reading it ends when ctx does, when the
	// container has ended, or with the connection. Its error wraps types.ErrNoLog
	// where there is no such log.
	Logs(ctx context.Context, pod types.Pod, o types.LogOptions) (io.ReadCloser, error)
}

// Page holds what the handlers share. Every exported field is required, but
// Audit, Requests and Looks may be nil: then the page is without.
type Page struct {
	Log      logrus.FieldLogger
	Overview func(now time.Time) any // reads the device's files; the same as `zedkube status -o json` prints
	Metrics  pubsub.Reader[types.KubeNodeMetrics]
	Configs  pubsub.Reader[types.AppInstanceConfig]
	AppPods  pubsub.Reader[types.Pod]
	Kube     Kube

	Audit    func(url.Values) (any, error)    // the trail by since=, op= and failed=, the newest first, as a JSON array
	Requests func() uint64                    // to the API server since the start
	Looks    pubsub.Writer[types.MetricsLook] // asks for measurements more often while somebody looks
}

// Handlers are the page's paths for the local server.
func (p *Page) Handlers() map[string]http.Handler {
	return map[string]http.Handler{}
}
