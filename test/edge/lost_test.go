//go:build linux && soak

package edge

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/rig"
	"github.com/zedkube/zedkube/test/seeds"
)

// TestSoakEdgeNodesOutliveCloudcores tells what edge nodes do when cloudcores are lost.
func TestSoakEdgeNodesOutliveCloudcores(t *testing.T) {
	s := newStage(t)
	s.kubectl(0, "cordon", s.Nodes[0].Name) // which the devices dial: cloudcore is to be lost without it
	s.enable()
	s.joins()
	s.kubectl(0, "uncordon", s.Nodes[0].Name)
	s.itsServerLosesPower()
	s.oneOfThreeIsKilled()
	s.theServerOfOneOfThreeLosesPower()
}

// ids are those of the pods of devices, with their containers.
func (s *stage) ids() (list []string) {
	s.Helper()
	for i := range devices {
		pod, err := s.Client().CoreV1().Pods("default").Get(s.Context(), "on-"+device(i), metav1.GetOptions{})
		if err != nil {
			s.Fatal(err)
		}
		list = append(list, string(pod.UID)+" "+pod.Status.ContainerStatuses[0].ContainerID)
	}
	return list
}

// itsServerLosesPower takes the power from cloudcore's server, while the first device's cable is cut, for a minute, or five in
// a long run. The second device, which dials another server, is served again by the next cloudcore. Who asks for a log of the
// first has an answer in time, and it is well soon after its cable is back. The pods of both go on.
func (s *stage) itsServerLosesPower() {
	defer s.step("the server of the one cloudcore loses its power")()
	s.served(2 * time.Minute)
	before := s.ids()
	lost := s.home(s.cloudcoreOf(1))
	if lost == 0 {
		s.Fatal("cloudcore runs on the server that devices dial")
	}
	from := servers - lost // the other one that no device dials
	if err := errors.Join(s.CutEdge(0), s.KillHost(lost)); err != nil {
		s.Fatal(err)
	}
	long := time.Minute
	if os.Getenv(seeds.Book) != "" && os.Getenv(seeds.Brief) == "" {
		long *= 5
	}
	var another, served, longest time.Duration
	said := ""
	began := time.Now()
	for time.Since(began) < long || served == 0 {
		if another == 0 && s.anotherIsReady(lost) {
			another = rig.Since(began)
		}
		if served == 0 && s.unread(from, 1, 5*time.Second) == "" && s.unready(device(1)) == "" {
			served = rig.Since(began)
		}
		if served == 0 && time.Since(began) > 5*time.Minute {
			s.Fatalf("%s is not served five minutes after its cloudcore was lost", device(1))
		}
		asked := time.Now()
		ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
		out, err := s.try(ctx, append(slices.Clone(s.kube[from]), "logs", "--tail=1", "on-"+device(0))...)
		cancel()
		if err == nil {
			s.Errorf("the log of a device that is cut off says %s", out)
		}
		said, longest = out, max(longest, rig.Since(asked))
		rig.Pause(s.T, time.Second)
	}
	s.Logf("another cloudcore is ready %s after the first was lost, and %s is served by it after %s", another, device(1), served)
	s.Logf("of %s, which is cut off, kubectl logs says after %s at most: %s", device(0), longest, said)
	if longest > 30*time.Second {
		s.Errorf("kubectl logs of a device that is cut off took %s", longest)
	}
	if err := s.HealEdge(0); err != nil {
		s.Fatal(err)
	}
	took := rig.Within(s.T, 3*time.Minute, func() string { return cmp.Or(s.unread(from, 0, 5*time.Second), s.unready(device(0))) })
	s.Logf("%s is served %s after its cable is back", device(0), took)
	s.comesBack(lost)
	if after := s.ids(); !slices.Equal(before, after) {
		s.Errorf("pods of devices were %q and are %q", before, after)
	}
}

// home is the server of a pod.
func (s *stage) home(p corev1.Pod) int {
	return slices.IndexFunc(s.Nodes, func(n devcluster.Node) bool { return n.Name == p.Spec.NodeName })
}

func (s *stage) anotherIsReady(lost int) bool {
	s.Helper()
	return slices.ContainsFunc(s.pods(cloudcore), func(p corev1.Pod) bool { return ready(p) && s.home(p) != lost })
}

