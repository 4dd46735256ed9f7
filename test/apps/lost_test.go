//go:build linux

package apps

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
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

// scheduled is how long after its node's Ready condition turned Unknown an
// application may be without a replacement that has a node, on a quiet machine.
const scheduled = 60 * time.Second

// cut takes a device's cable out.
func (s *stage) cut(t *testing.T, i int) {
	t.Helper()
	s.sites.set(i, func(d *site) { d.connected = false })
	if err := s.Cluster.CutNode(i); err != nil {
		t.Fatal(err)
	}
}

func (s *stage) heal(t *testing.T, i int) {
	t.Helper()
	if err := s.Cluster.HealNode(i); err != nil {
		t.Fatal(err)
	}
	s.sites.set(i, func(d *site) { d.connected, d.back = true, time.Now() })
}

// kill takes a device's power, with all that runs there.
func (s *stage) kill(t *testing.T, i int) {
	t.Helper()
	s.cut(t, i)
	s.killAgent(i)
	s.Cluster.StopKubelet(i)
	s.Cluster.StopControlPlane(i)
	s.sites.set(i, func(d *site) { d.powered = false })
	s.Fleet.Members[i].PowerOff()
}

// bootNode gives it back.
func (s *stage) bootNode(t *testing.T, i int) {
	t.Helper()
	s.heal(t, i)
	s.sites.set(i, func(d *site) { d.powered = true })
	s.Boot(t, i)
	s.judge.agent(i, true)
}

func (s *stage) killAgent(i int) {
	s.judge.agent(i, false)
	s.Fleet.Members[i].KillProgram()
}

func (s *stage) startAgent(t *testing.T, i int) {
	t.Helper()
	if err := s.Fleet.Members[i].StartProgram(); err != nil {
		t.Error(err)
		return
	}
	s.judge.agent(i, true)
}

// isLost waits until the cluster hears no more of a node, and returns since when.
func (s *stage) isLost(t *testing.T, i int) time.Time {
	t.Helper()
	var at time.Time
	t.Logf("%s is Unknown after %s", s.Name(i), rig.Until(t, 40*time.Second, func() string {
		ready, _ := s.ready(t, i)
		at = ready.LastTransitionTime.Time
		if ready.Status != corev1.ConditionUnknown {
			return s.Name(i) + " is " + string(ready.Status)
		}
		return ""
	}))
	return at
}

// isReplaced waits for the replacement of what an application had on a lost node, from at on.
func (s *stage) isReplaced(t *testing.T, a *app, lost int, at time.Time) {
	t.Helper()
	rig.Until(t, scheduled, func() string {
		for _, p := range live(s.pods(t, a)) {
			if p.Spec.NodeName == "" || p.Spec.NodeName == s.Name(lost) {
				continue
			}
			for _, c := range p.Status.Conditions {
				if took := c.LastTransitionTime.Sub(at); c.Type == corev1.PodScheduled && took > rig.Patience*scheduled {
					t.Errorf("the replacement has a node only after %s", took)
				}
			}
			return ""
		}
		return "no replacement: " + describe(s.pods(t, a))
	})
	t.Logf("the replacement of %s has a node after %s", a.cfg.DisplayName, rig.Since(at))
	rig.Until(t, 90*time.Second, func() string { return s.keeps(t, a, lost) })
	t.Logf("the volume of %s is detached from it %s after that", a.cfg.DisplayName, rig.Since(at))
	rig.Until(t, 90*time.Second, func() string {
		for _, p := range live(s.pods(t, a)) {
			if p.Spec.NodeName != s.Name(lost) && p.Status.Phase == corev1.PodRunning {
				return ""
			}
		}
		return "no replacement runs: " + describe(s.pods(t, a)) + fmt.Sprint(s.attachments(t, a))
	})
	t.Logf("the replacement of %s runs %s after that", a.cfg.DisplayName, rig.Since(at))
}

// keeps says whether a lost node still has the volume of an application, "" where it has not.
func (s *stage) keeps(t *testing.T, a *app, lost int) string {
	if slices.Contains(slices.Collect(maps.Values(s.attachments(t, a))), s.Name(lost)) {
		return fmt.Sprintf("%s is still attached to %s: %+v", a.volume, s.Name(lost), s.repairs(a))
	}
	return ""
}

// repairs is what the devices say of an application's repair.
func (s *stage) repairs(a *app) string {
	var all []string
	for i := range s.Fleet.Members {
		r := s.repair(i, a)
		all = append(all, fmt.Sprintf("%s: %s %s %s", s.Name(i), r.Phase, r.Act, r.Reason))
	}
	return strings.Join(all, "; ")
}

