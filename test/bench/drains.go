package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

// drainApp is the front of the names of the drained applications. Their pods
// run on the drained node or not at all, so that uncordoning brings the same
// set back.
const drainApp = "bench-drain-"

// drained is what one drain took.
type drained struct {
	took, firstEviction time.Duration
	requests, evictions int
}

// drains measures kubectl drain and ours on the same pods of the same node, in
// turn, with few pods and with many.
func (b *bench) drains(ctx context.Context) error {
	victim := b.fleet.Members[1]
	if err := b.stampAgain(ctx); err != nil {
		return err
	}
	// What runs there by preference only would not come back.
	if _, err := b.kubectlDrain(ctx, victim.Name); err != nil {
		return err
	}
	there := 0
	for _, pods := range []int{30, 300} {
		app := fmt.Sprint(drainApp, pods)
		err := b.cluster.CreateApp(ctx, devcluster.App{Name: app, Replicas: int32(pods - there), Node: victim.Name, Required: true})
		if err != nil {
			return err
		}
		there = pods
		var theirs, ours []drained
		for range b.rounds {
			for _, drain := range []struct {
				runs *[]drained
				do   func(context.Context, string) (drained, error)
			}{{&theirs, b.kubectlDrain}, {&ours, b.ourDrain}} {
				if err := b.ready(ctx, pods); err != nil {
					return err
				}
				d, err := drain.do(ctx, victim.Name)
				if err != nil {
					return err
				}
				*drain.runs = append(*drain.runs, d)
			}
		}
		b.compare(pods, ours, theirs)
		if pods == 30 {
			if err := b.besideUnstamped(ctx, pods); err != nil {
				return err
			}
		}
	}
	return nil
}

// stampAgain starts the agents beside the drained node's again, which sees their stamps
// change then. Otherwise it would wait for EVE's window, for ten minutes after its own start.
func (b *bench) stampAgain(ctx context.Context) error {
	for _, m := range []*player.Member{b.fleet.Members[0], b.fleet.Members[2]} {
		before, err := b.stamp(ctx, m)
		if err != nil {
			return err
		}
		if _, err := m.RestartProgram(); err != nil {
			return err
		}
		if err := until(ctx, "a new stamp on "+m.Name, 50*time.Millisecond, func() bool {
			now, err := b.stamp(ctx, m)
			return err == nil && now != before
		}); err != nil {
			return err
		}
	}
	return nil
}

