//go:build linux

package devcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig returns the administrator's kubeconfig, past the fault proxies.
func (c *Cluster) Kubeconfig() []byte { return c.userKubeconfig("admin") }

// NodeKubeconfig returns what the kubeconfig of node i's own API server would
// be now: the administrator's, through the fault proxy of the node.
func (c *Cluster) NodeKubeconfig(i int) []byte {
	p := c.proxies[i]
	p.mu.Lock()
	defer p.mu.Unlock()
	return kubeconfig("https://"+p.address, p.identity.ca.made.cert, p.identity.admin)
}

// Kubectl runs kubectl as the administrator and returns its standard output.
// The error carries its standard error.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) ([]byte, error) {
	args = append([]string{"kubectl", "--kubeconfig=" + c.kubeconfigPath("admin")}, args...)
	cmd := exec.CommandContext(ctx, c.bin.path("devkube"), args...)
	cmd.Env = c.crew.env
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return out, fmt.Errorf("kubectl %q: %w: %s", args[2:], err, exit.Stderr)
	}
	return out, err
}

func (c *Cluster) server() string { return "https://" + addr(c.block.control(), apiPort) }

func (c *Cluster) kubeconfigPath(user string) string {
	return filepath.Join(c.Dir, user+".kubeconfig")
}

func (c *Cluster) writeKubeconfig(user string) error {
	if err := os.WriteFile(c.kubeconfigPath(user), c.userKubeconfig(user), 0o600); err != nil {
		return fmt.Errorf("write the kubeconfig of %s: %w", user, err)
	}
	return nil
}

func (c *Cluster) userKubeconfig(user string) []byte {
	return kubeconfig(c.server(), c.read("ca.crt"), pair{c.read(user + ".crt"), c.read(user + ".key")})
}

// kubeconfig holds its certificates, so that it can be copied anywhere. They
// are our own; the encoding cannot fail.
func kubeconfig(server string, ca []byte, user pair) []byte {
	const name = "default"
	config := clientapi.NewConfig()
	config.Clusters[name] = &clientapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos[name] = &clientapi.AuthInfo{ClientCertificateData: user.cert, ClientKeyData: user.key}
	config.Contexts[name] = &clientapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	data, _ := clientcmd.Write(*config)
	return data
}

func (c *Cluster) read(file string) []byte {
	data, _ := os.ReadFile(c.pki(file))
	return data
}

func (c *Cluster) restConfig() (*rest.Config, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(c.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read our own kubeconfig: %w", err)
	}
	config.QPS, config.Burst = 200, 400
	return config, nil
}
