package types

import (
	"fmt"
	"strings"
)

// LacksQuorum says what etcd lacks to go on without the node of that name, ""
// for nothing: more than half of its voting members Ready, which of one or two
// is all the others. Where all the others are Ready nothing is lacking.
func LacksQuorum(nodes []Node, without string) string {
	voters, ready := 0, 0
	var down []string
	for _, n := range nodes {
		if !n.Etcd || n.EtcdVoter == ConditionFalse {
			continue
		}
		voters++
		switch {
		case n.Name == without:
		case n.Ready == ConditionTrue:
			ready++
		default:
			down = append(down, n.Name)
		}
	}
	if len(down) == 0 || 2*ready > voters {
		return ""
	}
	are := "are"
	if len(down) == 1 {
		are = "is"
	}
	return fmt.Sprintf("%d of %d etcd members would be Ready, which is no quorum: %s %s not", ready, voters, strings.Join(down, ", "), are)
}
