package k3supdate

import (
	"strings"
	"testing"

	"github.com/zedkube/zedkube/types"
)

const (
	old   = "v1.34.2+k3s1"
	patch = "v1.34.4+k3s1"
	minor = "v1.35.1+k3s1"
)

func server(name, version string) types.Node {
	return types.Node{
		Name: name, UUID: name, UID: "uid-" + name, KubeletVersion: version, Ready: types.ConditionTrue, ControlPlane: true, Etcd: true,
		EtcdVoter: types.ConditionTrue, BootID: "boot", Agent: &types.AgentStamp{}, K3s: &types.K3sStamp{Wanted: patch},
	}
}

func worker(name, version string) types.Node {
	n := server(name, version)
	n.ControlPlane, n.Etcd, n.EtcdVoter = false, false, ""
	return n
}

func TestRulesOfVersions(t *testing.T) {
	etcd := func(version string) func(*types.Node) {
		return func(n *types.Node) { n.K3s = &types.K3sStamp{Etcd: version} }
	}
	for name, row := range map[string]struct {
		from, to, other string
		etcd            func(*types.Node)
		kind            types.K3sChange
		refused         types.K3sRefusal
		why             string
	}{
		"the same":                                      {from: old, to: old, other: old, kind: types.K3sSame},
		"a patch":                                       {from: old, to: patch, other: old, kind: types.K3sPatch},
		"a patch that another node has already":         {from: old, to: patch, other: patch, kind: types.K3sPatch},
		"a later k3s of the same patch":                 {from: old, to: "v1.34.2+k3s2", other: old, kind: types.K3sPatch},
		"the next minor version":                        {from: old, to: minor, other: old, kind: types.K3sMinor},
		"one minor version is skipped":                  {from: old, to: "v1.36.0+k3s1", other: old, refused: types.K3sSkipsMinors, why: "update to v1.35 first"},
		"a downgrade":                                   {from: old, to: "v1.34.1+k3s1", other: old, refused: types.K3sDowngrade, why: "cannot be downgraded"},
		"a downgrade of a minor version":                {from: old, to: "v1.20.0+k3s1", other: old, refused: types.K3sDowngrade, why: "cannot be downgraded"},
		"another major version":                         {from: old, to: "v2.0.0+k3s1", other: old, refused: types.K3sOtherMajor, why: "another major version"},
		"the name of a channel":                         {from: old, to: "latest", other: old, refused: types.K3sNoVersion, why: "it is not a version"},
		"from nothing that is known":                    {from: "", to: patch, other: old, refused: types.K3sNoVersion, why: "unknown"},
		"a third version runs":                          {from: old, to: patch, other: "v1.34.3+k3s1", kind: types.K3sPatch, refused: types.K3sMixed, why: "n2 runs v1.34.3+k3s1"},
		"etcd from before 3.5.24 to 3.6":                {from: "v1.33.3+k3s1", to: old, other: "v1.33.3+k3s1", etcd: etcd("3.5.21-k3s1"), kind: types.K3sMinor, refused: types.K3sEtcdStep, why: "n2 has 3.5.21-k3s1"},
		"etcd from 3.5.24 to 3.6":                       {from: "v1.33.3+k3s1", to: old, other: "v1.33.3+k3s1", etcd: etcd("3.5.24-k3s1"), kind: types.K3sMinor},
		"an unreadable etcd to 3.6":                     {from: "v1.33.3+k3s1", to: old, other: "v1.33.3+k3s1", etcd: etcd("odd"), kind: types.K3sMinor, refused: types.K3sEtcdStep, why: "n2 has odd"},
		"etcd stays at 3.5":                             {from: "v1.33.3+k3s1", to: "v1.33.9+k3s1", other: "v1.33.3+k3s1", etcd: etcd("3.5.21-k3s1"), kind: types.K3sPatch},
		"etcd that is 3.6 already, whatever its member": {from: old, to: minor, other: old, etcd: etcd("3.6.4"), kind: types.K3sMinor},
	} {
		n := server("n2", row.other)
		if row.etcd != nil {
			row.etcd(&n)
		}
		v := judge(row.from, row.to, []types.Node{server("n1", row.from), n})
		if v.kind != row.kind || v.refused != row.refused || !strings.Contains(v.why, row.why) || (v.why == "") != (row.refused == "") {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func TestTheOrderOfNodes(t *testing.T) {
	leader, joined, tie := server("a-leader", old), server("b-join", old), server("z-tie", old)
	leader.K3s, joined.K3s, tie.TieBreaker = &types.K3sStamp{Leader: true, Joined: true}, &types.K3sStamp{Joined: true}, true
	nodes := []types.Node{worker("a-worker", old), leader, joined, server("m2", old), server("m1", old), tie, worker("b-worker", old)}
	want := "z-tie m1 m2 b-join a-leader a-worker b-worker"
	for range nodes { // from wherever a node begins to read
		nodes = append(nodes[1:], nodes[0])
		var names []string
		for _, n := range order(nodes) {
			names = append(names, n.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	nodes = order(nodes)
	nodes[0].KubeletVersion = patch
	if got := next(nodes, patch); got != "m1" {
		t.Errorf("%s is next", got)
	}
	list := listed(nodes, patch)
	if list[0].State != "done" || list[1].State != "next" || list[2].State != "later" {
		t.Errorf("%+v", list)
	}
}

func TestTheLastServerCommits(t *testing.T) {
	for name, row := range map[string]struct {
		nodes   []types.Node
		commits bool
	}{
		"not while another server is older": {[]types.Node{server("n1", old), server("n2", old), server("n3", patch)}, false},
		"the last one does":                 {[]types.Node{server("n1", old), server("n2", patch), server("n3", patch), worker("w", old)}, true},
		"a single one does":                 {[]types.Node{server("n1", old)}, true},
		"a worker never does":               {[]types.Node{worker("n1", old), server("n2", patch)}, false},
	} {
		if got := commits(row.nodes[0], row.nodes, patch); (got != "") != row.commits {
			t.Errorf("%s: %q", name, got)
		}
	}
}
