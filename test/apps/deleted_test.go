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
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/rig"
	"github.com/zedkube/zedkube/types"
)

// deletedNode is the device whose Node somebody deletes.
const deletedNode = 2

// nodeIsDeleted has somebody delete the Node of a device that lives. It is a server,
// so that its k3s ends, while its agent and what runs there go on. Kubernetes deletes
// the pods there, which its kubelet does not see; nothing of ours takes anything. Then
// k3s is started again.
func (s *stage) nodeIsDeleted(t *testing.T) {
	kept := s.newApp(t, "kept", deletedNode, []int{0, 1, 2})
	if err := s.create(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	rig.Until(t, 60*time.Second, func() string { return s.runsOn(t, kept, deletedNode) })
	rig.Until(t, 60*time.Second, func() string { return s.rests(t, kept) })
	rig.Until(t, 60*time.Second, func() string { return s.lacksRenewal(t) })
	rig.Until(t, 60*time.Second, func() string { return s.lacksUse(t, kept) })
	began := time.Now()

	s.deleteNode(t)
	deletedAt := time.Now()
	s.refuses(t, 0, kept, types.RepairWaits, "is deleted, which does not prove that its device is off")
	if e := s.repair(0, kept).Evidence; !slices.ContainsFunc(e, isRenewal) {
		t.Errorf("the last renewal is not shown: %q", e)
	}
	rig.Until(t, 80*time.Second, func() string {
		if what := s.livesOn(t, kept); what != "" {
			t.Error(what)
			return ""
		}
		if slices.ContainsFunc(s.pods(t, kept), func(p corev1.Pod) bool { return p.Spec.NodeName == s.Name(deletedNode) }) {
			return "Kubernetes does not delete the pods of a missing Node"
		}
		return ""
	})
	t.Logf("Kubernetes has deleted the pods there %s after the Node", rig.Since(deletedAt))
	rig.Lasts(t, 10*time.Second, func() string { return s.livesOn(t, kept) })
	s.rejoin(t)
	t.Logf("%s is Ready again %s after its Node was deleted", s.Name(deletedNode), rig.Since(deletedAt))
	s.allRest(t)
	s.noneIsTaken(t, began)
	s.deconfigure(t, kept)
	s.remove(t, kept.cfg.KubeName())
	rig.Until(t, 60*time.Second, func() string { return describe(s.pods(t, kept)) })
}

// lacksRenewal says what is missing until the first device remembers a renewal of
// the Node that is there now.
func (s *stage) lacksRenewal(t *testing.T) string {
	node, err := s.Cluster.Client().CoreV1().Nodes().Get(t.Context(), s.Name(deletedNode), metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	var k types.KnownNode
	file := filepath.Join(s.Fleet.Members[0].Root, "persist/status/zedkube/KnownNode", node.Name+".json")
	text, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(text, &k) != nil || k.UID != string(node.UID) || k.LeaseSeen.IsZero() {
		return fmt.Sprintf("of %s is remembered %+v, %v", node.Name, k, err)
	}
	return ""
}

// lacksUse says that the Node does not tell yet that a volume is in use there. A kubelet says so before
// it mounts one; Kubernetes detaches what is not in use as soon as its pod is deleted.
func (s *stage) lacksUse(t *testing.T, a *app) string {
	node, err := s.Cluster.Client().CoreV1().Nodes().Get(t.Context(), s.Name(deletedNode), metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	if !slices.ContainsFunc(node.Status.VolumesInUse, func(v corev1.UniqueVolumeName) bool { return strings.HasSuffix(string(v), "^"+a.volume) }) {
		return fmt.Sprintf("%s says that it uses %v", node.Name, node.Status.VolumesInUse)
	}
	return ""
}

func isRenewal(e string) bool { return strings.HasPrefix(e, "The last renewal") }

// livesOn says what is wrong unless an application runs on the device whose Node is
// missing, there alone, and has its volume there.
func (s *stage) livesOn(t *testing.T, a *app) string {
	for i := range s.Cluster.Nodes {
		if s.sites.runs(i, a.domain) != (i == deletedNode) {
			return fmt.Sprintf("while the Node of %s is missing, that %s runs on %s is %t", s.Name(deletedNode), a.cfg.DisplayName, s.Name(i), i != deletedNode)
		}
	}
	return s.holds(t, a, deletedNode)
}

// deleteNode deletes the Node of a server, and waits until its k3s has ended.
func (s *stage) deleteNode(t *testing.T) {
	t.Helper()
	s.sites.set(deletedNode, func(d *site) { d.kubelet = false })
	s.sites.unserve(deletedNode)
	if err := s.Cluster.Client().CoreV1().Nodes().Delete(t.Context(), s.Name(deletedNode), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	rig.Until(t, 30*time.Second, func() string {
		if members, err := s.Cluster.Members(t.Context()); err != nil || slices.Contains(members, deletedNode) {
			return fmt.Sprintf("the members of etcd are %v, %v", members, err)
		}
		return ""
	})
	s.Cluster.StopControlPlane(deletedNode)
	s.Cluster.StopKubelet(deletedNode)
	if _, err := s.Cluster.Client().CoreV1().Nodes().Get(t.Context(), s.Name(deletedNode), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("the Node is registered again while its k3s is stopped: %v", err)
	}
}

// rejoin starts k3s again, which registers its node, and waits until that is Ready.
func (s *stage) rejoin(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if err := s.Cluster.StartControlPlane(ctx, deletedNode); err != nil {
		t.Fatal(err)
	}
	s.startKubelet(t, deletedNode)
	rig.Until(t, 30*time.Second, func() string {
		node, err := s.Cluster.Client().CoreV1().Nodes().Get(t.Context(), s.Name(deletedNode), metav1.GetOptions{})
		if err != nil || readiness(node).Status != corev1.ConditionTrue {
			return fmt.Sprintf("%s is not Ready again: %v", s.Name(deletedNode), err)
		}
		return ""
	})
}

// noneIsTaken checks that no agent has taken an application from a node since.
func (s *stage) noneIsTaken(t *testing.T, began time.Time) {
	t.Helper()
	for i := range s.Fleet.Members {
		for _, a := range s.apps {
			for _, step := range s.repair(i, a).Steps {
				if step.Act == types.ActFailover && step.At.After(began) {
					t.Errorf("%s took %s away: %+v", s.Name(i), a.cfg.DisplayName, step)
				}
			}
		}
	}
	events, err := s.Cluster.Client().CoreV1().Events(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events.Items {
		if e.Reason == "Failover" && e.LastTimestamp.After(began) {
			t.Errorf("%s: %s", e.InvolvedObject.Name, e.Message)
		}
	}
}
