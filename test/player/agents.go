package player

import (
	"cmp"
	"context"
	"net"
	"time"

	"github.com/zedkube/zedkube/types"
)

// TakeAddress makes the cluster interface lose its address, whatever zedkube
// asks for, until GiveAddress.
func (d *Device) TakeAddress() { d.bare.Store(true) }

// GiveAddress ends TakeAddress.
func (d *Device) GiveAddress() { d.bare.Store(false) }

// nim gives the cluster interface its address once zedkube's status asks for
// it, and not before (docs/wire.md, "Consumers").
func (d *Device) nim() error {
	port := types.NetworkPortStatus{
		IfName: cmp.Or(d.Port, "eth0"), Logicallabel: d.ClusterInterface, IsL3Port: true,
		AddrInfoList: []types.AddrInfo{{Addr: net.IPv4(192, 0, 2, 10), Mask: net.CIDRMask(24, 32)}},
	}
	status, asked := d.clusterStatus.Get(types.Global)
	if asked && !d.bare.Load() && status.ClusterInterface == port.IfName && status.ClusterIPPrefix != nil {
		port.ClusterIPAddr = status.ClusterIPPrefix.IP.String()
		d.sayOnce("nim", port.IfName+" has the cluster address "+port.ClusterIPAddr)
	}
	return d.network.Publish(types.Global, types.DeviceNetworkStatus{Ports: []types.NetworkPortStatus{port}})
}

// nodeagent tells zedagent whether a drain that zedagent asked for is going on:
// from REQUESTED on, the failed states included, until COMPLETE. Nothing else
// takes its word back (docs/wire.md, "nodeagent").
func (d *Device) nodeagent(status types.NodeDrainStatus) {
	switch {
	case status.RequestedBy != types.DrainRequesterDeviceOp:
	case status.Status == types.DrainComplete:
		d.waitsForDrain = false
	case status.Status >= types.DrainRequested:
		d.waitsForDrain = true
	}
}

// zedagent carries out a reboot command: at once, or after a drain. It acts
// when nodeagent's word falls from true to false. A failure counts when it is
// new: its request is withdrawn then, and the operation stays deferred until
// there is another command.
func (d *Device) zedagent(ctx context.Context) error {
	waited := d.waitsForDrain
	status, _ := d.drainStatus.Get(types.Global)
	news := status != d.heard
	d.heard = status
	d.nodeagent(status)
	if news && status.RequestedBy == types.DrainRequesterDeviceOp && failed(status.Status) {
		d.say("zedagent", "the drain ended in "+status.Status.String()+": the request is withdrawn")
		return d.drainRequest.Unpublish(types.Global)
	}
	if waited && !d.waitsForDrain && d.deferred {
		d.deferred = false
		d.say("zedagent", "drain "+status.Status.String()+": the deferred reboot goes ahead")
		return d.reboot(ctx)
	}
	if !d.commanded {
		return nil
	}
	d.commanded = false
	switch status.Status {
	case types.DrainNotRequested, types.DrainFailedCordon, types.DrainFailedDrain:
		d.deferred = true
		d.say("zedagent", "reboot command deferred: drain requested (was "+status.Status.String()+")")
		return d.drainRequest.Publish(types.Global, types.NodeDrainRequest{
			RequestedAt: time.Now(), RequestedBy: types.DrainRequesterDeviceOp, Context: "reboot",
		})
	case types.DrainRequested, types.DrainStarting, types.DrainRetrying:
		d.deferred = true
		d.say("zedagent", "reboot command deferred: drain is "+status.Status.String())
		return nil
	default:
		d.say("zedagent", "reboot command carried out at once: drain is "+status.Status.String())
		return d.reboot(ctx)
	}
}

func failed(s types.DrainStatus) bool {
	return s == types.DrainFailedCordon || s == types.DrainFailedDrain
}

// kubeInit plays the kube container: the bootstrap node starts k3s as soon as
// its cluster address is ready; the others first wait for the join server.
func (d *Device) kubeInit(ctx context.Context) error {
	status, ok := d.clusterStatus.Get(types.Global)
	if d.joined || !ok || !status.ClusterIPIsReady {
		return nil
	}
	if status.BootstrapNode {
		d.sayOnce("kube-init", "starts the cluster as its bootstrap node")
	} else if may, err := d.mayJoin(ctx); !may {
		return err
	}
	if err := d.startK3s(ctx); err != nil {
		return err
	}
	d.joined = true
	return nil
}
