//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/zedkube/zedkube/kubeapi/nodes"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/edge/edgecmd"
)

// edgeKubelet is the version of KubeEdge's kubelet.
const edgeKubelet = "v1.30.7-kubeedge-v1.20.0"

// oldEdge had joined before there was a record.
const oldEdge = "old-edge"

// beginWithOne makes an edge node as an earlier version, or keadm, had let it join.
func (s *site) beginWithOne() {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: oldEdge, Labels: map[string]string{"node-role.kubernetes.io/edge": ""}}}
	if _, err := s.kube.CoreV1().Nodes().Create(s.Context(), node, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
}

// cloudcoreAs is cloudcore's way to the API server with the token of its ServiceAccount, by an edge node where one is named.
func (s *site) cloudcoreAs(user string, groups ...string) kubernetes.Interface {
	s.Helper()
	cfg := s.cluster.RESTConfig()
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: cfg.Host, TLSClientConfig: rest.TLSClientConfig{CAData: cfg.CAData}, BearerToken: s.token("cloudcore"),
		Impersonate: rest.ImpersonationConfig{UserName: user, Groups: groups},
	})
	if err != nil {
		s.Fatal(err)
	}
	return client
}

func (s *site) forNode(name string) kubernetes.Interface {
	return s.cloudcoreAs("system:node:"+name, "system:nodes")
}

func newNode(name, kubelet string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	node.Status.NodeInfo.KubeletVersion = kubelet
	return node
}

// register does what cloudcore does for a device that joins: it creates the Node by the edge node, and writes the labels itself.
func (s *site) register(ctx context.Context, name string) error {
	node := newNode(name, edgeKubelet)
	node.Labels = map[string]string{"site": "gate"}
	if _, err := s.forNode(name).CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return err
	}
	return patch(ctx, s.cloudcoreAs(""), name, `{"metadata":{"labels":{"node-role.kubernetes.io/edge":"","kubernetes.io/arch":"amd64"}}}`)
}

func patch(ctx context.Context, by kubernetes.Interface, node, text string, subresources ...string) error {
	_, err := by.CoreV1().Nodes().Patch(ctx, node, ktypes.StrategicMergePatchType, []byte(text), metav1.PatchOptions{}, subresources...)
	return err
}

func is(ready, address string) string {
	return fmt.Sprintf(`{"status":{"addresses":[{"type":"InternalIP","address":%q}],"conditions":[{"type":"Ready","status":%q,"message":"played","lastHeartbeatTime":%q}]}}`,
		address, ready, time.Now().UTC().Format(time.RFC3339))
}

// live says all the time that the edge node is Ready, ends its pods, and says NotReady once none is left, as leave.sh has it.
func (s *site) live(ctx context.Context, name, address string, leaves bool) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	by := s.forNode(name)
	go func() {
		defer close(ended)
		had := false
		for ctx.Err() == nil {
			left := 0
			if pods, err := s.kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name}); err == nil {
				for _, p := range pods.Items {
					if left++; p.DeletionTimestamp != nil {
						_ = s.kube.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
					}
				}
			}
			had = had || left > 0
			ready := map[bool]string{true: "False", false: "True"}[leaves && had && left == 0]
			_ = patch(ctx, by, name, is(ready, address), "status") // forbidden once the name is closed
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// edgeNodesJoinAndLeave is the story of devices, of which cloudcore's part is played.
func (s *site) edgeNodesJoinAndLeave(ctx context.Context) {
	s.ready()
	s.oneThatWasThereGoesOn(ctx)
	asked := s.askToJoin()
	s.until("the device is registered", func() error { return s.register(ctx, asked.Name) })
	if out, err := s.command("wait", asked.Name, "--timeout", "1s"); terminal.ExitCode(err) != 3 || !strings.Contains(out, "is registered") || !strings.Contains(err.Error(), "not Ready") {
		s.Errorf("wait for one that is not Ready: %v\n%s", err, out)
	}
	stop := s.live(ctx, asked.Name, asked.Address, true)
	defer stop()
	if out := s.must("wait", asked.Name, "--timeout", "30s"); !strings.Contains(out, "edge-a is Ready") {
		s.Errorf("wait says\n%s", out)
	}
	if out, err := s.command("join", asked.Name, "--yes"); terminal.ExitCode(err) != 3 {
		s.Errorf("join of one that is Ready: %v\n%s", err, out)
	}
	if out, err := s.command("set", "--yes", "websocketPort=31100"); terminal.ExitCode(err) != 3 || !strings.Contains(err.Error(), "port 31000/tcp (cloudhub)") {
		s.Errorf("set of what cuts it off: %v\n%s", err, out)
	}
	s.isNobodyElse(ctx, asked.Name)
	s.leaves(ctx, asked.Name)
	s.isLost(ctx)
}

