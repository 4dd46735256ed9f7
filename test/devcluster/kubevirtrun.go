//go:build linux

package devcluster

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	virtAPI        = "virt-api"
	virtController = "virt-controller"
	virtServer     = "kubevirt/server" // the certificate of both

	// plainConditions is the feature that is off where KubeVirt runs. With it the
	// conditions of a pod have a field that its virt-controller, of Kubernetes 1.32,
	// does not know. It patches them on condition that they are as it knows them,
	// and would be refused for good wherever the kubelet writes them first.
	plainConditions = "PodObservedGenerationTracking"
)

// writeKubeVirtCredentials writes the certificate of virt-api and the
// kubeconfigs of the programs. Each is its own service account: what another one
// writes into a status is dropped.
func (c *Cluster) writeKubeVirtCredentials() error {
	service := serverTemplate(nil)
	service.Subject.CommonName = virtAPI
	service.DNSNames = []string{virtAPI + "." + KubeVirtNamespace + ".svc"}
	service.ExtKeyUsage = append(service.ExtKeyUsage, x509.ExtKeyUsageClientAuth) // of virt-handler
	const accounts = "system:serviceaccount"
	// The programs watch the directory of their certificate, and log what they see.
	if err := os.Mkdir(filepath.Dir(c.pki(virtServer)), 0o700); err != nil {
		return fmt.Errorf("make the directory of KubeVirt: %w", err)
	}
	for file, template := range map[string]*x509.Certificate{
		virtServer:     service,
		virtAPI:        clientTemplate(accounts+":"+KubeVirtNamespace+":kubevirt-apiserver", accounts+"s", accounts+"s:"+KubeVirtNamespace),
		virtController: clientTemplate(accounts+":"+KubeVirtNamespace+":kubevirt-controller", accounts+"s", accounts+"s:"+KubeVirtNamespace),
	} {
		made, err := c.ca.issue(template)
		if err != nil {
			return err
		}
		if err := made.write(c.Dir, file); err != nil {
			return err
		}
	}
	for _, at := range c.seats() {
		for _, user := range []string{virtAPI, virtController} {
			if err := os.WriteFile(c.kubeconfigPath(user+at.suffix), c.userKubeconfig(user, at.server()), 0o600); err != nil {
				return fmt.Errorf("write the kubeconfig of %s: %w", user, err)
			}
		}
	}
	return nil
}

// startKubeVirt starts the two programs on loopback, where they are asked for.
func (c *Cluster) startKubeVirt(at seat) error {
	if c.virt == "" {
		return nil
	}
	if _, err := c.crew.start(virtAPI, c.virt.path(virtAPI), c.virtAPIArgs(at)...); err != nil {
		return err
	}
	_, err := c.crew.start(virtController, c.virt.path(virtController), c.virtControllerArgs(at)...)
	return err
}

// serveKubeVirt starts those of a host. A virt-controller leads under the name
// of its machine, so that each needs another one. h.mu is held.
func (c *Cluster) serveKubeVirt(h *host) error {
	if c.virt == "" {
		return nil
	}
	named := append([]string{
		"--uts", "/bin/sh", "-c", `echo "$0" >/proc/sys/kernel/hostname && exec "$@"`,
		h.seat.name, c.virt.path(virtController),
	}, c.virtControllerArgs(h.seat)...)
	return errors.Join(
		c.serveProgram(h, virtAPI, c.virt.path(virtAPI), c.virtAPIArgs(h.seat)),
		c.serveProgram(h, virtController, "unshare", named),
	)
}

func (c *Cluster) virtAPIArgs(at seat) []string {
	return append(c.virtArgs(virtAPI, at, virtAPIPort),
		"--console-server-port=8186", // of virt-handler
		"--tls-cert-file="+c.pki(virtServer+".crt"),
		"--tls-key-file="+c.pki(virtServer+".key"),
		"--handler-cert-file="+c.pki(virtServer+".crt"),
		"--handler-key-file="+c.pki(virtServer+".key"),
	)
}

func (c *Cluster) virtControllerArgs(at seat) []string {
	args := append(c.virtArgs(virtController, at, virtControllerPort),
		"--launcher-image="+launcherImage,
		"--exporter-image=quay.io/kubevirt/virt-exportserver:v1.6.0",
		"--prom-cert-file="+c.pki(virtServer+".crt"),
		"--prom-key-file="+c.pki(virtServer+".key"),
	)
	if at.lease == 0 {
		return args
	}
	return append(args,
		"--leader-elect-lease-duration="+at.lease.String(),
		"--leader-elect-renew-deadline="+(at.lease*3/4).String(),
		"--leader-elect-retry-period=1s",
	)
}

func (c *Cluster) virtArgs(user string, at seat, port int) []string {
	return []string{
		"--kubeconfig=" + c.kubeconfigPath(user+at.suffix),
		"--listen=" + c.virtAPIHost(),
		"--port=" + strconv.Itoa(port),
		"-v=2",
	}
}

// virtReached is what an API server serves that reaches virt-api.
const virtReached = "/apis/subresources.kubevirt.io/v1"

// waitVirtAPI returns when a host's virt-api serves: a played kubelet whose write
// is refused for want of its webhook does not try again.
func (c *Cluster) waitVirtAPI(ctx context.Context, h *host) error {
	if c.virt == "" {
		return nil
	}
	return poll(ctx, virtAPI+" on "+h.seat.name, func() bool {
		conn, err := h.space.dial(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(virtAPIPort)))
		if err != nil {
			return false
		}
		conn.Close()
		return c.get(ctx, h, h.seat.server()+virtReached)
	})
}

// waitKubeVirt returns when every API server reaches virt-api and a
// virt-controller leads.
func (c *Cluster) waitKubeVirt(ctx context.Context) error {
	if c.hosts == nil {
		err := poll(ctx, virtAPI, func() bool {
			return c.client.Discovery().RESTClient().Get().AbsPath(virtReached).Do(ctx).Error() == nil
		})
		if err != nil {
			return err
		}
	}
	for i := range c.hosts[:max(0, len(c.hosts)-c.spare)] {
		if err := c.waitVirtAPI(ctx, c.hosts[i]); err != nil {
			return err
		}
	}
	return poll(ctx, virtController, func() bool {
		lease, err := c.client.CoordinationV1().Leases(KubeVirtNamespace).Get(ctx, virtController, metav1.GetOptions{})
		return err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != ""
	})
}

// beginMachines returns when virtual machines can be created.
func (c *Cluster) beginMachines(ctx context.Context) error {
	if c.virt != "" {
		return c.waitKubeVirt(ctx)
	}
	stop, err := c.followLaunchers()
	if err != nil {
		return fmt.Errorf("follow the launcher pods: %w", err)
	}
	c.unfollow = stop
	return nil
}
