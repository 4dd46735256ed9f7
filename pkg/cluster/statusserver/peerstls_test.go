package statusserver

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/base/clusterauth"
	"github.com/zedkube/zedkube/types"
)

// newEVE answers on ip by TLS alone, as EVE's newer zedkube with that token does.
func newEVE(t *testing.T, ip string, port int, token, name string) (stop func()) {
	t.Helper()
	keys := &clusterauth.Keyring{}
	if err := keys.Update(uuid.MustParse(clusterID), token, time.Now()); err != nil {
		t.Fatal(err)
	}
	return serving(t, ip, port, keys.ServerConfig(), func(w http.ResponseWriter, r *http.Request) {
		if !keys.Admits(r, time.Now()) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="zedkube"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `{"hostname":"`+name+`","appInfo":[{}]}`)
	})
}

// oldEVE answers on ip by plain HTTP, and anyone.
func oldEVE(t *testing.T, ip string, port int, name string, asked *atomic.Int32) (stop func()) {
	t.Helper()
	return serving(t, ip, port, nil, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Errorf("%s got a bearer by plain HTTP", name)
		}
		asked.Add(1)
		_, _ = io.WriteString(w, `{"hostname":"`+name+`","appInfo":[{}]}`)
	})
}

func serving(t *testing.T, ip string, port int, secure *tls.Config, h http.HandlerFunc) (stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(ip, fmt.Sprint(port)))
	if err != nil {
		t.Fatal(err)
	}
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	s := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	stop = func() { _ = s.Close(); <-done }
	t.Cleanup(stop)
	return stop
}

func TestPeersOfAllReleasesAreAskedAtOnce(t *testing.T) {
	stamp := func(secure bool) *types.AgentStamp { return &types.AgentStamp{TLS: secure} }
	others := []types.Node{
		{Name: "older", InternalIP: "127.12.34.21", Agent: stamp(false)},
		{Name: "newer", InternalIP: "127.12.34.22", Agent: stamp(true)},
		{Name: "oldEVE", InternalIP: "127.12.34.23"},
		{Name: "newEVE", InternalIP: "127.12.34.24"},
		{Name: "otherToken", InternalIP: "127.12.34.25"},
		{Name: "silent", InternalIP: "127.12.34.26"},
		{Name: "staleOld", InternalIP: "127.12.34.27", Agent: stamp(true), StampStale: true},
		{Name: "stampedWithoutTLS", InternalIP: "127.12.34.28", Agent: stamp(true)},
	}
	first, _ := pair(t, others...)
	var older, old, stale, refused atomic.Int32
	oldEVE(t, "127.12.34.21", first.port, "older", &older)
	newEVE(t, "127.12.34.22", first.port, token, "newer")
	oldEVE(t, "127.12.34.23", first.port, "oldEVE", &old)
	newEVE(t, "127.12.34.24", first.port, token, "newEVE")
	newEVE(t, "127.12.34.25", first.port, "another token", "otherToken")
	oldEVE(t, "127.12.34.27", first.port, "staleOld", &stale)
	oldEVE(t, "127.12.34.28", first.port, "stampedWithoutTLS", &refused)
	mute, err := net.Listen("tcp", net.JoinHostPort("127.12.34.26", fmt.Sprint(first.port)))
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close() // it takes connections and says nothing

	_, body := from(t, firstIP, first.at(firstIP), http.MethodPost, "/cluster-app", nil)
	_, faults := valueOf(t, body)
	for name, want := range map[string]string{
		"First": "", "Second": "", "older": "", "newer": "", "oldEVE": "", "newEVE": "", "staleOld": "",
		"127.12.34.25": clusterauth.ErrOtherToken.Error(), "127.12.34.26": "deadline exceeded", "127.12.34.28": clusterauth.ErrDowngrade.Error(),
	} {
		got, there := faults[name]
		if !there || (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q (%v), want %q", name, got, there, want)
		}
	}
	if older.Load() != 1 || old.Load() != 1 || stale.Load() != 1 || refused.Load() != 0 {
		t.Errorf("by plain HTTP were asked %d %d %d %d", older.Load(), old.Load(), stale.Load(), refused.Load())
	}
}

// A device that has tried an update is back at the image of before: only a boot
// allows that.
func TestAPeerSeenWithTLSIsAskedByPlainHTTPOnlyAfterABoot(t *testing.T) {
	eve := types.Node{Name: "eve", InternalIP: "127.12.34.24", BootID: "boot-1"}
	first, _ := pair(t, eve)
	round := func() string {
		t.Helper()
		_, body := from(t, firstIP, first.at(firstIP), http.MethodPost, "/cluster-app", nil)
		_, faults := valueOf(t, body)
		if fault, there := faults["127.12.34.24"]; there {
			return fault
		}
		if fault, there := faults["eve"]; !there || fault != "" {
			return "nothing"
		}
		return ""
	}
	var plainly atomic.Int32
	stop := newEVE(t, eve.InternalIP, first.port, token, "eve")
	if got := round(); got != "" {
		t.Fatalf("by TLS: %s", got)
	}
	stop()
	stop = oldEVE(t, eve.InternalIP, first.port, "eve", &plainly)
	for range 2 {
		if got := round(); !strings.Contains(got, clusterauth.ErrDowngrade.Error()) || plainly.Load() != 0 {
			t.Errorf("in the same boot: %q, %d times by plain HTTP", got, plainly.Load())
		}
	}
	eve.BootID = "boot-2"
	_ = first.nodes.Publish("eve", eve)
	for i := range 2 {
		if got := round(); got != "" || int(plainly.Load()) != i+1 {
			t.Errorf("after a boot: %q, %d times by plain HTTP", got, plainly.Load())
		}
	}
	if got := first.trail.of("test TLS"); len(got) != 1 || got[0] != "node/eve" || first.warnings("test again whether") != 1 {
		t.Errorf("recorded are %q, %d lines are logged", got, first.warnings("test again whether"))
	}
	stop()
	newEVE(t, eve.InternalIP, first.port, token, "eve")
	if got := round(); got != "" {
		t.Errorf("by TLS again: %s", got)
	}
}

