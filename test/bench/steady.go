package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/zedkube/zedkube/types"
)

// steadyMany measures from a change of a pod to the file that tells zedmanager while
// pods go on changing: changes come at random moments, however long the one before
// took.
func (b *bench) steadyMany(ctx context.Context) error {
	for _, c := range []struct {
		rate    float64 // a second
		changes int     // in each run
	}{{3.75, 150}, {changeRate, 400}} {
		if err := b.steady(ctx, manyApps, c.rate, c.changes); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) steady(ctx context.Context, apps int, rate float64, changes int) error {
	pods, err := b.told(ctx)
	if err != nil {
		return err
	}
	m := b.fleet.Members[0]
	began, spent := time.Now(), cpuSeconds(m.PID())
	var answered [][]time.Duration
	took, err := b.runs(func() ([]time.Duration, error) {
		files, answers, err := b.atRandom(ctx, pods, rate, changes)
		answered = append(answered, answers)
		return files, err
	})
	if err != nil {
		return err
	}
	cpu := (cpuSeconds(m.PID()) - spent) / time.Since(began).Seconds()
	b.add(fmt.Sprintf("pod phase → ENClusterAppStatus file, %g changes a second at random moments, %d apps, %d of them here", rate, apps, len(pods)),
		"p50 12.2 s, max 27.3 s", "p50 ≤ 20 ms, p99 ≤ 100 ms", "%s", percentiles(took))
	b.add("of it until the API server has answered the change", "not measured", "—", "%s", percentiles(answered))
	b.add("CPU and RSS of the agent meanwhile", "not measured", "—", "%.1f %% of a CPU, %.0f MB", 100*cpu, residentMB(m.PID()))
	return nil
}

// atRandom changes pods from running to pending and back, each of them only when its
// file says what it was before. The time of each change, and of the API server's
// answer to it, begins when it is due.
func (b *bench) atRandom(ctx context.Context, pods map[string]string, rate float64, changes int) (took, answered []time.Duration, err error) {
	config := b.cluster.RESTConfig()
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	free := make(chan string, len(pods)) // files
	for _, file := range slices.Sorted(maps.Keys(pods)) {
		free <- file
	}
	var (
		mu      sync.Mutex
		pending = map[string]bool{} // files
		failed  error
		each    sync.WaitGroup
	)
	random := rand.New(rand.NewPCG(1, 2))
	due := time.Now()
	for range changes {
		due = due.Add(time.Duration(random.ExpFloat64() / rate * float64(time.Second)))
		if err := pause(ctx, time.Until(due)); err != nil {
			return nil, nil, err
		}
		due, file := due, <-free
		each.Go(func() {
			mu.Lock()
			pending[file] = !pending[file]
			to := pending[file]
			mu.Unlock()
			answer, err := tellPhase(ctx, client, file, pods[file], to)
			mu.Lock()
			defer mu.Unlock()
			answered = append(answered, answer.Sub(due))
			if took = append(took, time.Since(due)); err != nil {
				failed = err
			}
			free <- file
		})
	}
	each.Wait()
	for file, is := range pending {
		if is && failed == nil {
			_, failed = tellPhase(ctx, client, file, pods[file], false)
		}
	}
	return took, answered, failed
}

// tellPhase makes a pod pending, or running again, and returns when its file says so,
// and when the API server answered.
func tellPhase(ctx context.Context, client kubernetes.Interface, file, pod string, pending bool) (answered time.Time, err error) {
	phase, status := corev1.PodRunning, types.AppKubeRunning
	if pending {
		phase, status = corev1.PodPending, types.AppKubeNotRunning
	}
	answer := make(chan error, 1)
	go func() {
		err := setPhase(ctx, client, pod, phase)
		answered = time.Now()
		answer <- err
	}()
	says := fmt.Sprintf(`"AppKubeStatus":%d`, status)
	err = until(ctx, "the file of pod "+pod, time.Millisecond, func() bool {
		content, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(content), says)
	})
	if refused := <-answer; refused != nil {
		return answered, refused
	}
	return answered, err
}
