package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8stypes "k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

func mismatch(what, got, pattern string) string {
	matches, err := regexp.MatchString(pattern, got)
	switch {
	case err != nil:
		return err.Error()
	case !matches:
		return fmt.Sprintf("%s is %q, which does not match %s", what, got, pattern)
	}
	return ""
}

// podsOf are the pods of an application on a node.
func (s *story) podsOf(app, node string) ([]corev1.Pod, error) {
	list, err := s.fleet.Cluster.Client().CoreV1().Pods(devcluster.AppNamespace).List(s.ctx, metav1.ListOptions{
		LabelSelector: "app=" + appConfig(app).KubeName(), FieldSelector: "spec.nodeName=" + node,
	})
	if err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, fmt.Errorf("no pod of %s on %s", app, node)
	}
	return list.Items, nil
}

// finalizer APP NODE on|off: keeps the objects of the application's pods there
// after their deletion, as a controller does that has still something to do.
func finalizer(s *story, _ *testscript.TestScript, args []string) error {
	list := []string{}
	if args[2] == "on" {
		list = append(list, "example.org/backup")
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": list}})
	if err != nil {
		return err
	}
	pods, err := s.podsOf(args[0], args[1])
	for _, p := range pods {
		_, failed := s.fleet.Cluster.Client().CoreV1().Pods(p.Namespace).Patch(s.ctx, p.Name, k8stypes.MergePatchType, patch, metav1.PatchOptions{})
		err = errors.Join(err, failed)
	}
	return err
}

// hold APP NODE on|off: the application's containers there do not stop.
func hold(s *story, _ *testscript.TestScript, args []string) error {
	pods, err := s.podsOf(args[0], args[1])
	for _, p := range pods {
		err = errors.Join(err, s.fleet.Cluster.HoldDeletion(s.ctx, p, args[2] == "on"))
	}
	return err
}

// pinned NAME NODE: a pod that was made for this node, without a scheduler.
func pinned(s *story, _ *testscript.TestScript, args []string) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: args[0], Namespace: devcluster.AppNamespace, Labels: map[string]string{"app": args[0]}},
		Spec:       corev1.PodSpec{NodeName: args[1], Containers: []corev1.Container{{Name: "app", Image: "example.org/app:1"}}},
	}
	if _, err := s.fleet.Cluster.Client().CoreV1().Pods(pod.Namespace).Create(s.ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := s.fleet.Cluster.WaitRunning(s.ctx, "app="+args[0], 1)
	return err
}

// crowd NAME NODE N: an application of so many pods that run on this node or
// not at all, and that no controller configures.
func crowd(s *story, _ *testscript.TestScript, args []string) error {
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	app := devcluster.App{Name: args[0], Node: args[1], Required: true, Replicas: int32(n)}
	if err := s.fleet.Cluster.CreateApp(s.ctx, app); err != nil {
		return err
	}
	_, err = s.fleet.Cluster.WaitRunning(s.ctx, "app="+args[0], n)
	return err
}

// config NODE changed|native|invalid|valid|deleted|none: what the controller says of the
// cluster now. None is a configuration without a cluster, after a reboot as well.
func config(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	switch args[1] {
	case "invalid":
		return m.Configure(types.EdgeNodeClusterConfig{Initialized: true})
	case "deleted":
		return m.Unconfigure()
	case "none":
		return m.ChangeCluster(func(c *types.EdgeNodeClusterConfig) { s.withheld[args[0]], *c = *c, types.EdgeNodeClusterConfig{} })
	}
	if c, ok := s.withheld[args[0]]; ok {
		delete(s.withheld, args[0])
		return m.ChangeCluster(func(withheld *types.EdgeNodeClusterConfig) { *withheld = c })
	}
	c, err := m.ClusterConfig()
	if err != nil {
		return err
	}
	switch args[1] {
	case "changed":
		c.ClusterName = "renamed"
	case "native":
		c.ClusterType, c.EnableNativeK8SOrchestration = types.ClusterTypeReplicatedStorage, true
	}
	return m.Configure(c)
}

// vm NAME NODE: a virtual machine on that node, which its network keeps from
// moving. Nobody recreates it.
func vm(s *story, _ *testscript.TestScript, args []string) error {
	config := appConfig(args[0])
	_, err := s.fleet.Cluster.CreateVM(s.ctx, devcluster.App{
		Name: config.KubeName(), Domain: config.UUIDandVersion.UUID.String() + ".1.1", Node: args[1],
	})
	if err != nil {
		return err
	}
	_, err = s.fleet.Cluster.WaitRunning(s.ctx, "App-Domain-Name="+config.UUIDandVersion.UUID.String()+".1.1", 1)
	return err
}