func TestWhichPeersSpeakTLSOutlivesTheAgent(t *testing.T) {
	run := t.TempDir()
	port := freePort(t)
	boots := func() *device {
		d := bootOn(t, port, run)
		_ = d.nodes.Publish("eve", types.Node{Name: "eve", InternalIP: secondIP, BootID: "boot-1"})
		d.ready(firstIP + "/24")
		d.listens(firstIP, true)
		return d
	}
	d := boots()
	// One who asks by TLS speaks it: one release of EVE does both.
	if answer, _, err := secured(t, secondIP, d.at(firstIP), token, http.MethodPost, "/app/", nil); err != nil || answer.Code != http.StatusOK {
		t.Fatalf("%v, %v", answer, err)
	}
	eventually(t, "it is not kept", func() bool {
		_ = d.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: fmt.Sprint(time.Now())}) // a step
		content, _ := os.ReadFile(filepath.Join(run, "zedkube", "peers"))
		return strings.Contains(string(content), `"eve"`)
	})
	d.stop()
	d = boots()
	var plainly atomic.Int32
	oldEVE(t, secondIP, port, "eve", &plainly)
	_, body := from(t, firstIP, d.at(firstIP), http.MethodPost, "/cluster-app", nil)
	if _, faults := valueOf(t, body); !strings.Contains(faults[secondIP], clusterauth.ErrDowngrade.Error()) || plainly.Load() != 0 {
		t.Errorf("after a restart: %v, %d times by plain HTTP", faults, plainly.Load())
	}
}

// The second node gets a new token later than the first.
func TestTwoNodesAskEachOtherWhileTheTokenChanges(t *testing.T) {
	nodes := map[string]types.Node{
		"n1": {Name: "n1", UUID: deviceID, InternalIP: firstIP, Agent: &types.AgentStamp{TLS: true}, ControlPlane: true, Etcd: true},
		"n2": {Name: "n2", InternalIP: secondIP, Agent: &types.AgentStamp{TLS: true}},
	}
	port := freePort(t)
	first, second := joined(t, port, firstIP, "First", token, nodes), joined(t, port, secondIP, "Second", token, nodes)
	asks := func(d *device, ip, other string) func() string {
		return func() string {
			_, body := from(t, ip, d.at(ip), http.MethodPost, "/cluster-app", nil)
			_, faults := valueOf(t, body)
			return faults[other]
		}
	}
	byFirst, bySecond := asks(first, firstIP, secondIP), asks(second, secondIP, firstIP)
	if one, two := byFirst(), bySecond(); one != "" || two != "" {
		t.Errorf("with one token: %q, %q", one, two)
	}
	first.publish(firstIP, "a newer token")
	eventually(t, "a node that lacks the new token is not told of it", func() bool { return strings.Contains(bySecond(), clusterauth.ErrOtherToken.Error()) })
	if fault := byFirst(); fault != "" {
		t.Errorf("a node that has the new token does not take the other's: %s", fault)
	}
	eventually(t, "the first does not log it", func() bool { return first.warnings(otherCertificate) == 1 })
	second.publish(secondIP, "a newer token")
	eventually(t, "with the new token they do not ask each other", func() bool { return bySecond() == "" && byFirst() == "" })
}

func TestAnAddressOfTwoNodesPermitsNoPlainHTTPThatOneOfThemForbids(t *testing.T) {
	c := asking(t, 0)
	for _, n := range []types.Node{
		{Name: "a", InternalIP: secondIP, Agent: &types.AgentStamp{}},
		{Name: "b", InternalIP: secondIP, Agent: &types.AgentStamp{TLS: true}},
		{Name: "c", InternalIP: "::ffff:" + strangerIP, BootID: "boot", Agent: &types.AgentStamp{TLS: true}},
		{Name: "d", InternalIP: "127.12.34.3", Agent: &types.AgentStamp{}},
		{Name: "e", InternalIP: "127.12.34.3"},
	} {
		_ = c.Nodes.(interface {
			Publish(string, types.Node) error
		}).Publish(n.Name, n)
	}
	peer := c.client(t.Context(), &net.Dialer{}).Peer
	if got := peer(netip.MustParseAddr(secondIP)); got != (clusterauth.Peer{Name: "b", Stamp: clusterauth.StampTLS}) {
		t.Errorf("of two Nodes, one with TLS: %+v", got)
	}
	if got := peer(netip.MustParseAddr("127.12.34.3")); got != (clusterauth.Peer{}) {
		t.Errorf("of two Nodes without: %+v", got)
	}
	if got := peer(netip.MustParseAddr(strangerIP)); got != (clusterauth.Peer{Name: "c", Boot: "boot", Stamp: clusterauth.StampTLS}) {
		t.Errorf("of one: %+v", got)
	}
}
