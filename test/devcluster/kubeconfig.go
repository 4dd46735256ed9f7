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

// Kubeconfig returns the administrator's kubeconfig, past the fault proxies;
// with hosts, for the first of them.
func (c *Cluster) Kubeconfig() []byte { return c.userKubeconfig("admin", c.server()) }

// NodeKubeconfig returns what the kubeconfig of node i's own API server would
// be now: the administrator's, through the fault proxy of the node; on a host,
// for the API server that runs there.
func (c *Cluster) NodeKubeconfig(i int) []byte {
	if c.hosts != nil {
		return c.userKubeconfig("admin", c.hosts[i].seat.server())
	}
	p := c.proxies[i]
	p.mu.Lock()
	defer p.mu.Unlock()
	return kubeconfig("https://"+p.address, p.identity.ca.made.cert, p.identity.admin)
}

// devnode returns the program that is kubelet and kubectl. It is built when it is
// first wanted.
func (c *Cluster) devnode(ctx context.Context) (string, error) {
	c.nodeProgramsMu.Lock()
	defer c.nodeProgramsMu.Unlock()
	if c.nodePrograms == "" {
		dir, err := nodeBundle.build(ctx, c.source, c.log)
		if err != nil {
			return "", err
		}
		c.nodePrograms = binaries(dir)
	}
	return c.nodePrograms.path("devnode"), nil
}

// Kubectl runs kubectl as the administrator and returns its standard output.
// The error carries its standard error.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) ([]byte, error) {
	devnode, err := c.devnode(ctx)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, devnode, "kubectl")
	cmd.Env = c.crew.env
	run := cmd.Output
	if c.hosts == nil {
		cmd.Args = append(cmd.Args, "--kubeconfig="+c.kubeconfigPath("admin"))
	} else {
		h, err := c.answering(ctx)
		if err != nil {
			return nil, fmt.Errorf("kubectl %q: %w", args, err)
		}
		cmd.Args = append(cmd.Args, "--kubeconfig="+c.kubeconfigPath("admin"+h.seat.suffix))
		run = func() (out []byte, err error) {
			err = c.wire.sw.enter(func() (failed error) { out, failed = cmd.Output(); return failed })
			return out, err
		}
	}
	cmd.Args = append(cmd.Args, args...)
	out, err := run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return out, fmt.Errorf("kubectl %q: %w: %s", args, err, exit.Stderr)
	}
	return out, err
}

// server is the URL of the API server, of the first host if there are hosts.
func (c *Cluster) server() string { return c.seats()[0].server() }

func (c *Cluster) kubeconfigPath(user string) string {
	return filepath.Join(c.Dir, user+".kubeconfig")
}

// writeKubeconfigs writes those of the administrator and of the programs on a
// seat, which call the API server beside them.
func (c *Cluster) writeKubeconfigs(at seat) error {
	for _, user := range []string{"admin", "kcm", "scheduler"} {
		path := c.kubeconfigPath(user + at.suffix)
		if err := os.WriteFile(path, c.userKubeconfig(user, at.server()), 0o600); err != nil {
			return fmt.Errorf("write the kubeconfig of %s: %w", user, err)
		}
	}
	return nil
}

func (c *Cluster) userKubeconfig(user, server string) []byte {
	return kubeconfig(server, c.read("ca.crt"), pair{c.read(user + ".crt"), c.read(user + ".key")})
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
	config.Dial = c.dialer.DialContext
	if c.hosts != nil {
		config.Dial = c.dialAPI
	}
	return config, nil
}
