//go:build linux

package devcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The programs of KubeEdge, what leads Services where there are edge hosts, and what kubectl top asks.
const (
	cloudcoreProgram = "cloudcore"
	edgecoreProgram  = "edgecore"
	proxyProgram     = "kube-proxy"
	metricsProgram   = "metrics-server"
)

// The module of metrics-server, with the manifest for everybody, and the image that this names.
const (
	metricsModule    = "sigs.k8s.io/metrics-server"
	metricsManifests = "manifests/base"
	metricsImage     = "gcr.io/k8s-staging-metrics-server/metrics-server:master"
)

// CloudcoreImage is in the archive that Cluster.CloudcoreArchive names.
const CloudcoreImage = "docker.io/kubeedge/cloudcore:v1.20.0"

// edgeVersion is that of KubeEdge.
const edgeVersion = " -X github.com/kubeedge/kubeedge/pkg/version.gitVersion=v1.20.0"

// edgeBundle is what Options.Edge needs beside real nodes.
var edgeBundle = bundle{
	"KubeEdge, kube-proxy and metrics-server",
	[]string{
		"kubeedge/go.mod", "kubeedge/go.sum", "kubeedge/cloudcore/main.go", "kubeedge/edgecore/main.go",
		"kubeproxy/go.mod", "kubeproxy/go.sum", "kubeproxy/main.go",
		"metricsserver/go.mod", "metricsserver/go.sum", "realimages.go",
	},
	[]program{
		{cloudcoreProgram, "kubeedge", "./cloudcore", plainFlags + edgeVersion, "", false},
		{edgecoreProgram, "kubeedge", "./edgecore", plainFlags + edgeVersion, "", true}, // its database is SQLite
		{proxyProgram, "kubeproxy", ".", kubeFlags, "", false},
		{metricsProgram, "metricsserver", metricsModule + "/cmd/metrics-server", plainFlags, "", false},
	},
	packEdge,
}

// packEdge makes images of what runs in pods, and takes the manifest of metrics-server out of its module.
func packEdge(ctx context.Context, source, into string) error {
	for name, image := range map[string]string{cloudcoreProgram: CloudcoreImage, metricsProgram: metricsImage} {
		if err := PackImage(filepath.Join(into, name), image, "", filepath.Join(into, name+".tar")); err != nil {
			return err
		}
	}
	module, err := goOutput(ctx, filepath.Join(source, "metricsserver"), "list", "-m", "-f", "{{.Dir}}", metricsModule)
	if err != nil {
		return fmt.Errorf("find the module of metrics-server: %w", err)
	}
	if err := os.CopyFS(filepath.Join(into, metricsManifests), os.DirFS(filepath.Join(module, metricsManifests))); err != nil {
		return fmt.Errorf("copy the manifest of metrics-server: %w", err)
	}
	return nil
}

// BuildEdge makes the programs of Options.Edge, which BuildAll leaves out.
func BuildEdge(ctx context.Context, source string, log io.Writer) error {
	_, err := edgeBundle.build(ctx, source, log)
	return err
}

// CanEdge says why Options.Edge cannot be had here; nil if it can.
func CanEdge() error {
	if _, err := exec.LookPath("iptables"); err != nil {
		return fmt.Errorf("edge hosts are behind routers, which need the package iptables: %w", err)
	}
	return CanRunPods()
}

// The addresses behind the router of an edge host are the same everywhere.
const (
	edgeAddress   = "192.168.1.10"
	routerAddress = "192.168.1.1"
)

// edgeHost is a host that has a containerd and no control plane, behind a router that
// lets nobody in: it is the router that has a cable to the switch.
type edgeHost struct {
	*host
	router *namespace
}

// takeEdges plugs in the routers, and makes the hosts behind them. Nodes get a default route,
// without which they reach no Service.
func (c *Cluster) takeEdges(count int) error {
	for _, h := range c.hosts {
		if count == 0 {
			break
		}
		if err := h.space.routeTo(ipv4(switchNumber)); err != nil {
			return errors.Join(fmt.Errorf("route from %s: %w", h.seat.name, err), c.dropHosts())
		}
	}
	for i := range count {
		router, number, err := c.wire.plug()
		if err != nil {
			return errors.Join(err, c.dropHosts())
		}
		e := &edgeHost{router: router, host: &host{number: number, seat: seat{name: "edge-" + strconv.Itoa(i+1)}}}
		c.edges = append(c.edges, e)
		if e.space, err = newNamespace(); err == nil {
			err = e.connect()
		}
		if err != nil {
			return errors.Join(fmt.Errorf("connect %s: %w", e.seat.name, err), c.dropHosts())
		}
	}
	return nil
}

// connect lays a cable from the router to the host.
func (e *edgeHost) connect() error {
	err := e.router.enter(func() error {
		links, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer links.Close()
		cable := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "lan"}, PeerName: "eth0", PeerNamespace: netlink.NsFd(e.space.file.Fd())}
		if err := errors.Join(links.LinkAdd(cable), give(links, "lan", routerAddress)); err != nil {
			return err
		}
		out, err := exec.Command("iptables", "-t", "nat", "-A", "POSTROUTING", "-o", "eth0", "-j", "MASQUERADE").CombinedOutput()
		if err != nil {
			return fmt.Errorf("masquerade: %w: %s", err, out)
		}
		return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644)
	})
	if err != nil {
		return err
	}
	err = e.space.enter(func() error {
		links, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer links.Close()
		return give(links, "eth0", edgeAddress)
	})
	return errors.Join(err, e.space.routeTo(routerAddress))
}

// routeTo sends what is for nobody nearby to a gateway.
func (n *namespace) routeTo(gateway string) error {
	return n.enter(func() error {
		links, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer links.Close()
		return links.RouteAdd(&netlink.Route{Gw: net.ParseIP(gateway)})
	})
}

