//go:build linux

package devcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/google/uuid"
)

// realPrograms are of the packages containerd and runc, and of util-linux.
var realPrograms = []string{"containerd", "containerd-shim-runc-v2", "ctr", "runc", "unshare"}

// cniDirs are where distributions put the network plug-ins.
var cniDirs = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}

// errPackages is that something is missing which a package has.
var errPackages = errors.New("real nodes need the packages containerd, runc and containernetworking-plugins")

// MaySkip says whether a test that needs hosts or real nodes may be skipped
// because of what CanHost or CanRunPods says: with CI=true it may not, unless
// NO_MIRROR=true says that the packages were out of reach.
func MaySkip(err error) bool {
	return os.Getenv("CI") != "true" || errors.Is(err, errPackages) && os.Getenv("NO_MIRROR") == "true"
}

// CanRunPods says why Options.Real cannot be had here; nil if it can.
func CanRunPods() error {
	if err := CanHost(); err != nil {
		return err
	}
	for _, program := range realPrograms {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%w: %w", errPackages, err)
		}
	}
	if _, err := cniPlugins(); err != nil {
		return err
	}
	_, err := newCgroups("/proc/self/mountinfo")
	return err
}

// cniPlugins is the directory of the network plug-ins.
func cniPlugins() (string, error) {
	for _, dir := range cniDirs {
		if _, err := exec.LookPath(filepath.Join(dir, "bridge")); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("%w: no plug-in bridge in %q", errPackages, cniDirs)
}

// StopNode ends the kubelet of node i and, on a real node, all that runs there
// but the control plane, as a reboot does. StartKubelet begins again.
func (c *Cluster) StopNode(i int) error {
	if c.real == "" {
		c.StopKubelet(i)
		return nil
	}
	h := c.hosts[i]
	h.power.Lock()
	defer h.power.Unlock()
	return c.switchOff(i)
}

// KillHost ends everything on host i at once, as the loss of its power does: the
// control plane, the kubelet and, on a real node, every container; the cable is
// out. What it has on its disk stays. An agent of the test's there is the test's
// to kill.
func (c *Cluster) KillHost(i int) error {
	if c.hosts == nil {
		return c.CutNode(i)
	}
	if err := c.unplug(i); err != nil {
		return err
	}
	err := c.StopNode(i)
	c.StopControlPlane(i)
	return err
}

// StartHost gives host i its power and its cable back: with a new boot id, no
// container, and its control plane if it votes in etcd. The node is ready some
// seconds later. Without a quorum, which it may be part of, it waits for ctx.
func (c *Cluster) StartHost(ctx context.Context, i int) error {
	if c.hosts == nil {
		return c.HealNode(i)
	}
	if err := errors.Join(c.plugIn(i), c.noteBootID(i, uuid.NewString())); err != nil {
		return fmt.Errorf("start host %s: %w", c.Nodes[i].Name, err)
	}
	h := c.hosts[i]
	h.mu.Lock()
	votes := h.member && !h.removed
	h.mu.Unlock()
	if votes {
		if err := c.StartControlPlane(ctx, i); err != nil {
			return err
		}
	}
	return c.StartKubelet(i)
}

// HostPath is where this machine has a file of real node i: path is absolute,
// below /var, and what a hostPath of a pod says.
func (c *Cluster) HostPath(i int, path string) string {
	return c.hostFile(i, filepath.Join("disk", path))
}

// noteBootID sets what the kubelet of node i will report when it starts.
func (c *Cluster) noteBootID(i int, id string) error {
	c.kubeletsMu.Lock()
	defer c.kubeletsMu.Unlock()
	c.bootIDs[i] = id
	if c.real == "" || c.hosts[i].real == nil {
		return nil // it is written when the node is switched on
	}
	return os.WriteFile(c.hostFile(i, "over"+bootIDFile), []byte(id+"\n"), 0o644)
}

func (c *Cluster) bootID(i int) string {
	c.kubeletsMu.Lock()
	defer c.kubeletsMu.Unlock()
	return c.bootIDs[i]
}
