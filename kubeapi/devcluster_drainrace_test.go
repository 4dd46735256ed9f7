//go:build linux

package kubeapi_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/workload/drain"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

// binding is a client around whose lists of pods others are bound to the node,
// until it has met often enough what a list held before the watch had shown it.
type binding struct {
	drain.Kube
	t     *testing.T
	c     *devcluster.Cluster
	own   *pubsub.Table[types.Pod] // as the drain sees it
	until time.Time

	work  sync.WaitGroup
	made  atomic.Int64
	ahead atomic.Int64 // pods that a list held and the table did not show yet
	again atomic.Int64 // evictions of the pod that is made again
}

const (
	bindsAtAList = 6
	metOften     = 3
	madeAgain    = 3 // times; after each the drain waits longer before it evicts
)

func (b *binding) PodsToEvict(ctx context.Context, node string) ([]types.Pod, error) {
	if time.Now().After(b.until) || b.ahead.Load() >= metOften {
		return b.Kube.PodsToEvict(ctx, node)
	}
	for i := range bindsAtAList {
		b.work.Go(func() {
			time.Sleep(time.Duration(i) * time.Millisecond)
			b.bind(node)
		})
	}
	pods, err := b.Kube.PodsToEvict(ctx, node)
	for _, p := range pods {
		if _, shown := b.own.Get(p.Key()); !shown {
			b.ahead.Add(1)
		}
	}
	return pods, err
}

// Evict has one pod made again under its name as soon as it is gone.
func (b *binding) Evict(ctx context.Context, pod types.Pod) error {
	err := b.Kube.Evict(ctx, pod)
	if err == nil && pod.Name == pinned && b.again.Add(1) <= madeAgain {
		b.work.Go(func() { b.pin(pod.NodeName) })
	}
	return err
}

// pinned is the pod that is made again.
const pinned = "pinned-0"

// pin makes it, once the one before is gone.
func (b *binding) pin(node string) {
	meta := metav1.ObjectMeta{Name: pinned, Namespace: devcluster.AppNamespace}
	err := b.create(meta, node)
	for apierrors.IsAlreadyExists(err) {
		time.Sleep(20 * time.Millisecond)
		err = b.create(meta, node)
	}
	if err != nil {
		b.t.Errorf("make the pod again: %v", err)
	}
}

// bind makes a pod as a controller does that writes spec.nodeName itself: no
// cordon keeps it away.
func (b *binding) bind(node string) {
	name := fmt.Sprintf("bound-%d", b.made.Add(1))
	// Each is of another application, or they would be pods that come back.
	meta := metav1.ObjectMeta{Name: name, Namespace: devcluster.AppNamespace, Labels: map[string]string{"App-Domain-Name": name}}
	if err := b.create(meta, node); err != nil {
		b.t.Errorf("create pod %s: %v", name, err)
	}
}

func (b *binding) create(meta metav1.ObjectMeta, node string) error {
	pod := &corev1.Pod{
		ObjectMeta: meta,
		Spec: corev1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: new(int64),
			Containers: []corev1.Container{{Name: "c", Image: "none"}},
		},
	}
	_, err := b.c.Client().CoreV1().Pods(pod.Namespace).Create(b.t.Context(), pod, metav1.CreateOptions{})
	return err
}

// lag is how far the drain's table of pods is behind the watch. Without it, the
// watch of an idle server loses the race in some of a hundred lists, by up to 5 ms.
const lag = 10 * time.Millisecond

// behind is a table that follows another, as on a slow device.
func behind(t *testing.T, of *pubsub.Table[types.Pod]) *pubsub.Table[types.Pod] {
	late, bell, done := &pubsub.Table[types.Pod]{}, make(chan struct{}, 1), make(chan struct{})
	of.Notify(bell)
	_ = late.Replace(of.All())
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-bell:
				rows := of.All()
				time.Sleep(lag)
				_ = late.Replace(rows)
			}
		}
	})
	t.Cleanup(func() { close(done); running.Wait() })
	return late
}