// stamp is what the member's agent has written on its Node.
func (b *bench) stamp(ctx context.Context, m *player.Member) (string, error) {
	n, err := b.cluster.Client().CoreV1().Nodes().Get(ctx, m.Name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return n.Annotations[stampKey], nil
}

// besideUnstamped measures a drain while one server has no agent of ours, as in the roll-out
// of a fleet: EVE's window is waited for.
func (b *bench) besideUnstamped(ctx context.Context, pods int) error {
	m := b.fleet.Members[2]
	m.StopProgram()
	if out, err := b.cluster.Kubectl(ctx, "annotate", "node", m.Name, stampKey+"-"); err != nil {
		return fmt.Errorf("remove a stamp: %w: %s", err, out)
	}
	var took []time.Duration
	for range b.rounds {
		if err := b.ready(ctx, pods); err != nil {
			return err
		}
		d, err := b.ourDrain(ctx, m.Name)
		if err != nil {
			return err
		}
		took = append(took, d.took)
	}
	b.add(fmt.Sprintf("drain of %d pods beside one server without a stamp, EVE's window cut to 3 s, request → COMPLETE", pods),
		"129.7 s, by default (120 s)", "10 s", "%s", spread(took))
	return m.StartProgram()
}

// compare adds the figures of the drains of so many pods.
func (b *bench) compare(pods int, ours, theirs []drained) {
	took := func(d drained) time.Duration { return d.took }
	first := func(d drained) time.Duration { return d.firstEviction }
	ratio := median(each(ours, took)).Seconds() / median(each(theirs, took)).Seconds()
	baseline := map[int]struct{ took, first, evictions string }{
		30: {"12.45 s; 129.7 s by default", "6.1 s; 123 s by default", "88"},
	}
	was, known := baseline[pods]
	if !known {
		was.took, was.first, was.evictions = "—", "—", "—"
	}
	b.add(fmt.Sprintf("drain of %d pods, request → COMPLETE", pods), was.took, "≤ 0.5 × kubectl drain", "%s, %.2f × kubectl drain (%s)",
		spread(each(ours, took)), ratio, spread(each(theirs, took)))
	b.add(fmt.Sprintf("API requests of it, %d pods", pods), "—", "≤ kubectl drain's", "median %d (kubectl %d)",
		middle(ours, func(d drained) int { return d.requests }), middle(theirs, func(d drained) int { return d.requests }))
	b.add(fmt.Sprintf("eviction calls for %d pods", pods), was.evictions, fmt.Sprint(pods), "median %d (kubectl %d)",
		middle(ours, func(d drained) int { return d.evictions }), middle(theirs, func(d drained) int { return d.evictions }))
	b.add(fmt.Sprintf("request → first eviction, %d pods", pods), was.first, "≤ 1 s", "%s (kubectl %s)",
		spread(each(ours, first)), spread(each(theirs, first)))
}

func each(runs []drained, of func(drained) time.Duration) []time.Duration {
	var list []time.Duration
	for _, d := range runs {
		list = append(list, of(d))
	}
	return list
}

// middle is the median of a count; of an even number of runs the higher middle.
func middle(runs []drained, of func(drained) int) int {
	var list []int
	for _, d := range runs {
		list = append(list, of(d))
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// ready waits until the drained node holds the whole set again.
func (b *bench) ready(ctx context.Context, pods int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := b.cluster.WaitRunning(ctx, fmt.Sprintf("app in (%s30,%s300)", drainApp, drainApp), pods)
	return err
}

func (b *bench) kubectlDrain(ctx context.Context, node string) (drained, error) {
	began := time.Now()
	if out, err := b.cluster.Kubectl(ctx, "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force"); err != nil {
		return drained{}, fmt.Errorf("kubectl drain: %w: %s", err, out)
	}
	d, err := b.drained(began, "kubectl", "")
	if err != nil {
		return d, err
	}
	_, err = b.cluster.Kubectl(ctx, "uncordon", node)
	return d, err
}

func (b *bench) ourDrain(ctx context.Context, _ string) (drained, error) {
	m := b.fleet.Members[1]
	began := time.Now()
	err := m.RequestDrain(types.NodeDrainRequest{RequestedAt: began, RequestedBy: types.DrainRequesterDeviceOp, Context: "bench"})
	if err != nil {
		return drained{}, err
	}
	err = until(ctx, "drain", time.Millisecond, func() bool {
		status, _ := m.Watch.Drain.Get(types.Global)
		return status.Status == types.DrainComplete
	})
	if err != nil {
		return drained{}, err
	}
	d, err := b.drained(began, "zedkube", m.IP.String())
	if err != nil {
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

// drained is what a drain has taken that began then and ends now. All that the
// user agent asked meanwhile counts, be it for the drain or not; from is the
// address it asked from, "" for any.
func (b *bench) drained(began time.Time, agent, from string) (drained, error) {
	d := drained{took: time.Since(began), firstEviction: patience}
	all, err := b.cluster.Calls()
	for _, c := range all {
		if c.At.Before(began) || c.At.After(began.Add(d.took)) || !strings.HasPrefix(c.UserAgent, agent) || from != "" && c.From != from {
			continue
		}
		d.requests++
		if c.Subresource == "eviction" {
			d.evictions++
			d.firstEviction = min(d.firstEviction, c.At.Sub(began))
		}
	}
	return d, err
}
