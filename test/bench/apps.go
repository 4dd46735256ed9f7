package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/eveapi"
	"github.com/zedkube/zedkube/types"
)

const (
	// crowdedNode is how many application pods the node has whose files are
	// watched, whatever the number of configured applications.
	crowdedNode = 300
	// filler is the application that they are made up with.
	filler = "bench-filler"
	// phaseChanges is how many changes each run makes, phasePause apart.
	phaseChanges = 200
	phasePause   = 50 * time.Millisecond
)

// phasesFew and phasesMany measure from a change of a pod to the file that tells
// zedmanager, with few configured applications and with many.
func (b *bench) phasesFew(ctx context.Context) error {
	return b.phases(ctx, fewApps, "p50 7.2 s, max 13.8 s")
}

func (b *bench) phasesMany(ctx context.Context) error {
	return b.phases(ctx, manyApps, "p50 15.1 s, max 27.8 s")
}

func (b *bench) phases(ctx context.Context, apps int, baseline string) error {
	if err := b.fill(ctx); err != nil {
		return err
	}
	pods, err := b.told(ctx)
	if err != nil {
		return err
	}
	// What came before is over: the claims of the fillers, the garbage of the start.
	if err := pause(ctx, 5*time.Second); err != nil {
		return err
	}
	var answered [][]time.Duration
	m := b.fleet.Members[0]
	began, spent := time.Now(), cpuSeconds(m.PID())
	took, err := b.runs(func() ([]time.Duration, error) {
		files, answers, err := b.flip(ctx, pods)
		answered = append(answered, answers)
		return files, err
	})
	if err != nil {
		return err
	}
	cpu := (cpuSeconds(m.PID()) - spent) / time.Since(began).Seconds()
	b.add(fmt.Sprintf("pod phase → ENClusterAppStatus file, %d apps, %d pods on the node", apps, crowdedNode), baseline,
		"p50 ≤ 50 ms, p99 ≤ 200 ms", "%s", percentiles(took))
	b.add("of it until the API server has answered the change", "not measured", "—", "%s", percentiles(answered))
	b.add("CPU and RSS of the agent meanwhile", "not measured", "—", "%.1f %% of a CPU, %.0f MB", 100*cpu, residentMB(m.PID()))
	return b.unfill(ctx)
}

// told returns the pods on the first node of the configured applications that
// are no virtual machines, by the file that tells of each.
func (b *bench) told(ctx context.Context) (map[string]string, error) {
	apps := map[string]types.AppInstanceConfig{}
	m := b.fleet.Members[0]
	document, err := m.Document()
	if err != nil {
		return nil, err
	}
	config, err := document.For(m.Info.DeviceID)
	if err != nil {
		return nil, err
	}
	for _, app := range config.Apps {
		apps[app.KubeName()] = app
	}
	list, err := b.onFirst(ctx)
	if err != nil {
		return nil, err
	}
	pods := map[string]string{}
	for _, pod := range list {
		if app, ok := apps[pod.Labels["app"]]; ok && !app.IsVMI() {
			pods[filepath.Join(m.TopicDir("ENClusterAppStatus"), app.UUIDandVersion.UUID.String()+".json")] = pod.Name
		}
	}
	if len(pods) == 0 {
		return nil, errors.New("no configured application has a pod on the first node")
	}
	return pods, nil
}

// onFirst lists the application pods on the first node.
func (b *bench) onFirst(ctx context.Context) ([]corev1.Pod, error) {
	list, err := b.cluster.Client().CoreV1().Pods(devcluster.AppNamespace).List(ctx, metav1.ListOptions{
		FieldSelector: "spec.nodeName=" + b.cluster.Nodes[0].Name,
	})
	if err != nil {
		return nil, fmt.Errorf("list the pods of the first node: %w", err)
	}
	return list.Items, nil
}

// flip changes one pod after the other from running to pending and back. It
// returns how long each change took from the request to the file, and how much
// of it the API server took to answer.
func (b *bench) flip(ctx context.Context, pods map[string]string) (took, answered []time.Duration, err error) {
	var files []string
	for file := range pods {
		files = append(files, file)
	}
	slices.Sort(files)
	for i := range phaseChanges {
		file := files[i/2%len(files)]
		phase, says := corev1.PodPending, fmt.Sprintf(`"AppKubeStatus":%d`, types.AppKubeNotRunning)
		if i%2 == 1 {
			phase, says = corev1.PodRunning, fmt.Sprintf(`"AppKubeStatus":%d`, types.AppKubeRunning)
		}
		patch := fmt.Sprintf(`{"status":{"phase":%q}}`, phase)
		began, answer := time.Now(), make(chan error, 1)
		var answeredAfter time.Duration
		go func() {
			_, err := b.cluster.Client().CoreV1().Pods(devcluster.AppNamespace).Patch(ctx, pods[file], ktypes.MergePatchType,
				[]byte(patch), metav1.PatchOptions{}, "status")
			answeredAfter = time.Since(began)
			answer <- err
		}()
		if err := until(ctx, "the file of pod "+pods[file], time.Millisecond, func() bool {
			content, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(content), says)
		}); err != nil {
			return nil, nil, err
		}
		took = append(took, time.Since(began))
		if err := <-answer; err != nil {
			return nil, nil, fmt.Errorf("change pod %s: %w", pods[file], err)
		}
		answered = append(answered, answeredAfter)
		if err := pause(ctx, phasePause); err != nil {
			return nil, nil, err
		}
	}
	return took, answered, nil
}

// fill brings the first node to its number of pods, and unfill takes the filler
// away.
func (b *bench) fill(ctx context.Context) error {
	there, err := b.onFirst(ctx)
	if err != nil {
		return err
	}
	app := devcluster.App{Name: filler, Replicas: int32(crowdedNode - len(there)), Node: b.cluster.Nodes[0].Name, Required: true}
	if app.Replicas <= 0 {
		return nil
	}
	if err := b.cluster.CreateApp(ctx, app); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err = b.cluster.WaitRunning(ctx, "app="+filler, int(app.Replicas))
	return err
}

func (b *bench) unfill(ctx context.Context) error {
	if out, err := b.cluster.Kubectl(ctx, "-n", devcluster.AppNamespace, "delete", "rs", filler, "--ignore-not-found"); err != nil {
		return fmt.Errorf("delete the filler: %w: %s", err, out)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := b.cluster.WaitRunning(ctx, "app="+filler, 0)
	return err
}

// grow makes many applications of the few.
func (b *bench) grow(ctx context.Context) error {
	ids := b.fleet.IDs()
	for i, m := range b.fleet.Members {
		more := appList(i, fewApps, manyApps, true)
		if err := m.Send(func(d *eveapi.Document) error {
			for j, app := range more {
				d.SetApp(app, ids[home(fewApps+j)])
			}
			return nil
		}); err != nil {
			return err
		}
	}
	if err := b.create(ctx, fewApps, appList(0, fewApps, manyApps, true)); err != nil {
		return err
	}
	return b.claimed(ctx, manyApps)
}