// give gives a link one address and switches it on.
func give(links *netlink.Handle, name, ip string) error {
	link, err := links.LinkByName(name)
	if err != nil {
		return err
	}
	addr, err := netlink.ParseAddr(ip + "/24")
	if err != nil {
		return err
	}
	return errors.Join(links.AddrAdd(link, addr), links.LinkSetUp(link))
}

// furnishOwn gives an edge host directories of its own where a device has what it is
// given.
const furnishOwn = `set -e
own=$1
[ -d "$own/etc" ] || cp -a /etc "$own/etc"
mkdir -p "$own/local"
mount --bind "$own/etc" /etc
mount --bind "$own/local" /usr/local`

// StartEdge switches edge host i on, with an empty containerd and nothing of KubeEdge, or
// with what it had on its disk.
func (c *Cluster) StartEdge(i int) error {
	h := c.edges[i].host
	h.power.Lock()
	defer h.power.Unlock()
	c.kubeletsMu.Lock()
	on := h.real != nil
	c.kubeletsMu.Unlock()
	if on {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), switchedOn)
	defer cancel()
	files := map[string]string{"over" + bootIDFile: uuid.NewString() + "\n", "over/etc/machine-id": strings.ReplaceAll(uuid.NewString(), "-", "") + "\n"}
	if err := errors.Join(c.furnishHost(h, "127.0.0.1", files), c.cgroups.add(h.seat.name)); err != nil {
		return fmt.Errorf("furnish %s: %w", h.seat.name, err)
	}
	n, err := c.begin(ctx, h)
	if err != nil {
		return fmt.Errorf("switch %s on: %w", h.seat.name, err)
	}
	c.kubeletsMu.Lock()
	h.real = n
	c.kubeletsMu.Unlock()
	err = c.crew.runs(&process{name: "own-" + h.seat.name, in: n, apart: true}, "/bin/sh", "-c", furnishOwn, "own", c.fileOf(h, "disk"))
	if err == nil {
		err = c.equip(ctx, h, n)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("switch %s on: %w", h.seat.name, err), c.cutPower(h, n))
	}
	return nil
}

// StopEdge ends all that runs on edge host i at once, and leaves its disk.
func (c *Cluster) StopEdge(i int) error {
	h := c.edges[i].host
	h.power.Lock()
	defer h.power.Unlock()
	c.kubeletsMu.Lock()
	n := h.real
	c.kubeletsMu.Unlock()
	if n == nil {
		return nil
	}
	return c.cutPower(h, n)
}

// CutEdge unplugs the router of edge host i, and HealEdge plugs it in again.
func (c *Cluster) CutEdge(i int) error { return c.wire.switchPort(c.edges[i].number, false) }

// HealEdge is the end of CutEdge.
func (c *Cluster) HealEdge(i int) error { return c.wire.switchPort(c.edges[i].number, true) }

// EdgeCommand is what to put before a command so that it runs on edge host i, which is on.
func (c *Cluster) EdgeCommand(i int) ([]string, error) {
	pid, err := os.ReadFile(c.fileOf(c.edges[i].host, "ready"))
	if err != nil {
		return nil, err
	}
	return []string{enterProgram, "--target=" + string(pid), "--mount", "--uts", "--ipc", "--net", "--pid", "--"}, nil
}

// EdgeCgroup is the control group of edge host i, in which its pods have to be.
func (c *Cluster) EdgeCgroup(i int) string { return "/" + c.cgroups.name + "/" + c.edges[i].seat.name }

// EdgePath is where this machine has a file that edge host i has below /var.
func (c *Cluster) EdgePath(i int, path string) string {
	return c.fileOf(c.edges[i].host, filepath.Join("disk", path))
}

// Edgecore is the path of the program, and CloudcoreArchive that of cloudcore's image.
func (c *Cluster) Edgecore() string { return c.edge.path(edgecoreProgram) }

// CloudcoreArchive is as PackImage writes it.
func (c *Cluster) CloudcoreArchive() string { return c.edge.path(cloudcoreProgram + ".tar") }

// MetricsServer is the archive of its image, and the folder for kubectl apply -k.
func (c *Cluster) MetricsServer() (archive, manifests string) {
	return c.edge.path(metricsProgram + ".tar"), c.edge.path(metricsManifests)
}

// ImportImage gives an image to the containerd of real node i.
func (c *Cluster) ImportImage(i int, archive string) error {
	ctr, err := exec.LookPath("ctr")
	if err != nil {
		return err
	}
	p := &process{name: "import-" + c.Nodes[i].Name, in: c.realNode(i), apart: true}
	return c.crew.runs(p, ctr, "--address="+containerdSocket, "--namespace=k8s.io", "images", "import", "--snapshotter="+snapshotter, archive)
}

func (c *Cluster) proxyArgs(h *host) []string {
	return []string{
		"--kubeconfig=" + c.kubeconfigPath("admin"+h.seat.suffix),
		"--hostname-override=" + h.seat.name,
		"--proxy-mode=iptables",
		"--cluster-cidr=10.42.0.0/16",
		"--conntrack-max-per-core=0", // that is the machine's
		"--conntrack-min=0",
		"--metrics-bind-address=127.0.0.1:10249",
	}
}

// KubectlFrom is what to put before the arguments of a kubectl that runs on host i and asks
// the API server there.
func (c *Cluster) KubectlFrom(ctx context.Context, i int) ([]string, error) {
	devnode, err := c.devnode(ctx)
	return append(c.HostCommand(i), devnode, "kubectl", "--kubeconfig="+c.kubeconfigPath("admin"+c.hosts[i].seat.suffix)), err
}
