//go:build linux

package devcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// server is one program of the control plane on loopback.
type server struct {
	name, program string
	args          []string
	process       *process
}

func (c *Cluster) startServer(name, program string, args []string) error {
	p, err := c.crew.start(name, program, args...)
	if err != nil {
		return err
	}
	c.servers = append(c.servers, server{name, program, args, p})
	return nil
}

func (c *Cluster) etcdListens(ctx context.Context) error {
	at := c.block.seat()
	return poll(ctx, "etcd", func() bool { return dials(at.address(at.ports.etcd)) })
}

// KeepEtcd keeps what etcd holds now, in place of what was kept before, for
// RestoreEtcd. The control plane restarts. It is not for hosts.
func (c *Cluster) KeepEtcd(ctx context.Context) error {
	return c.restartServers(ctx, func() error { return replaceDir(c.keptEtcd(), c.etcdData(c.block.seat())) })
}

// RestoreEtcd gives the cluster back what KeepEtcd has kept: later objects are
// gone, and resource versions begin again where they were. The control plane
// restarts, as k3s does with --cluster-reset-restore-path, and with it the kubelets that run.
func (c *Cluster) RestoreEtcd(ctx context.Context) error {
	if err := c.restartServers(ctx, func() error { return replaceDir(c.etcdData(c.block.seat()), c.keptEtcd()) }); err != nil {
		return err
	}
	for i := range c.Nodes {
		if err := c.restartKubelet(i); err != nil {
			return err
		}
	}
	return nil
}

// restartKubelet starts the kubelet of node i again, if it runs.
func (c *Cluster) restartKubelet(i int) error {
	c.kubeletsMu.Lock()
	defer c.kubeletsMu.Unlock()
	if c.kubelets[i] == nil {
		return nil
	}
	c.crew.kill(c.kubelets[i])
	c.stopAnswering(i)
	return c.runKubelet(i)
}

func (c *Cluster) keptEtcd() string { return filepath.Join(c.Dir, "etcd-kept") }

func replaceDir(dir, by string) error {
	if _, err := os.Stat(by); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.CopyFS(dir, os.DirFS(by))
}

// restartServers ends the control plane, calls while, and starts it again,
// whatever that says.
func (c *Cluster) restartServers(ctx context.Context, while func() error) error {
	if c.hosts != nil || c.virt != "" {
		return errors.New("only a control plane on loopback without KubeVirt is restarted as a whole")
	}
	servers := c.servers
	for _, s := range slices.Backward(servers) {
		c.crew.kill(s.process)
	}
	err := while()
	c.servers = nil
	for _, s := range servers {
		if start := c.startServer(s.name, s.program, s.args); start != nil {
			return errors.Join(err, start)
		}
		var wait error
		switch s.name {
		case "etcd":
			wait = c.etcdListens(ctx)
		case "kube-apiserver":
			wait = poll(ctx, "the API server", func() bool { return c.apiReady(ctx) })
		}
		if wait != nil {
			return errors.Join(err, wait)
		}
	}
	if err != nil {
		return fmt.Errorf("copy what etcd holds: %w", err)
	}
	return nil
}
