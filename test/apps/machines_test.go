//go:build linux

package apps

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/rig"
	"github.com/zedkube/zedkube/types"
)

// TestMachines tells one story of three devices and their virtual machines.
func TestMachines(t *testing.T) {
	rig.NeedsHosts(t)
	s := newStage(t, "")
	tell := func(what string, story func(*testing.T)) {
		if !t.Failed() {
			t.Run(what, func(t *testing.T) {
				began := time.Now()
				story(t)
				t.Logf("it took %s", rig.Since(began))
			})
		}
	}
	tell("three devices run their machines", s.machinesRun)
	tell("a short cut and a stopped kubelet move nothing, while one is purged and one deleted without the agent", s.kubeletIsStopped)
	tell("the Node of a device that lives is deleted", s.nodeIsDeleted)
	tell("a node is killed", s.nodeIsKilled)
	tell("a cut node comes back, at any of the kill points", func(t *testing.T) { s.killPoints(t, cutting, 30) })
}

func required(c *types.AppInstanceConfig) { c.AffinityType = types.AffinityRequired }

func withConsole(c *types.AppInstanceConfig) { c.RemoteConsole = true }

func (s *stage) machinesRun(t *testing.T) {
	s.addForeign(t)
	all := []int{0, 1, 2}
	s.newApp(t, "moves", 1, all, withConsole)
	s.newApp(t, "lonely", 1, []int{1})
	s.newApp(t, "tied", 1, all, required)
	s.newApp(t, "stays", 2, all)
	s.newApp(t, "purged", 0, all)
	s.newApp(t, "deleted", 0, all)
	var creating sync.WaitGroup
	for _, a := range s.apps {
		creating.Go(func() {
			if err := s.create(t.Context(), a); err != nil {
				t.Error(err)
			}
		})
	}
	s.Boot(t)
	for i := range s.Fleet.Members {
		s.judge.agent(i, true)
	}
	creating.Wait()
	for _, a := range s.apps {
		rig.Until(t, 60*time.Second, func() string { return s.runsOn(t, a, a.node) })
		rig.Until(t, 60*time.Second, func() string { return s.rests(t, a) })
	}
	for i := range s.Fleet.Members {
		rig.Until(t, 30*time.Second, func() string {
			if _, node := s.ready(t, i); node == nil || node.Annotations["zedkube.github.io/agent"] == "" {
				return s.Name(i) + " has no stamp"
			}
			return ""
		})
	}
	t.Logf("the console is open after %s more", rig.Until(t, 30*time.Second, func() string { return s.lacksConsole(s.apps["moves"], 1) }))
}

// kubeletIsStopped stops the kubelet of a node whose agent goes on.
func (s *stage) kubeletIsStopped(t *testing.T) {
	stays := s.apps["stays"]
	s.Cluster.StopKubelet(2)
	s.sites.set(2, func(d *site) { d.kubelet = false })
	s.sites.unserve(2)
	s.shortCut(t)
	mute := s.isLost(t, 2)
	s.refuses(t, 0, stays, types.RepairWaits, "answers node ")
	rig.Lasts(t, time.Until(mute.Add(scheduled)), func() string {
		if _, node := s.ready(t, 2); node != nil && isFenced(node) {
			return "it is fenced"
		}
		return s.holds(t, stays, 2)
	})
	s.startKubelet(t, 2)
	s.allRest(t)
}

// shortCut cuts another node for as long as a switch needs to boot.
func (s *stage) shortCut(t *testing.T) {
	moves := s.apps["moves"]
	before, attached := s.pods(t, moves), s.attachments(t, moves)
	s.cut(t, 1)
	cutAt := time.Now()
	s.configuredWithoutAgent(t)
	rig.Pause(t, time.Until(cutAt.Add(20*time.Second)))
	s.heal(t, 1)
	rig.Until(t, 30*time.Second, func() string {
		if ready, _ := s.ready(t, 1); ready.Status != corev1.ConditionTrue {
			return "the node is " + string(ready.Status)
		}
		return s.rests(t, moves)
	})
	after := s.pods(t, moves)
	if s.isEvicted(t, before[0]) {
		t.Log("the machine is too busy for a short cut: the node was not Ready for longer than the pod tolerates, and Kubernetes evicted it")
	} else if len(after) != 1 || after[0].UID != before[0].UID || !maps.Equal(attached, s.attachments(t, moves)) {
		t.Errorf("a cut of 20 s made %s of %s, %v of %v", describe(after), describe(before), s.attachments(t, moves), attached)
	}
	if _, node := s.ready(t, 1); node == nil || isFenced(node) {
		t.Error("a cut of 20 s fenced the node")
	}
	s.othersAreUntouched(t)
}

// isEvicted reports whether Kubernetes evicted a pod because of its node's taint.
func (s *stage) isEvicted(t *testing.T, pod corev1.Pod) bool {
	t.Helper()
	events, err := s.Cluster.Client().CoreV1().Events(pod.Namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=TaintManagerEviction,involvedObject.name=" + pod.Name})
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return strings.HasPrefix(e.Message, "Marking for deletion") })
}

// configuredWithoutAgent purges one application and deletes another while the
// agent of their node is down.
func (s *stage) configuredWithoutAgent(t *testing.T) {
	purged, deleted := s.apps["purged"], s.apps["deleted"]
	s.killAgent(0)
	s.deconfigure(t, deleted)
	s.remove(t, deleted.cfg.KubeName())
	old := purged.cfg.KubeName()
	purged.cfg.PurgeCmd.Counter++
	s.configure(t, purged)
	s.remove(t, old)
	if err := s.create(t.Context(), purged); err != nil {
		t.Fatal(err)
	}
	s.startAgent(t, 0)
	t.Logf("what was deleted is withdrawn %s after the start", rig.Until(t, 15*time.Second, func() string {
		_, status := told[types.ENClusterAppStatus](s, 0, "ENClusterAppStatus", deleted.key())
		_, repair := told[types.AppRepairStatus](s, 0, "AppRepairStatus", deleted.key())
		if status || repair {
			return fmt.Sprintf("a deleted application has a status: %t, and of repairs: %t", status, repair)
		}
		return ""
	}))
	t.Logf("what was purged is told %s after that", rig.Until(t, 30*time.Second, func() string {
		status, ok := told[types.ENClusterAppStatus](s, 0, "ENClusterAppStatus", purged.key())
		if !ok || !strings.HasPrefix(status.VMIName, purged.cfg.KubeName()) || !status.ScheduledOnThisNode || status.AppKubeStatus != types.AppKubeRunning {
			return fmt.Sprintf("a purged application is %+v", status)
		}
		return ""
	}))
}
