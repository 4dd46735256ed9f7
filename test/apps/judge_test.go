//go:build linux

package apps

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/rig"
	"github.com/zedkube/zedkube/types"
)

const (
	// settles is how long two devices may differ that hear of a change from API
	// servers of their own, on a machine that is busy with other tests.
	settles = 10 * time.Second
	// opens is how long a console may take to follow, with the pace at which its
	// directory is looked at.
	opens = 20 * time.Second
	// fresh is how long an agent that has started, or a node that is back, is left
	// to look around.
	fresh = 30 * time.Second
)

// foreignSet is a replica set that is no configured application's, left at 0.
const foreignSet = "somebody-else"

func (s *stage) sets() dynamic.ResourceInterface {
	return s.Cluster.Custom("vmirs").Namespace(devcluster.AppNamespace)
}

// judge watches all the time for what must never be.
type judge struct {
	stage *stage
	stop  context.CancelFunc
	done  sync.WaitGroup

	mu      sync.Mutex
	agents  map[int]time.Time    // since when the agent of a device runs; none: it does not
	spells  map[string]time.Time // since when something is so that must not stay
	wrongs  []string
	longest map[string]time.Duration // of each kind of spell
	sets    int                      // changes of sets that were seen
}

func newJudge(s *stage) *judge {
	ctx, stop := context.WithCancel(context.Background())
	j := &judge{stage: s, stop: stop, agents: map[int]time.Time{}, spells: map[string]time.Time{}, longest: map[string]time.Duration{}}
	j.done.Go(func() {
		for ctx.Err() == nil {
			j.watchSets(ctx)
		}
	})
	j.done.Go(func() {
		for ctx.Err() == nil {
			j.look()
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	return j
}

func (j *judge) end(t *testing.T) {
	j.stop()
	j.done.Wait()
	for _, w := range j.wrongs {
		t.Error(w)
	}
	if j.sets == 0 {
		t.Error("no replica set was ever seen")
	}
	t.Logf("%d changes of replica sets were seen; the longest that two devices differed: %v", j.sets, j.longest)
}

// agent notes that the agent of a device starts, or ends.
func (j *judge) agent(i int, up bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if delete(j.agents, i); up {
		j.agents[i] = time.Now()
	}
}

// settled says whether a device and its agent have been there long enough to know
// everything. Called with mu held.
func (j *judge) settled(i int) bool {
	began, ok := j.agents[i]
	sites := j.stage.sites
	sites.mu.Lock()
	defer sites.mu.Unlock()
	ready, is := sites.ready[j.stage.Name(i)]
	return ok && is && time.Since(began) > fresh && time.Since(ready) > fresh && sites.all[i].powered && sites.all[i].connected
}

// watchSets follows the replica sets until the watch ends.
func (j *judge) watchSets(ctx context.Context) {
	list, err := j.stage.sets().List(ctx, metav1.ListOptions{})
	if err != nil {
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
		return
	}
	for _, set := range list.Items {
		j.seeSet(&set)
	}
	events, err := j.stage.sets().Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		return
	}
	defer events.Stop()
	for e := range events.ResultChan() {
		if set, ok := e.Object.(*unstructured.Unstructured); ok && (e.Type == watch.Added || e.Type == watch.Modified) {
			j.seeSet(set)
		}
	}
}

func (j *judge) seeSet(set *unstructured.Unstructured) {
	replicas, found, _ := unstructured.NestedInt64(set.Object, "spec", "replicas")
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sets++
	if set.GetName() != foreignSet && (!found || replicas != 1) {
		j.wrongs = append(j.wrongs, fmt.Sprintf("%s replica set %s wants %d copies", time.Now().Format(rig.Clock), set.GetName(), replicas))
	}
}

// look compares once what the devices say with what is.
func (j *judge) look() {
	s := j.stage
	claims, consoles := map[string][]int{}, map[int]string{}
	for i, m := range s.Fleet.Members {
		files, _ := filepath.Glob(filepath.Join(m.TopicDir("ENClusterAppStatus"), "*.json"))
		for _, f := range files {
			var status types.ENClusterAppStatus
			if text, err := os.ReadFile(f); err == nil && json.Unmarshal(text, &status) == nil && status.ScheduledOnThisNode {
				claims[status.AppUUID.String()] = append(claims[status.AppUUID.String()], i)
			}
		}
		if c, ok := s.console(i); ok {
			consoles[i] = c.VMIName
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	now := map[string]time.Duration{}
	for id, of := range claims {
		of = slices.DeleteFunc(of, func(i int) bool {
			_, up := j.agents[i]
			return !up || !j.settled(i) && s.sites.reachable(i) && !s.copies(id, i)
		})
		without := slices.DeleteFunc(slices.Clone(of), func(i int) bool { return s.copies(id, i) })
		if len(of) > 1 && len(without) > 0 {
			now[fmt.Sprintf("claims: app %s is claimed by the nodes %v, has no copy on %v", id, of, without)] = settles
		}
	}
	for i, vmi := range consoles {
		if j.settled(i) && !s.hasLauncher(i, vmi) {
			now[fmt.Sprintf("consoles: node %d has a console of %s, which is not there", i, vmi)] = opens
		}
	}
	j.count(now)
}

// count remembers since when things are wrong. Called with mu held.
func (j *judge) count(now map[string]time.Duration) {
	for what := range j.spells {
		if _, ok := now[what]; !ok {
			delete(j.spells, what)
		}
	}
	for what, limit := range now {
		if _, ok := j.spells[what]; !ok {
			j.spells[what] = time.Now()
		}
		kind, _, _ := strings.Cut(what, ":")
		lasted := time.Since(j.spells[what])
		j.longest[kind] = max(j.longest[kind], lasted)
		if text := "for too long, " + what; lasted > limit && !slices.Contains(j.wrongs, text) {
			j.wrongs = append(j.wrongs, text)
		}
	}
}

// copies says whether an application has a copy on a device, which runs or which
// the cluster has there.
func (s *stage) copies(id string, i int) bool {
	s.sites.mu.Lock()
	defer s.sites.mu.Unlock()
	for _, r := range s.sites.all[i].running {
		if strings.HasPrefix(r.pod.Labels["App-Domain-Name"], id) {
			return true
		}
	}
	for _, p := range s.sites.pods {
		if p.Spec.NodeName == s.Name(i) && strings.HasPrefix(p.Labels["App-Domain-Name"], id) {
			return true
		}
	}
	return false
}

// hasLauncher says whether the launcher of a virtual machine is on a device.
func (s *stage) hasLauncher(i int, vmi string) bool {
	s.sites.mu.Lock()
	defer s.sites.mu.Unlock()
	for _, p := range s.sites.pods {
		if p.Spec.NodeName == s.Name(i) && p.Labels["vm.kubevirt.io/name"] == vmi {
			return true
		}
	}
	return false
}