// comesBack gives a server its power again.
func (s *stage) comesBack(i int) {
	s.Helper()
	if err := s.StartHost(s.Context(), i); err != nil {
		s.Fatal(err)
	}
	s.served(4 * time.Minute)
}

// oneOfThreeIsKilled kills the process of a device's cloudcore, of which there are three.
func (s *stage) oneOfThreeIsKilled() {
	defer s.step("one of three cloudcores is killed")()
	s.must("set", "--yes", "ha=true")
	rig.Within(s.T, 4*time.Minute, func() string { return s.well(servers) })
	s.served(2 * time.Minute)
	before := s.connections(0)
	s.killIn(s.cloudcoreOf(0), "cloudcore.yaml")
	took := s.connectsAgain(before)
	s.Logf("the devices are served %s after a cloudcore was killed", took)
}

// theServerOfOneOfThreeLosesPower is not the server that the devices dial, whose loss NodePorts do not cover.
func (s *stage) theServerOfOneOfThreeLosesPower() {
	defer s.step("the server of one of three cloudcores loses its power")()
	rig.Within(s.T, 4*time.Minute, func() string {
		pod, found := s.findCloudcoreOf(0)
		if !found {
			return device(0) + " has no cloudcore"
		}
		if s.home(pod) == 0 {
			s.kubectl(1, "-n", namespace, "delete", "pod", pod.Name)
			return "the cloudcore of " + device(0) + " is on the first server"
		}
		return s.well(servers)
	})
	s.served(2 * time.Minute)
	before, lost := s.connections(0), s.home(s.cloudcoreOf(0))
	if err := s.KillHost(lost); err != nil {
		s.Fatal(err)
	}
	began := time.Now()
	rig.Within(s.T, 2*time.Minute, func() string {
		if s.unready(s.Nodes[lost].Name) == "" {
			return s.Nodes[lost].Name + " is Ready"
		}
		return ""
	})
	notReady := rig.Since(began)
	s.connectsAgain(before, lost)
	s.Logf("the devices are served %s after a server lost its power, which Kubernetes called NotReady after %s", rig.Since(began), notReady)
	s.comesBack(lost)
}

// connections is how often edgecore of a device has connected to a cloudcore.
func (s *stage) connections(i int) int {
	s.Helper()
	log, err := os.ReadFile(s.EdgePath(i, "/var/log/edgecore.log"))
	if err != nil {
		s.Fatal(err)
	}
	return strings.Count(string(log), "connect to cloud access successful")
}

// connectsAgain waits until the first device has connected once more, and both are served.
func (s *stage) connectsAgain(before int, without ...int) time.Duration {
	s.Helper()
	began := time.Now()
	rig.Within(s.T, 4*time.Minute, func() string {
		if s.connections(0) == before {
			return device(0) + " has not connected again"
		}
		return ""
	})
	s.served(4*time.Minute, without...)
	return rig.Since(began)
}

// cloudcoreOf is the pod that has a device's tunnel.
func (s *stage) cloudcoreOf(i int) corev1.Pod {
	s.Helper()
	pod, found := s.findCloudcoreOf(i)
	if !found {
		s.Fatalf("no cloudcore is that of %s", device(i))
	}
	return pod
}

// findCloudcoreOf reports false while the device has connected to none that is there.
func (s *stage) findCloudcoreOf(i int) (corev1.Pod, bool) {
	s.Helper()
	node, err := s.Client().CoreV1().Nodes().Get(s.Context(), device(i), metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	at := node.Annotations["cloudcore"]
	pods := s.pods(cloudcore)
	n := slices.IndexFunc(pods, func(p corev1.Pod) bool { return at != "" && (p.Status.PodIP == at || p.Status.HostIP == at) })
	if n < 0 {
		return corev1.Pod{}, false
	}
	return pods[n], true
}

// killIn kills the processes in a pod's containers whose arguments contain a word.
func (s *stage) killIn(pod corev1.Pod, word string) {
	s.Helper()
	pids := s.inside(pod, word)
	if len(pids) == 0 {
		s.Fatalf("there is no process %q in pod %s", word, pod.Name)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			s.Fatal(err)
		}
	}
}

// inside are the processes in a pod's containers whose arguments contain a word.
func (s *stage) inside(pod corev1.Pod, word string) []int {
	s.Helper()
	return slices.DeleteFunc(s.processes(word), func(pid int) bool {
		groups, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cgroup"))
		return !strings.Contains(string(groups), string(pod.UID))
	})
}
