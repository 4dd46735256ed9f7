//go:build linux

// Package devcluster is a real Kubernetes control plane for tests, the demo and
// benchmarks: etcd, kube-apiserver, kube-controller-manager and kube-scheduler
// as processes, and nodes whose kubelets kwok plays. Pods are really scheduled,
// run, stop and honour disruption budgets; they have no containers. Virtual
// machines and Longhorn volumes are objects whose status follows the same nodes; with
// Options.KubeVirt the virtual machines are those of the real KubeVirt, but for
// virt-handler, which is played.
//
// Every node has an API server's address of its own, where Fault says what it
// meets, and a kubelet of its own, whose death takes all of the node along.
//
// With Options.Hosts every node is a machine of its own instead: a network
// namespace on a switch, with an etcd member and a whole control plane. There
// addresses, cuts and quorums are real, and faults are not to be had. With
// Options.Real such a machine has processes and mounts of its own too, and a real
// kubelet, containerd and containers.
//
// It needs Linux, the go command, no root (but for hosts) and nothing but
// loopback. Every
// instance has its own block of 127/8, so several live side by side although
// programs on their nodes listen on the same ports. When the process that
// started an instance ends, however it ends, the instance and its files go too.
package devcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
)

// AppNamespace is where the applications run.
const AppNamespace = "eve-kube-app"

// Cluster is a running control plane with its nodes. Its methods may be called
// from several goroutines, except that Stop comes last.
type Cluster struct {
	Nodes []Node // never changes
	Dir   string // certificates, kubeconfigs and a log per process

	log     io.Writer
	source  string
	audit   bool
	seed    uint64
	bin     binaries
	virt    binaries // "" without KubeVirt
	real    binaries // "" where kubelets are played
	edge    binaries // "" without edge hosts
	block   block
	crew    *crew
	ca      *authority
	rest    *rest.Config
	dialer  *connrotation.Dialer // of our own clients, on loopback
	client  kubernetes.Interface
	dynamic dynamic.Interface
	proxies []*proxy
	servers []server // on loopback, in the order of their start

	hosts []*host // one for each node; nil on loopback
	wire  *wire
	spare int
	edges []*edgeHost

	crowd                 bool
	crowdNodes, crowdPods int // so many are there; AddCrowd's alone

	cgroups    *cgroups // of real nodes
	logMaxSize string

	forbidden sync.Map // by Forbid: [2]string{verb, resource}

	unfollow func() // ends followLaunchers; nil before
	unkeep   func() // ends keepMembers; nil before

	nodeProgramsMu sync.Mutex
	nodePrograms   binaries // "" before they were wanted

	kubeletsMu sync.Mutex
	kubelets   []*process   // nil: stopped
	answers    []*answering // of them; nil without Options.Answers
	bootIDs    []string     // what they report
}

// Start builds what is not built yet, starts a cluster and returns when its
// nodes are ready and take pods. ctx bounds the start only; Stop ends the
// cluster. After an error nothing is left.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	if err := opts.complete(); err != nil {
		return nil, fmt.Errorf("start the cluster: %w", err)
	}
	var bin, virt, nodes, kubelet, edge string
	for _, b := range []struct {
		bundle bundle
		wanted bool
		dir    *string
	}{{baseBundle, true, &bin}, {kubevirtBundle, opts.KubeVirt, &virt}, {realBundle, opts.Real, &nodes}, {nodeBundle, opts.Real, &kubelet}, {edgeBundle, opts.Edge > 0, &edge}} {
		if !b.wanted {
			continue
		}
		var err error
		if *b.dir, err = b.bundle.build(ctx, opts.Source, opts.Log); err != nil {
			return nil, err
		}
	}
	ctx, failed := context.WithCancelCause(ctx)
	defer failed(nil)
	c, err := newCluster(opts, failed)
	if err != nil {
		return nil, err
	}
	c.bin, c.virt, c.real, c.nodePrograms, c.edge = binaries(bin), binaries(virt), binaries(nodes), binaries(kubelet), binaries(edge)
	if err := c.bringUp(ctx, opts.Release); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// newCluster takes what an instance needs: addresses, a directory and the
