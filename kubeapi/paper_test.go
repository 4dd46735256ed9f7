package kubeapi

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

// paper is a certificate with its key.
type paper struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// issue makes a certificate that ends after d, signed by by, nil for itself.
func issue(t *testing.T, name string, d time.Duration, by *paper) *paper {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	draft := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(min(d, 0) - time.Hour), NotAfter: now.Add(d),
		IsCA: by == nil, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	signer := &paper{draft, key}
	if by != nil {
		signer = by
	}
	der, err := x509.CreateCertificate(rand.Reader, draft, signer.cert, &key.PublicKey, signer.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &paper{cert, key}
}

func (p *paper) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.cert.Raw})
}

func (p *paper) keyPEM(t *testing.T) []byte {
	der, err := x509.MarshalECPrivateKey(p.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

// presenter is an API server whose certificate can be changed under way.
type presenter struct {
	*httptest.Server
	shows    atomic.Pointer[paper]
	versions atomic.Int32 // requests for the version
}

var installed = metav1.NewTime(time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))

func newPresenter(t *testing.T, shows *paper) *presenter {
	a := &presenter{}
	a.shows.Store(shows)
	api := someCluster()
	a.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/version":
			a.versions.Add(1)
			reply(w, 200, map[string]string{"gitVersion": "v1.34.2+k3s1"})
		case "/api/v1/namespaces/" + access.Namespace:
			reply(w, 200, corev1.Namespace{
				TypeMeta:   metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"},
				ObjectMeta: metav1.ObjectMeta{Name: access.Namespace, CreationTimestamp: installed},
			})
		default:
			api.ServeHTTP(w, r)
		}
	}))
	a.Config.ErrorLog = log.New(io.Discard, "", 0)
	a.EnableHTTP2 = true
	a.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		p := a.shows.Load()
		return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{p.cert.Raw}, PrivateKey: p.key}}, NextProtos: []string{"h2"}}, nil
	}}
	a.StartTLS()
	return a
}

// kubeconfigFor is one with a client certificate in it.
func kubeconfigFor(t *testing.T, server string, ca, client *paper) string {
	in := base64.StdEncoding.EncodeToString
	text := kubetest.KubeconfigText(server, "certificate-authority-data: "+in(ca.pem())+",")
	return strings.Replace(text, "token: secret-token",
		fmt.Sprintf("client-certificate-data: %s, client-key-data: %s", in(client.pem()), in(client.keyPEM(t))), 1)
}

func runOver(t *testing.T, kubeconfig string) *tables {
	path := filepath.Join(t.TempDir(), "k3s.yaml")
	kubetest.WriteFile(t, path, kubeconfig)
	c, tb := newTestClient(t)
	c.Kubeconfig = path
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return tb
}

func (tb *tables) credentials() types.Credentials {
	c, _ := tb.creds.Get(types.Global)
	return c
}
