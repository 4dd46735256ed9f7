package k3supdate

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/zedkube/zedkube/types"
)

// The etcds that test/upgrade changes, in members that have voted from the beginning, are
// a pair that the rules refuse: how a member came to vote is not known here.
func TestTheStepOfEtcdInTheUpgradeTestIsRefused(t *testing.T) {
	version := func(file, module string) string {
		text, err := os.ReadFile("../../../test/devcluster/" + file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(regexp.QuoteMeta(module) + ` v([0-9.]+)\n`).FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s does not name %s", file, module)
		}
		return string(found[1])
	}
	const etcd, before = "go.etcd.io/etcd/server/v3", "v1.33.11+k3s1"
	was, becomes := version("etcd35/go.mod", etcd), version("devkube/go.mod", etcd)
	to := "v" + version("devkube/go.mod", "k8s.io/kubernetes") + "+k3s1"
	var nodes []types.Node
	for _, name := range []string{"n1", "n2", "n3"} {
		n := server(name, before)
		n.K3s.Etcd = was + "-k3s1"
		nodes = append(nodes, n)
	}
	if v := judge(before, to, nodes); v.refused != types.K3sEtcdStep || !strings.HasPrefix(becomes, "3.6.") || !strings.Contains(v.why, was) {
		t.Errorf("from etcd %s to %s: %+v", was, becomes, v)
	}
	for i := range nodes {
		nodes[i].K3s.Etcd = "3.5.24-k3s1"
	}
	if v := judge(before, to, nodes); v.refused != "" {
		t.Errorf("from etcd 3.5.24 to %s: %+v", becomes, v)
	}
}
