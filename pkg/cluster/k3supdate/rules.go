package k3supdate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/types"
)

// The first k3s with etcd 3.6, and the first etcd that leads there safely: of a member that
// was promoted under an earlier one etcd 3.6 may not start (etcd-io/etcd#20793).
const (
	etcdStepMinor = 34
	etcdStepPatch = 24
)

// refusedSetting begins the sentences about a setting that the rules refuse.
const refusedSetting = "The setting k3s.version is refused: "

// verdict is what the rules say of a change.
type verdict struct {
	kind    types.K3sChange
	refused types.K3sRefusal
	why     string // a sentence; "" where it is allowed
}

// judge says by the rules whether k3s may go from one version to another, with what runs
// on the nodes of the cluster.
func judge(from, to string, nodes []types.Node) verdict {
	kind, refused, err := types.JudgeK3sStep(from, to)
	if err != nil {
		return verdict{refused: refused, why: refusedSetting + err.Error() + "."}
	}
	if kind == types.K3sSame {
		return verdict{kind: kind}
	}
	var others, members []string
	for _, n := range nodes {
		if n.KubeletVersion != from && n.KubeletVersion != to && n.KubeletVersion != "" {
			others = append(others, n.Name+" runs "+n.KubeletVersion)
		}
		if version := etcdOf(n); n.Etcd && version != "" && !leadsToEtcd36(version) {
			members = append(members, n.Name+" has "+version)
		}
	}
	switch {
	case len(others) > 0:
		return verdict{kind, types.K3sMixed, fmt.Sprintf(refusedSetting+"%s, which is neither %s nor %s. First let all nodes run one version.", phrase.Few(others, 3), from, to)}
	case len(members) > 0 && stepsEtcd(from, to):
		return verdict{kind, types.K3sEtcdStep, fmt.Sprintf(refusedSetting+"%s has etcd 3.6, which may not start after an etcd before 3.5.%d: %s. First update all servers to the last patch of their minor version.", to, etcdStepPatch, phrase.Few(members, 3))}
	}
	return verdict{kind: kind}
}

// stepsEtcd reports whether a change leads from etcd 3.5 to 3.6.
func stepsEtcd(from, to string) bool {
	old, err1 := types.ParseK3sVersion(from)
	next, err2 := types.ParseK3sVersion(to)
	return err1 == nil && err2 == nil && old.Minor < etcdStepMinor && next.Minor >= etcdStepMinor
}

func etcdOf(n types.Node) string {
	if n.K3s == nil {
		return ""
	}
	return n.K3s.Etcd
}

// leadsToEtcd36 judges a version of etcd, as 3.5.21-k3s1. One that cannot be read does not.
func leadsToEtcd36(version string) bool {
	version, _, _ = strings.Cut(version, "-")
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	if len(parts) != 3 || parts[0] != "3" {
		return false
	}
	minor, err1 := strconv.Atoi(parts[1])
	patch, err2 := strconv.Atoi(parts[2])
	return err1 == nil && err2 == nil && (minor > 5 || minor == 5 && patch >= etcdStepPatch)
}
