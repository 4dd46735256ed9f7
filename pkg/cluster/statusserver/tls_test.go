package statusserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/pkg/base/clusterauth"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	// byTLS stands before an address that connect begins TLS with.
	byTLS = "tls:"
	// auth is the header for token.
	auth = "Authorization: Bearer 6923c521f289a8b095af54e2f1fee3f347131df933a71dd606163dc0da9b0fef\r\n"
)

// overBoth runs a test against a device that is asked by plain HTTP, and against one
// that is asked by TLS.
func overBoth(t *testing.T, test func(t *testing.T, d *device)) {
	for name, secure := range map[string]bool{"plain": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			d := boot(t)
			d.tls = secure
			test(t, d)
		})
	}
}

// connect connects from an address of its own, "" for any.
func connect(t testing.TB, from, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: 10 * time.Second}
	if from != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	address, secure := strings.CutPrefix(address, byTLS)
	conn, err := d.DialContext(t.Context(), "tcp", address)
	if err != nil || !secure {
		return conn, err
	}
	return tls.Client(conn, pinning(t, token)), nil
}

// pinning is what EVE's client asks with: the certificate is its only root.
func pinning(t testing.TB, token string) *tls.Config {
	t.Helper()
	c, err := clusterauth.Derive(token)
	if err != nil {
		t.Fatal(err)
	}
	is, err := x509.ParseCertificate(c.DER())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(is)
	return &tls.Config{RootCAs: roots, ServerName: clusterauth.ServerName, MinVersion: tls.VersionTLS13}
}

// dialing is a transport that connects from an address of its own.
func dialing(t testing.TB, from string) *http.Transport {
	return &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: pinning(t, token),
		DialContext: func(_ context.Context, _, address string) (net.Conn, error) { return connect(t, from, address) },
	}
}

// begin is the first part of a request, or of a handshake.
func (d *device) begin() string {
	if d.tls {
		return "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
	}
	return "GET /status HTTP/1.1\r\nHo"
}

// secured asks by TLS as EVE's client of that token does.
func secured(t *testing.T, from, to, token, method, path string, header http.Header) (boundedhttp.Answer, string, error) {
	t.Helper()
	way := dialing(t, from)
	way.TLSClientConfig = pinning(t, token)
	r, err := http.NewRequestWithContext(t.Context(), method, "https://"+to+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, _ := clusterauth.Derive(token)
	r.Header.Set("Authorization", "Bearer "+c.Bearer())
	for name, values := range header {
		r.Header[name] = values
	}
	answer, err := boundedhttp.Do(&http.Client{Timeout: 20 * time.Second, Transport: way}, r, 1<<20)
	return answer, string(answer.Body), err
}

// asking is a component that only asks.
func asking(t *testing.T, port int) *Component {
	t.Helper()
	return &Component{Log: quiet(), Status: &pubsub.Table[types.EdgeNodeClusterStatus]{}, Nodes: &pubsub.Table[types.Node]{}, EdgeNodes: &pubsub.Table[types.Node]{}, Port: port, Operations: types.NoOperations{}}
}

// operations are those recorded.
type operations struct {
	mu  sync.Mutex
	all []types.Operation
}

// Begin implements types.OperationLog.
func (o *operations) Begin(is types.Operation) func(types.OperationOutcome, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, is)
	return func(types.OperationOutcome, error) {}
}

func (o *operations) of(op string) (targets []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, is := range o.all {
		if is.Op == op {
			targets = append(targets, is.Target)
		}
	}
	return targets
}

// warnings are the lines of the log that contain text.
func (d *device) warnings(text string) (n int) {
	for _, e := range d.log.AllEntries() {
		if e.Level <= logrus.WarnLevel && strings.Contains(e.Message, text) {
			n++
		}
	}
	return n
}

// publish says what the cluster token is.
func (d *device) publish(ip, token string) {
	s := status(ip+"/24", true)
	s.EncryptedClusterToken = token
	_ = d.status.Publish(types.Global, s)
}

