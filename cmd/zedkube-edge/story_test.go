//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ktypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/edge/edgecmd"
	"github.com/zedkube/zedkube/test/devcluster"
)

const (
	namespace = "kubeedge"
	patience  = 90 * time.Second
)

// site is a cluster of three servers with KubeEdge's cloud side, of which cloudcore is played.
type site struct {
	*testing.T
	cluster    *devcluster.Cluster
	kube       kubernetes.Interface
	any        dynamic.Interface
	admin, own string    // kubeconfigs: the administrator's and the controller's
	off        time.Time // since when the controller may have no rights
}

// TestEdge tells the story of KubeEdge on one cluster, step after step.
func TestEdge(t *testing.T) {
	c, err := devcluster.Start(t.Context(), devcluster.Options{Log: t.Output(), Nodes: 3, Audit: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	}()
	s := newSite(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.enable()
	s.beginWithOne()
	stop := s.control(ctx, "controller-1")
	played := make(chan struct{})
	go func() { defer close(played); s.playCloudcore(ctx) }()
	defer func() { cancel(); <-played }()

	s.isGolden()
	s.edgeNodesJoinAndLeave(ctx)
	s.theStreamAsksWho(ctx)
	s.certificatesAreForOwnNames(ctx)
	s.thePathIsReady(ctx)
	s.parametersArrive()
	s.whatIsChangedByHandIsBack()
	s.addressesReachTheCertificate()
	s.theAuthorityIsLost()
	stop = s.theLeaderDies(ctx, stop)
	s.disable()
	stop()
	s.listEqualsUse()
}

func newSite(t *testing.T, c *devcluster.Cluster) *site {
	t.Helper()
	any, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	s := &site{T: t, cluster: c, kube: c.Client(), any: any, admin: filepath.Join(t.TempDir(), "admin.yaml"), own: filepath.Join(t.TempDir(), "own.yaml")}
	if err := os.WriteFile(s.admin, c.Kubeconfig(), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// command runs zedkube-edge as an administrator.
func (s *site) command(args ...string) (string, error) {
	var out bytes.Buffer
	err := s.commandTo(&out, args...)
	return out.String(), err
}

func (s *site) commandTo(out io.Writer, args ...string) error {
	c := edgecmd.New(program(logrus.New()))
	c.SetArgs(append([]string{"--kubeconfig", s.admin}, args...))
	c.SetOut(out)
	c.SetErr(out)
	return c.ExecuteContext(s.Context())
}

func (s *site) must(args ...string) string {
	s.Helper()
	out, err := s.command(args...)
	if err != nil {
		s.Fatalf("zedkube-edge %v: %v\n%s", args, err, out)
	}
	return out
}

// until fails where it is not so for long.
func (s *site) until(what string, is func() error) {
	s.Helper()
	deadline := time.After(patience)
	for {
		err := is()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			out, _ := s.command("status")
			s.Fatalf("%s: %v\n%s", what, err, out)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// token is one of a ServiceAccount.
func (s *site) token(account string) string {
	s.Helper()
	token, err := s.kube.CoreV1().ServiceAccounts(namespace).CreateToken(s.Context(), account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](7200)},
	}, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return token.Status.Token
}

// kubeconfig writes one with a token of a ServiceAccount.
func (s *site) kubeconfig(account, path string) {
	s.Helper()
	cfg := s.cluster.RESTConfig()
	text, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: cfg.Host, CertificateAuthorityData: cfg.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"c": {Token: s.token(account)}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "c"}},
		CurrentContext: "c",
	})
	if err := errors.Join(err, os.WriteFile(path, text, 0o600)); err != nil {
		s.Fatal(err)
	}
}

// control runs a controller with the rights of its ServiceAccount.
func (s *site) control(ctx context.Context, name string) (stop func()) {
	s.Helper()
	s.kubeconfig("zedkube-edge", s.own)
	s.Setenv("POD_NAME", name)
	log := logrus.New()
	log.SetOutput(s.Output())
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- control(ctx, log.WithField("controller", name), s.own) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			s.Errorf("%s ended with %v", name, err)
		}
	}
}

