package types

import "time"

// KubeEvents are Events of the cluster, as they are read at one moment.
type KubeEvents struct {
	List []KubeEvent `json:"Items"` // the newest first
	More bool        // the cluster has more than were read
}

// KubeEvent is an Event of Kubernetes: what somebody reports of an object.
type KubeEvent struct {
	Name    string    // namespace/name of the Event itself
	At      time.Time // when it was last seen
	Type    string    // Normal, Warning
	Reason  string    // a word
	About   string    // kind/name or kind/namespace/name
	Node    string    `json:",omitzero"` // whose kubelet, or other part of the node, reports; "" for none
	By      string    `json:",omitzero"` // which component reports
	Count   int       // how often it was seen
	Message string
}

// OfNode are the events about a node, and about the pods of which its kubelet has reported.
func (e KubeEvents) OfNode(node string) KubeEvents {
	own := map[string]bool{"node/" + node: true}
	for _, one := range e.List {
		own[one.About] = own[one.About] || one.Node == node
	}
	out := KubeEvents{List: []KubeEvent{}, More: e.More}
	for _, one := range e.List {
		if own[one.About] {
			out.List = append(out.List, one)
		}
	}
	return out
}
