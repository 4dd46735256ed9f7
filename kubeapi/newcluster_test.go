package kubeapi

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// caOf is how a kubeconfig names the CA of a test server.
func caOf(server *httptest.Server) string {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return "certificate-authority-data: " + base64.StdEncoding.EncodeToString(authority) + ","
}

// runClient runs c and returns what ends it.
func runClient(t *testing.T, c *Client) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	return func() { cancel(); <-done }
}

func secureServer(api *fakeAPI) *httptest.Server {
	s := httptest.NewUnstartedServer(api)
	s.EnableHTTP2 = true
	s.StartTLS()
	return s
}

func TestANewClusterTakesTheTablesOverWithoutEmptyingThem(t *testing.T) {
	defer goleak.VerifyNone(t)
	first, second := someCluster(), someCluster()
	second.nodes = []corev1.Node{testNode("n1", ownUUID), testNode("n3", "y")}
	a, b := secureServer(first), secureServer(second)
	defer a.Close()
	defer b.Close()

	c, tb := newTestClient(t)
	c.Kubeconfig = filepath.Join(t.TempDir(), "k3s.yaml")
	end := runClient(t, c)
	defer end()
	kubetest.WaitFor(t, "the silence without a kubeconfig is published", time.Second, func() bool {
		s, ok := tb.api.Get(types.Global)
		return ok && !s.Answers() && strings.Contains(s.Reason, "no such file")
	})
	if err := c.Cordon(t.Context(), "n1", types.Cordon{}); !errors.Is(err, types.ErrNoAPI) {
		t.Errorf("a verb without a kubeconfig: %v", err)
	}
	kubetest.WriteFile(t, c.Kubeconfig, kubetest.KubeconfigText(a.URL, caOf(a)))
	kubetest.WaitFor(t, "the first cluster is seen", 5*time.Second, func() bool { return tb.status().Synced && tb.status().Answers() })

	bell := make(chan struct{}, 1)
	tb.nodes.Notify(bell)
	kubetest.WriteFile(t, c.Kubeconfig, kubetest.KubeconfigText(b.URL, caOf(b)))
	for len(tb.nodes.All()) != 2 || kubetest.Keys(tb.nodes.All())[1] != "n3" {
		select {
		case <-bell:
			if len(tb.nodes.All()) == 0 {
				t.Error("the table was emptied")
			}
		case <-time.After(time.Minute):
			t.Fatalf("nodes are still %v", kubetest.Keys(tb.nodes.All()))
		}
	}
	kubetest.WaitFor(t, "the tables are whole", time.Second, func() bool { return tb.status().Synced })
	end()
	if err := c.Uncordon(t.Context(), "n1"); !errors.Is(err, types.ErrNoAPI) {
		t.Errorf("a verb after the end: %v", err)
	}
}

func TestAKubeconfigThatVanishesLeavesItsServerInUse(t *testing.T) {
	defer goleak.VerifyNone(t)
	first, second := someCluster(), &fakeAPI{nodes: []corev1.Node{testNode("m1", "z")}}
	a, b := secureServer(first), secureServer(second)
	defer a.Close()
	defer b.Close()
	c, tb := newTestClient(t)
	c.Kubeconfig = filepath.Join(t.TempDir(), "k3s.yaml")
	kubetest.WriteFile(t, c.Kubeconfig, kubetest.KubeconfigText(a.URL, caOf(a)))
	end := runClient(t, c)
	defer end()
	kubetest.WaitFor(t, "the first cluster is seen", 5*time.Second, func() bool { return tb.status().Synced && tb.status().Answers() })
	if err := os.Remove(c.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * access.Settle)
	if s := tb.status(); !s.Synced || !s.Answers() || len(tb.own.All()) != 2 {
		t.Errorf("status is %+v, own pods %v", s, kubetest.Keys(tb.own.All()))
	}
	if _, err := c.PodsToEvict(t.Context(), "n1"); err != nil {
		t.Error(err)
	}
	kubetest.WriteFile(t, c.Kubeconfig, kubetest.KubeconfigText(b.URL, caOf(b)))
	kubetest.WaitFor(t, "only the second cluster is seen", 5*time.Second, func() bool {
		return tb.status().Synced && len(tb.nodes.All()) == 1 && len(tb.own.All())+len(tb.appPods.All()) == 0
	})
}

func TestAWrongCAIsASilenceThatNamesIt(t *testing.T) {
	defer goleak.VerifyNone(t)
	a := secureServer(someCluster())
	defer a.Close()
	c, tb := newTestClient(t)
	c.Kubeconfig = filepath.Join(t.TempDir(), "k3s.yaml")
	kubetest.WriteFile(t, c.Kubeconfig, strings.Replace(kubetest.KubeconfigText(a.URL, ""), "{ server", "{certificate-authority-data: "+foreignCA(t)+", server", 1))
	end := runClient(t, c)
	defer end()
	kubetest.WaitFor(t, "the certificate is refused", 5*time.Second, func() bool {
		return strings.Contains(tb.status().Reason, "x509")
	})
	kubetest.WriteFile(t, c.Kubeconfig, kubetest.KubeconfigText(a.URL, caOf(a)))
	kubetest.WaitFor(t, "the right CA works", 5*time.Second, func() bool { return tb.status().Synced && tb.status().Answers() })
}

// foreignCA is the certificate of a CA that signed nothing of ours, encoded as
// a kubeconfig holds it.
func foreignCA(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