func (s *site) enable() {
	out := s.must("enable", "--dry-run")
	if _, err := s.kube.CoreV1().Namespaces().Get(s.Context(), namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		s.Errorf("after --dry-run the namespace is %v", err)
	}
	for _, text := range []string{"31000/tcp  cloudhub", "31002/tcp  cloudhub-https", "31004/tcp  tunnelport", "Nothing was changed."} {
		if !strings.Contains(out, text) {
			s.Errorf("the plan lacks %q:\n%s", text, out)
		}
	}
	if out, err := s.command("enable", "--yes", "websocket=false"); terminal.ExitCode(err) != 3 {
		s.Errorf("without websocket and quic: %v\n%s", err, out)
	}
	if out := s.must("status"); !strings.HasPrefix(out, "KubeEdge is off") {
		s.Errorf("status says %q", out)
	}
	if out := s.must("enable", "--ha", "--dry-run"); !strings.Contains(out, "Warning: ha with NodePort") {
		s.Errorf("enable --ha does not say what is not covered:\n%s", out)
	}
	s.aPortIsTaken()
	s.must("enable", "--yes")
}

// aPortIsTaken: with a NodePort that another Service has, nothing is made that runs.
func (s *site) aPortIsTaken() {
	services := s.kube.CoreV1().Services("default")
	other := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: 31000}},
	}}
	if _, err := services.Create(s.Context(), other, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	if out, err := s.command("enable", "--yes"); terminal.ExitCode(err) != 3 || !strings.Contains(err.Error(), "31000") {
		s.Errorf("with a port that is taken: %v\n%s", err, out)
	}
	if list, err := s.kube.AppsV1().Deployments(namespace).List(s.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		s.Errorf("after that there are %v, %v", list.Items, err)
	}
	if err := services.Delete(s.Context(), "other", metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
}

// deployment is cloudcore's, and an error while its pods are not those that it wants.
func (s *site) deployment() (*appsv1.Deployment, error) {
	d, err := s.kube.AppsV1().Deployments(namespace).Get(s.Context(), "cloudcore", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if want := *d.Spec.Replicas; d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedReplicas != want || d.Status.AvailableReplicas != want || d.Status.Replicas != want {
		return d, fmt.Errorf("of %d there are %+v", want, d.Status)
	}
	return d, nil
}

// ready returns once cloudcore runs as it shall, and there is no problem.
func (s *site) ready() *appsv1.Deployment {
	s.Helper()
	var d *appsv1.Deployment
	s.until("cloudcore is ready", func() (err error) {
		if d, err = s.deployment(); err != nil {
			return err
		}
		out, err := s.command("status")
		return errors.Join(err, map[bool]error{true: errors.New(out)}[strings.Contains(out, "Problem")])
	})
	return d
}

// begun returns once cloudcore has made its secrets.
func (s *site) begun() {
	s.Helper()
	s.until("the casecret is recorded", func() error {
		m, err := s.kube.CoreV1().ConfigMaps(namespace).Get(s.Context(), "zedkube-edge", metav1.GetOptions{})
		if err == nil && m.Annotations["edge.zedkube.io/casecret"] == "" {
			err = errors.New("it is not")
		}
		return err
	})
}

func (s *site) isGolden() {
	s.ready()
	s.begun()
	got := strings.Join(s.objects(), "\n") + "\n"
	want, err := os.ReadFile("testdata/objects.txt")
	if err != nil || got != string(want) {
		s.Errorf("the objects are not those of testdata/objects.txt (%v), but\n%s", err, got)
	}
	secret, err := s.kube.CoreV1().Secrets(namespace).Get(s.Context(), "cloudcore", metav1.GetOptions{})
	if err != nil || !bytes.Contains(secret.Data["streamCA.crt"], []byte("CERTIFICATE")) {
		s.Errorf("the authority of the API server is not beside the certificate of the stream: %v", err)
	}
}

var kinds = []schema.GroupVersionResource{
	{Version: "v1", Resource: "namespaces"},
	{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"},
	{Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "apps", Version: "v1", Resource: "daemonsets"},
	{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	{Version: "v1", Resource: "serviceaccounts"},
	{Version: "v1", Resource: "services"},
	{Version: "v1", Resource: "configmaps"},
	{Version: "v1", Resource: "secrets"},
}

// objects are those of KubeEdge and of what runs it.
func (s *site) objects() (names []string) {
	for _, kind := range kinds {
		list, err := s.any.Resource(kind).List(s.Context(), metav1.ListOptions{})
		if err != nil {
			s.Fatal(err)
		}
		for _, o := range list.Items {
			name := kind.Resource + " " + strings.TrimPrefix(o.GetNamespace()+"/", "/") + o.GetName()
			if o.GetNamespace() == namespace || strings.Contains(o.GetName(), "kubeedge") || strings.Contains(o.GetName(), "cloudcore") || strings.Contains(o.GetName(), "zedkube-edge") ||
				strings.Contains(o.GetName(), "cloudstream") {
				names = append(names, name)
			}
		}
	}
	return names
}

func (s *site) configMap(name string) *corev1.ConfigMap {
	s.Helper()
	m, err := s.kube.CoreV1().ConfigMaps(namespace).Get(s.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return m
}

// disable proves that what is said is gone, and the rest is there; then that a purge leaves nothing.
func (s *site) disable() {
	edge := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "edge-1", Labels: map[string]string{"node-role.kubernetes.io/edge": ""}}}
	if _, err := s.kube.CoreV1().Nodes().Create(s.Context(), edge, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	// As young as now: the node lifecycle controller has no word on it for a while.
	ready := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339))
	if _, err := s.kube.CoreV1().Nodes().Patch(s.Context(), "edge-1", ktypes.MergePatchType, ready, metav1.PatchOptions{}, "status"); err != nil {
		s.Fatal(err)
	}
	if out, err := s.command("disable", "--yes"); terminal.ExitCode(err) != 3 || !strings.Contains(err.Error(), "edge-1") {
		s.Errorf("while an edge node is Ready: %v\n%s", err, out)
	}
	s.off = time.Now()
	out := s.must("disable", "--yes", "--force")
	if !strings.Contains(out, "These stay: the definitions of KubeEdge, 1 edge nodes") {
		s.Errorf("disable says\n%s", out)
	}
	stays := func(o string) bool {
		return strings.HasPrefix(o, "customresourcedefinitions ") || slices.Contains([]string{
			"namespaces kubeedge", "configmaps kubeedge/kube-root-ca.crt", "configmaps kubeedge/tunnelport", "configmaps kubeedge/zedkube-edge", "configmaps kubeedge/zedkube-edge-nodes",
			"serviceaccounts kubeedge/default", "secrets kubeedge/casecret", "secrets kubeedge/cloudcoresecret", "secrets kubeedge/tokensecret",
		}, o)
	}
	s.until("what disable does not leave is gone", func() error {
		if more := slices.DeleteFunc(s.objects(), stays); len(more) > 0 {
			return fmt.Errorf("there is %q", more)
		}
		return nil
	})
	if left := s.objects(); len(left) != 11+9 {
		s.Errorf("disable leaves %q", left)
	}
	if _, err := s.kube.CoreV1().Nodes().Get(s.Context(), "edge-1", metav1.GetOptions{}); err != nil {
		s.Errorf("the edge node: %v", err)
	}
	if out, err := s.command("disable", "--purge", "--yes"); terminal.ExitCode(err) != 3 || !strings.Contains(err.Error(), "have to join again: edge-1") {
		s.Errorf("a purge while there is an edge node: %v\n%s", err, out)
	}
	if out := s.must("disable", "--purge", "--yes", "--force"); !strings.Contains(out, "These edge nodes have to join again: edge-1.") {
		s.Errorf("a purge says\n%s", out)
	}
	s.until("a purge leaves nothing", func() error {
		if left := s.objects(); len(left) > 0 {
			return fmt.Errorf("there is %q", left)
		}
		if _, err := s.kube.CoreV1().Nodes().Get(s.Context(), "edge-1", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the edge node: %w", err)
		}
		return nil
	})
}
