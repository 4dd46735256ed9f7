package statusserver

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

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
		"EVE's node, by IPv6":               {remote: "fd00::2", local: "fd00::1", want: free},
		"a neighbour that is no Node":       {remote: "10.244.244.9", local: "10.244.244.1", want: denied},
		"somebody else":                     {remote: "192.168.1.1", local: "10.244.244.1", want: denied},
		"loopback where the cluster is too": {remote: "127.0.0.9", local: "127.0.0.1", want: denied},
		"own link-local address":            {remote: "fe80::1%eth0", local: "fe80::1%eth0", want: free},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			if got := admit(netip.MustParseAddr(r.remote), netip.MustParseAddr(r.local), nodes); got != r.want {
				t.Errorf("got %d, want %d", got, r.want)
			}
		})
	}
	if got := admit(netip.Addr{}, netip.Addr{}, nodes); got != denied {
		t.Errorf("an address that cannot be read gets %d", got)
	}
}

// withToken is a cluster status with a token.
func withToken(token string) types.EdgeNodeClusterStatus {
	s := status("10.244.244.1/28", true)
	s.EncryptedClusterToken = token
	return s
}

func TestProofIsGoodForOneRequestToOneServer(t *testing.T) {
	key, err := proofKey(withToken("K10abc::server:one"))
	if err != nil {
		t.Fatal(err)
	}
	otherKey, _ := proofKey(withToken("K10abc::server:two"))
	foreign := withToken("K10abc::server:one")
	foreign.ClusterID.UUID = other
	foreignKey, _ := proofKey(foreign)
	good := ask{method: "POST", host: "10.244.244.1:12346", path: "/app/b3e2f"}
	rows := map[string]struct {
		header string
		to     ask
		want   error
	}{
		"its request":            {header: good.sign(key, noon), to: good},
		"a clock behind":         {header: good.sign(key, noon.Add(-119*time.Second)), to: good},
		"a clock ahead":          {header: good.sign(key, noon.Add(119*time.Second)), to: good},
		"too old":                {header: good.sign(key, noon.Add(-121*time.Second)), to: good, want: errStale},
		"too far ahead":          {header: good.sign(key, noon.Add(121*time.Second)), to: good, want: errStale},
		"another token":          {header: good.sign(otherKey, noon), to: good, want: errWrong},
		"another cluster":        {header: good.sign(foreignKey, noon), to: good, want: errWrong},
		"another method":         {header: good.sign(key, noon), to: ask{"GET", good.host, good.path}, want: errWrong},
		"another server":         {header: good.sign(key, noon), to: ask{good.method, "10.244.244.2:12346", good.path}, want: errWrong},
		"another path":           {header: good.sign(key, noon), to: ask{good.method, good.host, "/app/b3e2"}, want: errWrong},
		"none":                   {to: good, want: errNoProof},
		"another version":        {header: "v2" + good.sign(key, noon)[2:], to: good, want: errNoProof},
		"no MAC":                 {header: "v1 1", to: good, want: errNoProof},
		"a time that is none":    {header: "v1 noon AAAA", to: good, want: errNoProof},
		"a time beyond reason":   {header: "v1 -9223372036854775808 AAAA", to: good, want: errStale},
		"a MAC that is cut":      {header: good.sign(key, noon)[:40], to: good, want: errNoProof},
		"no base64":              {header: fmt.Sprintf("v1 %d !", noon.UnixNano()), to: good, want: errNoProof},
		"an empty MAC":           {header: fmt.Sprintf("v1 %d ", noon.UnixNano()), to: good, want: errWrong},
		"its time changed a bit": {header: strings.Replace(good.sign(key, noon), "000 ", "001 ", 1), to: good, want: errWrong},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			var p proofs
			if err := p.check(r.to, r.header, key, noon); !errors.Is(err, r.want) {
				t.Errorf("got %v, want %v", err, r.want)
			}
		})
	}
}

func TestUsedProofIsRefused(t *testing.T) {
	key, _ := proofKey(withToken("secret"))
	a := ask{method: "POST", host: "10.244.244.1:12346", path: "/app/"}
	var p proofs
	ahead := a.sign(key, noon.Add(proofWindow))
	for i, want := range []error{nil, errReplayed, errReplayed} {
		if err := p.check(a, ahead, key, noon.Add(time.Duration(i)*2*proofWindow/2)); !errors.Is(err, want) {
			t.Errorf("use %d: got %v, want %v", i, err, want)
		}
	}
	if err := p.check(a, a.sign(key, noon.Add(time.Nanosecond)), key, noon); err != nil {
		t.Errorf("the next question is refused: %v", err)
	}
	later := noon.Add(5 * proofWindow)
	if err := p.check(a, a.sign(key, later), key, later); err != nil || len(p.seen) != 1 {
		t.Errorf("%v, and %d proofs are remembered for longer than they work", err, len(p.seen))
	}
}

func TestMemoryOfProofsIsBounded(t *testing.T) {
	key, _ := proofKey(withToken("secret"))
	a := ask{method: "POST", host: "10.244.244.1:12346", path: "/app/"}
	var p proofs
	for i := range maxProofs {
		if err := p.check(a, a.sign(key, noon.Add(time.Duration(i))), key, noon); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.check(a, a.sign(key, noon.Add(time.Second)), key, noon); !errors.Is(err, errTooMany) {
		t.Errorf("got %v", err)
	}
}

func TestWithoutATokenNothingIsProved(t *testing.T) {
	if _, err := proofKey(withToken("")); !errors.Is(err, errNoToken) {
		t.Errorf("got %v", err)
	}
	a, _ := proofKey(withToken("x"))
	none := withToken("x")
	none.ClusterID.UUID = uuid.Nil
	if b, _ := proofKey(none); string(a) == string(b) || len(a) != 32 {
		t.Errorf("keys %x and %x", a, b)
	}
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
	var g gate
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
