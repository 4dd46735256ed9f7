package types

import (
	"fmt"
	"strings"
)

// Votes reports whether the node has a member of etcd that votes. A learner
// does not; one whose condition is missing is taken for a voter.
func (n Node) Votes() bool { return n.Etcd && n.EtcdVoter != ConditionFalse }

// Quorum is how etcd stands by the Nodes of the cluster.
type Quorum struct {
	Voters   int
	Ready    int      // of the voters
	Learners int      // members that do not vote yet
	Down     []string // voters that are not Ready, in the order of the Nodes
}

// QuorumOf counts the members of etcd.
func QuorumOf(nodes []Node) Quorum {
	var q Quorum
	for _, n := range nodes {
		switch {
		case !n.Etcd:
		case !n.Votes():
			q.Learners++
		case n.Ready == ConditionTrue:
			q.Voters++
			q.Ready++
		default:
			q.Voters++
			q.Down = append(q.Down, n.Name)
		}
	}
	return q
}

// Has reports whether more than half of the voters are Ready.
func (q Quorum) Has() bool { return 2*q.Ready > q.Voters }

// Spare is how many more voters may fail before quorum is lost.
func (q Quorum) Spare() int { return max(0, q.Ready-q.Voters/2-1) }

// LacksQuorum says what etcd lacks to go on without the node of that name, ""
// for nothing: more than half of its voting members Ready, which of one or two
// is all the others. Where all the others are Ready nothing is lacking.
func LacksQuorum(nodes []Node, without string) string {
	there := make([]Node, len(nodes))
	copy(there, nodes)
	for i := range there {
		if there[i].Name == without {
			there[i].Ready = ConditionFalse
		}
	}
	q := QuorumOf(there)
	var down []string
	for _, name := range q.Down {
		if name != without {
			down = append(down, name)
		}
	}
	if len(down) == 0 || q.Has() {
		return ""
	}
	are := "are"
	if len(down) == 1 {
		are = "is"
	}
	return fmt.Sprintf("%d of %d etcd members would be Ready, which is no quorum: %s %s not", q.Ready, q.Voters, strings.Join(down, ", "), are)
}
