//go:build linux

package devcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// startControlPlane starts the four programs and waits until the API server
// serves; the other two keep trying by themselves.
func (c *Cluster) startControlPlane(ctx context.Context) error {
	devkube, at := c.bin.path("devkube"), c.block.seat()
	if err := c.startServer("etcd", devkube, c.etcdArgs(at, "--initial-cluster="+at.peer())); err != nil {
		return err
	}
	if err := c.etcdListens(ctx); err != nil {
		return err
	}
	more, err := c.auditArgs()
	if err != nil {
		return err
	}
	if c.crowd {
		more = append(more, noTaints)
	}
	if err := c.startServer("kube-apiserver", devkube, append(c.apiserverArgs(at), more...)); err != nil {
		return err
	}
	if err := poll(ctx, "the API server", func() bool { return c.apiReady(ctx) }); err != nil {
		return err
	}
	if err := c.defineCustoms(ctx); err != nil {
		return err
	}
	if err := c.startServer("kube-controller-manager", devkube, c.kcmArgs(at)); err != nil {
		return err
	}
	if err := c.startServer("kube-scheduler", devkube, c.schedulerArgs(at)); err != nil {
		return err
	}
	if err := c.startKubeVirt(at); err != nil {
		return err
	}
	return describeCustoms(ctx, func(path string) string {
		doc, _ := c.client.Discovery().RESTClient().Get().AbsPath(path).Do(ctx).Raw()
		return string(doc)
	})
}

func (c *Cluster) apiReady(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return c.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil
}

func dials(address string) bool {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

func (c *Cluster) pki(file string) string { return filepath.Join(c.Dir, file) }

// etcdArgs are for a member; more says which cluster it is in.
func (c *Cluster) etcdArgs(at seat, more ...string) []string {
	client := "http://" + at.address(at.ports.etcd)
	return append([]string{
		"etcd",
		"--name=" + at.name,
		"--data-dir=" + c.etcdData(at),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + at.peerURL(),
		"--initial-advertise-peer-urls=" + at.peerURL(),
		"--log-level=warn",
		// The data does not outlive the process, so nothing need reach the disk.
		"--unsafe-no-fsync",
	}, more...)
}

func (c *Cluster) etcdData(at seat) string { return filepath.Join(c.Dir, "etcd"+at.suffix) }

func (c *Cluster) apiserverArgs(at seat) []string {
	args := []string{
		"kube-apiserver",
		"--etcd-servers=http://" + at.address(at.ports.etcd),
		"--bind-address=" + at.bind,
		"--advertise-address=" + at.ip,
		fmt.Sprintf("--secure-port=%d", at.ports.api),
		// Endpoints on loopback are refused, and nothing here uses the service.
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=10.43.0.0/16",
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--client-ca-file=" + c.pki("ca.crt"),
		"--tls-cert-file=" + c.pki("apiserver.crt"),
		"--tls-private-key-file=" + c.pki("apiserver.key"),
		"--kubelet-client-certificate=" + c.pki("kubelet-client.crt"),
		"--kubelet-client-key=" + c.pki("kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.pki("sa.key"),
		"--service-account-signing-key-file=" + c.pki("sa.key"),
		"--requestheader-client-ca-file=" + c.pki("front-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.pki("front-proxy-client.crt"),
		"--proxy-client-key-file=" + c.pki("front-proxy-client.key"),
	}
	if c.edges != nil {
		// As k3s has it. Pods find the API server by its Service.
		args = append(args, "--kubelet-certificate-authority="+c.pki("ca.crt"), "--endpoint-reconciler-type=lease")
	}
	if c.virt != "" {
		args = append(args, "--feature-gates="+plainConditions+"=false")
	}
	return args
}

func (c *Cluster) kcmArgs(at seat) []string {
	args := append(c.clientArgs("kube-controller-manager", at, "kcm", at.ports.kcm),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+c.pki("sa.key"),
		"--root-ca-file="+c.pki("ca.crt"),
		"--cluster-signing-cert-file="+c.pki("ca.crt"),
		"--cluster-signing-key-file="+c.pki("ca.key"),
		// A dead kubelet shows after 16 s instead of after a minute.
		"--node-monitor-period=1s",
		"--node-monitor-grace-period=15s",
	)
	if c.crowd {
		args = append(args, noLifecycle)
	}
	return args
}

func (c *Cluster) schedulerArgs(at seat) []string {
	return c.clientArgs("kube-scheduler", at, "scheduler", at.ports.scheduler)
}

func (c *Cluster) clientArgs(program string, at seat, user string, port int) []string {
	kubeconfig := c.kubeconfigPath(user + at.suffix)
	args := []string{
		program,
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=" + at.ip,
		fmt.Sprintf("--secure-port=%d", port),
		// Tests create in one go what takes a day elsewhere.
		"--kube-api-qps=200",
		"--kube-api-burst=400",
	}
	if at.lease == 0 {
		return append(args, "--leader-elect=false")
	}
	return append(args,
		"--leader-elect=true",
		"--leader-elect-lease-duration="+at.lease.String(),
		"--leader-elect-renew-deadline="+(at.lease*3/4).String(),
		"--leader-elect-retry-period=1s",
	)
}

// makeNamespace creates the applications' namespace, allows zedkube what it needs, and
// waits until the namespace takes pods, which needs the controller manager.
func (c *Cluster) makeNamespace(ctx context.Context) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: AppNamespace}}
	_, err := c.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", AppNamespace, err)
	}
	err = poll(ctx, "the default service account of "+AppNamespace, func() bool {
		_, err := c.client.CoreV1().ServiceAccounts(AppNamespace).Get(ctx, "default", metav1.GetOptions{})
		return err == nil
	})
	return errors.Join(err, c.allowAgents(ctx))
}
