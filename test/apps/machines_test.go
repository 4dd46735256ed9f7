//go:build linux

package apps

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

// TestMachines tells one story of three devices and their virtual machines.
func TestMachines(t *testing.T) {
	needsHosts(t)
	s := newStage(t)
	tell := func(what string, story func(*testing.T)) {
		if !t.Failed() {
			t.Run(what, func(t *testing.T) {
				began := time.Now()
				story(t)
				t.Logf("it took %s", since(began))
			})
		}
	}
	tell("three devices run their machines", s.machinesRun)
	tell("a short cut and a stopped kubelet move nothing, while one is purged and one deleted without the agent", s.kubeletIsStopped)
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
	for i, m := range s.fleet.Members {
		if err := m.Boot(context.Background()); err != nil {
			t.Fatal(err)
		}
		s.judge.agent(i, true)
	}
	creating.Wait()
	for _, a := range s.apps {
		until(t, 60*time.Second, func() string { return s.runsOn(t, a, a.node) })
		until(t, 60*time.Second, func() string { return s.rests(t, a) })
	}
	for i := range s.fleet.Members {
		until(t, 30*time.Second, func() string {
			if _, node := s.ready(t, i); node == nil || node.Annotations["zedkube.github.io/agent"] == "" {
				return s.name(i) + " has no stamp"
			}
			return ""
		})
	}
	t.Logf("the console is open after %s more", until(t, 30*time.Second, func() string { return s.lacksConsole(s.apps["moves"], 1) }))
}

// rests says what is wrong with an application that nothing happens to: one copy
// that runs, whose node alone claims it and has its volume, "" for nothing.
func (s *stage) rests(t *testing.T, a *app) string {
	if what := s.runsOn(t, a, 0, 1, 2); what != "" {
		return what
	}
	pods := s.pods(t, a)
	if len(pods) != 1 {
		return "it has just moved"
	}
	set := s.set(t, a)
	if set == nil {
		return "its set is out of sight"
	}
	if n, _, _ := unstructured.NestedInt64(set.Object, "spec", "replicas"); n != 1 {
		return fmt.Sprintf("set %s wants %d", set.GetName(), n)
	}
	on := slices.Collect(maps.Values(s.attachments(t, a)))
	if !slices.Equal(on, []string{pods[0].Spec.NodeName}) {
		return fmt.Sprintf("%s is attached to %v and runs on %s", a.volume, on, pods[0].Spec.NodeName)
	}
	for i := range s.fleet.Members {
		status, ok := told[types.ENClusterAppStatus](s, i, "ENClusterAppStatus", a.key())
		here := s.name(i) == pods[0].Spec.NodeName
		if !ok || status.ScheduledOnThisNode != here || status.AppKubeStatus != types.AppKubeRunning || !strings.Contains(pods[0].Name, status.VMIName) {
			return fmt.Sprintf("%s says %+v of %s", s.name(i), status, pods[0].Name)
		}
		if s.sites.runs(i, a.domain) != here {
			return fmt.Sprintf("that %s runs on %s is %t", a.cfg.DisplayName, s.name(i), !here)
		}
	}
	return ""
}

// lacksConsole says what is wrong unless the console of an application is open on
// that device alone; on -1 it is nowhere.
func (s *stage) lacksConsole(a *app, on int) string {
	for i := range s.fleet.Members {
		c, ok := s.console(i)
		if mine := ok && c.AppUUID == a.cfg.UUIDandVersion.UUID; mine != (i == on) {
			why, _ := told[types.AppConsoleStatus](s, i, "AppConsoleStatus", a.key())
			return fmt.Sprintf("that %s has a console of %s is %t: %s", s.name(i), a.cfg.DisplayName, mine, why.Why)
		}
	}
	return ""
}

// kubeletIsStopped stops the kubelet of a node whose agent goes on.
func (s *stage) kubeletIsStopped(t *testing.T) {
	stays := s.apps["stays"]
	s.cluster.StopKubelet(2)
	s.sites.set(2, func(d *site) { d.kubelet = false })
	s.sites.unserve(2)
	s.shortCut(t)
	mute := s.isLost(t, 2)
	s.refuses(t, 0, stays, types.RepairWaits, "answers node ")
	lasts(t, time.Until(mute.Add(scheduled)), func() string {
		if _, node := s.ready(t, 2); node != nil && isFenced(node) {
			return "it is fenced"
		}
		return s.holds(t, stays, 2)
	})
	s.sites.serve(t, 2)
	s.sites.set(2, func(d *site) { d.kubelet = true })
	if err := s.cluster.StartKubelet(2); err != nil {
		t.Fatal(err)
	}
	s.allRest(t)
}

