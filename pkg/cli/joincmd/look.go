package joincmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/zedkube/zedkube/pkg/base/clusterauth"
	"github.com/zedkube/zedkube/pkg/base/reach"
	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/operate/joinplan"
	"github.com/zedkube/zedkube/types"
)

type joinLook struct {
	paths device.Paths
	flags joinFlags
	given joinGiven

	status *types.EdgeNodeClusterStatus
	config *types.EdgeNodeClusterConfig
	kube   *types.KubeInitStatus
	server netip.Addr // to join through; zero for unknown
	facts  joinplan.Facts
}

// lookAtJoin asks all that can be asked, and changes nothing.
func lookAtJoin(ctx context.Context, p device.Paths, f joinFlags, given joinGiven) (facts joinplan.Facts, title string) {
	l := &joinLook{paths: p, flags: f, given: given}
	l.facts.Now = time.Now().UTC()
	l.files()
	l.askAPI(ctx)
	l.chooseRole()
	l.kernel(ctx)
	l.kubernetes()
	l.askPeers(ctx)
	return l.facts, l.facts.Own.Title
}

// files reads what this device knows of itself. What it lacks is in the plan.
func (l *joinLook) files() {
	o := &l.facts.Own
	o.Version = l.paths.Version
	if info, _, err := device.ReadRecord[types.EdgeNodeInfo](l.paths.TopicFile("zedagent", "EdgeNodeInfo")); err == nil {
		o.Node, o.Device = info.NodeName(), info.DeviceID
	}
	o.Node = cmp.Or(l.flags.node, o.Node)
	if s, _, err := device.ReadRecord[types.EdgeNodeClusterStatus](l.paths.TopicFile(device.Self, "EdgeNodeClusterStatus")); err == nil {
		l.status, o.HasStatus = &s, true
	}
	if c, _, err := device.ReadRecord[types.EdgeNodeClusterConfig](l.paths.TopicFile("zedagent", "EdgeNodeClusterConfig")); err == nil && c.Initialized && c.Valid {
		l.config = &c
	}
	if k, _, err := device.ReadRecord[types.KubeInitStatus](l.paths.TopicFile("kube-init", "KubeInitStatus")); err == nil {
		l.kube = &k
	}
	if n, _, err := device.ReadRecord[types.DeviceNetworkStatus](l.paths.TopicFile("nim", "DeviceNetworkStatus")); err == nil {
		o.Ports = append([]types.NetworkPortStatus{}, n.Ports...)
	}
	l.configured()
}

// configured fills in what the configuration says, what zedkube made of it, and
// over both what the command line says.
func (l *joinLook) configured() {
	o := &l.facts.Own
	var server net.IP
	var prefix *net.IPNet
	if c := l.config; c != nil {
		o.Worker, o.Bootstrap, o.Masters = c.IsWorkerNode, c.BootstrapNode, c.MasterNodeIDs
		o.Cluster, o.Title, o.Label = c.ClusterID.UUID, c.ClusterName, c.ClusterInterface
		server, prefix = c.JoinServerIP, c.ClusterIPPrefix
	}
	if s := l.status; s != nil {
		o.Worker, o.Bootstrap, o.Interface, o.Ready = s.IsWorkerNode, s.BootstrapNode, s.ClusterInterface, s.ClusterIPIsReady
		o.Cluster, o.Title = s.ClusterID.UUID, cmp.Or(s.ClusterName, o.Title)
		server, prefix = s.JoinServerIP, s.ClusterIPPrefix
		if s.EncryptedClusterToken == "" {
			o.NoToken = cmp.Or(s.Error.Error, "it has not been decrypted yet.")
		}
	}
	if prefix != nil {
		if ip, ok := netip.AddrFromSlice(prefix.IP); ok {
			o.Address = ip.Unmap()
			ones, _ := prefix.Mask.Size()
			o.Network = netip.PrefixFrom(o.Address, ones)
		}
	}
	if l.given.address.IsValid() {
		o.Address = l.given.address
	}
	if l.given.cluster != uuid.Nil {
		o.Cluster, o.Title = l.given.cluster, ""
	}
	if ip, ok := netip.AddrFromSlice(server); ok && !ip.IsUnspecified() {
		l.server = ip.Unmap()
	}
	if l.given.server.IsValid() {
		l.server, o.Bootstrap = l.given.server, false
	}
}

