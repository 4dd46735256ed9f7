package health

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/base/clusterauth"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/test/cmdtest/loopback"
	"github.com/zedkube/zedkube/types"
)

const (
	ourToken   = "K10ours::server:one"
	theirToken = "K10theirs::server:two"
)

var ourCluster = uuid.MustParse("5d0c7a52-3a0e-4c7e-9f1b-2f6f0c3a9e11")

// statusServer is one at an address of this machine, with a token by TLS, or with "" by
// plain HTTP alone.
func statusServer(t *testing.T, token string) (ip string) {
	t.Helper()
	l := loopback.Listen(t, types.PortStatus)
	ip = l.Addr().(*net.TCPAddr).IP.String()
	keys := &clusterauth.Keyring{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token != "" && !keys.Admits(r, time.Now()) {
			t.Errorf("%s was asked without its bearer", ip)
		}
		if token == "" && r.Header.Get("Authorization") != "" {
			t.Errorf("%s was sent a bearer by plain HTTP", ip)
		}
		_, _ = io.WriteString(w, "cluster:"+ourCluster.String())
	}))
	s.Listener.Close()
	s.Listener, s.Config.ErrorLog = l, log.New(io.Discard, "", 0)
	if token == "" {
		s.Start()
	} else {
		if err := keys.Update(ourCluster, token, time.Now()); err != nil {
			t.Fatal(err)
		}
		s.TLS = keys.ServerConfig()
		certificate, _ := s.TLS.GetCertificate(nil)
		s.TLS.Certificates = append(s.TLS.Certificates, *certificate) // or httptest adds its own
		s.StartTLS()
	}
	t.Cleanup(s.Close)
	return ip
}

// withToken is a device whose EdgeNodeClusterStatus has our token.
func withToken(t *testing.T) *Device {
	t.Helper()
	d := &Device{Root: t.TempDir(), within: time.Minute}
	raw, err := json.Marshal(types.EdgeNodeClusterStatus{ClusterID: types.UUIDandVersion{UUID: ourCluster}, EncryptedClusterToken: ourToken})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(d.Root, "run/zedkube/EdgeNodeClusterStatus/global.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestEachPeerIsAskedByItsProtocol(t *testing.T) {
	d := withToken(t)
	memory := filepath.Join(d.Root, clusterauth.MemoryFile)
	if err := os.MkdirAll(filepath.Dir(memory), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(memory, []byte(`{"seen":{"boot":"b1"},"booted":{"boot":"b0"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	nodes := []overview.ClusterNode{
		{Name: "own", Own: true, Address: "127.0.0.1"},
		{Name: "ours", Agent: "1", StatusTLS: true, Address: statusServer(t, ourToken)},
		{Name: "theirs", Address: statusServer(t, theirToken)},
		{Name: "older", Agent: "0", Address: statusServer(t, "")},
		{Name: "seen", Address: statusServer(t, ""), BootID: "b1"},
		{Name: "booted", Address: statusServer(t, ""), BootID: "b2"},
		{Name: "nowhere", Address: "x"},
	}
	got := map[string]string{}
	for _, p := range d.askPeers(t.Context(), nodes) {
		switch {
		case p.err != nil:
			got[p.node] = p.err.Error()
		case p.byTLS:
			got[p.node] = "TLS"
		default:
			got[p.node] = "plain"
		}
	}
	for node, want := range map[string]string{
		"ours": "TLS", "theirs": clusterauth.ErrOtherToken.Error(), "older": "plain", "seen": clusterauth.ErrDowngrade.Error(), "booted": "plain",
	} {
		if got[node] != want {
			t.Errorf("%s: %q, want %q", node, got[node], want)
		}
	}
	if len(got) != 5 {
		t.Errorf("asked were %v", got)
	}
}

func TestInARotationAPeerWithTheTokenBeforeIsTrusted(t *testing.T) {
	d, keys := withToken(t), &clusterauth.Keyring{}
	if err := errors.Join(keys.Update(ourCluster, theirToken, time.Now()), keys.Update(ourCluster, ourToken, time.Now())); err != nil {
		t.Fatal(err)
	}
	nodes := []overview.ClusterNode{{Name: "older", Address: statusServer(t, theirToken)}, {Name: "newer", Address: statusServer(t, ourToken)}}
	if judged := judgePeers(d.askPeers(t.Context(), nodes)); judged.Severity != types.SeverityWarn {
		t.Errorf("without an agent: %+v", judged)
	}
	d.Socket = filepath.Join(t.TempDir(), "sock")
	l, err := net.Listen("unix", d.Socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: keys}}
	s.Start()
	t.Cleanup(s.Close)
	if judged := judgePeers(d.askPeers(t.Context(), nodes)); judged.Severity != types.SeverityOK {
		t.Errorf("with one: %+v", judged)
	}
}

func TestTheOwnStatusServerIsAskedAsAnyJoinerAsks(t *testing.T) {
	d := withToken(t)
	if a := d.askStatus(t.Context(), statusServer(t, ourToken)+"/24"); a.secure.err != nil || !a.secure.byTLS || a.secure.body != "cluster:"+ourCluster.String() {
		t.Errorf("%+v", a.secure)
	}
	if a := d.askStatus(t.Context(), statusServer(t, theirToken)+"/24"); a.secure.err == nil || !isUntrusted(a.secure.err) {
		t.Errorf("of another token: %+v", a.secure)
	}
	if a := d.askStatus(t.Context(), statusServer(t, "")+"/24"); a.plain.err != nil || a.secure.err == nil || strings.Contains(a.secure.err.Error(), "K10") {
		t.Errorf("one without TLS: %+v, %+v", a.plain, a.secure)
	}
}

func TestWhatIsKnownWhenTimeIsUpIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		nodes := once[int]{look: func(context.Context) int { time.Sleep(patience * 3 / 4); return 1 }}
		peers := once[int]{look: func(ctx context.Context) int {
			n, _ := nodes.get(ctx)
			<-ctx.Done() // one is silent
			return n + 1
		}}
		if got, known := peers.get(ctx); got != 2 || !known {
			t.Errorf("%d, %v", got, known)
		}
		hangs := once[int]{look: func(context.Context) int { time.Sleep(time.Hour); return 1 }}
		if _, known := hangs.get(ctx); known || ctx.Err() == nil {
			t.Error("it is waited for")
		}
		time.Sleep(time.Hour)
	})
}
