//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/history"
	"github.com/zedkube/zedkube/types"
)

// silentFor is for how many seconds a drain waits for an API server that does not answer: until the
// others know that the node is lost, and its pods are deleted.
const silentFor = 35

// together is what is counted of it beside the rules: a run in which it happened has come to the exception of "one at a time".
const together = "two nodes that are alone go at once"

// alone lets three devices drain while one or two of them, by chance, reach no API server for so long that their
// drains need not wait for it any longer. Those may go at once; the others may not until they are back.
func alone(ctx context.Context, r *Run) (err error) {
	s, err := r.Stage(ctx, devcluster.Options{}, "--hour", hour.String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	x := &drainRun{Stage: s, bare: true, silent: silentFor}
	rng := r.Rand(100)
	var all []*drainer
	for i, m := range s.Fleet.Members {
		if err := x.prepare(ctx, i, m); err != nil {
			return err
		}
		all = append(all, &drainer{drainRun: x, Member: m, i: i, rng: r.Rand(uint64(i))})
	}
	for range r.many() {
		if err := each(all, func(d *drainer) error { return errors.Join(d.node(ctx, votes), d.idle(ctx)) }); err != nil {
			return err
		}
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		n := 1 + rng.IntN(2)
		if err := apart(ctx, all[:n], all[n:], rng); err != nil {
			return err
		}
	}
	if err := each(all, func(d *drainer) error { return d.idle(ctx) }); err != nil {
		return err
	}
	r.Checked(together, goneTogether(s.History.Events()))
	return s.Settle(ctx)
}

// each does the same on several devices at once.
func each(of []*drainer, do func(*drainer) error) error {
	errs := make([]error, len(of))
	var all sync.WaitGroup
	for i, d := range of {
		all.Go(func() {
			if err := do(d); err != nil {
				errs[i] = fmt.Errorf("%s: %w", d.Name, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// apart cuts some devices off, all of which drain and reboot, and lets the others drain from when they see that.
func apart(ctx context.Context, off, on []*drainer, rng *rand.Rand) error {
	defer func() {
		for _, d := range off {
			_ = d.Cluster.DropBudget(ctx, "only-"+d.Name)
		}
	}()
	early := rng.IntN(2) == 0 // first or only then: before the others may know, or with the cordon and the lock
	ask := func(d *drainer) error { return d.Asks(d.Member, types.DrainRequesterUpdate) }
	for _, d := range off {
		if err := d.Cluster.SetBudget(ctx, "only-"+d.Name, podsEach); err != nil { // or an early drain ends before the cut
			return err
		}
		if early {
			if err := ask(d); err != nil {
				return err
			}
		}
	}
	if early {
		wait(ctx, soon(rng, 6*time.Second))
	}
	for _, d := range off {
		is, _ := d.Watch.Drain.Get(types.Global)
		d.Faulted("alone, " + is.Status.String())
		d.Alone(d.Name, true)
		if err := d.Cluster.CutNode(d.i); err != nil {
			return err
		}
		if !early {
			if err := ask(d); err != nil {
				return err
			}
		}
	}
	var others sync.WaitGroup
	var failed error
	others.Go(func() {
		if failed = each(off, func(d *drainer) error { return d.node(ctx, isLost) }); failed == nil {
			failed = each(on, func(d *drainer) error {
				return []func(context.Context) error{d.reboots, d.withdraws}[d.rng.IntN(2)](ctx)
			})
		}
	})
	err := goAlone(ctx, off, rng)
	others.Wait()
	return errors.Join(err, failed)
}

// goAlone lets devices that are cut off reboot once all of them may. Their agents may be killed before it, and each
// device, by chance, reaches an API server again before it reboots.
func goAlone(ctx context.Context, off []*drainer, rng *rand.Rand) error {
	if rng.IntN(2) == 0 {
		d := off[rng.IntN(len(off))]
		wait(ctx, soon(rng, silentFor*time.Second))
		if err := d.Kill(d.Member, d.phase("alone")); err != nil {
			return err
		}
	}
	if err := each(off, func(d *drainer) error {
		return errors.Join(d.says(ctx, types.DrainComplete), d.losesPods(ctx))
	}); err != nil {
		return err
	}
	return each(off, func(d *drainer) error {
		early := d.rng.IntN(2) == 0
		if early {
			if err := d.connects(ctx); err != nil {
				return err
			}
		}
		wait(ctx, soon(d.rng, 5*time.Second)) // the update is installed
		boots := d.Boots()
		d.CutPower()
		err := d.until(ctx, func() string {
			if d.Boots() == boots {
				return "it does not reboot"
			}
			return ""
		})
		if err != nil {
			return err
		}
		if early {
			return nil
		}
		wait(ctx, soon(d.rng, 5*time.Second))
		defer d.Alone(d.Name, false)
		return d.Cluster.HealNode(d.i)
	})
}

// connects gives a device that is COMPLETE its API server back, and waits for long enough that another one could
// become COMPLETE beside it.
func (d *drainer) connects(ctx context.Context) error {
	d.Alone(d.Name, false)
	if err := d.Cluster.HealNode(d.i); err != nil {
		return err
	}
	if err := d.node(ctx, isCordoned); err != nil {
		return err
	}
	wait(ctx, soon(d.rng, 20*time.Second))
	return nil
}

// node waits for a Node of which missing says nothing any more.
func (d *drainer) node(ctx context.Context, missing func(*corev1.Node) string) error {
	return d.until(ctx, func() string {
		n, err := d.Cluster.Client().CoreV1().Nodes().Get(ctx, d.Name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		return missing(n)
	})
}

func votes(n *corev1.Node) string {
	if !voter(n) {
		return "it has not joined"
	}
	return ""
}

func isLost(n *corev1.Node) string {
	if ready(n) {
		return "it is Ready"
	}
	return ""
}

func isCordoned(n *corev1.Node) string {
	if !n.Spec.Unschedulable {
		return "it is schedulable"
	}
	return ""
}

// losesPods waits until the pods of a lost node are deleted, which its kubelet does not know yet: a simulated
// kubelet does not make its pods Ready again.
func (d *drainer) losesPods(ctx context.Context) error {
	return d.until(ctx, func() string {
		pods, err := d.Cluster.Client().CoreV1().Pods(devcluster.AppNamespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + d.Name})
		if err != nil {
			return err.Error()
		}
		for _, p := range pods.Items {
			if p.DeletionTimestamp == nil {
				return "pod " + p.Name + " is not deleted"
			}
		}
		return ""
	})
}

// goneTogether is how often a node that is alone said COMPLETE while another one that is
// alone had, and was not back.
func goneTogether(events []history.Event) (n int) {
	alone, gone := map[string]bool{}, map[string]bool{}
	for _, e := range events {
		switch e.Kind {
		case history.Alone:
			alone[e.Node] = e.On
		case history.Rebooted:
			delete(gone, e.Node)
		case history.Drain:
			if e.Drain.Status != types.DrainComplete || !alone[e.Node] || gone[e.Node] {
				continue
			}
			n += min(len(gone), 1)
			gone[e.Node] = true
		}
	}
	return n
}
