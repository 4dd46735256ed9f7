//go:build linux

package apps

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/zedkube/zedkube/test/rig"
	"github.com/zedkube/zedkube/types"
)

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
	for i := range s.Fleet.Members {
		status, ok := told[types.ENClusterAppStatus](s, i, "ENClusterAppStatus", a.key())
		here := s.Name(i) == pods[0].Spec.NodeName
		if !ok || status.ScheduledOnThisNode != here || status.AppKubeStatus != types.AppKubeRunning || !strings.Contains(pods[0].Name, status.VMIName) {
			return fmt.Sprintf("%s says %+v of %s", s.Name(i), status, pods[0].Name)
		}
		if s.sites.runs(i, a.domain) != here {
			return fmt.Sprintf("that %s runs on %s is %t", a.cfg.DisplayName, s.Name(i), !here)
		}
	}
	return ""
}

// lacksConsole says what is wrong unless the console of an application is open on
// that device alone; on -1 it is nowhere.
func (s *stage) lacksConsole(a *app, on int) string {
	for i := range s.Fleet.Members {
		c, ok := s.console(i)
		if mine := ok && c.AppUUID == a.cfg.UUIDandVersion.UUID; mine != (i == on) {
			why, _ := told[types.AppConsoleStatus](s, i, "AppConsoleStatus", a.key())
			return fmt.Sprintf("that %s has a console of %s is %t: %s", s.Name(i), a.cfg.DisplayName, mine, why.Why)
		}
	}
	return ""
}

// isUnfenced waits until a node that is back is in service again, and finds
// nothing stale on it then.
func (s *stage) isUnfenced(t *testing.T, i int) {
	t.Helper()
	rig.Until(t, 90*time.Second, func() string {
		_, node := s.ready(t, i)
		if node == nil || isFenced(node) {
			return s.Name(i) + " is still fenced"
		}
		return ""
	})
	for _, a := range s.apps {
		if s.sites.runs(i, a.domain) && !slices.ContainsFunc(s.pods(t, a), func(p corev1.Pod) bool { return p.Spec.NodeName == s.Name(i) }) {
			t.Errorf("%s is in service again and still runs a stale copy of %s", s.Name(i), a.cfg.DisplayName)
		}
	}
}

// allRest waits until nothing moves any more, and looks whether anything is left
// of what was done.
func (s *stage) allRest(t *testing.T) {
	t.Helper()
	began := time.Now()
	for i := range s.Cluster.Nodes {
		rig.Until(t, 60*time.Second, func() string {
			if ready, _ := s.ready(t, i); ready.Status != corev1.ConditionTrue {
				return s.Name(i) + " is " + string(ready.Status)
			}
			return ""
		})
		s.isUnfenced(t, i)
	}
	t.Logf("all nodes are in service after %s", rig.Since(began))
	for _, a := range s.apps {
		rig.Until(t, 120*time.Second, func() string {
			if what := s.rests(t, a); what != "" {
				return what + " " + s.repairs(a)
			}
			return ""
		})
	}
	moves := s.apps["moves"]
	rig.Until(t, 60*time.Second, func() string {
		if !moves.cfg.RemoteConsole {
			return s.lacksConsole(moves, -1)
		}
		what := ""
		for i := range s.Cluster.Nodes {
			if what = s.runsOn(t, moves, i); what == "" {
				return s.lacksConsole(moves, i)
			}
		}
		return what
	})
	t.Logf("everything rests after %s", rig.Since(began))
	s.othersAreUntouched(t)
}

// ready is the Ready condition of a node's Node, and since when.
func (s *stage) ready(t *testing.T, i int) (corev1.NodeCondition, *corev1.Node) {
	node, err := s.Cluster.Client().CoreV1().Nodes().Get(t.Context(), s.Name(i), metav1.GetOptions{})
	if err != nil {
		if !apierrors.IsNotFound(err) {
			return corev1.NodeCondition{}, nil
		}
		t.Fatal(err)
	}
	return readiness(node), node
}

func readiness(node *corev1.Node) corev1.NodeCondition {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c
		}
	}
	return corev1.NodeCondition{}
}

func isFenced(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
}