func (s *site) oneThatWasThereGoesOn(ctx context.Context) {
	s.until("the one that was there goes on", func() error { return patch(ctx, s.forNode(oldEdge), oldEdge, is("True", "192.168.1.10"), "status") })
	if out := s.must("status"); !strings.Contains(out, "joined before the record") {
		s.Errorf("status does not say who had joined before:\n%s", out)
	}
}

func (s *site) askToJoin() (asked edgecmd.Joining) {
	before := s.configMap("zedkube-edge-nodes").ResourceVersion
	s.must("join", "edge-a", "--dry-run")
	for name, wrong := range map[string]string{"node-1": "is a member", "Edge": "no name of a node"} {
		if out, err := s.command("join", name, "--yes"); err == nil || !strings.Contains(err.Error(), wrong) {
			s.Errorf("join %s: %v\n%s", name, err, out)
		}
	}
	if out, err := s.command("wait", "edge-a"); terminal.ExitCode(err) != 3 || !strings.Contains(err.Error(), "was not asked to join") {
		s.Errorf("wait for one that was not asked: %v\n%s", err, out)
	}
	if now := s.configMap("zedkube-edge-nodes").ResourceVersion; now != before {
		s.Error("the record was written without a wish")
	}
	file := filepath.Join(s.TempDir(), "edge-a.tar.gz")
	if out := s.must("join", "edge-a", "--yes", "--bundle", file); !strings.Contains(out, "the bundle has no edgecore") {
		s.Errorf("join says\n%s", out)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || info.Size() < 1000 {
		s.Errorf("the bundle is %v, %v", info, err)
	}
	out := s.must("join", "edge-a", "--yes", "-o", "json")
	_, text, _ := strings.Cut(out, "\n{") // after what is said to people
	if err := json.Unmarshal([]byte("{"+text), &asked); err != nil {
		s.Fatalf("%v: %s", err, out)
	}
	if !strings.Contains(s.configMap("zedkube-edge-nodes").Data["edge-a"], `"address":"100.127.254.1"`) || asked.Address != "100.127.254.1" {
		s.Errorf("it is asked with %+v, and the record is %v", asked, s.configMap("zedkube-edge-nodes").Data)
	}
	if until := time.Until(asked.TokenUntil); until < 55*time.Minute || until > time.Hour || strings.Count(asked.Token, ".") != 3 || !strings.Contains(asked.Command, "base64 -d") {
		s.Errorf("the token is %+v", asked)
	}
	if out, err := s.command("wait", "edge-a", "--timeout", "1s"); terminal.ExitCode(err) != 3 || !strings.Contains(err.Error(), "no device has registered") {
		s.Errorf("wait for one that has not come: %v\n%s", err, out)
	}
	return asked
}

// isNobodyElse: cloudcore signs a certificate for any name. With it nothing can be written but what was asked for.
func (s *site) isNobodyElse(ctx context.Context, name string) {
	own, itself := s.forNode(name), s.cloudcoreAs("")
	createAs := func(by kubernetes.Interface, name, kubelet string) error {
		_, err := by.CoreV1().Nodes().Create(ctx, newNode(name, kubelet), metav1.CreateOptions{})
		return err
	}
	create := func(by kubernetes.Interface) error { return createAs(by, "edge-b", edgeKubelet) }
	const (
		k3s   = "v1.34.4+k3s1"
		stamp = `{"metadata":{"annotations":{"` + nodes.AgentAnnotation + `":"{}"}}}`
		role  = `"metadata":{"labels":{"node-role.kubernetes.io/edge":null}}`
		isK3s = `"status":{"nodeInfo":{"kubeletVersion":"` + k3s + `"}}`
	)
	for what, try := range map[string]struct {
		err   error
		wrong string
	}{
		"a name that was not asked":                  {create(s.forNode("edge-b")), "cannot impersonate"},
		"the same, by cloudcore itself":              {create(itself), "was asked to join under this name"},
		"another name by one that was asked":         {create(own), "was asked to join under this name"},
		"another one that was asked":                 {patch(ctx, own, oldEdge, is("True", "192.168.1.10"), "status"), "its own Node only"},
		"a member":                                   {patch(ctx, s.forNode("node-1"), "node-1", is("True", "192.0.2.1"), "status"), "cannot impersonate"},
		"a member, by cloudcore itself":              {patch(ctx, itself, "node-1", `{"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":10351}}}}`, "status"), "was asked to join under this name"},
		"an administrator":                           {create(s.cloudcoreAs("admin", "system:masters")), "cannot impersonate"},
		"a group that has all":                       {create(s.cloudcoreAs("system:node:"+name, "system:masters")), "cannot impersonate"},
		"the label of a server":                      {patch(ctx, itself, name, `{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":"true"}}}`), "no label of a member"},
		"the label of a member":                      {patch(ctx, own, name, `{"metadata":{"labels":{"node-uuid":"x"}}}`), "no label of a member"},
		"the label of a witness":                     {patch(ctx, own, name, `{"metadata":{"labels":{"tie-breaker-node":"true"}}}`), "no label of a member"},
		"the same with the status":                   {patch(ctx, own, name, `{"metadata":{"labels":{"node-uuid":"x"}},"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.1"}]}}`, "status"), "no label of a member"},
		"an address that is a part of its own":       {patch(ctx, own, name, is("True", "100.127.254"), "status"), "has the address only"},
		"the address of a member":                    {patch(ctx, own, name, is("True", "192.0.2.1"), "status"), "has the address only"},
		"a node of k3s":                              {createAs(own, name, k3s), "says that it is one"},
		"a node of k3s, by cloudcore itself":         {createAs(itself, name, k3s), "says that it is one"},
		"a node of k3s that was an edge node":        {patch(ctx, own, name, "{"+role+","+isK3s+"}", "status"), "says that it is one"},
		"the stamp of an agent":                      {patch(ctx, own, name, stamp), "no annotation of the agent"},
		"the stamp of an agent, with the status":     {patch(ctx, own, name, stamp, "status"), "no annotation of the agent"},
		"the stamp of an agent, by cloudcore itself": {patch(ctx, itself, name, stamp), "no annotation of the agent"},
		"what it may, another version":               {patch(ctx, own, name, "{"+isK3s+"}", "status"), ""},
		"what it may not then, to be without role":   {patch(ctx, own, name, "{"+role+"}"), "says that it is one"},
		"what it may, its own label and its address": {patch(ctx, own, name, `{"metadata":{"labels":{"colour":"red"}}}`), ""},
	} {
		if try.wrong == "" && try.err != nil || try.wrong != "" && (try.err == nil || !strings.Contains(try.err.Error(), try.wrong)) {
			s.Errorf("%s: %v", what, try.err)
		}
	}
	node, err := s.kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil || node.Labels["node-uuid"] != "" {
		s.Errorf("the edge node has the labels %v, %v", node.Labels, err)
	}
	// The kubelet of a member is a user of the same kind.
	cfg := s.cluster.RESTConfig()
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "system:node:node-2", Groups: []string{"system:nodes"}}
	kubelet, err := kubernetes.NewForConfig(cfg)
	if err == nil {
		err = patch(ctx, kubelet, "node-2", `{"metadata":{"labels":{"node-uuid":"u"}}}`)
	}
	if err != nil {
		s.Errorf("the kubelet of a member: %v", err)
	}
}