// shortCut cuts another node for as long as a switch needs to boot.
func (s *stage) shortCut(t *testing.T) {
	moves := s.apps["moves"]
	before, attached := s.pods(t, moves), s.attachments(t, moves)
	s.cut(t, 1)
	cutAt := time.Now()
	s.configuredWithoutAgent(t)
	pause(t, time.Until(cutAt.Add(20*time.Second)))
	s.heal(t, 1)
	until(t, 30*time.Second, func() string {
		if ready, _ := s.ready(t, 1); ready.Status != corev1.ConditionTrue {
			return "the node is " + string(ready.Status)
		}
		return s.rests(t, moves)
	})
	after := s.pods(t, moves)
	if len(after) != 1 || after[0].UID != before[0].UID || !maps.Equal(attached, s.attachments(t, moves)) {
		t.Errorf("a cut of 20 s made %s of %s, %v of %v", describe(after), describe(before), s.attachments(t, moves), attached)
	}
	if _, node := s.ready(t, 1); node == nil || isFenced(node) {
		t.Error("a cut of 20 s fenced the node")
	}
	s.othersAreUntouched(t)
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
	t.Logf("what was deleted is withdrawn %s after the start", until(t, 15*time.Second, func() string {
		_, status := told[types.ENClusterAppStatus](s, 0, "ENClusterAppStatus", deleted.key())
		_, repair := told[types.AppRepairStatus](s, 0, "AppRepairStatus", deleted.key())
		if status || repair {
			return fmt.Sprintf("a deleted application has a status: %t, and of repairs: %t", status, repair)
		}
		return ""
	}))
	t.Logf("what was purged is told %s after that", until(t, 30*time.Second, func() string {
		status, ok := told[types.ENClusterAppStatus](s, 0, "ENClusterAppStatus", purged.key())
		if !ok || !strings.HasPrefix(status.VMIName, purged.cfg.KubeName()) || !status.ScheduledOnThisNode || status.AppKubeStatus != types.AppKubeRunning {
			return fmt.Sprintf("a purged application is %+v", status)
		}
		return ""
	}))
}

// theirs is somebody else's attachment to a node.
func theirs(i int) string { return fmt.Sprintf("theirs-%d", i) }

// addForeign adds what nobody is to touch.
func (s *stage) addForeign(t *testing.T) {
	t.Helper()
	client, ctx := s.cluster.Client(), t.Context()
	for i := range s.cluster.Nodes {
		volume := theirs(i)
		_, err := client.StorageV1().VolumeAttachments().Create(ctx, &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: volume},
			Spec: storagev1.VolumeAttachmentSpec{
				Attacher: "disks.example.com", NodeName: s.name(i), Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := client.CoreV1().ConfigMaps(devcluster.AppNamespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	set := &unstructured.Unstructured{}
	err = set.UnmarshalJSON([]byte(`{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachineInstanceReplicaSet",
		"metadata":{"name":"` + foreignSet + `"},"spec":{"replicas":0,"selector":{"matchLabels":{"theirs":"yes"}},
		"template":{"metadata":{"labels":{"theirs":"yes"}},"spec":{"domain":{"devices":{},"memory":{"guest":"64Mi"}}}}}}`))
	if err == nil {
		_, err = s.sets().Create(ctx, set, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	until(t, 10*time.Second, func() string { // virt-controller writes its status once
		set, err := s.sets().Get(ctx, foreignSet, metav1.GetOptions{})
		if err != nil || set.Object["status"] == nil {
			return "the foreign set has no status"
		}
		return ""
	})
	s.foreign = s.foreigners(t)
}

// foreigners are the foreign objects, whole.
func (s *stage) foreigners(t *testing.T) string {
	t.Helper()
	var text []string
	add := func(o any, err error) {
		if err != nil {
			t.Fatal(err)
		}
		line, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, string(line))
	}
	list, err := s.cluster.Client().StorageV1().VolumeAttachments().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list.Items {
		if a.Spec.Attacher != devcluster.LonghornDriver {
			add(a, nil)
		}
	}
	add(s.cluster.Client().CoreV1().ConfigMaps(devcluster.AppNamespace).Get(t.Context(), "theirs", metav1.GetOptions{}))
	add(s.sets().Get(t.Context(), foreignSet, metav1.GetOptions{}))
	return strings.Join(text, "\n")
}

// othersAreUntouched compares what is foreign with what it was, and counts the
// replicas, of which none may go.
func (s *stage) othersAreUntouched(t *testing.T) {
	t.Helper()
	if now := s.foreigners(t); now != s.foreign {
		t.Errorf("foreign objects were\n%s\nand are\n%s", s.foreign, now)
	}
	replicas, err := s.cluster.Custom("lhr").Namespace(devcluster.LonghornNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]int{}
	for _, r := range replicas.Items {
		volume, _, _ := unstructured.NestedString(r.Object, "spec", "volumeName")
		have[volume]++
	}
	for _, a := range s.apps {
		if have[a.volume] != len(a.replicas) {
			t.Errorf("volume %s has %d replicas, want %d", a.volume, have[a.volume], len(a.replicas))
		}
	}
}
