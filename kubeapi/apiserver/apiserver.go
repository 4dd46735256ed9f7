// Package apiserver asks the API server how it is and what it measures of itself.
package apiserver

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/pkg/base/promtext"
	"github.com/zedkube/zedkube/types"
)

// Client has the verbs of this package.
type Client struct{ *access.Session }

const (
	// maxMetrics bounds the answer, in bytes: that of a server that has run for months
	// under many clients has some 20 MB.
	maxMetrics = 128 << 20
	maxAPIs    = 200 // that are kept; Kubernetes has some thirty that are deprecated
	maxName    = 253 // bytes of a group or a resource

	seriesRequested = "apiserver_requested_deprecated_apis"
	seriesStarted   = "process_start_time_seconds"
)

// Ready asks the API server of the kubeconfig whether it is ready. What it says is not is named.
func (c *Client) Ready(ctx context.Context) error {
	_, err := access.Read(ctx, c.Session, "ask the API server whether it is ready", func(ctx context.Context, conn *access.Connection) (none struct{}, err error) {
		said, err := conn.Kube.Discovery().RESTClient().Get().AbsPath("/readyz").MaxRetries(0).DoRaw(ctx)
		var failed []string
		for line := range strings.Lines(string(said)) {
			if check, is := strings.CutPrefix(line, "[-]"); is {
				failed = append(failed, strings.TrimSpace(check))
			}
		}
		if err != nil && len(failed) > 0 {
			err = errors.New(strings.Join(failed[:min(3, len(failed))], ", "))
		}
		return none, err
	})
	return err
}

// DeprecatedAPIs is which deprecated APIs the API server of the kubeconfig was asked for since
// it started. Other API servers of the cluster may have been asked for others.
func (c *Client) DeprecatedAPIs(ctx context.Context) (types.DeprecatedAPIs, error) {
	return access.Read(ctx, c.Session, "read the metrics of the API server", func(ctx context.Context, conn *access.Connection) (found types.DeprecatedAPIs, err error) {
		body, err := conn.Kube.Discovery().RESTClient().Get().AbsPath("/metrics").SetHeader("Accept", "text/plain").MaxRetries(0).Stream(ctx)
		if err != nil {
			return found, err
		}
		defer body.Close()
		err = promtext.Each(body, maxMetrics, []string{seriesRequested, seriesStarted}, func(s promtext.Sample) { take(&found, s) })
		slices.SortFunc(found.APIs, func(a, b types.DeprecatedAPI) int { return strings.Compare(a.String(), b.String()) })
		return found, err
	})
}

func take(found *types.DeprecatedAPIs, s promtext.Sample) {
	if s.Name == seriesStarted {
		if s.Value > 0 && s.Value < math.MaxInt32 {
			found.StartedAt = time.Unix(int64(s.Value), 0).UTC()
		}
		return
	}
	l := s.Labels
	if s.Value == 0 || max(len(l["group"]), len(l["version"]), len(l["resource"]), len(l["removed_release"])) > maxName {
		return
	}
	if len(found.APIs) == maxAPIs {
		found.More = true
		return
	}
	found.APIs = append(found.APIs, types.DeprecatedAPI{Group: l["group"], Version: l["version"], Resource: l["resource"], RemovedIn: l["removed_release"]})
}
