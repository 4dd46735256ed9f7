package nodemetrics

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// Path is where the local server answers with the samples that are kept.
const Path = "/api/measurements"

// Handler answers with the last samples of the node, its pods and their containers, or with
// ?pod=NAMESPACE/NAME with those of one pod (docs/wire.md, "KubeNodeMetrics").
type Handler struct {
	Kept pubsub.Reader[types.KubeNodeMetrics]
}

// ServeHTTP implements http.Handler.
func (h Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m, ok := h.Kept.Get(types.Global)
	if !ok {
		http.Error(w, "this node's kubelet has not been asked yet", http.StatusServiceUnavailable)
		return
	}
	if name := r.URL.Query().Get("pod"); name != "" {
		m.Pods = slices.DeleteFunc(slices.Clone(m.Pods), func(p types.PodMetrics) bool { return p.Namespace+"/"+p.Name != name })
		if len(m.Pods) == 0 {
			http.Error(w, "this node has no such pod", http.StatusNotFound)
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(m) // the one who asks may have gone
}
