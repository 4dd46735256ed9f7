package kubeapi

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/kubelet"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

const wholeSummary = `{"node":{"nodeName":"n1","cpu":{"usageNanoCores":5}},"pods":[]}`

// playedKubelet serves at whatever address is dialled.
type playedKubelet struct {
	answer http.HandlerFunc
	cfg    *rest.Config // of one who may ask

	mu     sync.Mutex
	dialed []string
}

// playKubelet has a certificate of by that names these, and lets in who has one of ca.
func playKubelet(t *testing.T, ca, by *kubetest.Authority, names []string, answer http.HandlerFunc) *playedKubelet {
	t.Helper()
	k := &playedKubelet{answer: answer}
	template := &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	_, _, cert, key := by.Sign(t, template)
	served, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca.Cert)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { k.answer(w, r) }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{served}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	server.StartTLS()
	t.Cleanup(server.Close)
	_, _, own, ownKey := ca.Sign(t, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	k.cfg = &rest.Config{
		Host: "https://kube", TLSClientConfig: rest.TLSClientConfig{CAData: ca.Pem, CertData: own, KeyData: ownKey},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			k.mu.Lock()
			k.dialed = append(k.dialed, address)
			k.mu.Unlock()
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		},
	}
	return k
}

// connected is a client with the kubeconfig cfg, whose API server is base.
func connected(t *testing.T, cfg *rest.Config, base access.RoundTripper) (*Client, *tables) {
	t.Helper()
	c, tb := newTestClient(t)
	ctx, cancel := context.WithCancel(t.Context())
	r := newRun(ctx, c)
	if err := r.connect(ctx, cfg, base); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); r.end() })
	return c, tb
}

func answering(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func TestTheOwnKubeletProvesToBeThatOfTheNode(t *testing.T) {
	ca, other := kubetest.NewAuthority(t), kubetest.NewAuthority(t)
	for name, row := range map[string]struct {
		by    *kubetest.Authority
		names []string
		ip    string
		ok    bool
	}{
		"by its address":                    {ca, []string{"10.0.0.7"}, "10.0.0.7", true},
		"by its address of IPv6":            {ca, []string{"fd00::7"}, "fd00::7", true},
		"by its name, at a new address":     {ca, []string{"n1", "10.0.0.8"}, "10.0.0.7", true},
		"not by another's name":             {ca, []string{"n2", "10.0.0.8"}, "10.0.0.7", false},
		"not to another authority":          {other, []string{"n1", "10.0.0.7"}, "10.0.0.7", false},
		"not where the node has no address": {ca, []string{"n1"}, "", false},
		"nor a name in place of one":        {ca, []string{"n1", "elsewhere"}, "elsewhere", false},
	} {
		t.Run(name, func(t *testing.T) {
			k := playKubelet(t, ca, row.by, row.names, answering(wholeSummary))
			k.cfg.TLSClientConfig.ServerName = "kube"
			c, _ := connected(t, k.cfg, &kubetest.InMemory{Handler: &fakeAPI{}})
			stats, err := c.KubeletStats(t.Context(), types.Node{Name: "n1", InternalIP: row.ip})
			if (err == nil) != row.ok || row.ok && *stats.Node.CPU != 5 {
				t.Errorf("%+v, %v", stats, err)
			}
			for _, address := range k.dialed {
				if address != net.JoinHostPort(row.ip, "10250") {
					t.Errorf("%s is dialled", address)
				}
			}
		})
	}
}

func TestAKubeconfigThatTrustsAnybodyDoesNotTrustAnyKubelet(t *testing.T) {
	ca := kubetest.NewAuthority(t)
	k := playKubelet(t, ca, ca, []string{"n1"}, answering(wholeSummary))
	k.cfg.TLSClientConfig.CAData, k.cfg.TLSClientConfig.Insecure = nil, true
	c, _ := connected(t, k.cfg, &kubetest.InMemory{Handler: &fakeAPI{}})
	var unknown *tls.CertificateVerificationError
	if _, err := c.KubeletStats(t.Context(), types.Node{Name: "n1", InternalIP: "10.0.0.7"}); !errors.As(err, &unknown) {
		t.Error(err)
	}
}

// endless answers start and then filler, without end.
func endless(code int, start, filler string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, err := io.WriteString(w, start)
		for more := strings.Repeat(filler, 1000); err == nil; {
			_, err = io.WriteString(w, more)
		}
	}
}

// packed is 64 MB of spaces. To pack them takes seconds on a busy machine, for which a client that waits for an
// answer has no time.
var packed = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(bytes.Repeat([]byte(" "), 64<<20))
	_ = z.Close()
	return b.Bytes()
})

func bomb(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Encoding", "gzip")
	_, _ = w.Write(packed())
}

