package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

// drainedPods is how many pods each drain evicts.
const drainedPods = 30

// drainApp owns the pods: they run on the drained node or not at all, so that
// uncordoning brings the same set back.
const drainApp = "bench-drain"

// drains measures kubectl drain and ours on the same pods of the same node, in
// turn.
func (b *bench) drains(ctx context.Context) error {
	victim := b.fleet.Members[1]
	err := b.cluster.CreateApp(ctx, devcluster.App{Name: drainApp, Replicas: drainedPods, Node: victim.Name, Required: true})
	if err != nil {
		return err
	}
	var kubectl, ours, first []time.Duration
	var kubectlCalls, ourCalls []int
	for range b.rounds {
		took, calls, err := b.kubectlDrain(ctx, victim.Name)
		if err != nil {
			return err
		}
		kubectl, kubectlCalls = append(kubectl, took), append(kubectlCalls, calls)
		d, err := b.ourDrain(ctx)
		if err != nil {
			return err
		}
		ours, first, ourCalls = append(ours, d.took), append(first, d.firstEviction), append(ourCalls, d.calls)
	}
	b.add("request → first eviction", "6.1 s; 123 s by default", "≤ 1.5 s", "%s", spread(first))
	b.add("drain of 30 pods, request → COMPLETE", "12.45 s; 129.7 s by default", "≤ 0.5 × kubectl", "%s, %.2f × kubectl drain (%s)",
		spread(ours), median(ours).Seconds()/median(kubectl).Seconds(), spread(kubectl))
	b.add("eviction calls for 30 pods", "88", "30", "%v (kubectl %v)", ourCalls, kubectlCalls)
	return nil
}

// ready waits until the drained node holds the whole set again.
func (b *bench) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := b.cluster.WaitRunning(ctx, "app="+drainApp, drainedPods)
	return err
}

func (b *bench) kubectlDrain(ctx context.Context, node string) (time.Duration, int, error) {
	if err := b.ready(ctx); err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if out, err := b.cluster.Kubectl(ctx, "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force"); err != nil {
		return 0, 0, fmt.Errorf("kubectl drain: %w: %s", err, out)
	}
	took := time.Since(began)
	calls, err := b.evictions(began, "kubectl")
	if err != nil {
		return 0, 0, err
	}
	_, err = b.cluster.Kubectl(ctx, "uncordon", node)
	return took, calls, err
}

// drained is what one drain of ours took.
type drained struct {
	took, firstEviction time.Duration
	calls               int
}

func (b *bench) ourDrain(ctx context.Context) (drained, error) {
	if err := b.ready(ctx); err != nil {
		return drained{}, err
	}
	m := b.fleet.Members[1]
	began := time.Now()
	err := m.RequestDrain(types.NodeDrainRequest{RequestedAt: began, RequestedBy: types.DrainRequesterDeviceOp, Context: "bench"})
	if err != nil {
		return drained{}, err
	}
	var d drained
	err = until(ctx, "drain", time.Millisecond, func() bool {
		status, _ := m.Watch.Drain.Get(types.Global)
		return status.Status == types.DrainComplete
	})
	if err != nil {
		return d, err
	}
	d.took = time.Since(began)
	if d.firstEviction, err = b.firstEviction(began); err != nil {
		return d, err
	}
	if d.calls, err = b.evictions(began, "zedkube"); err != nil {
		return d, err
	}
	// Withdrawing the request gives the node back.
	if err := m.WithdrawDrain(types.DrainRequesterDeviceOp); err != nil {
		return d, err
	}
	return d, until(ctx, "uncordon", 50*time.Millisecond, func() bool {
		n, err := b.cluster.Client().CoreV1().Nodes().Get(ctx, m.Name, metav1.GetOptions{})
		return err == nil && !n.Spec.Unschedulable
	})
}

// evictions counts the eviction calls of an agent since a time.
func (b *bench) evictions(since time.Time, agent string) (int, error) {
	all, err := b.cluster.Calls()
	n := 0
	for _, c := range all {
		if c.At.After(since) && c.Subresource == "eviction" && strings.HasPrefix(c.UserAgent, agent) {
			n++
		}
	}
	return n, err
}

func (b *bench) firstEviction(since time.Time) (time.Duration, error) {
	all, err := b.cluster.Calls()
	first := patience
	for _, c := range all {
		if c.At.After(since) && c.Subresource == "eviction" {
			first = min(first, c.At.Sub(since))
		}
	}
	return first, err
}
