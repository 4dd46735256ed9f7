package nodes

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

// The API server lists Events by their names, in pages of some 500 kB; Kubernetes keeps each for an
// hour. What one look reads is bounded, some 20 MB.
const (
	eventsPage = 500
	eventPages = 40
)

// Events lists the Events of the cluster, the newest first. Where node is not "" those about that
// node, and about pods: whose kubelet reported is for the caller to tell (types.KubeEvents.OfNode),
// which no field selector can.
func (c *Client) Events(ctx context.Context, node string) (types.KubeEvents, error) {
	found := types.KubeEvents{List: []types.KubeEvent{}}
	selectors := []string{""}
	if node != "" {
		selectors = []string{
			fields.Set{"involvedObject.kind": "Node", "involvedObject.name": node}.String(),
			fields.Set{"involvedObject.kind": "Pod"}.String(),
		}
	}
	for _, selector := range selectors {
		if err := c.events(ctx, selector, &found); err != nil {
			return types.KubeEvents{}, err
		}
	}
	slices.SortStableFunc(found.List, func(a, b types.KubeEvent) int { return b.At.Compare(a.At) })
	return found, nil
}

// events adds those that a selector chooses, a page after the other.
func (c *Client) events(ctx context.Context, selector string, found *types.KubeEvents) error {
	options := metav1.ListOptions{Limit: eventsPage, FieldSelector: selector}
	for range eventPages {
		page, err := access.Read(ctx, c.Session, "list events", func(ctx context.Context, conn *access.Connection) (*corev1.EventList, error) {
			return conn.Kube.CoreV1().Events(metav1.NamespaceAll).List(ctx, options)
		})
		switch {
		case apierrors.IsResourceExpired(err) && options.Continue != "":
			found.More = true // what was read remains true
			return nil
		case err != nil:
			return err
		}
		for _, e := range page.Items {
			found.List = append(found.List, kubeEvent(e))
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
	found.More = true
	return nil
}

func kubeEvent(e corev1.Event) types.KubeEvent {
	about := strings.ToLower(e.InvolvedObject.Kind)
	if e.InvolvedObject.Namespace != "" && e.InvolvedObject.Kind != "Node" {
		about += "/" + e.InvolvedObject.Namespace
	}
	out := types.KubeEvent{
		Name: e.Namespace + "/" + e.Name,
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
