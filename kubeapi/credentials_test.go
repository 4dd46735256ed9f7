package kubeapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

const days = 24 * time.Hour

func TestWhatTheConnectionRestsOnIsKnown(t *testing.T) {
	ca := issue(t, "cluster CA", 3650*days, nil)
	server, client := issue(t, "k3s", 200*days, ca), issue(t, "admin", 100*days, issue(t, "client CA", 3650*days, nil))
	a := newPresenter(t, server)
	t.Cleanup(a.Close) // after the client, whose watches it waits for
	tb := runOver(t, kubeconfigFor(t, a.URL, ca, client))
	kubetest.WaitFor(t, "all is known", 15*time.Second, func() bool {
		c := tb.credentials()
		return c.Server.Known() && c.Version != "" && c.ClockKnown
	})
	c := tb.credentials()
	if c.Client != access.CertificateOf(client.cert) || c.Client.Subject != "admin" || c.CA != access.CertificateOf(ca.cert) || c.Server != access.CertificateOf(server.cert) {
		t.Errorf("%+v", c)
	}
	if c.Version != "v1.34.2+k3s1" || c.ClockAhead.Abs() > 5*time.Second {
		t.Errorf("%+v", c)
	}
	if n := a.versions.Load(); n != 1 {
		t.Errorf("the version was asked for %d times", n)
	}
}

func TestACertificateThatProvesNothingIsShownAllTheSame(t *testing.T) {
	ca := issue(t, "cluster CA", 3650*days, nil)
	client := issue(t, "admin", 100*days, ca)
	for name, row := range map[string]struct {
		server *paper
		why    string
	}{
		"it has ended":         {issue(t, "k3s", -days, ca), ""},
		"of another authority": {issue(t, "k3s", 10*days, issue(t, "cluster CA", 10*days, nil)), "it is signed by an authority that the kubeconfig does not name"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newPresenter(t, row.server)
			t.Cleanup(a.Close)
			tb := runOver(t, kubeconfigFor(t, a.URL, ca, client))
			kubetest.WaitFor(t, "it is known", 5*time.Second, func() bool { return tb.credentials().Server.Known() })
			if c := tb.credentials().Server; c.Unusable != row.why || !c.NotAfter.Equal(row.server.cert.NotAfter) {
				t.Errorf("%+v", c)
			}
		})
	}
}

func TestACertificateThatIsRenewedUnderARunningConnectionIsSeen(t *testing.T) {
	defer goleak.VerifyNone(t)
	ca := issue(t, "cluster CA", 3650*days, nil)
	a := newPresenter(t, issue(t, "k3s", 10*days, ca))
	defer a.Close()
	base, err := access.NewTransport(&rest.Config{Host: a.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca.pem()}})
	if err != nil {
		t.Fatal(err)
	}
	defer base.CloseAll()
	var table pubsub.Table[types.Credentials]
	creds := access.NewCredentials(kubetest.Quiet(), &table)
	base.Shown = creds.Handshake
	renewed := issue(t, "k3s", 365*days, ca)
	a.shows.Store(renewed)
	if err := access.Handshaker(base, &rest.Config{Host: a.URL})(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := creds.Server(); got != access.CertificateOf(renewed.cert) {
		t.Errorf("%+v", got)
	}
	a.shows.Store(issue(t, "k3s", 365*days, nil))
	err = access.Handshaker(base, &rest.Config{Host: a.URL})(t.Context())
	if creds.Failed(err); creds.Server().Unusable == "" {
		t.Errorf("%v: %+v", err, creds.Server())
	}
}

func TestOnlyACertificateNearItsEndIsLookedAtAnew(t *testing.T) {
	for name, row := range map[string]struct {
		ends  time.Duration
		looks int32
	}{"near": {10 * days, 5}, "far": {100 * days, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var table pubsub.Table[types.Credentials]
				creds := access.NewCredentials(kubetest.Quiet(), &table)
				creds.Change(func(c *types.Credentials) { c.Server.NotAfter = time.Now().Add(row.ends) })
				var looks atomic.Int32
				stop := serverFactsOf(t, creds, &fakeAPI{}, func(context.Context) error { looks.Add(1); return nil })
				time.Sleep(5*time.Hour + time.Minute)
				stop()
				if n := looks.Load(); n != row.looks {
					t.Errorf("%d looks", n)
				}
			})
		})
	}
}

// serverFactsOf keeps them over api until the returned function is called.
func serverFactsOf(t *testing.T, creds *access.Credentials, api http.Handler, shake func(context.Context) error) (stop func()) {
	s := access.NewLiveness(t.Context(), kubetest.Quiet(), func(time.Time, string) {})
	conn, err := newConnection(t.Context(), &rest.Config{Host: "https://kube"}, &kubetest.InMemory{Handler: api}, s)
	if err != nil {
		t.Fatal(err)
	}
	conn.Work.Go(func() { conn.ServerFacts(creds, shake) })
	return func() { conn.Retire(); conn.Work.Wait() }
}

