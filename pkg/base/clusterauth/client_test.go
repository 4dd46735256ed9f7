package clusterauth

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var cluster = uuid.MustParse("6ba7b810-9dad-41d1-80b4-00c04fd430c8")

func keysOf(t *testing.T, tokens ...string) *Keyring {
	t.Helper()
	k := &Keyring{}
	for _, token := range tokens {
		if err := k.Update(cluster, token, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

// listen serves connections on loopback until the test ends.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(conn)
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().String()
}

// serve answers by HTTP, with secure by TLS; it echoes the bearer and the path.
func serve(t *testing.T, secure *tls.Config, admits func(*http.Request) bool) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !admits(r) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="zedkube"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, r.URL.Path+" "+r.Header.Get("Authorization"))
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-done })
	return address
}

func anyone(*http.Request) bool { return true }

func client(t *testing.T, keys *Keyring, is Peer) *Client {
	t.Helper()
	return &Client{Keys: keys, Memory: &Memory{}, Peer: func(netip.Addr) Peer { return is }, Dial: (&net.Dialer{}).DialContext}
}

// ask returns the body.
func (c *Client) ask(t *testing.T, address string, within time.Duration) (string, error) {
	t.Helper()
	body, err := boundedhttp.Whole(t.Context(), c.HTTP(), "http://"+address+"/status", 1000, within)
	return string(body), err
}

// stranger is the configuration of a server of something else.
func stranger(t *testing.T) *tls.Config {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: ServerName}, DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

func TestWhatAServerIsAskedByAndWhatItsFaultsAreCalled(t *testing.T) {
	ours := keysOf(t, knownToken)
	bearer := "/status Bearer " + derive(t, knownToken).Bearer()
	admitted := func(r *http.Request) bool { return ours.Admits(r, time.Now()) }
	plain, secure := serve(t, nil, anyone), serve(t, ours.ServerConfig(), admitted)
	refuses := serve(t, ours.ServerConfig(), func(*http.Request) bool { return false })
	old := ours.ServerConfig()
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	closes := listen(t, func(conn net.Conn) { _ = conn.Close() })
	halfway := listen(t, func(conn net.Conn) { _, _ = io.WriteString(conn, "\x16\x03\x03"); _ = conn.Close() })
	garbage := listen(t, func(conn net.Conn) { _, _ = io.WriteString(conn, "SSH-2.0-OpenSSH\r\n"); _ = conn.Close() })
	l, err := net.Listen("tcp", "127.0.0.1:0") // its queue takes connections, and nobody says anything
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	silent := l.Addr().String()
	for name, c := range map[string]struct {
		address string
		stamp   Stamp
		keys    *Keyring
		want    string
		err     error
		not     error
	}{
		"TLS, not known before":                {address: secure, want: bearer},
		"TLS by its stamp":                     {address: secure, stamp: StampTLS, want: bearer},
		"plain HTTP, not known before":         {address: plain, want: "/status "},
		"plain HTTP by its stamp":              {address: plain, stamp: StampPlain, want: "/status "},
		"plain HTTP, and no token yet":         {address: plain, keys: &Keyring{}, want: "/status "},
		"plain HTTP, and its stamp says TLS":   {address: plain, stamp: StampTLS, err: ErrDowngrade},
		"TLS of another token":                 {address: secure, keys: keysOf(t, "another"), err: ErrOtherToken},
		"TLS, and no token yet":                {address: secure, keys: &Keyring{}, err: ErrNoToken},
		"TLS of something else":                {address: serve(t, stranger(t), anyone), err: ErrOtherServer},
		"TLS that refuses the bearer":          {address: refuses, err: ErrOtherBearer},
		"TLS of a server without a token":      {address: serve(t, (&Keyring{}).ServerConfig(), anyone), not: ErrNotTLS},
		"TLS 1.2":                              {address: serve(t, old, anyone), not: ErrNotTLS},
		"it closes the connection":             {address: closes, not: ErrNotTLS}, // by plain HTTP as well
		"it closes, and its stamp says TLS":    {address: closes, stamp: StampTLS, err: ErrDowngrade},
		"it closes after it has begun TLS":     {address: halfway, not: ErrNotTLS},
		"it says something else":               {address: garbage, not: ErrNotTLS},
		"it says nothing":                      {address: silent, err: context.DeadlineExceeded},
		"nothing, and its stamp says TLS":      {address: silent, stamp: StampTLS, err: context.DeadlineExceeded},
		"TLS, whose stamp says plain HTTP":     {address: secure, stamp: StampPlain, not: ErrNotTLS},
		"the token before, soon after another": {address: secure, keys: keysOf(t, knownToken, "newer"), want: bearer},
	} {
		t.Run(name, func(t *testing.T) {
			keys := c.keys
			if keys == nil {
				keys = ours
			}
			within := 20 * time.Second
			if c.address == silent {
				within = 100 * time.Millisecond
			}
			asker := client(t, keys, Peer{Name: "n", Boot: "b", Stamp: c.stamp})
			dials := 0
			asker.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				dials++
				return (&net.Dialer{}).DialContext(ctx, network, address)
			}
			got, err := asker.ask(t, c.address, within)
			switch {
			case c.want != "" && (err != nil || got != c.want):
				t.Errorf("got %q, %v", got, err)
			case c.err != nil && !errors.Is(err, c.err), c.not != nil && (err == nil || errors.Is(err, c.not)):
				t.Errorf("%q, %v", got, err)
			}
			if twice := c.address == plain && c.stamp == StampNone || c.address == closes && c.stamp == StampNone; (dials == 2) != twice {
				t.Errorf("it is dialed %d times", dials)
			}
			if err != nil && (strings.Contains(err.Error(), derive(t, knownToken).Bearer()) || strings.Contains(err.Error(), knownToken)) {
				t.Errorf("a secret is in %v", err)
			}
			if seen := asker.Memory.For(Peer{Name: "n", Boot: "b"}, time.Now().Add(time.Hour)) > 0; seen != (c.want == bearer || c.address == refuses) {
				t.Errorf("it is remembered as one with TLS: %v", seen)
			}
		})
	}
}

