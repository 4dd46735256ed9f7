//go:build linux

package devcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// service is a program of a host that is started again when it ends, as the
// whole of k3s is.
type service struct {
	name    string // etcd, kube-apiserver, ...
	program string // its path
	args    []string
	on      *realNode // nil: in the host's network, and otherwise here
	process *process
	stopped bool // guarded by host.mu
}

// startHosts founds the cluster on the hosts that are not spare.
func (c *Cluster) startHosts(ctx context.Context) error {
	founders := c.hosts[:len(c.hosts)-c.spare]
	var peers []string
	for _, h := range founders {
		peers = append(peers, h.seat.peer())
	}
	for _, h := range founders {
		h.mu.Lock()
		h.member = true
		err := c.serveEtcd(h, peers, "new")
		h.mu.Unlock()
		if err != nil {
			return err
		}
	}
	for _, h := range founders {
		if err := c.waitEtcd(ctx, h); err != nil {
			return err
		}
	}
	for _, h := range founders {
		if err := c.serveAPI(h); err != nil {
			return err
		}
	}
	for i, h := range founders {
		if err := c.waitAPI(ctx, h); err != nil {
			return err
		}
		if i == 0 {
			if err := c.defineCustoms(ctx); err != nil {
				return err
			}
		}
		if err := c.serveCompanions(h); err != nil {
			return err
		}
	}
	for _, h := range founders {
		read := func(path string) string { page, _ := c.page(ctx, h, h.seat.server()+path); return page }
		if err := describeCustoms(ctx, read); err != nil {
			return err
		}
	}
	c.keepMembers()
	return nil
}

// StartControlPlane starts the control plane of host i, unless it runs, and
// returns when its API server serves. A host without data, or whose member is
// out of etcd, joins the cluster first: etcd takes it as a learner and then lets
// it vote, which needs a quorum and, soon after another has joined, some seconds.
// On loopback all nodes have one control plane, which runs.
func (c *Cluster) StartControlPlane(ctx context.Context, i int) error {
	if c.hosts == nil {
		return nil
	}
	h := c.hosts[i]
	if err := c.bringBack(ctx, h); err != nil {
		c.StopControlPlane(i)
		return fmt.Errorf("start the control plane of %s: %w", h.seat.name, err)
	}
	return nil
}

func (c *Cluster) bringBack(ctx context.Context, h *host) error {
	h.mu.Lock()
	running, joins := len(h.services) > 0, !h.member || h.removed
	h.mu.Unlock()
	if running {
		return nil
	}
	start := c.restartEtcd
	if joins {
		start = c.joinEtcd
	}
	if err := start(ctx, h); err != nil {
		return err
	}
	if err := c.serveAPI(h); err != nil {
		return err
	}
	if err := c.waitAPI(ctx, h); err != nil {
		return err
	}
	if err := c.serveCompanions(h); err != nil {
		return err
	}
	return c.waitVirtAPI(ctx, h)
}

// StopControlPlane kills the control plane of host i, if it runs, and leaves
// its data. The kubelet goes on. On loopback nothing happens: the others need it.
func (c *Cluster) StopControlPlane(i int) {
	if c.hosts == nil {
		return
	}
	h := c.hosts[i]
	h.mu.Lock()
	defer h.mu.Unlock()
	c.stopServices(h)
}

// stopServices is called with h.mu held, as all below that take a host and no
// context.
func (c *Cluster) stopServices(h *host) {
	for _, s := range h.services {
		s.stopped = true
		c.crew.kill(s.process)
	}
	h.services = nil
}

// serveEtcd starts the member of a host; state is "new" or "existing".
func (c *Cluster) serveEtcd(h *host, peers []string, state string) error {
	return c.serve(h, "etcd", c.etcdArgs(h.seat,
		"--initial-cluster="+strings.Join(peers, ","),
		"--initial-cluster-state="+state,
	))
}

func (c *Cluster) serveAPI(h *host) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return c.serve(h, "kube-apiserver", c.apiserverArgs(h.seat))
}

func (c *Cluster) serveCompanions(h *host) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return errors.Join(
		c.serve(h, "kube-controller-manager", c.kcmArgs(h.seat)),
		c.serve(h, "kube-scheduler", c.schedulerArgs(h.seat)),
		c.serveKubeVirt(h),
	)
}

func (c *Cluster) serve(h *host, name string, args []string) error {
	return c.serveProgram(h, name, cmp.Or(h.programs[name], c.bin.path("devkube")), args)
}

func (c *Cluster) serveProgram(h *host, name, program string, args []string) error {
	s := &service{name: name, program: program, args: args}
	h.services = append(h.services, s)
	return c.run(h, s)
}

func (c *Cluster) run(h *host, s *service) error {
	s.process = &process{name: s.name + "-" + h.seat.name, in: h.space, failed: func(err error) { c.again(h, s, err) }}
	if s.on != nil {
		s.process.in, s.process.apart = s.on, true
	}
	return c.crew.launch(s.process, s.program, s.args...)
}

// again starts a service that has ended, a little later. The end of a member
// that is out of etcd ends its host.
func (c *Cluster) again(h *host, s *service, why error) {
	c.crew.failed(why)
	if !c.crew.pause(time.Second) {
		return
	}
	h.mu.Lock()
	out := h.removed && s.name == "etcd"
	switch {
	case s.stopped:
	case out:
		c.stopServices(h)
	default:
		if err := c.run(h, s); err != nil {
			fmt.Fprintln(c.log, "devcluster:", err)
		}
	}
	h.mu.Unlock()
	if out {
		c.StopKubelet(c.indexOf(h))
	}
}

func (c *Cluster) indexOf(h *host) int {
	for i := range c.hosts {
		if c.hosts[i] == h {
			return i
		}
	}
	return -1
}

// againKubelet starts the kubelet of a node that has ended as p, as one does that
// starts while its API server does not answer: once that answers.
func (c *Cluster) againKubelet(i int, p *process, why error) {
	c.crew.failed(why)
	for c.crew.pause(time.Second) {
		err := c.startAgain(i, p)
		if err == nil {
			return
		}
		fmt.Fprintln(c.log, "devcluster:", err)
	}
}

// startAgain starts the kubelet of node i, if it is still the one that has ended as p.
func (c *Cluster) startAgain(i int, p *process) error {
	c.kubeletsMu.Lock()
	defer c.kubeletsMu.Unlock()
	if c.kubelets[i] != p {
		return nil
	}
	return c.runKubelet(i)
}
