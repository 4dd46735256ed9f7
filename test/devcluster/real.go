//go:build linux

package devcluster

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
)

// The images that real nodes have. No others can be had there: nothing is pulled.
const (
	AppImage   = "zedkube.test/app:1"   // does what Prints says
	pauseImage = "zedkube.test/pause:1" // of every pod's sandbox
)

// realPrograms are of the packages containerd and runc, and of util-linux.
var realPrograms = []string{"containerd", "containerd-shim-runc-v2", "ctr", "runc", "unshare"}

// cniDirs are where distributions put the network plug-ins.
var cniDirs = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}

// CanRunPods says why Options.Real cannot be had here; nil if it can.
func CanRunPods() error {
	if err := CanHost(); err != nil {
		return err
	}
	for _, program := range realPrograms {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("real nodes need the packages containerd and runc: %w", err)
		}
	}
	_, err := cniPlugins()
	return err
}

// cniPlugins is the directory of the network plug-ins.
func cniPlugins() (string, error) {
	for _, dir := range cniDirs {
		if _, err := exec.LookPath(filepath.Join(dir, "bridge")); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("real nodes need the package containernetworking-plugins: no plug-in bridge in %q", cniDirs)
}

func (o Options) checkReal() error {
	switch {
	case !o.Real && o.LogMaxSize != "":
		return errors.New("only real nodes rotate logs")
	case !o.Real:
		return nil
	case !o.Hosts:
		return errors.New("real nodes are on hosts only")
	}
	return CanRunPods()
}

// KillHost ends everything on host i at once, as the loss of its power does: the
// control plane, the kubelet and, on a real node, every container; the cable is
// out. What it has on its disk stays. An agent of the test's there is the test's
// to kill.
func (c *Cluster) KillHost(i int) error {
	if err := c.CutNode(i); err != nil {
		return err
	}
	c.StopControlPlane(i)
	c.StopKubelet(i)
	return nil
}

// StartHost gives host i its power and its cable back: with a new boot id, no
// container, and a control plane if it had one. The node is ready some seconds
// later.
func (c *Cluster) StartHost(ctx context.Context, i int) error {
	if err := c.HealNode(i); err != nil {
		return err
	}
	if err := c.StartControlPlane(ctx, i); err != nil {
		return err
	}
	return c.StartKubelet(i)
}

// HostPath is where this machine has a file of real node i: path is absolute,
// below /var, and what a hostPath of a pod says.
func (c *Cluster) HostPath(i int, path string) string {
	return filepath.Join(c.Dir, "disk-"+c.Nodes[i].Name, path)
}
