package cloud

import (
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/edge/join"
	"github.com/zedkube/zedkube/pkg/edge/object"
)

// RefNodes is the record of who was asked to join.
var RefNodes = object.Ref{Kind: object.ConfigMap, Namespace: Where, Name: Nodes}

// RecordObject is the ConfigMap of the record.
func RecordObject(data m) object.Object { return labelled(RefNodes).With(m{"data": data}) }

// NodeAddresses are the addresses of all Nodes by their names.
func NodeAddresses(seen map[object.Ref]object.Object) map[string]string {
	all := map[string]string{}
	for r, o := range seen {
		if r.Kind == object.Node {
			all[r.Name] = ownAddress(o)
		}
	}
	return all
}

// RecordOf is the record of who was asked to join. On a cluster that has none yet it has the edge nodes that there are.
func RecordOf(seen map[object.Ref]object.Object, now time.Time) (join.Record, error) {
	if at := seen[RefNodes]; at != nil {
		data, _ := at.At("data").(m)
		return join.Read(data)
	}
	names, _ := edgeNodes(seen)
	addresses, all := map[string]string{}, NodeAddresses(seen)
	for _, name := range names {
		addresses[name] = all[name]
	}
	return join.TakeOver(addresses, now), nil
}

// Purged are the Nodes that may leave, sorted. What cannot be read of the record lets none leave.
func Purged(seen map[object.Ref]object.Object, now time.Time) (list []object.Ref) {
	record, _ := RecordOf(seen, now)
	for r, o := range seen {
		if r.Kind == object.Node && MayLeave(o, record.Asked[r.Name]) {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b object.Ref) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// EdgeNode is one name in the record, or one edge node that is not in it.
type EdgeNode struct {
	Name, Address string
	State         string    // asked, Ready, offline, refused, left
	Since         time.Time `json:",omitzero"` // of the state
	AskedAt       time.Time `json:",omitzero"`
	TokenUntil    time.Time `json:",omitzero"`  // while it is asked
	TakenOver     bool      `json:",omitempty"` // it had joined before there was a record
	Unknown       bool      `json:",omitempty"` // it is not in the record
}

// people are all edge nodes, and all names that were, by name.
func people(seen map[object.Ref]object.Object, record join.Record) (list []EdgeNode) {
	nodes, _ := edgeNodes(seen)
	for _, name := range nodes {
		_, address, since, _ := Edge(seen, name)
		asked, known := record.Asked[name]
		n := EdgeNode{Name: name, Address: address, State: "Ready", AskedAt: asked.AskedAt, TakenOver: asked.TakenOver, Unknown: !known}
		if o := seen[object.Ref{Kind: object.Node, Name: name}]; o.Condition("Ready") != "True" {
			n.State, n.Since = "offline", since
		}
		list = append(list, n)
	}
	for name, a := range record.Asked {
		if !slices.Contains(nodes, name) {
			list = append(list, EdgeNode{Name: name, Address: a.Address, State: "asked", Since: a.AskedAt, AskedAt: a.AskedAt, TokenUntil: a.TokenUntil})
		}
	}
	for state, of := range map[string]map[string]join.Past{"refused": record.Refused, "left": record.Left} {
		for name, p := range of {
			list = append(list, EdgeNode{Name: name, State: state, Since: p.Since, AskedAt: p.AskedAt})
		}
	}
	slices.SortFunc(list, func(a, b EdgeNode) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Unready is why a node is not Ready, in its own words.
func Unready(node object.Object) string {
	for _, c := range node.List("status", "conditions") {
		if c.Text("type") == "Ready" {
			return c.Text("message")
		}
	}
	return "it has not said how it is"
}