// holds says what is wrong unless an application still has its volume on a node
// and is said not to be failed over.
func (s *stage) holds(t *testing.T, a *app, on int) string {
	if nodes := slices.Collect(maps.Values(s.attachments(t, a))); nodes != nil && !slices.Contains(nodes, s.Name(on)) {
		return fmt.Sprintf("%s is attached to %v, no more to %s", a.volume, nodes, s.Name(on))
	}
	return ""
}

// refuses waits until a device says of an application why it is not failed over.
func (s *stage) refuses(t *testing.T, by int, a *app, phase types.RepairPhase, why string) {
	t.Helper()
	rig.Until(t, 60*time.Second, func() string {
		r := s.repair(by, a)
		if r.Phase != phase || r.Act != types.ActFailover || !strings.Contains(r.Reason, why) {
			return fmt.Sprintf("%s says of %s: %s %s: %s", s.Name(by), a.cfg.DisplayName, r.Phase, r.Act, r.Reason)
		}
		return ""
	})
	t.Logf("%s says of %s: %s", s.Name(by), a.cfg.DisplayName, s.repair(by, a).Reason)
}

// nodeIsKilled kills a node that has an application with redundant volumes, one
// without, and one that is tied to it.
func (s *stage) nodeIsKilled(t *testing.T) {
	moves, lonely, tied := s.apps["moves"], s.apps["lonely"], s.apps["tied"]
	s.areBack(t, moves, lonely, tied)
	s.kill(t, 1)
	at := s.isLost(t, 1)
	s.isReplaced(t, moves, 1, at)
	rig.Until(t, 20*time.Second, func() string {
		for _, i := range []int{0, 2} {
			if c, ok := s.console(i); ok && c.AppUUID == moves.cfg.UUIDandVersion.UUID {
				return ""
			}
		}
		return "no other node has the console"
	})
	t.Logf("its console is open %s after that", rig.Since(at))
	s.refuses(t, 0, lonely, types.RepairRefused, "no healthy replica on another Ready node")
	s.refuses(t, 0, tied, types.RepairRefused, "tied to its designated node")
	s.notRedundant(t, lonely, 1)
	for _, a := range []*app{lonely, tied} {
		if what := s.holds(t, a, 1); what != "" {
			t.Error(what)
		}
	}
	s.isMoved(t, tied, 2)
	out, err := s.Fleet.Members[0].Command("apps", "detach", "--force", s.Name(1), lonely.domain, "--timeout", "90s")
	if err != nil {
		t.Errorf("vmiDetach --force: %v", err)
	}
	t.Logf("vmiDetach --force: %s", lastLine(out))
	if s.lacksFence(t, 1) == "" {
		t.Error("a node is fenced although somebody else's volume is attached to it")
	}
	s.bootNode(t, 1)
	s.allRest(t)
}

// isMoved has the controller make another node the designated one of an
// application whose node is lost.
func (s *stage) isMoved(t *testing.T, a *app, to int) {
	t.Helper()
	a.node = to
	s.configure(t, a)
	t.Logf("%s runs on its new designated node after %s", a.cfg.DisplayName, rig.Until(t, 120*time.Second, func() string {
		if what := s.runsOn(t, a, to); what != "" {
			return what + " " + s.repairs(a)
		}
		return ""
	}))
}

// areBack moves applications to their designated nodes: a short cut on a busy
// machine is long enough for Kubernetes to have evicted them.
func (s *stage) areBack(t *testing.T, all ...*app) {
	t.Helper()
	for _, a := range all {
		rig.Until(t, 2*time.Minute, func() string {
			what := s.runsOn(t, a, a.node)
			for _, p := range live(s.pods(t, a)) {
				if what == "" || p.Status.Phase != corev1.PodRunning || p.Spec.NodeName == s.Name(a.node) {
					continue
				}
				t.Logf("%s is moved back from %s", a.cfg.DisplayName, p.Spec.NodeName)
				if err := s.Cluster.Client().CoreV1().Pods(p.Namespace).Delete(t.Context(), p.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
					return err.Error()
				}
			}
			return what
		})
		rig.Until(t, time.Minute, func() string { return s.rests(t, a) })
	}
}

// notRedundant asks by hand for what must not be.
func (s *stage) notRedundant(t *testing.T, a *app, lost int) {
	t.Helper()
	out, err := s.Fleet.Members[0].Command("apps", "detach", s.Name(lost), a.domain, "--timeout", "60s")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("vmiDetach without redundancy ends with %v: %s", err, out)
	}
	t.Logf("vmiDetach: %s", lastLine(out))
}

func (s *stage) lacksFence(t *testing.T, i int) string {
	if _, node := s.ready(t, i); node == nil || !isFenced(node) {
		return s.Name(i) + " is not fenced"
	}
	return ""
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}
