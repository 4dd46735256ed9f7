//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// edgeNode is a Node of KubeEdge whose kubelet is to be asked at an address.
func (s *site) edgeNode(name string, at *net.TCPAddr) (remove func()) {
	s.Helper()
	node, err := s.kube.CoreV1().Nodes().Create(s.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"node-role.kubernetes.io/edge": ""}},
	}, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: at.IP.String()}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(at.Port)
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
	s.until("the edge node has an address", func() error {
		if now, err := s.kube.CoreV1().Nodes().Get(s.Context(), name, metav1.GetOptions{}); err == nil {
			node.ResourceVersion = now.ResourceVersion
		}
		_, err := s.kube.CoreV1().Nodes().UpdateStatus(s.Context(), node, metav1.UpdateOptions{})
		return err
	})
	return func() {
		if err := s.kube.CoreV1().Nodes().Delete(s.Context(), name, metav1.DeleteOptions{}); err != nil {
			s.Error(err)
		}
	}
}

// podOn is a pod that a node has.
func (s *site) podOn(node string) (remove func()) {
	s.Helper()
	pods := s.kube.CoreV1().Pods(namespace)
	if _, err := pods.Create(s.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "on-" + node},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "a", Image: "a"}}},
	}, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	return func() {
		if err := pods.Delete(s.Context(), "on-"+node, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
			s.Error(err)
		}
	}
}

// mayRead is a ServiceAccount that may get a subresource of all Nodes.
func (s *site) mayRead(account, subresource string) {
	s.Helper()
	if _, err := s.kube.CoreV1().ServiceAccounts(namespace).Create(s.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes/" + subresource}, Verbs: []string{"get"}}},
	}
	if _, err := s.kube.RbacV1().ClusterRoles().Create(s.Context(), role, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: account},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: namespace}},
	}
	if _, err := s.kube.RbacV1().ClusterRoleBindings().Create(s.Context(), binding, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
}

func (s *site) forget(account string) {
	s.Helper()
	for _, err := range []error{
		s.kube.CoreV1().ServiceAccounts(namespace).Delete(s.Context(), account, metav1.DeleteOptions{}),
		s.kube.RbacV1().ClusterRoles().Delete(s.Context(), account, metav1.DeleteOptions{}),
		s.kube.RbacV1().ClusterRoleBindings().Delete(s.Context(), account, metav1.DeleteOptions{}),
	} {
		if err != nil {
			s.Error(err)
		}
	}
}

// stream has what stands before a played cloudcore, at an address of this machine, until it is stopped. It has the rights of
// cloudcore's ServiceAccount.
func (s *site) stream(ctx context.Context, address string, played http.HandlerFunc) (at *net.TCPAddr, stop func()) {
	s.Helper()
	dir := s.TempDir()
	secret, err := s.kube.CoreV1().Secrets(namespace).Get(ctx, "cloudcore", metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	for name, data := range secret.Data {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			s.Fatal(err)
		}
	}
	certificate, err := tls.X509KeyPair(secret.Data["stream.crt"], secret.Data["stream.key"])
	if err != nil {
		s.Fatal(err)
	}
	cloudcore := httptest.NewUnstartedServer(played)
	cloudcore.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	cloudcore.StartTLS()
	behind, err := url.Parse(cloudcore.URL)
	if err != nil {
		s.Fatal(err)
	}
	l, err := net.Listen("tcp", address+":0")
	if err != nil {
		s.Fatal(err)
	}
	own := filepath.Join(dir, "cloudcore.yaml")
	s.kubeconfig("cloudcore", own)
	log := logrus.New()
	log.SetOutput(s.Output())
	serving, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- streamAt(serving, log, own, l, dir, behind.Host) }()
	at, is := l.Addr().(*net.TCPAddr)
	if !is {
		s.Fatal(l.Addr())
	}
	return at, func() {
		end()
		if err := <-ended; err != nil {
			s.Errorf("the stream ended with %v", err)
		}
		cloudcore.Close()
	}
}

// theStreamAsksWho has the stream asked by the real API server, by one who may read metrics, and by those who may not.
func (s *site) theStreamAsksWho(ctx context.Context) {
	at, stop := s.stream(ctx, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "cloudcore: %s", r.URL.Path)
	})
	defer stop()
	defer s.edgeNode("edge-stream", at)()
	s.mayRead("scraper", "metrics")
	defer s.forget("scraper")

	defer s.podOn("edge-stream")()
	s.until("the API server reads a log", func() error {
		got, err := s.kube.CoreV1().Pods(namespace).GetLogs("on-edge-stream", &corev1.PodLogOptions{}).DoRaw(ctx)
		if err != nil || string(got) != "cloudcore: /containerLogs/kubeedge/on-edge-stream/a" {
			return fmt.Errorf("it is %q, %w", got, err)
		}
		return nil
	})
	for _, row := range []struct{ what, path, token, want string }{
		{"a scraper reads metrics", "/metrics/resource", s.token("scraper"), "200 cloudcore: /metrics/resource"},
		{"but no log", "/containerLogs/kubeedge/on-edge-stream/a", s.token("scraper"), "403 system:serviceaccount:kubeedge:scraper may not get nodes/proxy of edge-stream"},
		{"cloudcore itself may not", "/exec/kubeedge/on-edge-stream/a", s.token("cloudcore"), "403 system:serviceaccount:kubeedge:cloudcore may not get nodes/proxy of edge-stream"},
		{"nobody learns what pods there are", "/exec/a/b/c", s.token("cloudcore"), "403 system:serviceaccount:kubeedge:cloudcore may not get nodes/proxy of all nodes"},
		{"a stranger may nothing", "/exec/a/b/c", "", "401 neither a client certificate"},
		{"a made-up token is nobody's", "/metrics/resource", "made-up", "401 neither a client certificate"},
	} {
		if got := s.asks("https://"+at.String()+row.path, row.token); !strings.HasPrefix(got, row.want) {
			s.Errorf("%s: %q, want %q", row.what, got, row.want)
		}
	}
}

func (s *site) asks(at, token string) string {
	r, err := http.NewRequestWithContext(s.Context(), http.MethodGet, at, nil)
	if err != nil {
		return err.Error()
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}).Do(r)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", answer.StatusCode, bytes.TrimSpace(body))
}

// noted is a host that notes what is made local.
type noted struct {
	mu  sync.Mutex
	now netip.Prefix
}

func (n *noted) Local(block netip.Prefix) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.now = block
	return nil
}

func (n *noted) is() netip.Prefix {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.now
}

// thePathIsReady has the path of one server, with the rights of its ServiceAccount.
func (s *site) thePathIsReady(ctx context.Context) {
	own := filepath.Join(s.TempDir(), "path.yaml")
	s.kubeconfig("zedkube-edge-path", own)
	ready, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(s.Output())
	host := &noted{}
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- pathWith(serving, log, own, host, ready) }()
	s.until("the path is ready", func() error {
		answer, err := http.Get("http://" + ready.Addr().String() + "/readyz")
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("it says %d", answer.StatusCode)
		}
		if got := host.is().String(); got != "100.127.254.0/24" {
			return fmt.Errorf("%s is local", got)
		}
		c, err := net.DialTimeout("tcp", "127.0.0.1:10351", time.Second)
		if err != nil {
			return err
		}
		return c.Close()
	})
	stop()
	if err := <-ended; err != nil {
		s.Errorf("the path ended with %v", err)
	}
	if host.is().IsValid() {
		s.Errorf("%s is still local", host.is())
	}
}
