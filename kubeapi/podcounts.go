package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/listwatch"
	"github.com/zedkube/zedkube/types"
)

// podCounts counts the pods of each namespace. Of a pod it keeps the name and
// the phase: a cluster has them by the ten thousand.
type podCounts struct {
	table    access.Writer[types.PodCount]
	but      string // a namespace that is counted elsewhere; "" for none
	pods     podNamespaces
	replaced func(version string)
}

// podNamespaces are the namespaces that have pods, by name.
type podNamespaces map[string]*podNamespace

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

func newPodCounts(table access.Writer[types.PodCount], but string) *podCounts {
	return &podCounts{table: table, but: but, pods: podNamespaces{}}
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

// countedPod is what a list on its way in is held as. Its embedded interface is
// nil: a Reflector asks for no more than the three methods.
type countedPod struct {
	metav1.Object
	namespace unique.Handle[string]
	name      string
	version   string
	phase     podPhase
}

// GetNamespace implements metav1.Object.
func (p *countedPod) GetNamespace() string { return p.namespace.Value() }

// GetName implements metav1.Object.
func (p *countedPod) GetName() string { return p.name }

// GetResourceVersion implements metav1.Object.
func (p *countedPod) GetResourceVersion() string { return p.version }

// counted is what counts of a pod.
func counted(obj any) (*countedPod, error) {
	switch p := obj.(type) {
	case *countedPod:
		return p, nil
	case *corev1.Pod:
		if p.Namespace == "" || p.Name == "" {
			return nil, access.ErrNoName
		}
		return &countedPod{namespace: unique.Make(p.Namespace), name: p.Name, version: p.ResourceVersion, phase: phaseOf(p.Status.Phase)}, nil
	}
	return nil, fmt.Errorf("count pod: unexpected %T", obj)
}

func (c *podCounts) Example() any                 { return &corev1.Pod{} }
func (c *podCounts) OnReplaced(done func(string)) { c.replaced = done }

// Add implements cache.ReflectorStore.
func (c *podCounts) Add(obj any) error { return c.Update(obj) }

// Update implements cache.ReflectorStore.
func (c *podCounts) Update(obj any) error {
	p, err := counted(obj)
	if err != nil || p.GetNamespace() == c.but {
		return err
	}
	c.pods.put(p)
	return c.publish(p.GetNamespace())
}

// Delete implements cache.ReflectorStore.
func (c *podCounts) Delete(obj any) error {
	p, err := counted(obj)
	if err != nil || p.GetNamespace() == c.but {
		return err
	}
	c.pods.remove(p)
	return c.publish(p.GetNamespace())
}

// Replace implements cache.ReflectorStore. Each row goes from the one count to
// the other in one step.
func (c *podCounts) Replace(list []any, version string) error {
	if version == "" {
		return access.ErrNoVersion
	}
	pods := podNamespaces{}
	for _, obj := range list {
		p, err := counted(obj)
		if err != nil {
			return err
		}
		if p.GetNamespace() != c.but {
			pods.put(p)
		}
	}
	c.pods = pods
	errs := []error{c.retain()}
	for namespace := range pods {
		errs = append(errs, c.publish(namespace))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if c.replaced != nil {
		c.replaced(version)
	}
	return nil
}

func (s podNamespaces) put(p *countedPod) {
	s.remove(p)
	ns := s[p.GetNamespace()]
	if ns == nil {
		ns = &podNamespace{phases: map[string]podPhase{}}
		s[p.GetNamespace()] = ns
	}
	ns.phases[p.name] = p.phase
	ns.counts[p.phase]++
}

func (s podNamespaces) remove(p *countedPod) {
	ns := s[p.GetNamespace()]
	if ns == nil {
		return
	}
	if phase, ok := ns.phases[p.name]; ok {
		delete(ns.phases, p.name)
		ns.counts[phase]--
	}
	if len(ns.phases) == 0 {
		delete(s, p.GetNamespace())
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

// retain drops the rows of namespaces that have no pod.
func (c *podCounts) retain() error {
	var errs []error
	for namespace := range c.table.All() {
		if namespace != c.but && c.pods[namespace] == nil {
			errs = append(errs, c.table.Unpublish(namespace))
		}
	}
	return errors.Join(errs...)
}

// Resync implements cache.ReflectorStore.
func (c *podCounts) Resync() error { return nil }

// Transformer implements cache.TransformingStore.
func (c *podCounts) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if p, err := counted(obj); err == nil {
			return p, nil
		}
		return obj, nil
	}
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
	a.counts = newPodCounts(table, "")
	return a.recount(a.All())
}

// recount is called with mu held, while somebody counts.
func (a *appCounts) recount(rows map[string]types.Pod) error {
	a.counts.pods = podNamespaces{}
	for _, p := range rows {
		a.counts.pods.put(countedApp(p.Name, p.Phase))
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
	return a.counts.Update(countedApp(p.Name, p.Phase))
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
	return a.counts.Delete(countedApp(name, ""))
}

func countedApp(name string, phase types.PodPhase) *countedPod {
	return &countedPod{namespace: unique.Make(access.Namespace), name: name, phase: phaseOf(corev1.PodPhase(phase))}
}