// reaper that gives them back.
func newCluster(opts Options, failed func(error)) (*Cluster, error) {
	c := &Cluster{
		log: opts.Log, source: opts.Source, audit: opts.Audit, seed: opts.Seed, spare: opts.Spare, crowd: opts.Crowd, kubelets: make([]*process, opts.Nodes),
		dialer: connrotation.NewDialer((&net.Dialer{}).DialContext), cgroups: &cgroups{}, logMaxSize: opts.LogMaxSize,
	}
	if opts.Answers {
		c.answers = make([]*answering, opts.Nodes)
	}
	var err error
	if opts.Real {
		if c.cgroups, err = newCgroups("/proc/self/mountinfo"); err != nil {
			return nil, err
		}
	}
	if opts.Hosts {
		err = c.takeHosts(opts.Nodes, opts.Wire, opts.Real)
		if err == nil {
			err = c.takeEdges(opts.Edge)
		}
	} else {
		err = c.takeBlock(opts.Nodes)
	}
	if err != nil {
		return nil, err
	}
	if c.block.marker != nil {
		defer c.block.marker.Close() // the reaper has its own
	}
	for _, n := range c.Nodes {
		c.bootIDs = append(c.bootIDs, n.BootID)
	}
	if c.Dir, err = makeDir(opts.Dir); err != nil {
		return nil, errors.Join(err, c.dropHosts())
	}
	c.crew, err = newCrew(c.Dir, c.cgroups.dirs, c.block.marker, func(err error) {
		fmt.Fprintln(opts.Log, "devcluster:", err)
		failed(err)
	})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(c.Dir), c.dropHosts())
	}
	return c, nil
}

// makeDir makes the directory of an instance. One that exists must be empty,
// for it will be removed.
func makeDir(dir string) (string, error) {
	var err error
	if dir == "" {
		dir, err = os.MkdirTemp("", "devcluster-")
	} else if dir, err = filepath.Abs(dir); err == nil {
		if err = os.Remove(dir); errors.Is(err, os.ErrNotExist) {
			err = os.MkdirAll(filepath.Dir(dir), 0o755)
		}
		if err == nil {
			err = os.Mkdir(dir, 0o700)
		}
	}
	if err != nil {
		return "", fmt.Errorf("make the cluster's directory: %w", err)
	}
	return dir, nil
}

func (c *Cluster) bringUp(ctx context.Context, release Release) error {
	begin := time.Now()
	if err := c.writeCredentials(); err != nil {
		return err
	}
	for i := range c.hosts {
		if err := c.UseRelease(ctx, i, release); err != nil {
			return err
		}
	}
	if err := c.startServers(ctx); err != nil {
		return err
	}
	if err := c.startNodes(ctx); err != nil {
		return err
	}
	if err := c.beginMachines(ctx); err != nil {
		return err
	}
	for i := range c.edges {
		if err := c.StartEdge(i); err != nil {
			return err
		}
	}
	fmt.Fprintf(c.log, "devcluster: %d nodes ready at %s after %s, files in %s\n",
		len(c.Nodes)-c.spare, c.server(), time.Since(begin).Round(100*time.Millisecond), c.Dir)
	return nil
}

func (c *Cluster) startServers(ctx context.Context) error {
	if c.hosts != nil {
		return c.startHosts(ctx)
	}
	if err := c.startControlPlane(ctx); err != nil {
		return err
	}
	return c.openProxies()
}

// Stop kills the cluster and removes its directory. It may be called again.
func (c *Cluster) Stop() error {
	if c.unfollow != nil {
		c.unfollow()
	}
	for _, p := range c.proxies {
		p.close()
	}
	c.kubeletsMu.Lock()
	for i := range c.answers {
		c.stopAnswering(i)
	}
	c.kubeletsMu.Unlock()
	if c.unkeep != nil {
		c.unkeep()
	}
	defer c.dialer.CloseAll()
	return errors.Join(c.crew.stop(), c.dropHosts())
}

// RESTConfig returns a client configuration for the administrator, past the
// fault proxies. The caller owns it.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.rest) }

// Client returns an administrator's client, past the fault proxies.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// syncWriter lets several goroutines write whole lines.
type syncWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *syncWriter) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(b)
}
