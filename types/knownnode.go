package types

import "time"

// KnownNode is what is remembered of a Node for when it is deleted while its
// device may still run something, under its name in a persistent topic of
// zedkube's own. That a Node is missing says nothing of the device: k3s makes one
// again within seconds, and kubectl deletes one at any time.
type KnownNode struct {
	Name         string
	UID          string
	InternalIP   string
	ExternalIP   string    `json:",omitempty"`
	LeaseRenewed time.Time `json:",omitzero"` // the last renewal of its kubelet's Lease that was seen, by the kubelet's clock
	LeaseSeen    time.Time `json:",omitzero"` // when this node first saw it, by its own clock
}

// Node is the Node as witnesses look for it.
func (k KnownNode) Node() Node {
	return Node{Name: k.Name, UID: k.UID, InternalIP: k.InternalIP, ExternalIP: k.ExternalIP, Ready: ConditionUnknown}
}