func TestAKubeletThatLiesOrFailsIsAnErrorAndNoSilence(t *testing.T) {
	ca := kubetest.NewAuthority(t)
	k := playKubelet(t, ca, ca, []string{"n1", "10.0.0.7"}, nil)
	c, tb := connected(t, k.cfg, &kubetest.InMemory{Handler: &fakeAPI{}})
	packed()
	for name, answer := range map[string]http.HandlerFunc{
		"a page": answering("<html></html>"), "nothing": answering(""), "500": status500,
		"unknown to it": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"sent elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere/", http.StatusFound)
		},
		"packed":             bomb,
		"endless":            endless(200, `{"node":{"nodeName":"n1"},"pods":[`, `{"podRef":{}},`),
		"an endless pod":     endless(200, `{"node":{"nodeName":"n1"},"pods":[{"podRef":{"name":"`, `x`),
		"an endless text":    endless(200, "", "container_memory_swap 1\n"),
		"an endless line":    endless(200, "", "x"),
		"an endless failure": endless(500, "", "x"),
		"broken off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, wholeSummary[:40])
		},
	} {
		k.answer = answer
		node := types.Node{Name: "n1", InternalIP: "10.0.0.7"}
		stats, err := c.KubeletStats(t.Context(), node)
		if err == nil || errors.Is(err, context.DeadlineExceeded) || name == "an endless pod" && !errors.Is(err, kubelet.ErrLongAnswer) {
			t.Errorf("%s: %+v, %v", name, stats, err)
		}
		if stats, err := c.NodeStats(t.Context(), node); err == nil {
			t.Errorf("%s, of another node: %+v", name, stats)
		}
		if pods, err := c.RunningPods(t.Context(), node); err == nil || pods != nil {
			t.Errorf("%s: %+v, %v", name, pods, err)
		}
		if strings.HasPrefix(name, "an endless") || name == "500" || name == "broken off" {
			got, err := c.KubeletContainers(t.Context(), node)
			if err == nil || name == "an endless text" && !errors.Is(err, kubelet.ErrLongAnswer) {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
	}
	for _, address := range k.dialed {
		if address != "10.0.0.7:10250" {
			t.Errorf("it sends us to %s", address)
		}
	}
	if s := tb.status(); !s.Answers() {
		t.Errorf("the API server is taken for silent: %+v", s)
	}
}

func TestTheOwnKubeletIsAskedWhileTheAPIServerIsSilent(t *testing.T) {
	ca := kubetest.NewAuthority(t)
	k := playKubelet(t, ca, ca, []string{"n1"}, answering(wholeSummary))
	c, tb := connected(t, k.cfg, &kubetest.InMemory{Refuse: func() error { return errors.New("refused") }})
	kubetest.WaitFor(t, "the API server is silent", 8*time.Second, func() bool { s := tb.status(); return !s.Answers() })
	if _, err := c.KubeletStats(t.Context(), types.Node{Name: "n1", InternalIP: "10.0.0.7"}); err != nil {
		t.Error(err)
	}
	if tb.status().Answers() {
		t.Error("its answer is taken for that of the API server")
	}
}

func TestWithoutAKubeconfigNoKubeletIsAsked(t *testing.T) {
	c, _ := newTestClient(t)
	_, own := c.KubeletStats(t.Context(), types.Node{})
	_, more := c.KubeletContainers(t.Context(), types.Node{})
	_, other := c.NodeStats(t.Context(), types.Node{})
	_, running := c.RunningPods(t.Context(), types.Node{})
	_, logs := c.LogFiles(t.Context(), types.Node{}, keptPod, "c")
	for _, err := range []error{own, more, other, running, logs} {
		if !errors.Is(err, types.ErrNoAPI) {
			t.Error(err)
		}
	}
}

func TestAnotherKubeletProvesToBeThatOfItsNodeAndIsShownNoToken(t *testing.T) {
	ca, other := kubetest.NewAuthority(t), kubetest.NewAuthority(t)
	for name, row := range map[string]struct {
		by    *kubetest.Authority
		names []string
		node  types.Node
		ok    bool
	}{
		"by its name":                     {ca, []string{"n2", "10.0.0.9"}, types.Node{Name: "n2", InternalIP: "10.0.0.7"}, true},
		"not by an address that it names": {ca, []string{"n1", "10.0.0.7", "127.0.0.1"}, types.Node{Name: "n2", InternalIP: "10.0.0.7"}, false},
		"nor by one of this device":       {ca, []string{"n1", "10.0.0.7", "127.0.0.1"}, types.Node{Name: "n2", InternalIP: "127.0.0.1"}, false},
		"not to another authority":        {other, []string{"n2", "10.0.0.7"}, types.Node{Name: "n2", InternalIP: "10.0.0.7"}, false},
		"not where it has no address":     {ca, []string{"n2"}, types.Node{Name: "n2"}, false},
		"nor a name":                      {ca, []string{"10.0.0.7"}, types.Node{InternalIP: "10.0.0.7"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			k := playKubelet(t, ca, row.by, row.names, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "" {
					t.Errorf("%s is asked with a token", r.URL)
				}
				switch {
				case r.URL.Path == "/runningpods/":
					_, _ = io.WriteString(w, `{"kind":"PodList","items":[{"metadata":{"namespace":"a","name":"b","uid":"c"}}]}`)
				case r.URL.String() == "/stats/summary?only_cpu_and_memory=true":
					_, _ = io.WriteString(w, strings.Replace(wholeSummary, "n1", "n2", 1))
				default:
					t.Errorf("asks %s", r.URL)
				}
			})
			k.cfg.TLSClientConfig.ServerName, k.cfg.BearerToken = "kube", "secret"
			c, _ := connected(t, k.cfg, &kubetest.InMemory{Handler: &fakeAPI{}})
			stats, err := c.NodeStats(t.Context(), row.node)
			if (err == nil) != row.ok || row.ok && *stats.Node.CPU != 5 {
				t.Errorf("%+v, %v", stats, err)
			}
			if pods, err := c.RunningPods(t.Context(), row.node); (err == nil) != row.ok || row.ok != (len(pods) == 1) {
				t.Errorf("%+v, %v", pods, err)
			}
		})
	}
}
