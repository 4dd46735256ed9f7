package types

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	// WitnessFresh is how old a witness's last look may be. A look takes place
	// every 5 s, every 12 s where nothing has changed for long, and may last 4 s.
	WitnessFresh = 20 * time.Second
	// WitnessSilent is how many looks in a row nothing may have answered: one
	// lost packet is no death.
	WitnessSilent = 3
)

// Gone reports whether, as far as the network tells, the device of the Node lost
// is gone: its kubelet does not report, and nothing on it has answered any node
// that can tell. seen says when each witness's round last changed, by node name
// and the caller's own clock. Where it is not, why says in a sentence who does not
// agree or cannot tell; where it is, who agrees. It is closed: whoever says
// nothing does not agree (docs/wire.md, "Nodes").
func Gone(lost Node, nodes map[string]Node, seen map[string]time.Time, now time.Time) (gone bool, why string) {
	switch live, ok := nodes[lost.Name]; {
	case !ok:
		return false, fmt.Sprintf("there is no node %s any more", lost.Name)
	case lost.UID == "" || live.UID != lost.UID:
		return false, fmt.Sprintf("there is another node %s by now", lost.Name)
	case lost.Ready != ConditionUnknown || live.Ready != ConditionUnknown:
		return false, fmt.Sprintf("node %s still reports", lost.Name)
	}
	var agree []string
	ready := 0
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		n := nodes[name]
		if n.Ready == ConditionTrue {
			ready++
		}
		if n.Ready != ConditionTrue || n.Agent == nil {
			continue // it says nothing, or nobody knows how old its word is
		}
		if why := n.disagrees(lost, seen[name], now); why != "" {
			return false, why
		}
		agree = append(agree, name)
	}
	if len(agree) == 0 {
		return false, fmt.Sprintf("no Ready node can tell whether the device of node %s answers", lost.Name)
	}
	if ready < 2 { // a single server that loses its cable calls all others gone
		return false, fmt.Sprintf("%s is the only node that is Ready: it may be cut off itself", agree[0])
	}
	return true, fmt.Sprintf("the device of node %s answers none of %v", lost.Name, agree)
}

// disagrees says why n, a Ready node with an agent, is no witness that the device
// of lost is gone; "" where it is one.
func (n Node) disagrees(lost Node, seen, now time.Time) string {
	if n.Witness == nil {
		return fmt.Sprintf("node %s does not say whether the device of node %s answers it", n.Name, lost.Name)
	}
	if seen.IsZero() || seen.After(now) || now.Sub(seen) > WitnessFresh {
		return fmt.Sprintf("what node %s says of node %s is old", n.Name, lost.Name)
	}
	told := false
	for _, s := range n.Witness.Sightings {
		switch {
		case s.UID != lost.UID:
			continue
		case s.Alive != "":
			return fmt.Sprintf("the device of node %s answers node %s at %s", lost.Name, n.Name, s.Alive)
		case s.Silent < WitnessSilent:
			return fmt.Sprintf("the device of node %s has been silent to node %s for %d of %d looks", lost.Name, n.Name, s.Silent, WitnessSilent)
		}
		told = true
	}
	if !told {
		return fmt.Sprintf("node %s cannot tell whether the device of node %s answers it", n.Name, lost.Name)
	}
	return ""
}