// eventually waits for what another goroutine does.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

func TestTheHeaderIsTheBearerOfTheTestsToken(t *testing.T) {
	if c, _ := clusterauth.Derive(token); "Authorization: Bearer "+c.Bearer()+"\r\n" != auth {
		t.Error("the constant is of another token")
	}
}

func TestEachPathWantsTheBearerByTLSAndNoneByPlainHTTP(t *testing.T) {
	d := boot(t)
	d.ready(firstIP + "/24")
	d.listens(firstIP, true)
	other, _ := clusterauth.Derive("another token")
	right, _ := clusterauth.Derive(token)
	for path := range (&Component{}).routes() {
		plainCode, plainBody := from(t, firstIP, d.at(firstIP), http.MethodGet, path, nil)
		ip := firstIP
		if path == reachPath {
			ip = strangerIP // an address has one answer in five seconds
		}
		answer, body, err := secured(t, ip, d.at(firstIP), token, http.MethodGet, path, nil)
		if path == overviewPath && plainCode == http.StatusForbidden {
			plainCode = http.StatusOK // the bearer is the proof that it wants of everybody
		}
		if err != nil || answer.Code != plainCode || path == "/status" && body != plainBody {
			t.Errorf("%s: %v, %v by TLS, %d by plain HTTP", path, err, answer, plainCode)
		}
	}
	for _, path := range []string{"/status", "/healthz", "/readyz", "/reach", "/overview", "/app/x", "/cluster-app", "/nothing", "//status"} {
		for name, header := range map[string]string{
			"none": "", "another": "Bearer " + other.Bearer(), "a part": "Bearer " + right.Bearer()[:63], "more": "Bearer " + right.Bearer() + "0",
			"another scheme": "Basic " + right.Bearer(), "capitals": "Bearer " + strings.ToUpper(right.Bearer()), "the token": "Bearer " + token,
		} {
			answer, body, err := secured(t, firstIP, d.at(firstIP), token, http.MethodPost, path, http.Header{"Authorization": {header}})
			if err != nil || answer.Code != http.StatusUnauthorized || answer.Header.Get("WWW-Authenticate") != `Bearer realm="zedkube"` || strings.Contains(body, "cluster:") {
				t.Errorf("%s with %s: %v %v %q", path, name, err, answer, body)
			}
		}
	}
}

func TestOnlyTLS13AndHTTP1AreSpoken(t *testing.T) {
	d := boot(t)
	d.ready(firstIP + "/24")
	d.listens(firstIP, true)
	for name, c := range map[string]struct {
		change func(*tls.Config)
		want   string // protocol, or "" for a failure
	}{
		"as EVE asks":      {func(*tls.Config) {}, "-"},
		"HTTP/2 preferred": {func(c *tls.Config) { c.NextProtos = []string{"h2", "http/1.1"} }, "http/1.1"},
		"HTTP/2 only":      {func(c *tls.Config) { c.NextProtos = []string{"h2"} }, ""},
		"TLS 1.2":          {func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12 }, ""},
		"another name":     {func(c *tls.Config) { c.ServerName = "localhost" }, ""},
	} {
		config := pinning(t, token)
		c.change(config)
		conn := dialFrom(t, "", d.at(firstIP))
		secure := tls.Client(conn, config)
		err := secure.HandshakeContext(t.Context())
		got := secure.ConnectionState()
		if (err == nil) != (c.want != "") || err == nil && got.Version != tls.VersionTLS13 || len(c.want) > 1 && got.NegotiatedProtocol != c.want {
			t.Errorf("%s: %v, %x, %q", name, err, got.Version, got.NegotiatedProtocol)
		}
		_ = conn.Close()
	}
	cache := tls.NewLRUClientSessionCache(1)
	for range 2 {
		config := pinning(t, token)
		config.ClientSessionCache = cache
		conn := tls.Client(dialFrom(t, "", d.at(firstIP)), config)
		_, _ = io.WriteString(conn, "GET /status HTTP/1.0\r\n\r\n")
		_, _ = io.ReadAll(conn)
		if conn.ConnectionState().DidResume {
			t.Error("a session is resumed: it would outlast the token")
		}
		_ = conn.Close()
	}
}

