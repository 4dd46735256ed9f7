package statusserver

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

// statusJSON is /status for who asks for JSON (docs/wire.md, "Status server").
type statusJSON struct {
	State   string      `json:"state"` // "ready" where the plain answer names the cluster, else "waiting"
	Since   time.Time   `json:"since"`
	Reason  string      `json:"reason"`
	Why     string      `json:"why"`
	Cluster string      `json:"cluster,omitempty"` // UUID, only where the plain answer names it
	Node    string      `json:"node"`              // "" while not known
	Status  clusterJSON `json:"status"`
}

// clusterJSON has the form in which the cluster agents of single nodes tell of
// a cluster.
type clusterJSON struct {
	Phase             string          `json:"phase"`
	KubernetesVersion string          `json:"kubernetesVersion,omitempty"`
	Conditions        []conditionJSON `json:"conditions"`
}

type conditionJSON struct {
	Type               string                `json:"type"`
	Status             types.ConditionStatus `json:"status"`
	LastTransitionTime time.Time             `json:"lastTransitionTime"`
	Reason             string                `json:"reason"`
	Message            string                `json:"message"`
}

// describe is what /status says in JSON to a joiner of the cluster asked, the
// nil UUID for nobody in particular. Where things have changed since the last
// step they changed now: the next step notes it.
func describe(f facts, asked uuid.UUID) statusJSON {
	e := explain(f)
	m := f.marks.next(e, f.now)
	out := statusJSON{
		State: e.state(), Since: m[markState].since, Node: e.node,
		Status: clusterJSON{Phase: e.phase, KubernetesVersion: e.version},
	}
	if e.ready {
		out.Cluster = e.own.String()
	}
	for _, c := range e.conditions {
		out.Status.Conditions = append(out.Status.Conditions, conditionJSON{
			Type: c.kind, Status: c.status, LastTransitionTime: m[c.kind].since, Reason: c.reason, Message: c.why,
		})
	}
	judged := e.judge(asked)
	out.Reason, out.Why = judged.reason, judged.why
	if judged.state() != out.State {
		out.State, out.Since = judged.state(), m[markCluster].since
	}
	return out
}

// askedCluster is the cluster that the asker wants to join, nil for none named.
func askedCluster(r *http.Request) (uuid.UUID, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return uuid.Nil, fmt.Errorf("read the query: %w", err)
	}
	text := query.Get("cluster")
	if text == "" {
		return uuid.Nil, nil
	}
	id, err := uuid.Parse(text)
	if err != nil {
		return uuid.Nil, fmt.Errorf("read the cluster asked for: %w", err)
	}
	return id, nil
}

// wantsJSON reports whether the asker names JSON, and likes it no less than
// plain text if he names that too. Joining nodes name nothing.
func wantsJSON(accept []string) bool {
	liked := map[string]float64{}
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		kind, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		q := 1.0
		if text, ok := params["q"]; ok {
			if q, err = strconv.ParseFloat(text, 64); err != nil {
				continue
			}
		}
		liked[kind] = max(liked[kind], q)
	}
	return liked["application/json"] > 0 && liked["application/json"] >= liked["text/plain"]
}

// writeJSON writes v with two spaces of indentation.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
