package kubeapi

import (
	"strings"
	"sync"
	"unique"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
	corev1 "k8s.io/api/core/v1"
)

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
