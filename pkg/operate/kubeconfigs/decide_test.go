package kubeconfigs

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/types"
)

var at = time.Date(2026, 5, 3, 6, 41, 17, 0, time.UTC)

func TestWhatHasExpiredIsRevokedByItsNodeAndLaterByAnyOther(t *testing.T) {
	type row = map[string]types.IssuedKubeconfig
	one := func(node string, left time.Duration) types.IssuedKubeconfig {
		return types.IssuedKubeconfig{Name: "a", Node: node, Expires: at.Add(left)}
	}
	for name, r := range map[string]struct {
		own    string
		issued row
		revoke int
		again  time.Duration
	}{
		"none":                                  {"n1", nil, 0, 0},
		"our own, which is valid":               {"n1", row{"a": one("n1", time.Second)}, 0, time.Second},
		"our own, at its end":                   {"n1", row{"a": one("n1", 0)}, 1, 0},
		"another node's, at its end":            {"n1", row{"a": one("n2", 0)}, 0, othersAfter},
		"another node's, which did not do it":   {"n1", row{"a": one("n2", -othersAfter)}, 1, 0},
		"nobody's, while we have no name":       {"", row{"a": one("", 0)}, 0, othersAfter},
		"the next one counts, and one has gone": {"n1", row{"a": one("n1", time.Hour), "b": one("n1", time.Minute), "c": one("n1", -1)}, 1, time.Minute},
	} {
		a := decide(facts{now: at, own: r.own, issued: r.issued})
		if len(a.revoke) != r.revoke || a.again != r.again {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

func TestARequestIsCheckedBeforeAnythingIsDone(t *testing.T) {
	for name, r := range map[string]struct {
		ask   Request
		want  Request
		lasts time.Duration
		err   string
	}{
		"a reason is enough":      {Request{Reason: " new disk\n"}, Request{Role: "view", Reason: "new disk"}, time.Hour, ""},
		"all of it":               {Request{"24h", "edit", "x"}, Request{"24h", "edit", "x"}, 24 * time.Hour, ""},
		"the shortest":            {Request{"600s", "view", "x"}, Request{"600s", "view", "x"}, 10 * time.Minute, ""},
		"too short":               {Request{"9m59s", "view", "x"}, Request{}, 0, "for 10m0s to 24h0m0s"},
		"too long":                {Request{"24h1s", "view", "x"}, Request{}, 0, "for 10m0s to 24h0m0s"},
		"negative":                {Request{"-1h", "view", "x"}, Request{}, 0, "for 10m0s to 24h0m0s"},
		"no duration":             {Request{"a day", "view", "x"}, Request{}, 0, "for 10m0s to 24h0m0s"},
		"another role":            {Request{"1h", "cluster-admin", "x"}, Request{}, 0, "view or edit"},
		"no reason":               {Request{"1h", "view", " "}, Request{}, 0, "a reason is required"},
		"a reason of two lines":   {Request{"1h", "view", "a\nb"}, Request{}, 0, "a reason is required"},
		"a reason for a terminal": {Request{"1h", "view", "a\x1b[2J"}, Request{}, 0, "a reason is required"},
		"a reason that is no text": {
			Request{"1h", "view", "a\xff"}, Request{}, 0, "a reason is required",
		},
		"a reason that is too long": {Request{"1h", "view", strings.Repeat("a", 257)}, Request{}, 0, "a reason is required"},
	} {
		got, lasts, err := r.ask.check()
		if r.err != "" {
			if err == nil || !strings.Contains(err.Error(), r.err) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if d := cmp.Diff(r.want, got); d != "" || lasts != r.lasts || err != nil {
			t.Errorf("%s: %v, %v: %s", name, lasts, err, d)
		}
	}
}

func TestTheHostIsOneWhereTheAPIServerIs(t *testing.T) {
	server := func(name, ip string, ready types.ConditionStatus) types.Node {
		return types.Node{Name: name, ControlPlane: true, InternalIP: ip, Ready: ready}
	}
	clustered := types.EdgeNodeClusterStatus{ClusterIPPrefix: &net.IPNet{IP: net.ParseIP("10.90.7.1"), Mask: net.CIDRMask(24, 32)}, ClusterIPIsReady: true}
	later := clustered
	later.ClusterIPIsReady = false
	n1, n2, n3 := server("n1", "192.168.1.1", types.ConditionTrue), server("n2", "10.90.7.2", types.ConditionFalse), server("n3", "10.90.7.3", types.ConditionTrue)
	worker := types.Node{Name: "w", InternalIP: "10.90.7.9", Ready: types.ConditionTrue}
	for name, r := range map[string]struct {
		own    types.Node
		nodes  []types.Node
		status types.EdgeNodeClusterStatus
		want   string
	}{
		"a server has its cluster address":           {n1, []types.Node{n1, n2}, clustered, "10.90.7.1"},
		"a single node has the one of its kubelet":   {n1, []types.Node{n1}, types.EdgeNodeClusterStatus{}, "192.168.1.1"},
		"so has a server without the address yet":    {n1, []types.Node{n1}, later, "192.168.1.1"},
		"a worker names a server that is Ready":      {worker, []types.Node{worker, n2, n3}, clustered, "10.90.7.3"},
		"a worker knows none while no server is":     {worker, []types.Node{worker, n2}, clustered, ""},
		"nothing is known of a node without a name":  {types.Node{}, nil, clustered, ""},
		"an older k3s has another label on a server": {types.Node{Name: "m", Master: true, InternalIP: "10.90.7.4"}, nil, types.EdgeNodeClusterStatus{}, "10.90.7.4"},
	} {
		nodes := map[string]types.Node{}
		for _, n := range r.nodes {
			nodes[n.Name] = n
		}
		if got := hostOf(r.own, nodes, r.status); got != r.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