// askAPI lists the Nodes, if there is a kubeconfig that works.
func (l *joinLook) askAPI(ctx context.Context) {
	if _, err := os.Stat(l.paths.Kubeconfig); errors.Is(err, fs.ErrNotExist) {
		l.facts.NoNodes = "there is no kubeconfig on this device."
		return
	}
	nodes, err := device.FreshNodes(ctx, l.paths)
	if err != nil {
		l.facts.NoNodes = "the API server cannot be queried: " + err.Error()
		return
	}
	device.JudgeStamps(ctx, l.paths, nodes)
	l.facts.Nodes = append([]types.Node{}, nodes...) // not nil
}

// chooseRole says on which side this device is. The kubeconfig of a device that
// is still on its own leads to a cluster of its own: what that tells is nothing
// about the one to join.
func (l *joinLook) chooseRole() {
	f := &l.facts
	own, isNode := device.OwnNode(f.Nodes, types.EdgeNodeInfo{DeviceName: f.Own.Node, DeviceID: f.Own.Device})
	same := slices.ContainsFunc(f.Nodes, func(n types.Node) bool {
		ip, err := netip.ParseAddr(n.InternalIP)
		return err == nil && ip.Unmap() == l.server.WithZone("")
	})
	f.Role = joinplan.Candidate
	asked := l.flags.server != "" || l.flags.address != "" || l.flags.node != "" || l.flags.cluster != ""
	switch {
	case l.given.candidate.IsValid():
		f.Role = joinplan.Member
	case asked:
	case f.Own.Bootstrap, l.kube != nil && l.kube.Membership == types.KubeMembershipMember:
		f.Role = joinplan.Member
	case l.kube != nil && l.kube.Membership != "" && l.kube.Membership != types.KubeMembershipUnknown:
	case isNode == nil && same:
		f.Role = joinplan.Member
	}
	if isNode == nil {
		f.Own.Kubernetes, f.Own.KubernetesFrom = own.KubeletVersion, "its own kubelet"
	}
	if f.Role == joinplan.Candidate && f.Nodes != nil && !same {
		f.Nodes, f.NoNodes = nil, "the kubeconfig of this device points to a cluster that does not contain the member to join through."
	}
}

func (l *joinLook) kernel(ctx context.Context) {
	o := &l.facts.Own
	interfaces, err := net.Interfaces()
	if err != nil {
		return
	}
	o.Kernel = []joinplan.Interface{}
	for _, i := range interfaces {
		addresses, err := i.Addrs()
		if err != nil {
			continue // it has gone meanwhile
		}
		for _, a := range addresses {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil {
				o.Kernel = append(o.Kernel, joinplan.Interface{Name: i.Name, Prefix: prefix})
			}
		}
	}
	// All of loopback is this machine, listed or not.
	if o.Address.IsLoopback() && binds(ctx, o.Address) {
		o.Kernel = append(o.Kernel, joinplan.Interface{Name: cmp.Or(o.Interface, "lo"), Prefix: netip.PrefixFrom(o.Address, o.Address.BitLen())})
	}
}