// leaves: the pods are named and evicted, and what belongs to the Node goes.
func (s *site) leaves(ctx context.Context, name string) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "camera", Namespace: "default"},
		Spec:       corev1.PodSpec{NodeName: name, Containers: []corev1.Container{{Name: "c", Image: "none"}}},
	}
	if _, err := s.kube.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	if out := s.must("leave", name, "--dry-run"); !strings.Contains(out, "Pod default/camera") || !strings.Contains(out, "leave.sh") {
		s.Errorf("the plan of leave is\n%s", out)
	}
	if out, err := s.command("leave", "node-1", "--yes"); terminal.ExitCode(err) != 3 {
		s.Errorf("leave of a member: %v\n%s", err, out)
	}
	if out := s.must("leave", name, "--yes", "--timeout", "60s"); !strings.Contains(out, "edge-a has left") {
		s.Errorf("leave says\n%s", out)
	}
	if err := s.gone(ctx, name); err != nil {
		s.Error(err)
	}
	if role, err := s.kube.RbacV1().ClusterRoles().Get(ctx, "cloudcore", metav1.GetOptions{}); err != nil || strings.Contains(role.String(), "system:node:"+name) {
		s.Errorf("a name that has left is still in %v, %v", role, err)
	}
	if out := s.must("status"); !strings.Contains(out, "left since") {
		s.Errorf("status forgets who has left:\n%s", out)
	}
	s.until("the name is closed", func() error { return s.closed(ctx, name) })
}

