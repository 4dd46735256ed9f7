package nodes

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

// mostEvents are read at once, by their names: some 2 MB. Kubernetes keeps each for an hour.
const mostEvents = 2000

// Events lists the Events of the cluster, the newest first.
func (c *Client) Events(ctx context.Context) (types.KubeEvents, error) {
	return access.Read(ctx, c.Session, "list events", func(ctx context.Context, conn *access.Connection) (types.KubeEvents, error) {
		list, err := conn.Kube.CoreV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: mostEvents})
		if err != nil {
			return types.KubeEvents{}, err
		}
		found := types.KubeEvents{List: []types.KubeEvent{}, More: list.Continue != ""}
		for _, e := range list.Items {
			found.List = append(found.List, kubeEvent(e))
		}
		slices.SortStableFunc(found.List, func(a, b types.KubeEvent) int { return b.At.Compare(a.At) })
		return found, nil
	})
}

func kubeEvent(e corev1.Event) types.KubeEvent {
	about := strings.ToLower(e.InvolvedObject.Kind)
	if e.InvolvedObject.Namespace != "" && e.InvolvedObject.Kind != "Node" {
		about += "/" + e.InvolvedObject.Namespace
	}
	out := types.KubeEvent{
		Type: e.Type, Reason: e.Reason, About: about + "/" + e.InvolvedObject.Name, Node: e.Source.Host,
		By: cmp.Or(e.Source.Component, e.ReportingController), Count: max(int(e.Count), 1), Message: e.Message,
	}
	times := []time.Time{e.LastTimestamp.Time, e.EventTime.Time, e.FirstTimestamp.Time, e.CreationTimestamp.Time}
	if e.Series != nil {
		out.Count = max(int(e.Series.Count), 1)
		times = slices.Insert(times, 0, e.Series.LastObservedTime.Time)
	}
	for _, at := range times {
		if !at.IsZero() {
			out.At = at.UTC()
			break
		}
	}
	return out
}
