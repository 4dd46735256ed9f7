package statusserver

import (
	"net"
	"testing"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

const (
	clusterID = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
	deviceID  = "b3e2f1a0-1111-4222-8333-444455556666"
)

func status(cidr string, ready bool) types.EdgeNodeClusterStatus {
	ip, n, err := net.ParseCIDR(cidr)
	if err != nil {
		panic(err)
	}
	return types.EdgeNodeClusterStatus{
		ClusterID:       types.UUIDandVersion{UUID: uuid.MustParse(clusterID)},
		ClusterIPPrefix: &net.IPNet{IP: ip, Mask: n.Mask}, ClusterIPIsReady: ready,
	}
}

func TestListensOnTheClusterAddressOnlyWhileItIsUp(t *testing.T) {
	noPrefix := status("10.244.244.2/28", true)
	noPrefix.ClusterIPPrefix = nil
	linkLocal, sixteen := status("fe80::2/64", true), status("10.244.244.2/28", true)
	linkLocal.ClusterInterface = "eth0"
	sixteen.ClusterIPPrefix.IP = sixteen.ClusterIPPrefix.IP.To16()
	rows := map[string]struct {
		status types.EdgeNodeClusterStatus
		port   int
		want   string
	}{
		"no status, no server":               {},
		"not ready, no server":               {status: status("10.244.244.2/28", false)},
		"ready without an address":           {status: noPrefix},
		"ready: the port of the wire":        {status: status("10.244.244.2/28", true), want: "10.244.244.2:12346"},
		"an IPv6 address is bracketed":       {status: status("fd00::2/64", true), want: "[fd00::2]:12346"},
		"a link-local one has its interface": {status: linkLocal, want: "[fe80::2%eth0]:12346"},
		"IPv4 in sixteen bytes":              {status: sixteen, want: "10.244.244.2:12346"},
		"another port where one is told":     {status: status("10.244.244.2/28", true), port: 8080, want: "10.244.244.2:8080"},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			if got := decide(facts{status: r.status, port: r.port}).listen; got != r.want {
				t.Errorf("got %q, want %q", got, r.want)
			}
		})
	}
}

// working is what the tables hold on a working server of the cluster.
func working(change ...func(*facts)) facts {
	f := facts{
		now:    noon,
		status: status("10.244.244.2/28", true),
		nodes: map[string]types.Node{
			"n1": {Name: "n1", UUID: deviceID, Ready: types.ConditionTrue, ControlPlane: true, Etcd: true, KubeletVersion: "v1.34.1+k3s1"},
			"n2": {Name: "n2", UUID: "c3e2f1a0-1111-4222-8333-444455556666"},
		},
		info: types.EdgeNodeInfo{DeviceName: "N1", DeviceID: uuid.MustParse(deviceID)},
		api:  types.APIStatus{Synced: true}, heard: true,
	}
	for _, c := range change {
		c(&f)
	}
	return f
}

// own changes the Node of this device.
func own(change func(*types.Node)) func(*facts) {
	return func(f *facts) {
		n := f.nodes["n1"]
		change(&n)
		f.nodes["n1"] = n
	}
}

func TestAnswerNamesTheClusterOnAWorkingServerOnly(t *testing.T) {
	const yes = "cluster:" + clusterID
	rows := map[string]struct {
		f    facts
		want string
	}{
		"a control plane node with etcd":       {f: working(), want: yes},
		"a master of an older k3s with etcd":   {f: working(own(func(n *types.Node) { n.ControlPlane, n.Master = false, true })), want: yes},
		"a control plane node without etcd":    {f: working(own(func(n *types.Node) { n.Etcd = false }))},
		"a worker":                             {f: working(own(func(n *types.Node) { n.ControlPlane, n.Etcd = false, false }))},
		"etcd without a control plane":         {f: working(own(func(n *types.Node) { n.ControlPlane = false }))},
		"own Node by name, not yet labelled":   {f: working(own(func(n *types.Node) { n.UUID = "" })), want: yes},
		"own name on a Node of another device": {f: working(own(func(n *types.Node) { n.UUID = "other" }))},
		"no Node of ours":                      {f: working(func(f *facts) { delete(f.nodes, "n1") })},
		"device not known yet":                 {f: working(func(f *facts) { f.info = types.EdgeNodeInfo{} })},
		"the API is silent":                    {f: working(func(f *facts) { f.api.SilentSince = f.api.SilentSince.AddDate(2026, 0, 0) })},
		"the tables are not complete":          {f: working(func(f *facts) { f.api.Synced = false })},
		"nothing known of the API":             {f: working(func(f *facts) { f.api = types.APIStatus{} })},
		"no cluster status any more":           {f: working(func(f *facts) { f.status = types.EdgeNodeClusterStatus{} })},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			if got := answer(r.f); got != r.want {
				t.Errorf("got %q, want %q", got, r.want)
			}
		})
	}
}
