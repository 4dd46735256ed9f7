package player

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/eveapi"
	"github.com/zedkube/zedkube/types"
)

// clusterPort is the logical label of every device's cluster interface.
const clusterPort = "cluster-port"

// Fleet is one device for each node of a devcluster, with the first as the
// cluster's bootstrap node.
type Fleet struct {
	Cluster   *devcluster.Cluster
	ClusterID uuid.UUID
	Members   []*Member

	controller controller
	stop       context.CancelFunc
	watching   sync.WaitGroup
}

// Member is one device of a fleet and what is seen of it.
type Member struct {
	*Device
	Name  string // of the Kubernetes node
	IP    net.IP
	Watch *Watch
	log   *os.File
}

// FleetOptions say how to make a Fleet.
type FleetOptions struct {
	Dir     string   // each device gets a folder in it, named like its node
	Program []string // the zedkube program and its first arguments
	Say     func(device, agent, text string)
	Apps    func(i int) []types.AppInstanceConfig // what the controller tells device i

	Port    string               // of the cluster's network on each device; "" for eth0
	Args    func(i int) []string // more arguments of the program on device i
	Watched bool                 // as on Device
}

// NewFleet prepares the devices, still switched off, and starts to watch them.
// The nodes lose their roles until their devices join.
func NewFleet(ctx context.Context, cluster *devcluster.Cluster, o FleetOptions) (*Fleet, error) {
	ctx, stop := context.WithCancel(ctx)
	f := &Fleet{Cluster: cluster, ClusterID: uuid.New(), stop: stop}
	if err := f.fill(ctx, o); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// fill adds the members and writes what the controller sends each of them.
func (f *Fleet) fill(ctx context.Context, o FleetOptions) error {
	var err error
	if f.controller, err = newController(); err != nil {
		return err
	}
	apps := make([][]types.AppInstanceConfig, len(f.Cluster.Nodes))
	for i := range f.Cluster.Nodes {
		if err := f.add(ctx, i, o); err != nil {
			return err
		}
		if o.Apps != nil {
			apps[i] = o.Apps(i)
		}
	}
	for i, m := range f.Members {
		document, err := f.template(i, apps)
		if err != nil {
			return err
		}
		if err := m.Send(func(d *eveapi.Document) error { *d = document; return nil }); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fleet) add(ctx context.Context, i int, o FleetOptions) error {
	node := f.Cluster.Nodes[i]
	kube := ClusterNode{Cluster: f.Cluster, Index: i}
	if err := kube.Forget(ctx); err != nil {
		return err
	}
	apiPort, err := kube.apiPort()
	if err != nil {
		return err
	}
	m := &Member{Name: node.Name, IP: net.ParseIP(node.IP)}
	root := filepath.Join(o.Dir, node.Name)
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	if m.log, err = os.OpenFile(filepath.Join(root, "zedkube.log"), os.O_CREATE|os.O_TRUNC|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
		return err
	}
	m.Device = &Device{
		Root: root, Program: append(f.Cluster.HostCommand(i), o.Program...), Log: m.log, Say: o.Say,
		Info:             types.EdgeNodeInfo{DeviceName: node.DeviceName, DeviceID: uuid.MustParse(node.UUID)},
		ClusterInterface: clusterPort, Port: o.Port, Watched: o.Watched,
		APIPort: apiPort,
		Kube:    kube,
	}
	if o.Args != nil {
		m.Args = o.Args(i)
	}
	if err := m.introduce(f.controller.pair.controllerCert()); err != nil {
		return err
	}
	f.Members = append(f.Members, m)
	if m.Watch, err = NewWatch(root); err != nil {
		return err
	}
	f.watching.Go(func() { m.Watch.Run(ctx) })
	return nil
}

// config is what the controller tells device i about the cluster.
func (f *Fleet) config(i int) types.EdgeNodeClusterConfig {
	return types.EdgeNodeClusterConfig{
		Initialized: true, Valid: true,
		ClusterName:      "devcluster",
		ClusterID:        types.UUIDandVersion{UUID: f.ClusterID},
		ClusterInterface: clusterPort,
		ClusterIPPrefix:  &net.IPNet{IP: net.ParseIP(f.Cluster.Nodes[i].IP), Mask: net.CIDRMask(24, 32)},
		JoinServerIP:     net.ParseIP(f.Cluster.Nodes[0].IP),
		BootstrapNode:    i == 0,
		ClusterType:      types.ClusterTypeReplicatedStorage,
		MasterNodeIDs:    f.IDs(),
	}
}

// PowerOff switches every device off and leaves their files.
func (f *Fleet) PowerOff() {
	var off sync.WaitGroup
	for _, m := range f.Members {
		off.Go(m.Device.PowerOff)
	}
	off.Wait()
}

// Close ends the fleet; the control plane is its owner's to stop.
func (f *Fleet) Close() error {
	f.PowerOff()
	f.stop()
	f.watching.Wait()
	var errs []error
	for _, m := range f.Members {
		errs = append(errs, m.log.Close())
	}
	return errors.Join(errs...)
}

// Reporter is the one member that says that it reports for the cluster; it is
// nil while none or several do.
func (f *Fleet) Reporter() *Member {
	var reporter *Member
	for _, m := range f.Members {
		info, _ := m.Watch.Leader.Get(types.Global)
		switch {
		case info.IsStatsLeader && reporter != nil:
			return nil
		case info.IsStatsLeader:
			reporter = m
		}
	}
	return reporter
}

// RotateCA gives the API server of the member's node another authority, as a
// cluster that was made anew has it, and the device the kubeconfigs for it.
func (m *Member) RotateCA() error {
	kube := m.Kube.(ClusterNode)
	if err := kube.Cluster.RotateCA(kube.Index); err != nil {
		return err
	}
	return m.PutKubeconfigs(kube.Cluster.NodeKubeconfig(kube.Index))
}

// TopicDir is where the member's zedkube keeps the files of a topic.
func (m *Member) TopicDir(topic string) string {
	return filepath.Join(m.Root, "run/zedkube", topic)
}
