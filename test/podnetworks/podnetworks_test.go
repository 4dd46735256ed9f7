//go:build linux

// Package podnetworks proves on a real kubelet, with containerd and runc, that every
// pod has its marker before the CNI plug-in asks for it, or runs as soon as the
// kubelet tries again. The plug-in is a script that refuses a pod as eve-bridge does.
package podnetworks

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/test/rig"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	network  = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
	attaches = `[{"name":"ni-line-1","namespace":"eve-kube-app"}]`
	routes   = `[{"name":"ni-line-1","namespace":"eve-kube-app","default-route":["10.1.0.9"]}]`
	// many is how many pods come at once.
	many = 60
)

// plugin reads the marker of a pod as eve-bridge does: without one the call fails.
// What it finds is noted.
const plugin = `
if [ "$CNI_COMMAND" = ADD ]; then
	namespace=${CNI_ARGS#*K8S_POD_NAMESPACE=} namespace=${namespace%%%%;*}
	name=${CNI_ARGS#*K8S_POD_NAME=} name=${name%%%%;*}
	if ! mark=$(cat "%[1]s/run/zedkube/kubeapp-net/${namespace}_$name" 2>/dev/null); then
		echo "$namespace/$name -" >>%[1]s/cni.log
		echo '{"cniVersion":"0.4.0","code":100,"msg":"there is no marker yet"}'
		exit 1
	fi
	echo "$namespace/$name $mark" >>%[1]s/cni.log
fi`

// stage is one host with a device.
type stage struct {
	*rig.Rig
	m      *player.Member
	config types.EdgeNodeClusterConfig // what the controller says of the cluster later
}

// TestEveryPodRunsWithItsMarker tells one story: a pod before there is a cluster, a
// burst of pods, pods that come while the agent is away, and pods that go.
func TestEveryPodRunsWithItsMarker(t *testing.T) {
	rig.NeedsPods(t)
	s := &stage{Rig: rig.New(t, rig.Options{Name: "podnetworks", Cluster: devcluster.Options{Nodes: 1, Hosts: true, Real: true}})}
	s.m = s.Fleet.Members[0]
	if err := s.Cluster.BeforeNetwork(0, fmt.Sprintf(plugin, s.m.Root)); err != nil {
		t.Fatal(err)
	}
	if err := s.m.ChangeCluster(func(c *types.EdgeNodeClusterConfig) { s.config, *c = *c, types.EdgeNodeClusterConfig{} }); err != nil {
		t.Fatal(err)
	}
	s.Boot(t)
	for _, story := range []struct {
		what string
		tell func(*testing.T)
	}{
		{"a pod runs on a device that is configured for no cluster", s.single},
		{"the network instance has an attachment", s.hasAttachment},
		{"every pod of a burst runs", s.burst},
		{"what is asked for is what the plug-in reads", s.words},
		{"pods that come while the agent is away run when it is back", s.away},
		{"markers go with their pods", s.gone},
		{"a network instance that is deleted takes its attachment along", s.lacksAttachment},
	} {
		if !t.Failed() {
			began := time.Now()
			t.Run(story.what, story.tell)
			t.Logf("%s: %s", story.what, rig.Since(began))
		}
	}
}

func (s *stage) attachment(t *testing.T) string {
	o, err := s.Cluster.Custom("net-attach-def").Namespace(devcluster.AppNamespace).Get(t.Context(), "ni-line-1", metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	config, _ := o.Object["spec"].(map[string]any)["config"].(string)
	return config
}

// single has the device's own k3s run without a cluster.
func (s *stage) single(t *testing.T) {
	if err := s.m.PutKubeconfigs(s.Cluster.NodeKubeconfig(0)); err != nil {
		t.Fatal(err)
	}
	s.deploy(t, "default", "early", "", 1)
	s.wantWord(t, s.run(t, "default", "early", 1), "native")
	if _, err := os.Stat(s.m.TopicDir("EdgeNodeClusterStatus") + "/global.json"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is in a cluster: %v", err)
	}
}

func (s *stage) hasAttachment(t *testing.T) {
	err := s.m.ChangeCluster(func(c *types.EdgeNodeClusterConfig) {
		*c = s.config
		c.EnableNativeK8SOrchestration = true
	})
	instance := types.NetworkInstanceStatus{DisplayName: "Line_1", Type: types.NetworkInstanceLocal, ClusterWide: true}
	if err = errors.Join(err, s.m.SetNetwork(network, &instance)); err != nil {
		t.Fatal(err)
	}
	rig.Until(t, 60*time.Second, func() string {
		if is := s.attachment(t); is != `{"cniVersion":"0.3.1","type":"eve-bridge","networkInstance":"`+network+`"}` {
			return "the attachment: " + is
		}
		return ""
	})
}

func (s *stage) lacksAttachment(t *testing.T) {
	if err := s.m.SetNetwork(network, nil); err != nil {
		t.Fatal(err)
	}
	rig.Until(t, 60*time.Second, func() string {
		_, err := s.Cluster.Custom("net-attach-def").Namespace(devcluster.AppNamespace).Get(t.Context(), "ni-line-1", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the attachment is there: %v", err)
		}
		return ""
	})
}

// deploy makes a Deployment, whose pods have that annotation, "" for none.
func (s *stage) deploy(t *testing.T, namespace, name, networks string, replicas int32) {
	t.Helper()
	labels := map[string]string{"app": name}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(bool), TerminationGracePeriodSeconds: new(int64),
			Containers: []corev1.Container{{Name: "app", Image: devcluster.AppImage, ImagePullPolicy: corev1.PullNever, Args: []string{"--rate=-1"}}},
		},
	}
	if networks != "" {
		template.Annotations = map[string]string{"k8s.v1.cni.cncf.io/networks": networks}
	}
	_, err := s.Cluster.Client().AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// run waits until so many pods of a Deployment run, and returns them.
