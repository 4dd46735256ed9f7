package types_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

// members are nodes of etcd, named a, b and so on: "+" is a voter that is Ready,
// "-" one that is not, "l" a learner that is Ready, "w" a worker that is not.
func members(states string) []types.Node {
	var nodes []types.Node
	for i, s := range states {
		n := types.Node{Name: string(rune('a' + i)), Etcd: s != 'w', EtcdVoter: types.ConditionTrue, Ready: types.ConditionTrue}
		switch s {
		case '-', 'w':
			n.Ready = types.ConditionUnknown
		case 'l':
			n.EtcdVoter = types.ConditionFalse
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func TestQuorumCountsVotersAndNoLearners(t *testing.T) {
	for states, want := range map[string]struct {
		types.Quorum
		has   bool
		spare int
	}{
		"":       {types.Quorum{}, false, 0},
		"+":      {types.Quorum{Voters: 1, Ready: 1}, true, 0},
		"++":     {types.Quorum{Voters: 2, Ready: 2}, true, 0},
		"+-":     {types.Quorum{Voters: 2, Ready: 1, Down: []string{"b"}}, false, 0},
		"+++":    {types.Quorum{Voters: 3, Ready: 3}, true, 1},
		"++-":    {types.Quorum{Voters: 3, Ready: 2, Down: []string{"c"}}, true, 0},
		"+-l":    {types.Quorum{Voters: 2, Ready: 1, Learners: 1, Down: []string{"b"}}, false, 0},
		"++++-":  {types.Quorum{Voters: 5, Ready: 4, Down: []string{"e"}}, true, 1},
		"+++--":  {types.Quorum{Voters: 5, Ready: 3, Down: []string{"d", "e"}}, true, 0},
		"++--ll": {types.Quorum{Voters: 4, Ready: 2, Learners: 2, Down: []string{"c", "d"}}, false, 0},
		"+++w":   {types.Quorum{Voters: 3, Ready: 3}, true, 1},
	} {
		q := types.QuorumOf(members(states))
		if d := cmp.Diff(want.Quorum, q); d != "" {
			t.Errorf("%q: want -, got +\n%s", states, d)
		}
		if q.Has() != want.has || q.Spare() != want.spare {
			t.Errorf("%q: has %v, spare %d, want %v, %d", states, q.Has(), q.Spare(), want.has, want.spare)
		}
	}
	unknown := members("+")
	unknown[0].EtcdVoter = ""
	if q := types.QuorumOf(unknown); q.Voters != 1 {
		t.Error("a member that does not say whether it votes is not counted")
	}
}

func TestWhoseAbsenceCostsQuorum(t *testing.T) {
	for _, c := range []struct {
		states, without string
		want            string
	}{
		{"+", "a", ""},
		{"++", "a", ""},
		{"+-", "b", ""},
		{"+-", "a", "0 of 2 etcd members would be Ready, which is no quorum: b is not"},
		{"++-", "c", ""},
		{"++-", "a", "1 of 3 etcd members would be Ready, which is no quorum: c is not"},
		{"++l", "a", ""},
		{"++-l", "d", ""},
		{"+-l", "c", "1 of 2 etcd members would be Ready, which is no quorum: b is not"},
		{"++-ll", "a", "1 of 3 etcd members would be Ready, which is no quorum: c is not"},
		{"++++-", "a", ""},
		{"+++--", "a", "2 of 5 etcd members would be Ready, which is no quorum: d, e are not"},
		{"++w", "a", ""},
	} {
		nodes := members(c.states)
		before := members(c.states)
		if got := types.LacksQuorum(nodes, c.without); got != c.want {
			t.Errorf("%s without %s: %q, want %q", c.states, c.without, got, c.want)
		}
		if d := cmp.Diff(before, nodes); d != "" {
			t.Errorf("the nodes were changed: %s", d)
		}
	}
}
