//go:build linux && soak

package edge

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/rig"
)

// TestSoakEdgeNodesLeaveAndKubeEdgeIsSwitchedOff tells how devices leave, and what stays when KubeEdge is switched off.
func TestSoakEdgeNodesLeaveAndKubeEdgeIsSwitchedOff(t *testing.T) {
	s := newStage(t)
	s.enable()
	s.joins()
	s.leavesAndJoinsAgain()
	s.leavesAsLost()
	s.switchedOff()
}

// leavesAndJoinsAgain empties the first device, which runs leave.sh then, and joins under the same name.
func (s *stage) leavesAndJoinsAgain() {
	defer s.step("a device leaves and joins again")()
	pod := "on-" + device(0)
	left := make(chan string, 1)
	go func() {
		out, err := s.try(s.Context(), s.zedkubeEdge(0, "leave", device(0), "--yes")...)
		left <- fmt.Sprint(err, out)
	}()
	rig.Within(s.T, 2*time.Minute, func() string {
		_, err := s.Client().CoreV1().Pods("default").Get(s.Context(), pod, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprint(pod, " is there: ", err)
	})
	s.on(0, "sh /usr/local/lib/zedkube-edge/leave.sh")
	if said := <-left; !strings.HasPrefix(said, "<nil>") {
		s.Errorf("leave ends with %s", said)
	}
	s.isGone(device(0))
	if out := s.on(0, "ls -d /etc/kubeedge /var/lib/kubeedge 2>/dev/null || true; ip addr show lo | grep 100.127 || true"); out != "" {
		s.Errorf("leave.sh leaves %s", out)
	}
	s.Logf("%s is Ready again %s after join.sh has begun", device(0), s.join(0))
}

// leavesAsLost removes the second device, which still runs: it is refused under its name.
func (s *stage) leavesAsLost() {
	defer s.step("a device leaves as lost")()
	s.must("leave", device(1), "--lost", "--yes")
	s.isGone(device(1))
	rig.Lasts(s.T, 20*time.Second, func() string {
		if s.unready(device(1)) == "" {
			return "a lost device is a node again"
		}
		return ""
	})
}

func (s *stage) isGone(name string) {
	s.Helper()
	if _, err := s.Client().CoreV1().Nodes().Get(s.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		s.Errorf("the Node %s is not gone: %v", name, err)
	}
}

// switchedOff: disable is refused while a device is Ready, and leaves the pods of devices alone; a purge leaves nothing.
func (s *stage) switchedOff() {
	defer s.step("KubeEdge is switched off")()
	out, err := s.try(s.Context(), s.zedkubeEdge(0, "disable", "--yes")...)
	if err == nil || !strings.Contains(out, device(0)) {
		s.Errorf("disable while %s is Ready: %v\n%s", device(0), err, out)
	}
	pod := s.start(device(0))
	running := s.inside(*pod, "--rate=2")
	s.must("disable", "--yes", "--force")
	rig.Within(s.T, 2*time.Minute, func() string {
		if left := s.kubectl(0, "-n", namespace, "get", "deployments,daemonsets,pods,services", "-o", "name"); left != "" {
			return "there is " + left
		}
		for i := range servers {
			if route := s.run(append(s.HostCommand(i), "ip", "route", "show", "table", "local", "proto", "222")...); route != "" {
				return s.Nodes[i].Name + " has the route " + route
			}
		}
		return ""
	})
	if after := s.inside(*pod, "--rate=2"); len(running) == 0 || !slices.Equal(running, after) {
		s.Errorf("processes of the pods of devices were %v and are %v", running, after)
	}
	if out := s.kubectl(0, "-n", namespace, "get", "secrets", "-o", "name"); out != "secret/casecret\nsecret/cloudcoresecret\nsecret/tokensecret\n" {
		s.Errorf("after disable the secrets are %s", out)
	}
	s.must("disable", "--purge", "--yes", "--force")
	rig.Within(s.T, 2*time.Minute, func() string {
		if _, err := s.Client().CoreV1().Namespaces().Get(s.Context(), namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return "the namespace is there"
		}
		for of := range strings.Lines(s.kubectl(0, "get", "crd,clusterrole,clusterrolebinding,csr,validatingadmissionpolicy", "-o", "name")) {
			if strings.Contains(of, "kubeedge") || strings.Contains(of, "cloudcore") || strings.Contains(of, "zedkube-edge") {
				return "there is " + of
			}
		}
		return ""
	})
	s.isGone(device(0))
}