func TestTheVersionIsAskedForAfterAHandshakeAndOnceAMinuteAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var table pubsub.Table[types.Credentials]
		creds := access.NewCredentials(kubetest.Quiet(), &table)
		api := &fakeAPI{fault: func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, map[string]string{"gitVersion": "v9"}) }}
		stop := serverFactsOf(t, creds, api, func(context.Context) error { return nil })
		defer stop()
		time.Sleep(time.Hour)
		if n := api.count(); n != 0 {
			t.Errorf("%d requests before a handshake", n)
		}
		for range 595 { // ten minutes of a server that drops every connection
			creds.Handshake(tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}})
			time.Sleep(time.Second)
		}
		if n := api.count(); n != 10 {
			t.Errorf("%d requests", n)
		}
		time.Sleep(2 * time.Minute)
		was := api.count()
		time.Sleep(time.Hour)
		if n := api.count(); n != was {
			t.Errorf("%d requests more in an idle hour", n-was)
		}
		if c, _ := table.Get(types.Global); c.Version != "v9" {
			t.Errorf("%+v", c)
		}
	})
}

func TestAVersionThatIsNoneIsLeftOut(t *testing.T) {
	for name, body := range map[string]string{"no JSON": "nonsense", "none": "{}", "huge": `{"gitVersion":"` + strings.Repeat("9", 1000) + `"}`} {
		synctest.Test(t, func(t *testing.T) {
			var table pubsub.Table[types.Credentials]
			creds := access.NewCredentials(kubetest.Quiet(), &table)
			api := &fakeAPI{fault: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }}
			stop := serverFactsOf(t, creds, api, func(context.Context) error { return nil })
			creds.Handshake(tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}})
			time.Sleep(time.Hour)
			stop()
			if c, _ := table.Get(types.Global); c.Version != "" || api.count() != 1 {
				t.Errorf("%s: %q after %d requests", name, c.Version, api.count())
			}
		})
	}
}

func TestTheServersClockIsNewsOnlyWhenItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var table pubsub.Table[types.Credentials]
		creds := access.NewCredentials(kubetest.Quiet(), &table)
		says := func(ahead time.Duration) time.Duration {
			head := http.Header{"Date": {time.Now().Add(ahead).UTC().Format(http.TimeFormat)}}
			creds.Dated(head, time.Now())
			c, _ := table.Get(types.Global)
			return c.ClockAhead
		}
		for _, row := range []struct{ ahead, shown time.Duration }{
			{2 * time.Second, 3 * time.Second}, // to the second, and the half of one that the head leaves out
			{9 * time.Second, 3 * time.Second},
			{5 * time.Minute, 301 * time.Second},
			{5*time.Minute - 8*time.Second, 301 * time.Second},
			{-time.Hour, -time.Hour + time.Second},
		} {
			if got := says(row.ahead); (got - row.shown).Abs() > time.Second {
				t.Errorf("%v ahead is shown as %v, want %v", row.ahead, got, row.shown)
			}
		}
		began := time.Now()
		time.Sleep(time.Minute)
		was, _ := table.Get(types.Global)
		creds.Dated(http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}}, began) // it took a minute
		creds.Dated(http.Header{"Date": {"yesterday"}}, time.Now())
		creds.Dated(http.Header{}, time.Now())
		if c, _ := table.Get(types.Global); c != was {
			t.Errorf("%+v", c)
		}
	})
}

func TestOfSeveralAuthoritiesTheOneThatProvesTheServerCounts(t *testing.T) {
	one, two := issue(t, "old", days, nil), issue(t, "new", 99*days, nil)
	var table pubsub.Table[types.Credentials]
	creds := access.NewCredentials(kubetest.Quiet(), &table)
	creds.Configured(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: append(one.pem(), two.pem()...)}})
	if c, _ := table.Get(types.Global); c.CA.Known() || c.Client.Known() {
		t.Errorf("%+v", c)
	}
	server := issue(t, "k3s", days, two)
	creds.Handshake(tls.ConnectionState{
		PeerCertificates: []*x509.Certificate{server.cert}, VerifiedChains: [][]*x509.Certificate{{server.cert, two.cert}},
	})
	if c, _ := table.Get(types.Global); c.CA != access.CertificateOf(two.cert) {
		t.Errorf("%+v", c)
	}
}

func TestTheCertificateOfAKubeconfigIsKnown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k3s.yaml")
	client := issue(t, "admin", 100*days, nil)
	encoded := base64.StdEncoding.EncodeToString
	kubetest.WriteFile(t, path, strings.Replace(kubetest.KubeconfigText("https://127.0.0.1:1", ""), "token: secret-token",
		fmt.Sprintf("client-certificate-data: %s, client-key-data: %s", encoded(client.pem()), encoded(client.keyPEM(t))), 1))
	cfg, _, err := access.RestConfig(path, access.ReadTrusted)
	if err != nil {
		t.Fatal(err)
	}
	var table pubsub.Table[types.Credentials]
	access.NewCredentials(kubetest.Quiet(), &table).Configured(cfg)
	if c, _ := table.Get(types.Global); c.Client != access.CertificateOf(client.cert) {
		t.Errorf("%+v", c)
	}
}

func TestTheClusterWasInstalledWhenItsNamespaceWasMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tb := newTestClient(t)
		api := someCluster()
		end := startInMemory(t, c, &kubetest.InMemory{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/api/v1/namespaces/"+access.Namespace {
				api.ServeHTTP(w, r)
				return
			}
			reply(w, 200, corev1.Namespace{
				TypeMeta:   metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"},
				ObjectMeta: metav1.ObjectMeta{Name: access.Namespace, CreationTimestamp: installed},
			})
		})})
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := tb.credentials().InstalledAt; !got.Equal(installed.Time) {
			t.Errorf("installed at %v", got)
		}
		end()
	})
}