func (s *site) gone(ctx context.Context, name string) error {
	if _, err := s.kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("the Node of one that has left: %w", err)
	}
	if _, err := s.kube.CoordinationV1().Leases("kube-node-lease").Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("its lease: %w", err)
	}
	return nil
}

// closed is nil where nobody can register under the name.
func (s *site) closed(ctx context.Context, name string) error {
	node := newNode(name, edgeKubelet)
	for _, by := range []kubernetes.Interface{s.cloudcoreAs(""), s.forNode(name)} {
		if _, err := by.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			return fmt.Errorf("under %s somebody can register: %w", name, err)
		}
	}
	return nil
}

// isLost: the Node goes at once, and the name is refused until somebody asks again.
func (s *site) isLost(ctx context.Context) {
	s.must("join", "edge-b", "--yes", "--address", "100.127.254.200")
	s.until("the second device is registered", func() error { return s.register(ctx, "edge-b") })
	stop := s.live(ctx, "edge-b", "100.127.254.200", false)
	defer stop()
	s.must("wait", "edge-b", "--timeout", "30s")
	s.must("leave", "edge-b", "--lost", "--yes")
	if err := s.gone(ctx, "edge-b"); err != nil {
		s.Error(err)
	}
	s.until("the name of the lost one is closed", func() error { return s.closed(ctx, "edge-b") })
	if out := s.must("status"); !strings.Contains(out, "refused since") {
		s.Errorf("status does not say that it is refused:\n%s", out)
	}
	if out := s.must("join", "edge-b", "--yes"); !strings.Contains(out, "is refused since") {
		s.Errorf("join does not say that it was refused:\n%s", out)
	}
	s.until("it may register again", func() error { return s.register(ctx, "edge-b") })
	s.must("leave", "edge-b", "--lost", "--yes")
	s.must("leave", oldEdge, "--lost", "--yes")
	if left := s.configMap("zedkube-edge-nodes").Data; len(left) != 2 || !strings.Contains(left["_refused"], oldEdge) {
		s.Errorf("the record is %v", left)
	}
	s.until("no edge node is left", func() error {
		if list, err := s.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err != nil || len(list.Items) != 3 {
			return errors.Join(err, errors.New("there is one"))
		}
		return nil
	})
}
