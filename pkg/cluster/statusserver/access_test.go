package statusserver

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/zedkube/zedkube/types"
)

func TestWhoMayAskForReports(t *testing.T) {
	nodes := map[string]types.Node{
		"own":   {InternalIP: "10.244.244.1", Agent: &types.AgentStamp{}},
		"ours":  {InternalIP: "10.244.244.2", Agent: &types.AgentStamp{}},
		"eve":   {InternalIP: "10.244.244.3"},
		"twice": {InternalIP: "10.244.244.4"}, "again": {InternalIP: "10.244.244.4", Agent: &types.AgentStamp{}},
		"six":      {InternalIP: "fd00::0002"},
		"mapped":   {InternalIP: "::ffff:10.244.244.5"},
		"usurper":  {InternalIP: "10.244.244.1"},
		"homeless": {}, "confused": {InternalIP: "here"},
		"stale": {InternalIP: "10.244.244.6", Agent: &types.AgentStamp{}, StampStale: true},
	}
	rows := map[string]struct {
		remote, local string
		want          access
	}{
		"this node itself":                  {remote: "10.244.244.1", local: "10.244.244.1", want: free},
		"this node, as IPv6 writes IPv4":    {remote: "::ffff:10.244.244.1", local: "10.244.244.1", want: free},
		"loopback":                          {remote: "127.0.0.1", local: "10.244.244.1", want: free},
		"loopback, by IPv6":                 {remote: "::1", local: "fd00::1", want: free},
		"a node of ours":                    {remote: "10.244.244.2", local: "10.244.244.1", want: proves},
		"EVE's node":                        {remote: "10.244.244.3", local: "10.244.244.1", want: free},
		"a node of ours, as IPv6 writes it": {remote: "::ffff:10.244.244.2", local: "10.244.244.1", want: proves},
		"a Node as IPv6 writes IPv4":        {remote: "10.244.244.5", local: "10.244.244.1", want: free},
		"own address claimed by a Node":     {remote: "10.244.244.1", local: "10.244.244.1", want: free},
		"the same address asked elsewhere":  {remote: "10.244.244.1", local: "10.244.244.2", want: proves},
		"an address that two Nodes claim":   {remote: "10.244.244.4", local: "10.244.244.1", want: proves},
		"a stamp that outlived its agent":   {remote: "10.244.244.6", local: "10.244.244.1", want: free},
		"EVE's node, by IPv6":               {remote: "fd00::2", local: "fd00::1", want: free},
		"a neighbour that is no Node":       {remote: "10.244.244.9", local: "10.244.244.1", want: denied},
		"somebody else":                     {remote: "192.168.1.1", local: "10.244.244.1", want: denied},
		"loopback where the cluster is too": {remote: "127.0.0.9", local: "127.0.0.1", want: denied},
		"own link-local address":            {remote: "fe80::1%eth0", local: "fe80::1%eth0", want: free},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			if got := admit(netip.MustParseAddr(r.remote), netip.MustParseAddr(r.local), nodes, types.Node.Foreign, true); got != r.want {
				t.Errorf("got %d, want %d", got, r.want)
			}
			if isEVE := strings.HasPrefix(name, "EVE's node") || name == "a Node as IPv6 writes IPv4" || name == "a stamp that outlived its agent"; isEVE {
				r.want = proves
			}
			if got := admit(netip.MustParseAddr(r.remote), netip.MustParseAddr(r.local), nodes, types.Node.Foreign, false); got != r.want {
				t.Errorf("where every Node proves: got %d, want %d", got, r.want)
			}
		})
	}
	if got := admit(netip.Addr{}, netip.Addr{}, nodes, types.Node.Foreign, true); got != denied {
		t.Errorf("an address that cannot be read gets %d", got)
	}
}

// withToken is a cluster status with a token.
func withToken(token string) types.EdgeNodeClusterStatus {
	s := status("10.244.244.1/28", true)
	s.EncryptedClusterToken = token
	return s
}

func TestAppIDIsAUUIDOrTheFrontOfOne(t *testing.T) {
	rows := map[string]struct {
		path, want string
		ok         bool
	}{
		"none":              {path: "/app", ok: true},
		"none, with slash":  {path: "/app/", ok: true},
		"a UUID":            {path: "/app/" + deviceID, want: deviceID, ok: true},
		"the front of one":  {path: "/app/b3E2f", want: "b3e2f", ok: true},
		"one too long":      {path: "/app/" + deviceID + "0"},
		"a name":            {path: "/app/panel"},
		"a way up":          {path: "/app/.."},
		"a wildcard":        {path: "/app/*"},
		"a path below":      {path: "/app/b3e2f/x"},
		"letters not ASCII": {path: "/app/é"},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			if got, ok := appID(r.path, appPath); got != r.want || ok != r.ok {
				t.Errorf("got %q, %v", got, ok)
			}
		})
	}
}

func TestGateBoundsAllAndEach(t *testing.T) {
	var g limiter
	a, b, c := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3")
	for i, step := range []struct {
		ip   netip.Addr
		want bool
	}{{a, true}, {a, true}, {a, false}, {b, true}, {c, false}} {
		if got := g.enter(step.ip, 3, 2); got != step.want {
			t.Errorf("step %d: got %v", i, got)
		}
	}
	g.leave(a)
	if !g.enter(c, 3, 2) {
		t.Error("a free place is not given")
	}
	for _, ip := range []netip.Addr{a, b, c} {
		g.leave(ip)
	}
	if len(g.of) != 0 || g.inside != 0 {
		t.Errorf("an empty gate remembers %v", g.of)
	}
}