func TestAServerThatWasSeenWithTLSIsNotAskedInAnotherWayInTheSameBoot(t *testing.T) {
	ours := keysOf(t, knownToken)
	secure, plain := serve(t, ours.ServerConfig(), anyone), serve(t, nil, anyone)
	is := Peer{Name: "n", Boot: "boot-1"}
	c := client(t, ours, is)
	c.Peer = func(netip.Addr) Peer { return is }
	again := 0
	c.Again = func(Peer) { again++ }
	step := func(what, address string, want error, tests int) {
		t.Helper()
		if _, err := c.ask(t, address, time.Minute); !errors.Is(err, want) || again != tests {
			t.Errorf("%s: %v, tested again %d times", what, err, again)
		}
	}
	step("plain HTTP at first", plain, nil, 0)
	step("TLS", secure, nil, 0)
	step("plain HTTP after TLS", plain, ErrDowngrade, 0)
	is.Boot = ""
	step("where the boot is not known now", plain, ErrDowngrade, 0)
	is.Boot = "boot-2"
	step("plain HTTP after a boot", plain, nil, 1)
	step("and once more", plain, nil, 1)
	step("TLS again", secure, nil, 1)
	is.Stamp = StampTLS
	step("with a stamp", plain, ErrDowngrade, 1)
	step("with a stamp", secure, nil, 1)
	is.Stamp = StampNone
	step("when the stamp is gone", plain, nil, 2)
	step("TLS once more", secure, nil, 2)
	is.Stamp = StampPlain
	step("plain HTTP by a new stamp", plain, nil, 3)
	step("and by the same", plain, nil, 3)
	is.Stamp = StampTLS
	step("when the stamp says TLS once more", plain, ErrDowngrade, 3)
	step("when the stamp says TLS once more", secure, nil, 3)
	is.Boot, is.Stamp = "boot-3", StampPlain
	step("after a boot, before it has a token", plain, nil, 4)
	is.Stamp = StampTLS
	step("and with one", secure, nil, 4)
	is.Name, is.Stamp = "other", StampNone
	step("of another Node", plain, nil, 4)
}

// In a bubble of synctest it is the year 2000, before the certificate is valid.
func TestTheClockHasNoSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours := keysOf(t, knownToken)
		shake := func(client func(net.Conn) error) error {
			here, there := net.Pipe()
			defer here.Close()
			_ = here.SetDeadline(time.Now().Add(time.Minute)) // the server still writes when an alert comes
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = tls.Server(there, ours.ServerConfig()).HandshakeContext(t.Context())
				_ = there.Close()
			}()
			err := client(here)
			_ = here.Close()
			<-done
			return err
		}
		if time.Now().Year() >= 2026 {
			t.Fatal("it is not the year 2000")
		}
		c := &Client{Keys: ours, Memory: &Memory{}}
		if err := shake(func(conn net.Conn) error {
			c.Dial = func(context.Context, string, string) (net.Conn, error) { return conn, nil }
			_, _, err := c.hello(t.Context(), "")
			return err
		}); err != nil {
			t.Errorf("ours: %v", err)
		}
		is, _ := x509.ParseCertificate(derive(t, knownToken).DER())
		roots := x509.NewCertPool()
		roots.AddCert(is)
		if err := shake(func(conn net.Conn) error {
			return tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: ServerName}).HandshakeContext(t.Context())
		}); err == nil {
			t.Error("EVE's client does not look at the clock, and this test proves nothing")
		}
	})
}

