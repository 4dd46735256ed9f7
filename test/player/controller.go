package player

import (
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// Configure is a new EdgeNodeClusterConfig from the controller.
func (d *Device) Configure(config types.EdgeNodeClusterConfig) error {
	return d.clusterConfig.Publish(types.Global, config)
}

// Unconfigure withdraws the EdgeNodeClusterConfig.
func (d *Device) Unconfigure() error { return d.clusterConfig.Unpublish(types.Global) }

// ConfigureSettings is a new ConfigItemValueMap from the controller.
func (d *Device) ConfigureSettings(settings types.ConfigItemValueMap) error {
	return d.settings.Publish(types.Global, settings)
}

// ConfigureApp is a new AppInstanceConfig from the controller.
func (d *Device) ConfigureApp(config types.AppInstanceConfig) error {
	return d.apps.Publish(config.UUIDandVersion.UUID.String(), config)
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
	if by == types.DrainRequesterUpdate {
		return d.updateRequest
	}
	return d.drainRequest
}