func TestTokenChangesWithoutANewListener(t *testing.T) {
	d := boot(t)
	d.publish(firstIP, "")
	d.listens(firstIP, true)
	if _, _, err := secured(t, "", d.at(firstIP), token, http.MethodGet, "/status", nil); err == nil {
		t.Error("without a token TLS is answered")
	}
	if code, _, body := fetch(t, http.MethodGet, "http://"+d.at(firstIP)+"/status", ""); code != "200" || body != "cluster:"+clusterID {
		t.Errorf("without a token plain HTTP is answered with %s %q", code, body)
	}
	kept := dialFrom(t, "", d.at(firstIP)) // a new listener would close it
	defer kept.Close()
	speaks := func(token string) func() bool {
		return func() bool {
			answer, _, err := secured(t, "", d.at(firstIP), token, http.MethodGet, "/status", nil)
			return err == nil && answer.Code == http.StatusOK
		}
	}
	d.publish(firstIP, "first")
	eventually(t, "the first token is not taken", speaks("first"))
	d.publish(firstIP, "second")
	eventually(t, "the second token is not taken", speaks("second"))
	if speaks("first")() {
		t.Error("the certificate of the first token is still presented")
	}
	first, _ := clusterauth.Derive("first")
	before := http.Header{"Authorization": {"Bearer " + first.Bearer()}}
	if answer, _, err := secured(t, "", d.at(firstIP), "second", http.MethodGet, "/status", before); err != nil || answer.Code != http.StatusOK {
		t.Errorf("the bearer of the first token: %v, %v", answer, err)
	}
	moved := status(firstIP+"/24", true)
	moved.ClusterID.UUID, moved.EncryptedClusterToken = other, "third"
	_ = d.status.Publish(types.Global, moved)
	eventually(t, "the token of another cluster is not taken", speaks("third"))
	second, _ := clusterauth.Derive("second")
	before.Set("Authorization", "Bearer "+second.Bearer())
	if answer, _, err := secured(t, "", d.at(firstIP), "third", http.MethodGet, "/status", before); err != nil || answer.Code != http.StatusUnauthorized {
		t.Errorf("the bearer of the cluster before: %v, %v", answer, err)
	}
	_, _ = io.WriteString(kept, "GET /healthz HTTP/1.0\r\n\r\n")
	if got, err := io.ReadAll(kept); err != nil || !strings.HasSuffix(string(got), "ok\n") {
		t.Errorf("the first connection gets %q, %v", got, err)
	}
}

func TestTheLogTellsAWrongCertificateFromAWrongBearerOnce(t *testing.T) {
	d := boot(t)
	d.ready(firstIP + "/24")
	d.listens(firstIP, true)
	for range 3 {
		if _, _, err := secured(t, secondIP, d.at(firstIP), "another token", http.MethodGet, "/status", nil); err == nil {
			t.Error("another certificate is taken")
		}
	}
	eventually(t, "a wrong certificate is not logged", func() bool { return d.warnings(otherCertificate) == 1 })
	if n := d.warnings(otherBearer); n != 0 {
		t.Errorf("%d lines of a bearer", n)
	}
	for range 3 {
		_, _, _ = secured(t, secondIP, d.at(firstIP), token, http.MethodGet, "/status", http.Header{"Authorization": {"Bearer x"}})
		_, _, _ = secured(t, strangerIP, d.at(firstIP), "another token", http.MethodGet, "/status", nil)
	}
	eventually(t, "it is not logged for each address", func() bool { return d.warnings(otherCertificate) == 2 })
	if n := d.warnings(otherBearer); n != 1 {
		t.Errorf("%d lines of a wrong bearer", n)
	}
	for _, strange := range []string{"\x16\x03\x01\x00\x02\x01\x00", "\x16" + strings.Repeat("x", 100), "\x16\x03\x01\xff\xff"} {
		_, _ = exchange(t, d.at(firstIP), []byte(strange), time.Second)
	}
	if n := d.warnings(""); n != 3 {
		t.Errorf("%d lines of what strangers send", n-3)
	}
	for _, e := range d.log.AllEntries() {
		if text, _ := e.String(); strings.Contains(text, token) || strings.Contains(text, auth[22:86]) {
			t.Errorf("a secret is in %s", text)
		}
	}
}

