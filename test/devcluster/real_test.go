//go:build linux

package devcluster

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// needsPods skips where nodes cannot be real, but not on a build machine.
func needsPods(t *testing.T) {
	t.Helper()
	err := CanRunPods()
	if err != nil && !MaySkip(err) {
		t.Fatal(err)
	}
	if err != nil {
		t.Skip(err)
	}
}

// TestRealNodes tells one story: containers run on three hosts, and then the
// hosts lose what hosts can lose.
func TestRealNodes(t *testing.T) {
	needsPods(t)
	c := start(t, Options{Hosts: true, Real: true, LogMaxSize: "100Ki"})
	for _, part := range []struct {
		what  string
		story func(*testing.T, *Cluster)
	}{
		{"nodes are what those of other clusters are", realNodesAreNodes},
		{"what a container prints is followed through the API", logIsFollowed},
		{"what a container printed before its restart is kept", previousLogIsKept},
		{"the log of a container is rotated", logIsRotated},
		{"the kubelet says what really runs", runningPodsAreSaid},
		{"the kubelet shows an agent what it measures, runs and keeps, and executes nothing for it", kubeletServesAgents},
		{"every node has a way to the pods of the others", podsReachPods},
		{"without its kubelet a node is unknown and its containers go on, of a killed host nothing does", kubeletAndHostAreLost},
		{"a cut node is unknown and its containers go on", realNodeIsCut},
	} {
		if !t.Failed() {
			t.Run(part.what, func(t *testing.T) { part.story(t, c) })
		}
	}
}

// runApp returns the pod of an application on node i.
func runApp(t *testing.T, c *Cluster, i int, app App) corev1.Pod {
	t.Helper()
	app.Node, app.Required = c.Nodes[i].Name, true
	if err := c.CreateApp(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience*30*time.Second)
	defer cancel()
	pods, err := c.WaitRunning(ctx, labelApp+"="+app.Name, 1)
	if err != nil {
		t.Fatal(err)
	}
	return pods[0]
}

func realNodesAreNodes(t *testing.T, c *Cluster) {
	boots := map[string]bool{}
	for i, n := range c.Nodes {
		node, err := c.Client().CoreV1().Nodes().Get(t.Context(), n.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for label, want := range n.object().Labels {
			if node.Labels[label] != want {
				t.Errorf("%s has label %s=%q, want %q", n.Name, label, node.Labels[label], want)
			}
		}
		info := node.Status.NodeInfo
		if info.BootID != c.bootID(i) || info.MachineID != machineID(n) || !strings.HasPrefix(info.ContainerRuntimeVersion, "containerd://") {
			t.Errorf("%s says of itself %+v", n.Name, info)
		}
		boots[info.BootID] = true
		eventually(t, 10*time.Second, "the node to be a voter with its address", func() bool {
			node, err := c.Client().CoreV1().Nodes().Get(t.Context(), n.Name, metav1.GetOptions{})
			return err == nil && saysVoter(node) && node.Status.Addresses[0] == corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: n.IP}
		})
	}
	if len(boots) != 3 {
		t.Errorf("the boot ids are %v", boots)
	}
}

func openLog(t *testing.T, c *Cluster, pod corev1.Pod, o corev1.PodLogOptions) io.ReadCloser {
	t.Helper()
	log, err := c.Client().CoreV1().Pods(AppNamespace).GetLogs(pod.Name, &o).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func logIsFollowed(t *testing.T, c *Cluster) {
	pod := runApp(t, c, 1, App{Name: "speaker", Prints: Prints{Rate: 20, Length: 60, Stderr: 3}})
	log := openLog(t, c, pod, corev1.PodLogOptions{Follow: true})
	defer log.Close()
	// Either stream is in order; between them there is none.
	next := map[bool]int{false: 1, true: 3}
	for lines := bufio.NewScanner(log); next[false] < 50 || next[true] < 50; {
		var got int
		if !lines.Scan() {
			t.Fatalf("the log ends where %v should follow: %v", next, lines.Err())
		}
		_, err := fmt.Sscan(lines.Text(), &got)
		stderr := got%3 == 0
		if err != nil || got != next[stderr] || len(lines.Text()) != 60 {
			t.Fatalf("where %v should follow stands %q", next, lines.Text())
		}
		switch {
		case stderr:
			next[stderr] += 3
		case got%3 == 1:
			next[stderr]++
		default:
			next[stderr] += 2
		}
	}
}

func previousLogIsKept(t *testing.T, c *Cluster) {
	app := App{Name: "restless", Node: c.Nodes[0].Name, Prints: Prints{Rate: 10, Exit: 20}}
	if err := c.CreateApp(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	var pod corev1.Pod
	eventually(t, 40*time.Second, "two restarts and a third run", func() bool {
		list, err := c.Client().CoreV1().Pods(AppNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: labelApp + "=restless"})
		if err != nil || len(list.Items) != 1 || len(list.Items[0].Status.ContainerStatuses) != 1 {
			return false
		}
		pod = list.Items[0]
		return pod.Status.ContainerStatuses[0].RestartCount >= 2 && podReady(pod)
	})
	log := openLog(t, c, pod, corev1.PodLogOptions{Previous: true})
	defer log.Close()
	text, err := io.ReadAll(log)
	if lines := strings.Split(strings.TrimSpace(string(text)), "\n"); err != nil || len(lines) != 20 || !strings.HasPrefix(lines[19], "20 ") {
		t.Errorf("before it the container printed %q, %v", text, err)
	}
	last := pod.Status.ContainerStatuses[0].LastTerminationState.Terminated
	if last == nil || last.ExitCode != 1 {
		t.Errorf("it ended with %+v", last)
	}
}

func logIsRotated(t *testing.T, c *Cluster) {
	pod := runApp(t, c, 2, App{Name: "talker", Prints: Prints{Rate: 200, Length: 1000}})
	pattern := c.HostPath(2, filepath.Join("/var/log/pods", AppNamespace+"_"+pod.Name+"_"+string(pod.UID), "app", "0.log*"))
	eventually(t, 20*time.Second, "a second file", func() bool {
		files, err := filepath.Glob(pattern)
		return err == nil && len(files) >= 2
	})
	if err := c.Client().AppsV1().ReplicaSets(AppNamespace).Delete(t.Context(), "talker", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// running are the names of the pods that the kubelet of node i says it runs.
func running(t *testing.T, c *Cluster, i int) string {
	t.Helper()
	answer, err := c.Client().CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes", c.Nodes[i].Name, "proxy/runningpods/").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var pods corev1.PodList
	if err := json.Unmarshal(answer, &pods); err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	var names []string
	for _, pod := range pods.Items {
		names = append(names, pod.Name)
	}
	return strings.Join(names, " ")
}

func runningPodsAreSaid(t *testing.T, c *Cluster) {
	if names := running(t, c, 1); !strings.Contains(names, "speaker-") || strings.Contains(names, "restless-") {
		t.Errorf("node 1 runs %q", names)
	}
	if names := running(t, c, 0); strings.Contains(names, "speaker-") {
		t.Errorf("node 0 runs %q", names)
	}
}
