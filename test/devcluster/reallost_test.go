//go:build linux

package devcluster

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podsReachPods: to be refused by a pod takes the way there and back.
func podsReachPods(t *testing.T, c *Cluster) {
	pod := runApp(t, c, 2, App{Name: "target"})
	for i := range c.Nodes {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_, err := c.DialFrom(i)(ctx, "tcp", net.JoinHostPort(pod.Status.PodIP, "1"))
		cancel()
		if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("from node %d to a pod at %s: %v", i, pod.Status.PodIP, err)
		}
	}
}

const beats = "/var/lib/beats/beat"

// lost is when a node is Unknown at the latest: 16 s after its last word, and 10 s
// later if the leading controller manager was lost with it.
const lost = 40 * time.Second

// beating waits for the next heartbeat on node i and says whether it comes within
// three seconds.
func beating(t *testing.T, c *Cluster, i int) bool {
	t.Helper()
	count := func() int {
		text, err := os.ReadFile(c.HostPath(i, beats))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // the first one may be to come
			t.Fatal(err)
		}
		return strings.Count(string(text), "\n")
	}
	before := count()
	for range 30 {
		if count() > before {
			return true
		}
		time.Sleep(100 * time.Millisecond)
	}
	return false
}

// wantBeats waits until a heart beats on node i.
func wantBeats(t *testing.T, c *Cluster, i int) {
	t.Helper()
	eventually(t, 10*time.Second, "the next heartbeat on "+c.Nodes[i].Name, func() bool { return beating(t, c, i) })
}

func isReady(c *Cluster, name string) corev1.ConditionStatus {
	node, err := c.Client().CoreV1().Nodes().Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	for _, cond := range node.Status.Conditions {
		if cond.Type == corev1.NodeReady {
			return cond.Status
		}
	}
	return ""
}

func wantReady(t *testing.T, c *Cluster, want corev1.ConditionStatus, within time.Duration, nodes ...int) {
	t.Helper()
	begin := time.Now()
	for _, i := range nodes {
		name := c.Nodes[i].Name
		eventually(t, within, name+" to be "+string(want), func() bool { return isReady(c, name) == want })
		t.Logf("%s is %s after %s", name, want, time.Since(begin).Round(100*time.Millisecond))
	}
}

func kubeletAndHostAreLost(t *testing.T, c *Cluster) {
	runApp(t, c, 1, App{Name: "going", Prints: Prints{Heartbeat: beats}})
	pod := runApp(t, c, 2, App{Name: "dying", Prints: Prints{Heartbeat: beats}})
	wantBeats(t, c, 1)
	wantBeats(t, c, 2)
	c.StopKubelet(1)
	begin := time.Now()
	if err := c.KillHost(2); err != nil {
		t.Fatal(err)
	}
	t.Logf("killed within %s", time.Since(begin).Round(time.Millisecond))
	if reaches(t, c, 0, c.Nodes[2].IP) || reaches(t, c, 2, c.Nodes[2].IP) || beating(t, c, 2) {
		t.Error("something goes on on the killed host")
	}
	wantReady(t, c, corev1.ConditionUnknown, lost, 1, 2)
	wantBeats(t, c, 1)
	old := c.bootID(2)
	if err := c.StartHost(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if err := c.StartKubelet(1); err != nil {
		t.Fatal(err)
	}
	wantReady(t, c, corev1.ConditionTrue, 40*time.Second, 1, 2)
	node, err := c.Client().CoreV1().Nodes().Get(t.Context(), c.Nodes[2].Name, metav1.GetOptions{})
	if err != nil || node.Status.NodeInfo.BootID == old || node.Status.NodeInfo.BootID != c.bootID(2) {
		t.Errorf("the host came back with boot id %s, before it was %s: %v", node.Status.NodeInfo.BootID, old, err)
	}
	eventually(t, 30*time.Second, "a container on the host that came back", func() bool { return beating(t, c, 2) })
	text, err := os.ReadFile(c.HostPath(2, beats))
	if err != nil || !strings.HasPrefix(string(text), pod.Name+" ") {
		t.Errorf("the disk has lost what was on it: %q, %v", text, err)
	}
	wantMembers(t, c, 0, 1, 2)
}

func realNodeIsCut(t *testing.T, c *Cluster) {
	if err := c.CutNode(1); err != nil {
		t.Fatal(err)
	}
	if err := c.CutNode(1); err != nil {
		t.Errorf("cut twice: %v", err)
	}
	wantReady(t, c, corev1.ConditionUnknown, lost, 1)
	wantBeats(t, c, 1)
	if err := c.HealNode(1); err != nil {
		t.Fatal(err)
	}
	wantReady(t, c, corev1.ConditionTrue, 40*time.Second, 1)
}
