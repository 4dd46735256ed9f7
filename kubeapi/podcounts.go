package kubeapi

import (
	"context"
	"errors"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/listwatch"
	"github.com/zedkube/zedkube/types"
)

// podCounts counts the pods of each namespace, which come by their phases. Of a pod it
// keeps the name and the phase: a cluster has them by the ten thousand.
type podCounts struct {
	table access.Writer[types.PodCount]
	but   string                   // a namespace that is counted elsewhere; "" for none
	pods  map[string]*podNamespace // the namespaces that have pods, by name
}

type podNamespace struct {
	phases map[string]podPhase // by name of a pod
	counts [phases]int
}

type podPhase uint8

const (
	phaseOther podPhase = iota // unknown or none
	phaseRunning
	phasePending
	phaseFailed
	phaseSucceeded
	phases
)

// countedRows has the pods of every namespace but that one counted into table.
func countedRows(table access.Writer[types.PodCount], but string) access.Store {
	return &access.Rows[*corev1.Pod, podPhase]{
		To:  &podCounts{table: table, but: but, pods: map[string]*podNamespace{}},
		Row: func(p *corev1.Pod) podPhase { return phaseOf(p.Status.Phase) },
		Key: access.NamespacedName[*corev1.Pod],
	}
}

func phaseOf(p corev1.PodPhase) podPhase {
	switch p {
	case corev1.PodRunning:
		return phaseRunning
	case corev1.PodPending:
		return phasePending
	case corev1.PodFailed:
		return phaseFailed
	case corev1.PodSucceeded:
		return phaseSucceeded
	}
	return phaseOther
}

// Publish implements access.Sink.
func (c *podCounts) Publish(key string, phase podPhase) error {
	namespace, name, _ := strings.Cut(key, "/")
	if namespace == c.but {
		return nil
	}
	c.put(namespace, name, phase)
	return c.publish(namespace)
}

// Unpublish implements access.Sink.
func (c *podCounts) Unpublish(key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	if namespace == c.but {
		return nil
	}
	c.remove(namespace, name)
	return c.publish(namespace)
}

// Replace implements access.Sink. Each row goes from the one count to the other in
// one step.
func (c *podCounts) Replace(listed map[string]podPhase) error {
	clear(c.pods)
	for key, phase := range listed {
		if namespace, name, _ := strings.Cut(key, "/"); namespace != c.but {
			c.put(namespace, name, phase)
		}
	}
	var errs []error
	for namespace := range c.table.All() {
		if namespace != c.but && c.pods[namespace] == nil {
			errs = append(errs, c.table.Unpublish(namespace))
		}
	}
	for namespace := range c.pods {
		errs = append(errs, c.publish(namespace))
	}
	return errors.Join(errs...)
}

func (c *podCounts) put(namespace, name string, phase podPhase) {
	c.remove(namespace, name)
	ns := c.pods[namespace]
	if ns == nil {
		ns = &podNamespace{phases: map[string]podPhase{}}
		c.pods[namespace] = ns
	}
	ns.phases[name] = phase
	ns.counts[phase]++
}

func (c *podCounts) remove(namespace, name string) {
	ns := c.pods[namespace]
	if ns == nil {
		return
	}
	if phase, ok := ns.phases[name]; ok {
		delete(ns.phases, name)
		ns.counts[phase]--
	}
	if len(ns.phases) == 0 {
		delete(c.pods, namespace)
	}
}

func (c *podCounts) publish(namespace string) error {
	ns := c.pods[namespace]
	if ns == nil {
		return c.table.Unpublish(namespace)
	}
	return c.table.Publish(namespace, types.PodCount{
		Namespace: namespace, Pods: len(ns.phases),
		Running: ns.counts[phaseRunning], Pending: ns.counts[phasePending],
		Failed: ns.counts[phaseFailed], Succeeded: ns.counts[phaseSucceeded],
	})
}

// countedPods is every pod but those of Namespace. What does not count of those in
// a list that is not streamed is let go page by page.
func countedPods(api listwatch.Lister[*corev1.PodList]) *cache.ListWatch {
	others := fields.OneTermNotEqualSelector("metadata.namespace", access.Namespace).String()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = others
			list, err := api.List(ctx, o)
			if err != nil {
				return nil, err
			}
			for i, p := range list.Items {
				list.Items[i] = corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, ResourceVersion: p.ResourceVersion},
					Status:     corev1.PodStatus{Phase: p.Status.Phase},
				}
			}
			return list, nil
		},
		WatchFuncWithContext: listwatch.ListWatch(api, others).WatchFuncWithContext,
	}
}

// appCounts is the table of the pods of Namespace, and while somebody counts pods
// it counts these as they come: a second watch of the pods that change most would
// bring each change of them twice.
type appCounts struct {
	access.Writer[types.Pod]

	mu     sync.Mutex
	counts *podCounts // nil while nobody counts
}

// begin counts what there is, and what changes from now on, into table.
func (a *appCounts) begin(table access.Writer[types.PodCount]) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts = &podCounts{table: table, pods: map[string]*podNamespace{}}
	return a.recount(a.All())
}

// recount is called with mu held, while somebody counts.
func (a *appCounts) recount(rows map[string]types.Pod) error {
	clear(a.counts.pods)
	for _, p := range rows {
		a.counts.put(access.Namespace, p.Name, phaseOf(corev1.PodPhase(p.Phase)))
	}
	return a.counts.publish(access.Namespace)
}

func (a *appCounts) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts = nil
}

// Publish implements Writer.
func (a *appCounts) Publish(key string, p types.Pod) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.Writer.Publish(key, p); err != nil || a.counts == nil {
		return err
	}
	return a.counts.Publish(access.Namespace+"/"+p.Name, phaseOf(corev1.PodPhase(p.Phase)))
}

// Replace implements atOnce.
func (a *appCounts) Replace(rows map[string]types.Pod) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := access.Replace(a.Writer, rows); err != nil || a.counts == nil {
		return err
	}
	return a.recount(rows)
}

// Unpublish implements Writer.
func (a *appCounts) Unpublish(key string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.Writer.Unpublish(key); err != nil || a.counts == nil {
		return err
	}
	_, name, _ := strings.Cut(key, "/")
	return a.counts.Unpublish(access.Namespace + "/" + name)
}
