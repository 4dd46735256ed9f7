package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/zedkube/zedkube/test/devcluster"
)

// changeRate is how many pods change each second in a busy cluster.
const changeRate = 20

// changeFew and changeMany watch the agents while pods change all the time.
func (b *bench) changeFew(ctx context.Context) error  { return b.change(ctx, fewApps) }
func (b *bench) changeMany(ctx context.Context) error { return b.change(ctx, manyApps) }

func (b *bench) change(ctx context.Context, apps int) error {
	leader := b.fleet.Reporter()
	if leader == nil {
		return errors.New("change: no node reports")
	}
	list, err := b.cluster.Client().CoreV1().Pods(devcluster.AppNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var pods []string
	for _, pod := range list.Items {
		if len(pod.OwnerReferences) > 0 && pod.OwnerReferences[0].Kind == "ReplicaSet" {
			pods = append(pods, pod.Name)
		}
	}
	var w watched
	err = b.churn(ctx, pods, func(ctx context.Context) (err error) {
		w, err = b.watch(ctx, leader, func(ctx context.Context) error { return pause(ctx, b.idling) })
		return err
	})
	if err != nil {
		return err
	}
	for _, of := range []struct {
		who string
		cost
	}{{"leader", w.led}, {"follower", w.followed}} {
		b.add(fmt.Sprintf("%d pod changes a second, %d apps, %s", changeRate, apps, of.who), "not measured", "CPU ≤ 3 %",
			"%.0f API requests/min, %.0f kB/min from the API server, CPU %.1f %% of a core, RSS %.0f MB", of.requests, of.received, of.core(), of.rss)
	}
	return nil
}

// churn changes pods of the applications' namespace at changeRate, each from
// running to pending or back, while something goes on, and puts them back
// afterwards, faster than that. It is an error if it cannot keep up.
func (b *bench) churn(ctx context.Context, pods []string, meanwhile func(context.Context) error) error {
	if len(pods) == 0 {
		return errors.New("churn: there are no pods")
	}
	config := b.cluster.RESTConfig()
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	began, changed := time.Now(), 0
	var changing sync.WaitGroup
	changing.Go(func() {
		underWay := make(chan struct{}, 16) // a slow API server slows nothing down
		for ; ; changed++ {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Until(began.Add(time.Duration(changed) * time.Second / changeRate))): // what was held up is made up for
			}
			phase := corev1.PodPending
			if changed/len(pods)%2 == 1 {
				phase = corev1.PodRunning
			}
			pod := pods[changed%len(pods)]
			underWay <- struct{}{}
			changing.Go(func() {
				if err := setPhase(ctx, client, pod, phase); err != nil && ctx.Err() == nil {
					stop(err)
				}
				<-underWay
			})
		}
	})
	err = meanwhile(ctx)
	lasted := time.Since(began)
	stop(nil)
	changing.Wait()
	rate := float64(changed) / lasted.Seconds()
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	if err == nil && rate < 0.9*changeRate {
		err = fmt.Errorf("only %.1f changes a second were made", rate)
	}
	// Who comes next finds every pod running.
	for _, pod := range pods[:min(len(pods), changed)] {
		err = errors.Join(err, setPhase(context.WithoutCancel(ctx), client, pod, corev1.PodRunning))
	}
	return err
}

// setPhase changes the phase of a pod of the applications' namespace.
func setPhase(ctx context.Context, client kubernetes.Interface, pod string, phase corev1.PodPhase) error {
	_, err := client.CoreV1().Pods(devcluster.AppNamespace).Patch(ctx, pod, ktypes.MergePatchType,
		fmt.Appendf(nil, `{"status":{"phase":%q}}`, phase), metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("change pod %s: %w", pod, err)
	}
	return nil
}