// TestADrainAmongBinds has pods bound to the node at the very moments when the
// drain lists them: such a list holds pods that the watch has not shown yet.
// None may be left behind, and the drain is complete; nor may the pod be that is
// made again whenever it is gone, for as long as it is.
func TestADrainAmongBinds(t *testing.T) {
	c, err := devcluster.Start(t.Context(), devcluster.Options{Log: t.Output(), Nodes: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	}()
	a := newAgent(t, c, 0)
	own := behind(t, &a.own)
	b := &binding{Kube: a.Client, t: t, c: c, own: own, until: time.Now().Add(25 * time.Second)}
	b.pin(c.Nodes[0].Name)
	request, progress := drains(t, a, own, b)
	_ = request.Publish(types.Global, types.NodeDrainRequest{RequestedAt: time.Now(), Context: "binds"})
	defer b.work.Wait()
	within(t, "the drain is complete", 2*time.Minute, func() bool {
		p, _ := progress.Get(types.Global)
		return p.Phase == types.PhaseComplete
	})
	pods, err := a.PodsToEvict(t.Context(), c.Nodes[0].Name)
	if err != nil || len(pods) > 0 {
		t.Errorf("complete with %d pods left on the node: %v", len(pods), err)
	}
	if b.ahead.Load() == 0 {
		t.Error("no list was ahead of the watch")
	}
	if n := b.again.Load(); n != madeAgain+1 {
		t.Errorf("the pod that is made again %d times was evicted %d times", madeAgain, n)
	}
	t.Logf("%d pods were bound, of %d a list told first", b.made.Load(), b.ahead.Load())
}

// drains starts a drain component on the tables of a, and returns the topic in
// which an operator asks for a drain and the one which explains it.
func drains(t *testing.T, a *agent, own *pubsub.Table[types.Pod], kube drain.Kube) (*pubsub.Table[types.NodeDrainRequest], *pubsub.Table[types.NodeDrainProgress]) {
	log := logrus.New()
	log.SetOutput(t.Output())
	config := &pubsub.Table[types.EdgeNodeClusterConfig]{}
	_ = config.Publish(types.Global, types.EdgeNodeClusterConfig{Initialized: true, Valid: true})
	operator, progress := &pubsub.Table[types.NodeDrainRequest]{}, &pubsub.Table[types.NodeDrainProgress]{}
	// No node carries a stamp: the window for agents that know no lock is two intervals.
	settings := &pubsub.Table[types.ConfigItemValueMap]{}
	_ = settings.Publish(types.Global, types.ConfigItemValueMap{GlobalSettings: map[string]types.ConfigItemValue{
		types.SettingConfigInterval: {Key: types.SettingConfigInterval, ItemType: types.ConfigItemInt, IntValue: 1},
	}})
	booted := time.Now().Add(-time.Hour)
	d := &drain.Component{
		Log: log, Pulse: &loop.Pulse{}, Operations: types.NoOperations{},
		DeviceOp: &pubsub.Table[types.NodeDrainRequest]{}, Update: &pubsub.Table[types.NodeDrainRequest]{}, Operator: operator, Lifecycle: &pubsub.Table[types.KubeLifecycle]{},
		Config: config, Membership: &pubsub.Table[types.ClusterMembership]{}, Settings: settings,
		Info: &a.info, Nodes: &a.nodes, NodePods: own, API: &a.api, Clocks: &a.clocks, Leases: &a.leases, Agent: &pubsub.Table[types.NodeAgentStatus]{}, Kube: kube,
		FaultMarker: t.TempDir() + "/marker", BootID: "boot", Uptime: func() time.Duration { return time.Since(booted) }, Hour: time.Hour,
		Status: &pubsub.Table[types.NodeDrainStatus]{}, Progress: progress, Journal: &pubsub.Table[types.NodeDrainJournal]{},
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { d.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return operator, progress
}