func (s *stage) run(t *testing.T, namespace, name string, n int) (pods []corev1.Pod) {
	t.Helper()
	rig.Until(t, 90*time.Second, func() string {
		list, err := s.Cluster.Client().CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
		if err != nil {
			return err.Error()
		}
		pods = list.Items
		running := 0
		for _, p := range pods {
			if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
				running++
			}
		}
		if running != n || len(pods) != n {
			return fmt.Sprintf("%d of %d pods of %s run, of %d", running, n, name, len(pods))
		}
		return ""
	})
	return pods
}

// read is what the plug-in has read of each pod: "-" for no marker, the last word last.
func (s *stage) read(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.m.Root, "cni.log"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	words := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		pod, word, _ := strings.Cut(strings.TrimSpace(line), " ")
		words[pod] = append(words[pod], word)
	}
	return words
}

// wantWord is that the plug-in set up each of the pods by that word.
func (s *stage) wantWord(t *testing.T, pods []corev1.Pod, word string) {
	t.Helper()
	read := s.read(t)
	for _, p := range pods {
		words := read[p.Namespace+"/"+p.Name]
		if len(words) == 0 || words[len(words)-1] != word {
			t.Errorf("of %s the plug-in read %q, want %s", p.Name, words, word)
		}
	}
}

func (s *stage) burst(t *testing.T) {
	s.deploy(t, "default", "many", "", many)
	pods := s.run(t, "default", "many", many)
	s.wantWord(t, pods, "native")
	late := 0
	for _, words := range s.read(t) {
		if slices.Contains(words, "-") {
			late++
		}
	}
	t.Logf("%d of %d pods were refused at first", late, many)
}

func (s *stage) words(t *testing.T) {
	s.deploy(t, "default", "attached", attaches, 2)
	s.deploy(t, "default", "routed", routes, 1)
	s.deploy(t, devcluster.AppNamespace, "panel", "", 1)
	s.deploy(t, devcluster.AppNamespace, "native", attaches, 1)
	s.wantWord(t, s.run(t, "default", "attached", 2), "native")
	routed := s.run(t, "default", "routed", 1)
	s.wantWord(t, routed, "native-ni-default")
	s.wantWord(t, s.run(t, devcluster.AppNamespace, "panel", 1), "controller")
	s.wantWord(t, s.run(t, devcluster.AppNamespace, "native", 1), "native")

	owner := routed[0].OwnerReferences[0].Name
	key := uuid.NewSHA1(uuid.NewSHA1(uuid.NameSpaceOID, []byte("eve-kube-app-network-id")), []byte("default/"+owner))
	var config types.AppNetworkConfig
	text, err := os.ReadFile(filepath.Join(s.m.TopicDir("AppNetworkConfig"), key.String()+".json"))
	if err = errors.Join(err, json.Unmarshal(text, &config)); err != nil {
		t.Fatal(err)
	}
	if config.DisplayName != "routed" || config.KubeApp.OwnerName != owner || config.AppNetAdapterList[0].Network.String() != network {
		t.Errorf("zedrouter is asked for %+v", config)
	}
	if files, _ := filepath.Glob(filepath.Join(s.m.TopicDir("AppNetworkConfig"), "*.json")); len(files) != 3 {
		t.Errorf("zedrouter is asked for %q", files)
	}
}

// away has the agent killed: markers stay, and new pods wait for it.
func (s *stage) away(t *testing.T) {
	before, _ := os.ReadDir(s.markers())
	s.m.StopProgram()
	if after, _ := os.ReadDir(s.markers()); len(after) != len(before) || len(before) == 0 {
		t.Errorf("of %d markers %d are left without the agent", len(before), len(after))
	}
	s.deploy(t, "default", "late", "", 3)
	rig.Until(t, 60*time.Second, func() string {
		for pod, words := range s.read(t) {
			if strings.HasPrefix(pod, "default/late-") && slices.Contains(words, "-") {
				return ""
			}
		}
		return "no pod was refused while the agent was away"
	})
	if err := s.m.StartProgram(); err != nil {
		t.Fatal(err)
	}
	s.wantWord(t, s.run(t, "default", "late", 3), "native")
}

func (s *stage) markers() string { return filepath.Join(s.m.Root, "run/zedkube/kubeapp-net") }

func (s *stage) gone(t *testing.T) {
	late := func() int {
		files, _ := filepath.Glob(filepath.Join(s.markers(), "default_late-*"))
		return len(files)
	}
	if n := late(); n != 3 {
		t.Errorf("%d markers of the late pods", n)
	}
	if err := s.Cluster.Client().AppsV1().Deployments("default").Delete(t.Context(), "late", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.run(t, "default", "late", 0)
	if n := late(); n != 3 {
		t.Errorf("%d markers right after their pods", n)
	}
	rig.Until(t, 90*time.Second, func() string {
		if n := late(); n > 0 {
			return fmt.Sprintf("%d markers outlast their pods", n)
		}
		return ""
	})
	if files, _ := filepath.Glob(filepath.Join(s.markers(), "default_many-*")); len(files) != many {
		t.Errorf("%d markers of %d pods that run", len(files), many)
	}
}