func TestTheLogOfRefusalsIsBounded(t *testing.T) {
	var told refusals
	now := time.Now()
	due := func(i int) bool {
		return told.due(fmt.Sprint("10.0.0.", i, otherBearer), now)
	}
	for i := range 3 * maxRefusals {
		if got := due(i); got != (i < maxRefusals) {
			t.Fatalf("client %d: %v", i, got)
		}
	}
	if len(told.last) != maxRefusals || due(0) {
		t.Errorf("%d are remembered", len(told.last))
	}
	now = now.Add(refusalPause)
	if !due(0) || due(0) || !due(1000) {
		t.Error("after the pause each is told again, once")
	}
}

func TestAClientThatSaysNothingIsClosedInTimeAndHoldsUpNobody(t *testing.T) {
	d := boot(t)
	d.ready(firstIP + "/24")
	d.listens(firstIP, true)
	began := time.Now()
	hello := recordedHello(t)
	var silent []net.Conn
	for name, first := range map[string]string{"nothing": "", "one byte of TLS": "\x16", "half a hello": hello[:len(hello)/2], "a hello and no more": hello, "one of HTTP": "G"} {
		conn := dialFrom(t, "", d.at(firstIP))
		defer conn.Close()
		_ = conn.SetDeadline(began.Add(time.Minute))
		if _, err := io.WriteString(conn, first); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		silent = append(silent, conn)
	}
	closed := make(chan error, len(silent))
	for _, conn := range silent {
		go func() { _, err := io.Copy(io.Discard, conn); closed <- err }()
	}
	joins(t, d.at(firstIP), 2)
	joins(t, byTLS+d.at(firstIP), 2)
	if len(closed) > 0 {
		t.Error("the joiners were answered after one that says nothing was closed")
	}
	for range silent {
		if err := <-closed; errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("one is not closed")
		}
	}
	if took := time.Since(began); took < requestTimeout-time.Second {
		t.Errorf("they are closed after %s", took)
	}
}

// recordedHello is the first that a client says.
func recordedHello(t *testing.T) string {
	t.Helper()
	here, there := net.Pipe()
	defer there.Close()
	go func() { defer here.Close(); _ = tls.Client(here, pinning(t, token)).HandshakeContext(t.Context()) }()
	hello := make([]byte, 4096)
	n, err := there.Read(hello)
	if err != nil || n < 100 {
		t.Fatalf("%d bytes, %v", n, err)
	}
	return string(hello[:n])
}

func TestReportsByTLSNeedNoOtherProof(t *testing.T) {
	first, _ := pair(t, types.Node{Name: "eve", InternalIP: "127.12.34.3"})
	to := first.at(firstIP)
	for _, r := range []struct {
		name, ip, path string
		want           int
	}{
		{"a member of ours", secondIP, "/app/", http.StatusOK},
		{"EVE's node", "127.12.34.3", "/app/b3e2f", http.StatusOK},
		{"EVE's node that wants it of all", "127.12.34.3", "/cluster-app/", http.StatusOK},
		{"one that is no Node yet", strangerIP, "/app/", http.StatusForbidden},
	} {
		answer, body, err := secured(t, r.ip, to, token, http.MethodPost, r.path, nil)
		if err != nil || answer.Code != r.want || strings.Contains(body, token) {
			t.Errorf("%s: %v, %v %q", r.name, err, answer, body)
		}
	}
	if code, body := from(t, secondIP, to, http.MethodPost, "/app/", nil); code != http.StatusForbidden {
		t.Errorf("without TLS and proof: %d %q", code, body)
	}
}

