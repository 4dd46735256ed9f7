package player

import (
	"errors"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/eveapi"
	"github.com/zedkube/zedkube/types"
)

// topics are what the other agents of a device say and hear.
type topics struct {
	clusterConfig   pubsub.Writer[types.EdgeNodeClusterConfig]
	drainRequest    pubsub.Writer[types.NodeDrainRequest] // zedagent's
	updateRequest   pubsub.Writer[types.NodeDrainRequest] // baseosmgr's
	network         pubsub.Writer[types.DeviceNetworkStatus]
	apps            pubsub.Writer[types.AppInstanceConfig]
	settings        pubsub.Writer[types.ConfigItemValueMap]
	agent           pubsub.Writer[types.ZedAgentStatus]
	controllerCerts pubsub.Writer[types.ControllerCert]
	deviceCerts     pubsub.Writer[types.EdgeNodeCert]
	networks        pubsub.Writer[types.NetworkInstanceStatus]
	appNetworks     pubsub.Writer[types.AppNetworkStatus]
	adapters        pubsub.Writer[types.AssignableAdapters]
	clusterStatus   pubsub.Source[types.EdgeNodeClusterStatus]
	drainStatus     pubsub.Source[types.NodeDrainStatus]
}

// openTopics publishes what the other agents say at boot.
func (d *Device) openTopics() (*pubsub.Bus, chan struct{}, error) {
	d.sending.Lock()
	defer d.sending.Unlock()
	bus := pubsub.NewBus(d.Root, quiet())
	d.topics = topics{
		clusterConfig:   pubsub.NewPublication[types.EdgeNodeClusterConfig](bus, "zedagent"),
		drainRequest:    pubsub.NewPublication[types.NodeDrainRequest](bus, "zedagent"),
		updateRequest:   pubsub.NewPublication[types.NodeDrainRequest](bus, "baseosmgr"),
		network:         pubsub.NewPublication[types.DeviceNetworkStatus](bus, "nim"),
		apps:            pubsub.NewPublication[types.AppInstanceConfig](bus, "zedagent"),
		settings:        pubsub.NewPublication[types.ConfigItemValueMap](bus, "zedagent"),
		agent:           pubsub.NewPublication[types.ZedAgentStatus](bus, "zedagent"),
		controllerCerts: pubsub.NewPublication[types.ControllerCert](bus, "zedagent"),
		deviceCerts:     pubsub.NewPublication[types.EdgeNodeCert](bus, "tpmmgr", pubsub.Persistent()),
		networks:        pubsub.NewPublication[types.NetworkInstanceStatus](bus, "zedrouter"),
		appNetworks:     pubsub.NewPublication[types.AppNetworkStatus](bus, "zedrouter"),
		adapters:        pubsub.NewPublication[types.AssignableAdapters](bus, "domainmgr"),
		clusterStatus:   pubsub.NewSubscription[types.EdgeNodeClusterStatus](bus, "zedkube"),
		drainStatus:     pubsub.NewSubscription[types.NodeDrainStatus](bus, "zedkube"),
	}
	info := pubsub.NewPublication[types.EdgeNodeInfo](bus, "zedagent")
	if err := bus.Open(); err != nil {
		return nil, nil, err
	}
	bell := make(chan struct{}, 1)
	d.clusterStatus.Notify(bell)
	d.drainStatus.Notify(bell)
	d.fetched, d.configuration = nil, eveapi.Configuration{}
	_ = d.fetch() // a document that cannot be read keeps no device from booting; look says it
	return bus, bell, errors.Join(info.Publish(types.Global, d.Info), d.publishCerts())
}

// Configure makes zedagent say something of the cluster that is not what the
// controller sends, until the cluster section changes or the device boots.
func (d *Device) Configure(config types.EdgeNodeClusterConfig) error {
	d.sending.Lock()
	defer d.sending.Unlock()
	return d.clusterConfig.Publish(types.Global, config)
}

// Unconfigure makes zedagent say nothing of the cluster, for as long.
func (d *Device) Unconfigure() error {
	d.sending.Lock()
	defer d.sending.Unlock()
	return d.clusterConfig.Unpublish(types.Global)
}

// RequestDrain publishes a NodeDrainRequest, as zedagent or as baseosmgr by its
// RequestedBy. No reboot follows.
func (d *Device) RequestDrain(request types.NodeDrainRequest) error {
	return d.requester(request.RequestedBy).Publish(types.Global, request)
}

// WithdrawDrain withdraws the request of one of the two.
func (d *Device) WithdrawDrain(by types.DrainRequester) error {
	return d.requester(by).Unpublish(types.Global)
}

func (d *Device) requester(by types.DrainRequester) pubsub.Writer[types.NodeDrainRequest] {
	d.sending.Lock()
	defer d.sending.Unlock()
	if by == types.DrainRequesterUpdate {
		return d.updateRequest
	}
	return d.drainRequest
}

// HearsDrain is what the device's own zedagent, nodeagent and baseosmgr have
// heard of the drain since the boot. A reboot command that comes before they
// have heard anything is carried out at once.
func (d *Device) HearsDrain() types.NodeDrainStatus {
	d.sending.Lock()
	defer d.sending.Unlock()
	status, _ := d.drainStatus.Get(types.Global)
	return status
}

// SetAdapters makes domainmgr report these devices, until the next boot.
func (d *Device) SetAdapters(adapters types.AssignableAdapters) error {
	d.sending.Lock()
	defer d.sending.Unlock()
	return d.adapters.Publish(types.Global, adapters)
}

// SetNetwork makes zedrouter report a network instance, nil to withdraw that.
func (d *Device) SetNetwork(id string, status *types.NetworkInstanceStatus) error {
	d.sending.Lock()
	defer d.sending.Unlock()
	if status == nil {
		return d.networks.Unpublish(id)
	}
	return d.networks.Publish(id, *status)
}

// SetAppNetwork makes zedrouter report the networks of a workload, nil to withdraw that.
func (d *Device) SetAppNetwork(id string, status *types.AppNetworkStatus) error {
	d.sending.Lock()
	defer d.sending.Unlock()
	if status == nil {
		return d.appNetworks.Unpublish(id)
	}
	return d.appNetworks.Publish(id, *status)
}
