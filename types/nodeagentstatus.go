package types

// NodeAgentKey is the key of NodeAgentStatus.
const NodeAgentKey = "nodeagent"

// NodeAgentStatus is nodeagent's word on what becomes of the device, under
// NodeAgentKey (docs/wire.md, "NodeAgentStatus"). Fields zedkube does not read
// are left out.
type NodeAgentStatus struct {
	UpdateInprogress bool // the image that runs is new and under test
	DeviceReboot     bool // the device is about to reboot
	DeviceShutdown   bool // its applications are being stopped, and it stays up
	DevicePoweroff   bool // it is about to power off
}