// A command of ours may run on a node with EVE's zedkube from before TLS.
func TestOnlyWhoAsksForReportsByTLSIsTakenForAServerWithTLS(t *testing.T) {
	eve := types.Node{Name: "eve", InternalIP: "127.12.34.3", BootID: "boot"}
	first, _ := pair(t, eve)
	seen := func() bool { return first.peers.For(clusterauth.PeerOf(eve), time.Now().Add(time.Second)) > 0 }
	for path := range (&Component{}).routes() {
		if strings.Contains(path, "app") {
			continue
		}
		if answer, _, err := secured(t, eve.InternalIP, first.at(firstIP), token, http.MethodGet, path, nil); err != nil || answer.Code == http.StatusUnauthorized || seen() {
			t.Errorf("%s: %v, %v, seen: %v", path, answer.Code, err, seen())
		}
	}
	if _, _, err := secured(t, eve.InternalIP, first.at(firstIP), token, http.MethodPost, "/app/", nil); err != nil || !seen() {
		t.Errorf("who asks for a report: %v, seen: %v", err, seen())
	}
}

// A head has a deadline to be read; to read TLS is to write as well.
func TestAHandshakeEndsWithAClientThatReadsNothing(t *testing.T) {
	hello := recordedHello(t)
	synctest.Test(t, func(t *testing.T) {
		var keys clusterauth.Keyring
		if err := keys.Update(uuid.MustParse(clusterID), token, time.Now()); err != nil {
			t.Fatal(err)
		}
		here, there := net.Pipe() // it has no buffer
		defer there.Close()
		go func() { _, _ = io.WriteString(there, hello) }()
		h := &trackedConn{Conn: here, raw: here, owner: &bounded{tls: keys.ServerConfig(), failed: func(netip.Addr, error) {}}, from: &origin{}}
		began := time.Now()
		_ = h.SetReadDeadline(began.Add(requestTimeout)) // as the HTTP server does
		end := time.AfterFunc(time.Hour, func() { _ = there.Close() })
		defer end.Stop()
		if _, err := h.Read(make([]byte, 1)); err == nil || time.Since(began) > requestTimeout {
			t.Errorf("it ends after %s: %v", time.Since(began), err)
		}
	})
}

func TestTLSForAnHourCountsAsAFreshStamp(t *testing.T) {
	eve := types.Node{Name: "eve", InternalIP: "127.12.34.3", BootID: "boot-1"}
	c := asking(t, 0)
	_ = c.Nodes.(*pubsub.Table[types.Node]).Publish("eve", eve)
	now := time.Now()
	if !c.foreign(eve) {
		t.Error("it was never seen with TLS")
	}
	c.peers.Saw(clusterauth.PeerOf(eve), now.Add(-tlsProves+time.Minute))
	if !c.foreign(eve) {
		t.Error("it was not seen for long enough")
	}
	other := asking(t, 0)
	other.peers.Saw(clusterauth.PeerOf(eve), now.Add(-tlsProves))
	if other.foreign(eve) {
		t.Error("it was seen with TLS an hour ago")
	}
	rebooted := eve
	rebooted.BootID = "boot-2"
	if !other.foreign(rebooted) {
		t.Error("it has booted since: another image may run there")
	}
	local, remote := netip.MustParseAddr(firstIP), netip.MustParseAddr(eve.InternalIP)
	nodes := c.Nodes.All()
	if c, o := admit(remote, local, nodes, c.foreign, true), admit(remote, local, nodes, other.foreign, true); c != free || o != proves {
		t.Errorf("before it gets %d, then %d", c, o)
	}
}
