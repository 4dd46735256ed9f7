//go:build linux && soak

// Package edge holds the stories of edge nodes with KubeEdge's own cloudcore and edgecore:
// three servers with real kubelets, and devices behind routers that let nobody in.
package edge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/rig"
)

const (
	namespace = "kubeedge"
	servers   = 3
	devices   = 2
	cloudcore = "k8s-app=kubeedge,kubeedge=cloudcore"
)

// program is where the environment may name zedkube-edge; else it is built.
const program = "ZEDKUBE_EDGE_PROGRAM"

type stage struct {
	*testing.T
	*devcluster.Cluster
	edge string // zedkube-edge
	kube [][]string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	if err := devcluster.CanEdge(); err != nil {
		if !devcluster.MaySkip(err) {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	c, err := devcluster.Start(t.Context(), devcluster.Options{Log: t.Output(), Nodes: servers, Hosts: true, Real: true, Edge: devices})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	s := &stage{T: t, Cluster: c, edge: os.Getenv(program)}
	if s.edge == "" {
		s.edge = filepath.Join(t.TempDir(), "zedkube-edge")
		s.run("go", "build", "-tags=kustomize_disable_go_plugin_support", "-o", s.edge, "github.com/zedkube/zedkube/cmd/zedkube-edge")
	}
	image := filepath.Join(t.TempDir(), "zedkube-edge.tar")
	if err := devcluster.PackImage(s.edge, "docker.io/zedkube/zedkube-edge:latest", "65532:65532", image); err != nil {
		t.Fatal(err)
	}
	for i := range servers {
		if err := errors.Join(c.ImportImage(i, image), c.ImportImage(i, c.CloudcoreArchive())); err != nil {
			t.Fatal(err)
		}
		kubectl, err := c.KubectlFrom(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		s.kube = append(s.kube, kubectl)
	}
	t.Cleanup(s.explain)
	return s
}

// explain prints what a failure may come from.
func (s *stage) explain() {
	if !s.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, args := range [][]string{
		{"get", "nodes,pods", "-A", "-o", "wide"},
		{"-n", namespace, "describe", "pods"},
		{"-n", namespace, "get", "configmap", "tunnelport", "-o", "yaml"},
		{"-n", namespace, "logs", "--tail=30", "-l", cloudcore, "--all-containers"},
		{"-n", namespace, "logs", "--tail=30", "-l", "app.kubernetes.io/name=zedkube-edge-path"},
		{"-n", "kube-system", "describe", "pods"},
		{"-n", "kube-system", "logs", "--tail=30", "-l", "k8s-app=metrics-server"},
	} {
		out, err := s.try(ctx, append(s.kube[0], args...)...)
		s.Logf("kubectl %v: %v\n%s", args, err, out)
	}
	for i := range devices {
		out, err := os.ReadFile(s.EdgePath(i, "/var/log/edgecore.log"))
		s.Logf("edgecore of %s: %v\n%s", device(i), err, out[max(0, len(out)-4000):])
	}
}

func device(i int) string { return "edge-" + strconv.Itoa(i+1) }

// try runs a command and returns all that it prints.
func (s *stage) try(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (s *stage) run(args ...string) string {
	s.Helper()
	out, err := s.try(s.Context(), args...)
	if err != nil {
		s.Fatalf("%q: %v\n%s", args, err, out)
	}
	return out
}

// zedkubeEdge is a command of ours on server i.
func (s *stage) zedkubeEdge(i int, args ...string) []string {
	command := append(s.HostCommand(i), s.edge, "--kubeconfig", filepath.Join(s.Dir, "admin-"+s.Nodes[i].Name+".kubeconfig"))
	return append(command, args...)
}

func (s *stage) must(args ...string) string { s.Helper(); return s.run(s.zedkubeEdge(0, args...)...) }

func (s *stage) kubectl(i int, args ...string) string {
	s.Helper()
	return s.run(append(s.kube[i], args...)...)
}

// on runs a shell on a device.
func (s *stage) on(i int, script string) string {
	s.Helper()
	enter, err := s.EdgeCommand(i)
	if err != nil {
		s.Fatal(err)
	}
	return s.run(append(enter, "/bin/sh", "-ec", script)...)
}

// well is what n cloudcores and the path still lack.
func (s *stage) well(n int) string {
	out, err := s.try(s.Context(), s.zedkubeEdge(0, "status")...)
	if available := strconv.Itoa(n); err != nil || !strings.Contains(out, available+" of "+available+" cloudcores available") {
		return out
	}
	for _, p := range s.pods("app.kubernetes.io/name=zedkube-edge-path") {
		if !ready(p) {
			return p.Name + " is not ready"
		}
	}
	return ""
}

func ready(p corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
}

// unready is why a node is not Ready, "" where it is.
func (s *stage) unready(name string) string {
	node, err := s.Client().CoreV1().Nodes().Get(s.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return ""
		}
	}
	return name + " is not Ready"
}

func (s *stage) pods(selector string) []corev1.Pod {
	s.Helper()
	list, err := s.Client().CoreV1().Pods(namespace).List(s.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		s.Fatal(err)
	}
	return list.Items
}

// join makes a device an edge node as docs/edge.md says, and returns how long it took from the
// start of join.sh until the Node was Ready.
func (s *stage) join(i int) time.Duration {
	s.Helper()
	bundle := s.EdgePath(i, "/var/tmp/bundle.tar.gz")
	s.must("join", device(i), "--yes", "--bundle", bundle, "--edgecore", s.Edgecore())
	s.on(i, "rm -rf /var/tmp/bundle; mkdir /var/tmp/bundle; tar -xzf /var/tmp/bundle.tar.gz -C /var/tmp/bundle")
	// All devices here have the one kernel, so each keeps to a control group of its own, and how full the machine's disk is does not matter.
	own := `"cgroupRoot": "` + s.EdgeCgroup(i) + `", "evictionHard": {"imagefs.available": "1Mi", "nodefs.available": "1Mi", "nodefs.inodesFree": "1"}, `
	s.on(i, "cd $(dirname $(find /var/tmp/bundle -name join.sh)); sed -i 's|\"cgroupDriver\"|"+own+"&|' edgecore.yaml; sha256sum $(awk '{ print $2 }' SHA256SUMS) >SHA256SUMS.new; mv SHA256SUMS.new SHA256SUMS")
	began := time.Now()
	s.on(i, "cd /var/tmp/bundle; sh $(find . -name join.sh)")
	rig.Within(s.T, time.Minute, func() string { return s.unready(device(i)) })
	return rig.Since(began)
}

// start makes a pod on a device or a server that prints numbered lines.
func (s *stage) start(node string) *corev1.Pod {
	s.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "on-" + node, Namespace: "default"},
		Spec: corev1.PodSpec{
			NodeName:    node,
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: "app", Image: devcluster.AppImage, ImagePullPolicy: corev1.PullNever, Args: []string{"--rate=2"},
			}},
		},
	}
	if _, err := s.Client().CoreV1().Pods("default").Create(s.Context(), pod, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	rig.Until(s.T, 20*time.Second, func() string {
		now, err := s.Client().CoreV1().Pods("default").Get(s.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if now.Status.Phase != corev1.PodRunning || !now.Status.ContainerStatuses[0].Ready {
			return pod.Name + " is " + string(now.Status.Phase)
		}
		pod = now
		return ""
	})
	return pod
}

// unread is why the log of a device's pod cannot be read from server i, within some time.
func (s *stage) unread(from, of int, within time.Duration) string {
	ctx, cancel := context.WithTimeout(s.Context(), within)
	defer cancel()
	out, err := s.try(ctx, append(s.kube[from], "logs", "--tail=3", "on-"+device(of))...)
	if err != nil || strings.Count(out, "\n") != 3 {
		return fmt.Sprintf("kubectl logs from %s: %v: %s", s.Nodes[from].Name, err, out)
	}
	return ""
}

// processes of this machine whose arguments contain all of these.
func (s *stage) processes(words ...string) (pids []int) {
	s.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		s.Fatal(err)
	}
	for _, path := range all {
		line, _ := os.ReadFile(path)
		line = bytes.ReplaceAll(line, []byte{0}, []byte{' '})
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && has(string(line), words) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func has(line string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(line, word) {
			return false
		}
	}
	return true
}
