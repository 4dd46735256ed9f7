//go:build linux

package devcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// containerdSocket is that of every real node: each has a /run of its own.
const containerdSocket = "/run/containerd/containerd.sock"

// switchedOn bounds how long a real node needs until it can run pods.
const switchedOn = time.Minute

// realNode is what a real node has beyond its network while it is on: processes,
// mounts and a name of its own. All end with the first of its processes.
type realNode struct {
	first    *process // ends when that has ended, which is when all have
	fd       int      // stands for the first process
	services []*service
}

// nodeSpaces are the namespaces of a real node, and their names.
const nodeSpaces = unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWPID

// enter implements place, on the starter's thread only. What do starts is on the
// node.
func (n *realNode) enter(do func() error) error {
	return elsewhere(func() error { return unix.Setns(n.fd, nodeSpaces) }, do, "mnt", "uts", "ipc", "pid")
}

// switchOn makes a real node of host i, with a containerd that has the images.
// The caller holds host.power.
func (c *Cluster) switchOn(i int) error {
	h := c.hosts[i]
	if c.realNode(i) != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), switchedOn)
	defer cancel()
	if err := c.furnish(i); err != nil {
		return fmt.Errorf("furnish %s: %w", h.seat.name, err)
	}
	if err := c.cgroups.add(h.seat.name); err != nil {
		return err
	}
	n, err := c.begin(ctx, h)
	if err != nil {
		return fmt.Errorf("switch %s on: %w", h.seat.name, err)
	}
	c.kubeletsMu.Lock()
	h.real = n
	c.kubeletsMu.Unlock()
	err = c.equip(ctx, h, n)
	if err == nil {
		err = c.serveOn(h, n, "handlers", c.bin.path("kwok"), c.handlerArgs(i)...)
	}
	if err == nil && c.edges != nil {
		err = c.serveOn(h, n, proxyProgram, c.edge.path(proxyProgram), c.proxyArgs(h)...)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("switch %s on: %w", h.seat.name, err), c.switchOff(i))
	}
	return nil
}

func (c *Cluster) realNode(i int) *realNode {
	c.kubeletsMu.Lock()
	defer c.kubeletsMu.Unlock()
	return c.hosts[i].real
}

// begin starts the first process of a node.
func (c *Cluster) begin(ctx context.Context, h *host) (*realNode, error) {
	ready := c.fileOf(h, "ready")
	if err := os.Remove(ready); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		return nil, err
	}
	n := &realNode{fd: -1, first: &process{name: "init-" + h.seat.name, in: h.space, failed: c.crew.failed}}
	err = c.crew.launch(n.first, unshare,
		"--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child=KILL", "--propagation=private", "--",
		c.real.path(realProgram), "init", "--name="+h.seat.name, "--disk="+c.fileOf(h, "disk"),
		"--over="+c.fileOf(h, "over"), "--ready="+ready, "--", c.Dir, string(c.bin), string(c.real))
	if err != nil {
		return nil, err
	}
	var number []byte
	err = poll(ctx, "the first process of "+h.seat.name, func() bool {
		number, err = os.ReadFile(ready)
		return err == nil || n.first.ended()
	})
	if err == nil && n.first.ended() {
		err = errors.New("its first process ended")
	}
	if err == nil {
		n.fd, err = openProcess(string(number))
	}
	if err != nil {
		c.crew.kill(n.first)
		return nil, err
	}
	return n, nil
}

func openProcess(number string) (int, error) {
	pid, err := strconv.Atoi(number)
	if err != nil {
		return -1, err
	}
	return unix.PidfdOpen(pid, 0)
}

// equip starts containerd, and gives it the images.
func (c *Cluster) equip(ctx context.Context, h *host, n *realNode) error {
	containerd, err := exec.LookPath("containerd")
	if err != nil {
		return err
	}
	ctr, err := exec.LookPath("ctr")
	if err != nil {
		return err
	}
	if err := c.serveOn(h, n, "containerd", containerd, "--config="+c.fileOf(h, "containerd.toml")); err != nil {
		return err
	}
	client := func(name string, args ...string) error {
		args = append([]string{"--address=" + containerdSocket, "--namespace=k8s.io", "--connect-timeout=30s"}, args...)
		return c.crew.runs(&process{name: name + "-" + h.seat.name, in: n, apart: true}, ctr, args...)
	}
	// ctr waits for the socket, but not for the one who listens on it.
	err = poll(ctx, "containerd of "+h.seat.name, func() bool { return client("containerd-version", "version") == nil })
	if err != nil {
		return err
	}
	return client("images", "images", "import", "--snapshotter="+snapshotter, c.real.path(imagesFile))
}

func (c *Cluster) serveOn(h *host, n *realNode, name, program string, args ...string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &service{name: name, program: program, args: args, on: n}
	n.services = append(n.services, s)
	return c.run(h, s)
}

// switchOff ends all that runs on a real node at once, and leaves its disk. The
// caller holds host.power.
func (c *Cluster) switchOff(i int) error {
	h := c.hosts[i]
	n := c.realNode(i)
	if n == nil {
		return nil
	}
	c.kubeletsMu.Lock()
	if c.kubelets[i] != nil {
		c.crew.expect(c.kubelets[i])
		c.kubelets[i] = nil
	}
	c.kubeletsMu.Unlock()
	return c.cutPower(h, n)
}

// cutPower ends all processes of a host. The caller holds host.power.
func (c *Cluster) cutPower(h *host, n *realNode) error {
	h.mu.Lock()
	for _, s := range n.services {
		s.stopped = true
		c.crew.expect(s.process)
	}
	h.mu.Unlock()
	c.kubeletsMu.Lock()
	h.real = nil
	c.kubeletsMu.Unlock()
	c.crew.expect(n.first)
	defer unix.Close(n.fd)
	if err := unix.PidfdSendSignal(n.fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("switch %s off: %w", h.seat.name, err)
	}
	<-n.first.done
	return c.cgroups.remove(h.seat.name)
}

// hostFile is a file of ours for real node i.
func (c *Cluster) hostFile(i int, name string) string {
	return c.fileOf(c.hosts[i], name)
}

// fileOf is the same for any host.
func (c *Cluster) fileOf(h *host, name string) string {
	return filepath.Join(c.Dir, h.seat.name, name)
}