func TestTheTokenBeforeCountsForTenMinutesInTheSameCluster(t *testing.T) {
	now := time.Now()
	other := uuid.MustParse("00000000-0000-4000-8000-000000000001")
	k := &Keyring{}
	update := func(of uuid.UUID, token string) {
		t.Helper()
		if err := k.Update(of, token, now); err != nil {
			t.Fatal(err)
		}
	}
	counts := func(want ...string) {
		t.Helper()
		var got []string
		for _, token := range []string{"one", "two", "three"} {
			r := &http.Request{Header: http.Header{"Authorization": {"Bearer " + derive(t, token).Bearer()}}}
			if k.Admits(r, now) {
				got = append(got, token)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("after %s: %q count, want %q", time.Since(now), got, want)
		}
		if len(k.valid(now)) != len(want) {
			t.Errorf("%d certificates are pinned, want %d", len(k.valid(now)), len(want))
		}
	}
	presents := func(token string) {
		t.Helper()
		is, err := k.ServerConfig().GetCertificate(nil)
		if token == "" && !errors.Is(err, ErrNoToken) || token != "" && (err != nil || string(is.Certificate[0]) != string(derive(t, token).DER())) {
			t.Errorf("it presents another certificate than that of %q: %v", token, err)
		}
	}
	counts()
	presents("")
	update(cluster, "one")
	counts("one")
	update(cluster, "two")
	presents("two")
	counts("one", "two")
	now = now.Add(Overlap - 1)
	update(cluster, "two") // nothing new
	counts("one", "two")
	now = now.Add(1)
	counts("two")
	update(cluster, "three")
	counts("two", "three")
	update(cluster, "") // it cannot be decrypted for a moment
	presents("")
	counts("two", "three")
	now = now.Add(Overlap - 1)
	update(cluster, "three\n") // the same again
	presents("three")
	counts("two", "three")
	now = now.Add(1)
	update(cluster, "")
	counts("three")
	now = now.Add(2 * Overlap)
	update(cluster, "one") // other nodes get it later than this one
	counts("one", "three")
	update(other, "two")
	presents("two")
	counts("two")
	update(other, " \n")
	presents("")
	update(cluster, " one ")
	counts("one")
}

func TestABearerIsReadAsTheHeaderHasIt(t *testing.T) {
	k := keysOf(t, knownToken)
	is := derive(t, knownToken).Bearer()
	for header, want := range map[string]bool{
		"Bearer " + is: true, "bearer " + is: true, "": false, "Bearer": false, "Bearer ": false, is: false, "Basic " + is: false,
		"Bearer  " + is: false, "Bearer " + is + " ": false, "Bearer " + is[:63]: false, "Bearer " + strings.ToUpper(is): false,
	} {
		if got := k.Admits(&http.Request{Header: http.Header{"Authorization": {header}}}, time.Now()); got != want {
			t.Errorf("%q: %v", strings.ReplaceAll(header, is, "<bearer>"), got)
		}
	}
	if (&Keyring{}).Admits(&http.Request{Header: http.Header{"Authorization": {"Bearer "}}}, time.Now()) {
		t.Error("an empty bearer counts where there is no token")
	}
}

func TestThePeersThatSpeakTLSAreRememberedWithinBounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "zedkube", "peers")
	var m Memory
	now := time.Now()
	if err := m.Read(path, now); err != nil {
		t.Errorf("no file: %v", err)
	}
	if err := m.Keep(path); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("nothing is kept of nothing")
	}
	name := func(i int) string { return strings.Repeat("n", 250) + fmt.Sprint(i) }
	boot := strings.Repeat("\x01", maxBoot) // the longest in JSON
	for i := range 3 * maxPeers {
		p := PeerOf(types.Node{Name: name(i), BootID: boot, Agent: &types.AgentStamp{}})
		m.Saw(p, now.Add(time.Duration(i)))
	}
	last := Peer{Name: name(3*maxPeers - 1), Boot: boot}
	if len(m.peers) != maxPeers || m.sees(Peer{Name: name(0)}) || !m.sees(last) {
		t.Errorf("%d are remembered", len(m.peers))
	}
	if err := m.Keep(path); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	var next Memory
	if err := next.Read(path, now); err != nil || len(next.peers) != maxPeers || !next.sees(last) {
		t.Errorf("%d are read: %v", len(next.peers), err)
	}
	if got := next.For(last, now.Add(time.Minute)); got != time.Minute {
		t.Errorf("it is known for %s: the time of another process is not counted", got)
	}
	if err := os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	m.Saw(Peer{Name: last.Name, Boot: last.Boot, Stamp: StampPlain}, now.Add(time.Hour))
	if err := m.Keep(path); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(path); info.ModTime().Unix() != 1 {
		t.Error("it is written again although nothing is new")
	}
}