// binds reports whether an address is this device's.
func binds(ctx context.Context, ip netip.Addr) bool {
	if !ip.IsValid() {
		return false
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", netip.AddrPortFrom(ip, 0).String())
	if err != nil {
		return false
	}
	_ = listener.Close()
	return true
}

// kubernetes finds out which version is to run on the candidate.
func (l *joinLook) kubernetes() {
	o := &l.facts.Own
	if l.facts.Role == joinplan.Member {
		o.Kubernetes, o.KubernetesFrom = l.flags.kubernetes, "--kubernetes"
		return
	}
	wanted, _, err := device.ReadRecord[types.KubeConfig](l.paths.PersistentFile(device.Self, "KubeConfig"))
	initial, _ := safefile.Read(l.paths.In("/persist/kubelog/initial_k3s_version"), safefile.Small)
	initial, _, _ = bytes.Cut(bytes.TrimSpace(initial[:min(len(initial), 100)]), []byte("\n"))
	switch {
	case l.flags.kubernetes != "":
		o.Kubernetes, o.KubernetesFrom = l.flags.kubernetes, "--kubernetes"
	case err == nil && wanted.K3sVersion != "":
		o.Kubernetes, o.KubernetesFrom = wanted.K3sVersion, "KubeConfig"
	case o.Kubernetes != "":
	case len(initial) > 0:
		o.Kubernetes, o.KubernetesFrom = string(initial), "initial_k3s_version"
	}
}

const (
	// furtherPeers bounds the members that are asked beside the one to join
	// through: etcd has seven at most.
	furtherPeers = 6
	// listenWithin bounds how long this device listens in place of services. It
	// is never reached: two rounds of questions take a third of it, and twice
	// that where members say to come again.
	listenWithin = 45 * time.Second
)

// askPeers asks the other side, while this device listens where k3s will.
func (l *joinLook) askPeers(ctx context.Context) {
	first := l.server
	if l.facts.Role == joinplan.Member {
		first = l.given.candidate
	}
	if !first.IsValid() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, listenWithin)
	defer cancel()
	ears := l.listen(ctx)
	defer ears.Close()
	q := newInquirer(l.facts.Own, l.peer, l.flags.apiPort, ears)
	_ = q.knows.Memory.Read(l.paths.In(clusterauth.MemoryFile), time.Now()) // what the agent has seen
	token := l.given.token
	if token == "" && l.status != nil {
		token = tokenFor(l.facts.Own.Cluster, *l.status)
	}
	q.take(l.facts.Own.Cluster, token)
	if l.given.token == "" {
		q.knows.Keys.AskAgent(ctx, l.paths.Socket, q.patience)
	}
	l.facts.Peers = []joinplan.Peer{q.ask(ctx, first)}
	others := l.others(first)
	found := make([]joinplan.Peer, len(others))
	var asking errgroup.Group
	for i, ip := range others {
		asking.Go(func() error {
			found[i] = q.ask(ctx, ip)
			return nil // what failed is in it
		})
	}
	_ = asking.Wait()
	l.facts.Peers = append(l.facts.Peers, found...)
}

// peer is what the Node at an address says of its status server, where it is known.
func (l *joinLook) peer(ip netip.Addr) clusterauth.Peer {
	var there []types.Node
	for _, n := range l.facts.Nodes {
		if is, err := netip.ParseAddr(n.InternalIP); err == nil && is.Unmap().WithZone("") == ip {
			there = append(there, n)
		}
	}
	return clusterauth.PeerOf(there...)
}

// listen opens the ports that a candidate will serve.
func (l *joinLook) listen(ctx context.Context) *reach.Listeners {
	o := &l.facts.Own
	starts := l.kube != nil && l.kube.Membership == types.KubeMembershipJoining
	switch {
	case l.flags.noListen:
		o.Silent = "--no-listen."
	case starts:
		o.Silent = "k3s is being started here, and needs these ports itself."
	case !binds(ctx, o.Address):
		o.Silent = "this device does not have its address in the cluster's network yet."
	default:
		ears := reach.Listen(ctx, o.Address, reach.Ports())
		o.Closed = map[int]string{}
		for port, err := range ears.Failed {
			if o.Closed[port] = ""; !errors.Is(err, reach.ErrServed) {
				o.Closed[port] = "nothing could listen there, " + err.Error() + "."
			}
		}
		return ears
	}
	return reach.Listen(ctx, o.Address, nil)
}

// others are the further members of etcd: a new one talks to each of them. Only
// addresses in the own network are taken from what a member says.
func (l *joinLook) others(first netip.Addr) []netip.Addr {
	if l.facts.Role == joinplan.Member || l.facts.Own.Worker || !l.facts.Own.Network.IsValid() {
		return nil
	}
	var said []string
	if r := l.facts.Peers[0].Reach; r != nil && r.Cluster != nil {
		said = r.Cluster.Addresses
	}
	if l.facts.Nodes != nil {
		said = types.ReachClusterOf(l.facts.Nodes).Addresses
	}
	var out []netip.Addr
	for _, text := range said {
		ip, err := netip.ParseAddr(text)
		ip = ip.Unmap()
		known := slices.Contains(out, ip) || ip == first.WithZone("") || ip == l.facts.Own.Address.WithZone("")
		if err == nil && !known && l.facts.Own.Network.Contains(ip) && len(out) < furtherPeers {
			out = append(out, ip)
		}
	}
	return out
}