func TestANoteThatCannotBeReadIsAnErrorAndKnowsNobody(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"a list": `[1]`, "half": `{"n":{"boot":`, "long": strings.Repeat(" ", maxFile+1) + "{}", "empty": ""} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		var m Memory
		if err := m.Read(path, time.Now()); err == nil || len(m.peers) != 0 {
			t.Errorf("%s: %v, %v", name, err, m.peers)
		}
	}
	var m Memory
	m.Saw(Peer{Name: "n", Boot: "b"}, time.Now())
	if err := m.Keep(filepath.Join(dir, "none", "none", "peers")); err != nil || !m.dirty {
		t.Errorf("without a disk: %v, to be kept: %v", err, m.dirty)
	}
}

func TestAPeerIsWhatItsFreshStampSays(t *testing.T) {
	for want, n := range map[Stamp]types.Node{
		StampTLS: {Agent: &types.AgentStamp{TLS: true}}, StampPlain: {Agent: &types.AgentStamp{}}, StampNone: {Agent: &types.AgentStamp{TLS: true}, StampStale: true},
	} {
		n.Name, n.BootID = "n", "b"
		if got := PeerOf(n); got != (Peer{Name: "n", Boot: "b", Stamp: want}) {
			t.Errorf("%+v", got)
		}
	}
	for _, none := range []string{"", strings.Repeat("b", maxBoot+1)} {
		if got := PeerOf(types.Node{BootID: none}); got != (Peer{}) {
			t.Errorf("%+v", got)
		}
	}
	if got := PeerOf(); got != (Peer{}) {
		t.Errorf("of none: %+v", got)
	}
}

func TestACommandHearsOfTheTokenBeforeFromTheAgent(t *testing.T) {
	other := uuid.MustParse("00000000-0000-4000-8000-000000000001")
	for name, row := range map[string]struct {
		of    uuid.UUID
		age   time.Duration // of the change
		serve func(http.Handler) http.Handler
		want  int
	}{
		"in the same cluster": {cluster, 0, nil, 2},
		"in another":          {other, 0, nil, 1},
		"ten minutes later":   {cluster, Overlap, nil, 1},
		"an older agent":      {cluster, 0, func(http.Handler) http.Handler { return http.NotFoundHandler() }, 1},
		"no agent":            {cluster, 0, func(http.Handler) http.Handler { return nil }, 1},
		"nonsense": {cluster, 0, func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"Bearer":7}`) })
		}, 1},
	} {
		agent, k := &Keyring{}, &Keyring{}
		at := time.Now().Add(-row.age)
		if err := errors.Join(agent.Update(cluster, "one", at), agent.Update(cluster, "two", at), k.Update(row.of, "two", at)); err != nil {
			t.Fatal(err)
		}
		socket, h := filepath.Join(t.TempDir(), "sock"), http.Handler(agent)
		if row.serve != nil {
			h = row.serve(agent)
		}
		if h != nil {
			l, err := net.Listen("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			s := &http.Server{Handler: h}
			go func() { _ = s.Serve(l) }()
			t.Cleanup(func() { _ = s.Close() })
		}
		k.AskAgent(t.Context(), socket, time.Minute)
		now := k.valid(time.Now())
		if len(now) != row.want || len(now) == 2 && (now[1].Bearer() != derive(t, "one").Bearer() || string(now[1].DER()) != string(derive(t, "one").DER())) {
			t.Errorf("%s: %d count", name, len(now))
		}
		if now[0].Bearer() != derive(t, "two").Bearer() {
			t.Errorf("%s: the token itself does not count first", name)
		}
	}
}

// The agent reads the newest token a moment later than the command.
func TestAnOlderTokenOfTheAgentTakesNoNewerOnesPlace(t *testing.T) {
	agent, k := &Keyring{}, &Keyring{}
	now := time.Now()
	for i, token := range []string{"one", "two", "three"} {
		if i < 2 {
			if err := agent.Update(cluster, token, now.Add(time.Duration(i-3)*time.Minute)); err != nil {
				t.Fatal(err)
			}
		}
		if err := k.Update(cluster, token, now.Add(time.Duration(i-3)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	socket := filepath.Join(t.TempDir(), "sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: agent}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	k.AskAgent(t.Context(), socket, time.Minute)
	if valid := k.valid(time.Now()); len(valid) != 2 || valid[1].Bearer() != derive(t, "two").Bearer() {
		t.Errorf("%d count, of which the second is not the last token but one", len(valid))
	}
}
