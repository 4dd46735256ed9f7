package joincmd

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/base/clusterauth"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/test/cmdtest/loopback"
	"github.com/zedkube/zedkube/types"
)

const (
	ourToken   = "K10ours::server:one"
	theirToken = "K10theirs::server:two"
)

// certificateOf is what a server with that token presents.
func certificateOf(t *testing.T, token string) tls.Certificate {
	t.Helper()
	var keys clusterauth.Keyring
	err := keys.Update(ourCluster, token, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := keys.ServerConfig().GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return *certificate
}

func bearerOf(t *testing.T, token string) string {
	t.Helper()
	c, err := clusterauth.Derive(token)
	if err != nil {
		t.Fatal(err)
	}
	return "Bearer " + c.Bearer()
}

// speaks serves h by TLS at an address of 127.0.0.1 or at any port of it for "".
func speaks(t *testing.T, at string, secure *tls.Config, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	if at != "" {
		s.Listener.Close()
		var err error
		if s.Listener, err = net.Listen("tcp", at); err != nil {
			t.Fatal(err)
		}
	}
	s.Config.ErrorLog, s.TLS = log.New(io.Discard, "", 0), secure
	if secure == nil {
		s.Start()
	} else {
		s.StartTLS()
	}
	t.Cleanup(s.Close)
	return s
}

// next is a status server as that of EVE's next release: TLS 1.3 with the certificate of
// one token and the bearer of another, which is the same but in tests.
func next(t *testing.T, certificate, bearer string, h http.HandlerFunc) *httptest.Server {
	want := bearerOf(t, bearer)
	secure := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{certificateOf(t, certificate)}}
	return speaks(t, "", secure, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != want {
			w.Header().Set("WWW-Authenticate", `Bearer realm="zedkube"`)
			http.Error(w, "unauthorized", http.StatusUnauthorized)
			return
		}
		h(w, r)
	})
}

// statusAsker asks the status server at a port of 127.0.0.1, with a token.
func statusAsker(port int, token string) asker {
	q := newAsker(&net.Dialer{}, nil, port, port)
	q.patience = patient
	q.take(ourCluster, token)
	return q
}

func names(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "cluster:"+ourCluster.String())
}

func (q asker) loopback(t *testing.T) (reason, why string) {
	t.Helper()
	a := q.askStatus(t.Context(), given("127.0.0.1", ourCluster))
	if a.May != (a.Reason == "MayJoin") {
		t.Errorf("%+v", a)
	}
	return a.Reason, a.Why
}

func TestAServerThatSpeaksTLSIsAskedByIt(t *testing.T) {
	noLeak(t)
	var asked atomic.Int32
	count := func(w http.ResponseWriter, r *http.Request) { asked.Add(1); names(w, r) }
	of := func(max uint16, token string) *tls.Config {
		return &tls.Config{MaxVersion: max, Certificates: []tls.Certificate{certificateOf(t, token)}}
	}
	none := (&clusterauth.Keyring{}).ServerConfig()
	for name, row := range map[string]struct {
		server *httptest.Server
		token  string
		reason string
		why    string
	}{
		"with our token":                     {next(t, ourToken, ourToken, names), ourToken, "MayJoin", "127.0.0.1 is a working server"},
		"with our token and line ends":       {next(t, ourToken, ourToken, names), ourToken + "\n", "MayJoin", "127.0.0.1 is a working server"},
		"with another certificate":           {next(t, theirToken, theirToken, count), ourToken, "StatusOtherToken", "presents the certificate of another cluster token"},
		"with another bearer":                {next(t, ourToken, theirToken, count), ourToken, "StatusOtherBearer", "refuses the bearer that belongs to it (401)"},
		"with a certificate of its own":      {speaks(t, "", &tls.Config{}, count), ourToken, "StatusOtherServer", "not that of a status server"},
		"and none knows the token here":      {next(t, ourToken, ourToken, count), "", "StatusNoToken", "no cluster token is known here to check it with: --token-file"},
		"without a token of its own":         {speaks(t, "", none, count), ourToken, "StatusRefusesTLS", "refuses the TLS handshake"},
		"of an old version":                  {speaks(t, "", of(tls.VersionTLS12, ourToken), count), ourToken, "StatusRefusesTLS", "refuses the TLS handshake"},
		"and is in another cluster":          {next(t, ourToken, ourToken, replies("cluster:"+theirCluster.String())), ourToken, "OtherCluster", "waiting does not help"},
		"and answers without end":            {next(t, ourToken, ourToken, replies(strings.Repeat("x", 1<<20))), ourToken, "StatusGarbage", "more than 1024 bytes"},
		"and sends elsewhere":                {next(t, ourToken, ourToken, http.RedirectHandler("/healthz", http.StatusFound).ServeHTTP), ourToken, "StatusRefuses", "302 Found"},
		"and has an error":                   {next(t, ourToken, ourToken, code(503)), ourToken, "StatusRefuses", "503"},
		"and a head without end":             {next(t, ourToken, ourToken, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) }), ourToken, "StatusUnreachable", "response headers exceeded"},
		"and explains itself":                {next(t, ourToken, ourToken, explains(replies(`{"why":"Soon."}`))), ourToken, "NotYet", "it says: Soon"},
		"and refuses by 401 of its own kind": {next(t, ourToken, ourToken, code(401)), ourToken, "StatusRefuses", "401 Unauthorized"},
	} {
		reason, why := statusAsker(portOf(row.server), row.token).loopback(t)
		if reason != row.reason || !strings.Contains(why, row.why) {
			t.Errorf("%s: %s, %s", name, reason, why)
		}
		if strings.Contains(why, "K10") {
			t.Errorf("%s: it shows the token", name)
		}
	}
	if asked.Load() > 0 {
		t.Error("a server that is not trusted was asked")
	}
}

func TestATLSServerThatIsSlowIsNotAskedInPlain(t *testing.T) {
	noLeak(t)
	for name, h := range map[string]http.HandlerFunc{"never answers": silent, "never ends": trickle} {
		q := statusAsker(portOf(next(t, ourToken, ourToken, h)), ourToken)
		q.patience = quick
		if reason, why := q.loopback(t); reason != "StatusSilent" {
			t.Errorf("%s: %s, %s", name, reason, why)
		}
	}
}

// listened is a port where each connection is dealt with by do, and how many there were.
func listened(t *testing.T, do func(net.Conn)) (port int, count *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	count = &atomic.Int32{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			count.Add(1)
			do(conn)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().(*net.TCPAddr).Port, count
}

func TestSilenceIsNoReasonForPlainHTTP(t *testing.T) {
	noLeak(t)
	port, count := listened(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	q := statusAsker(port, ourToken)
	q.patience = quick
	if reason, why := q.loopback(t); reason != "StatusSilent" || count.Load() != 1 {
		t.Errorf("%s, %s after %d connections", reason, why, count.Load())
	}
}

func TestAnOlderServerIsAskedInPlain(t *testing.T) {
	noLeak(t)
	bearer := make(chan string, 1)
	plain := speaks(t, "", nil, func(w http.ResponseWriter, r *http.Request) {
		bearer <- r.Header.Get("Authorization")
		names(w, r)
	})
	for _, token := range []string{ourToken, ""} {
		if reason, why := statusAsker(portOf(plain), token).loopback(t); reason != "MayJoin" {
			t.Errorf("%s, %s", reason, why)
		}
		if got := <-bearer; got != "" {
			t.Errorf("it was sent %q", got)
		}
	}
	port, count := listened(t, func(c net.Conn) { // hangs up on what is no HTTP
		first := make([]byte, 1)
		if _, err := io.ReadFull(c, first); err == nil && first[0] == 'G' {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 44\r\n\r\ncluster:"+ourCluster.String())
		}
	})
	if reason, why := statusAsker(port, ourToken).loopback(t); reason != "MayJoin" || count.Load() != 2 {
		t.Errorf("%s, %s after %d connections", reason, why, count.Load())
	}
}

func TestAServerThatSpokeTLSIsNotAskedInPlainAfterwards(t *testing.T) {
	noLeak(t)
	secure := next(t, ourToken, ourToken, names)
	q := statusAsker(portOf(secure), ourToken)
	if reason, why := q.loopback(t); reason != "MayJoin" {
		t.Fatalf("%s, %s", reason, why)
	}
	secure.Close()
	speaks(t, secure.Listener.Addr().String(), nil, func(http.ResponseWriter, *http.Request) { t.Error("it was asked by plain HTTP") })
	if reason, why := q.loopback(t); reason != "StatusDowngrade" || !strings.Contains(why, "not asked by plain HTTP") {
		t.Errorf("%s, %s", reason, why)
	}
}

// joins waits with the token of file until it may join a server, and returns all it printed.
func joins(t *testing.T, s *httptest.Server, file string, meanwhile func(told string) bool) string {
	t.Helper()
	api := httptest.NewTLSServer(code(401))
	defer api.Close()
	q := newAsker(&net.Dialer{}, nil, portOf(api), portOf(s))
	q.patience = patient
	out, in := io.Pipe()
	ended := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		err := joiner{own: &ownStatus{file: file}, asker: q, interval: 50 * time.Millisecond, out: in}.wait(ctx)
		_ = in.CloseWithError(io.EOF)
		ended <- err
	}()
	var told bytes.Buffer
	for buffer := make([]byte, 1024); ; {
		n, err := out.Read(buffer)
		told.Write(buffer[:n])
		if err != nil || !meanwhile(told.String()) {
			break
		}
	}
	_ = out.Close()
	cancel()
	if err := <-ended; err != nil && !strings.Contains(told.String(), "may join") {
		t.Errorf("%v; it said %s", err, told.String())
	}
	return told.String()
}

func TestATokenThatChangesDuringTheWaitIsTaken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "global.json")
	w := &waiting{T: t, file: file}
	has := func(token string) {
		w.status("127.0.0.1", ourCluster, func(s *types.EdgeNodeClusterStatus) { s.EncryptedClusterToken = token })
	}
	has(theirToken)
	told := joins(t, next(t, ourToken, ourToken, names), file, func(told string) bool {
		if strings.Contains(told, "another cluster token") {
			has(ourToken)
		}
		return !strings.Contains(told, "may join")
	})
	if !strings.Contains(told, "may join") {
		t.Errorf("the server has the newer token: %s", told)
	}
	answer := atomic.Pointer[string]{}
	nothing, ours := "", "cluster:"+ourCluster.String()
	answer.Store(&nothing)
	has(ourToken)
	told = joins(t, next(t, ourToken, ourToken, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, *answer.Load()) }), file, func(told string) bool {
		if strings.Contains(told, "not yet a working server") {
			has(theirToken)
			answer.Store(&ours)
		}
		return !strings.Contains(told, "may join")
	})
	if !strings.Contains(told, "may join") || strings.Contains(told, "another cluster token") {
		t.Errorf("the server has the older token for some minutes more: %s", told)
	}
}

func TestTheTokenOfAnotherClusterIsNotUsed(t *testing.T) {
	w := &waiting{T: t, file: filepath.Join(t.TempDir(), "global.json")}
	w.status("10.0.0.1", theirCluster, func(s *types.EdgeNodeClusterStatus) { s.EncryptedClusterToken = ourToken })
	for cluster, want := range map[uuid.UUID]string{ourCluster: "", theirCluster: ourToken} {
		s := ownStatus{given: given("10.0.0.2", cluster), file: w.file}
		if got, _, err := s.look(); err != nil || got.token != want || got.cluster != cluster {
			t.Errorf("for %s: %v, %v", cluster, got.token != "", err)
		}
	}
	s := ownStatus{given: joinTarget{token: theirToken}, file: w.file}
	if got, _, _ := s.look(); got.token != theirToken {
		t.Error("the one that is given comes first")
	}
}

// probed runs the probe with a token on stdin.
func probed(t *testing.T, patience time.Duration, token string, args ...string) (out string, err error) {
	t.Helper()
	c := device.NewRoot(&device.Options{}, func(*device.Options) *cobra.Command { return newProbe(patience) })
	var b bytes.Buffer
	c.SetOut(&b)
	c.SetErr(&b)
	c.SetIn(strings.NewReader(token))
	c.SetArgs(append([]string{ProbeName}, args...))
	err = c.ExecuteContext(t.Context())
	if err != nil && strings.Contains(err.Error(), "K10") {
		t.Errorf("the token is in %q", err)
	}
	return b.String(), err
}

func TestTheProbeOfEVE(t *testing.T) {
	noLeak(t)
	ours := func(h http.HandlerFunc) string { return strconv.Itoa(portOf(next(t, ourToken, ourToken, h))) }
	plain := strconv.Itoa(portOf(speaks(t, "", nil, func(http.ResponseWriter, *http.Request) { t.Error("it asks by plain HTTP") })))
	deaf, _ := listened(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	good := ours(replies(" cluster:" + ourCluster.String() + "\n"))
	for name, row := range map[string]struct {
		args  []string
		token string
		code  int
		says  string // of the output, or of the error
	}{
		"a working server":           {[]string{"127.0.0.1", good}, ourToken + "\n", 0, "cluster:" + ourCluster.String() + "\n"},
		"one by name":                {[]string{"localhost", good}, ourToken, 0, "cluster:" + ourCluster.String() + "\n"},
		"one that is none yet":       {[]string{"127.0.0.1", ours(replies(""))}, ourToken, 0, "\n"},
		"any 2xx will do":            {[]string{"127.0.0.1", ours(code(202))}, ourToken, 0, "\n"},
		"no arguments":               {nil, ourToken, terminal.ExitProbeUsage, "usage: cluster-status-probe <host> <port> < join-token"},
		"too few":                    {[]string{"127.0.0.1"}, ourToken, terminal.ExitProbeUsage, "usage: "},
		"too many":                   {[]string{"127.0.0.1", good, "x"}, ourToken, terminal.ExitProbeUsage, "usage: "},
		"a flag":                     {[]string{"--help"}, ourToken, terminal.ExitProbeUsage, "usage: "},
		"no token":                   {[]string{"127.0.0.1", good}, " \n", 1, "there is none"},
		"a token without end":        {[]string{"127.0.0.1", good}, strings.Repeat("t", 1<<20), 1, "longer than"},
		"another token":              {[]string{"127.0.0.1", good}, theirToken, 1, "another cluster token"},
		"another bearer":             {[]string{"127.0.0.1", strconv.Itoa(portOf(next(t, ourToken, theirToken, names)))}, ourToken, 1, "refuses the bearer"},
		"an error":                   {[]string{"127.0.0.1", ours(code(500))}, ourToken, 1, "500"},
		"elsewhere":                  {[]string{"127.0.0.1", ours(http.RedirectHandler("/", http.StatusFound).ServeHTTP)}, ourToken, 1, "302"},
		"an answer without end":      {[]string{"127.0.0.1", ours(replies(strings.Repeat("x", 1<<20)))}, ourToken, 1, "more than 65536 bytes"},
		"an older server":            {[]string{"127.0.0.1", plain}, ourToken, 1, "does not speak TLS: an older EVE runs there"},
		"an older server by name":    {[]string{"localhost", plain}, ourToken, 1, "does not speak TLS: an older EVE runs there"},
		"silence":                    {[]string{"127.0.0.1", strconv.Itoa(deaf)}, ourToken, 1, "does not answer within 500ms"},
		"a port by name":             {[]string{"127.0.0.1", "https"}, ourToken, 1, `port "https"`},
		"port 0":                     {[]string{"127.0.0.1", "0"}, ourToken, 1, `port "0"`},
		"a host that begins oddly":   {[]string{"--root", good}, ourToken, 1, "no such host"},
		"a host that cannot be one":  {[]string{"127.0.0.1/..", good}, ourToken, 1, "invalid URL"},
		"a host with its own port":   {[]string{"127.0.0.1:1", good}, ourToken, 1, "invalid host"},
		"no host":                    {[]string{"", good}, ourToken, 1, "want an address or a name"},
		"nobody listens at the port": {[]string{"127.0.0.1", "1"}, ourToken, 1, "refuses connections"},
	} {
		patience := patient
		if name == "silence" {
			patience = quick
		}
		out, err := probed(t, patience, row.token, row.args...)
		if code := terminal.ExitCode(err); code != row.code {
			t.Errorf("%s: exit code %d, %v", name, code, err)
		}
		switch {
		case err == nil && out != row.says:
			t.Errorf("%s: it prints %q", name, out)
		case err != nil && (out != "" || !strings.Contains(err.Error(), row.says)):
			t.Errorf("%s: it prints %q and says %v", name, out, err)
		}
	}
}

// resolves has the name of every host in this process mean these addresses.
func resolves(t *testing.T, ips ...netip.Addr) {
	was := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = was })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go func() {
			defer there.Close()
			query := make([]byte, 2+512)
			n, err := there.Read(query) // as of TCP, the length first
			if err != nil || n < 2 {
				return
			}
			if n == 2 {
				more, _ := there.Read(query[2:])
				n += more
			}
			end := 14 + bytes.IndexByte(query[14:n], 0) + 5
			answer := append([]byte{query[2], query[3], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, query[14:end]...)
			if query[end-3] == 1 { // A
				for _, ip := range ips {
					answer[7]++
					answer = append(append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4), ip.AsSlice()...)
				}
			}
			_, _ = there.Write(append([]byte{byte(len(answer) >> 8), byte(len(answer))}, answer...))
		}()
		return here, nil
	}}
}

func TestTheProbeTriesAllAddressesOfAName(t *testing.T) {
	s := next(t, ourToken, ourToken, names)
	resolves(t, netip.MustParseAddr("127.199.12.7"), netip.MustParseAddr("127.0.0.1")) // at the first nobody listens
	if out, err := probed(t, patient, ourToken, "several.example", strconv.Itoa(portOf(s))); out != "cluster:"+ourCluster.String()+"\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestATokenIsReadFromAFileOrStdin(t *testing.T) {
	w := &waiting{T: t, file: filepath.Join(t.TempDir(), "token")}
	w.status("", ourCluster)
	for _, row := range []struct{ file, stdin, want, says string }{
		{"", "x", "", ""},
		{"-", " x\n", "x", ""},
		{"-", "\n", "", "there is none"},
		{"-", strings.Repeat("x", maxToken+1), "", "longer"},
		{w.file + "-not", "x", "", "no such file"},
		{filepath.Dir(w.file), "x", "", "read the cluster token"},
	} {
		got, err := readToken(t.Context(), row.file, strings.NewReader(row.stdin))
		if got != row.want || (err == nil) != (row.says == "") || err != nil && !strings.Contains(err.Error(), row.says) {
			t.Errorf("%+v: %q, %v", row, got, err)
		}
	}
	if got, err := readToken(t.Context(), w.file, nil); err != nil || !strings.HasPrefix(got, "{") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestStdinThatDoesNotEndHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stdin, end := io.Pipe()
		defer end.Close()
		began := time.Now()
		if _, err := probe(t.Context(), "127.0.0.1", "1", stdin, joinPatience); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != joinPatience {
			t.Errorf("the probe, after %s: %v", time.Since(began), err)
		}
		for _, args := range [][]string{{"wait-join", "--token-file", "-"}, {"join", "plan", "--token-file", "-"}} {
			ctx, interrupt := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, interrupt)
			c := device.NewRoot(&device.Options{}, NewWaitJoinCommand, NewJoinCommand)
			c.SetIn(stdin)
			c.SetArgs(args)
			if err := c.ExecuteContext(ctx); terminal.ExitCode(err) != terminal.ExitUsage || !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", args, err)
			}
		}
	})
}

func TestAPlanKnowsWhichNodesTheAgentSawWithTLS(t *testing.T) {
	ip := member(t, names)
	l := joinLook{paths: device.Options{Root: t.TempDir()}.Paths(), flags: joinFlags{noListen: true, apiPort: 1}, server: ip}
	l.facts.Own.Cluster = ourCluster
	file := l.paths.In(clusterauth.MemoryFile)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(`{"n1":{"boot":"b1"}}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	for boot, want := range map[string]string{"b1": "StatusDowngrade", "b2": "MayJoin"} {
		l.facts.Nodes = []types.Node{{Name: "n1", InternalIP: ip.String(), BootID: boot}}
		l.askPeers(t.Context())
		if got := l.facts.Peers[0].Status; got.Reason != want {
			t.Errorf("%s: %+v", boot, got)
		}
	}
}

// agentOf is the socket of an agent whose token was another before.
func agentOf(t *testing.T, before, now string) (socket string) {
	t.Helper()
	keys := &clusterauth.Keyring{}
	if err := errors.Join(keys.Update(ourCluster, before, time.Now()), keys.Update(ourCluster, now, time.Now())); err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(t.TempDir(), "sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: keys}}
	s.Start()
	t.Cleanup(s.Close)
	return socket
}

func TestACommandInARotationAlsoTakesTheTokenBefore(t *testing.T) {
	socket, w := agentOf(t, theirToken, ourToken), &waiting{T: t, file: filepath.Join(t.TempDir(), "global.json")}
	older := next(t, theirToken, theirToken, names) // which has not received ours yet
	w.status("127.0.0.1", ourCluster, func(s *types.EdgeNodeClusterStatus) { s.EncryptedClusterToken = ourToken })
	for _, row := range []struct{ socket, given, reason string }{
		{socket, "", "MayJoin"}, {"", "", "StatusOtherToken"}, {socket, ourToken, "StatusOtherToken"},
	} {
		q := statusAsker(portOf(older), ourToken)
		j := joiner{own: &ownStatus{file: w.file, given: joinTarget{token: row.given}}, asker: q, socket: row.socket}
		target, _, _ := j.own.look()
		j.take(t.Context(), target)
		if reason, why := j.asker.loopback(t); reason != row.reason {
			t.Errorf("%+v: %s, %s", row, reason, why)
		}
	}
}

func TestAPlanInARotationAlsoTakesTheTokenBefore(t *testing.T) {
	l := joinLook{flags: joinFlags{noListen: true, apiPort: 1}, status: &types.EdgeNodeClusterStatus{EncryptedClusterToken: ourToken}}
	l.status.ClusterID.UUID, l.facts.Own.Cluster = ourCluster, ourCluster
	l.paths = device.Options{Root: t.TempDir()}.Paths()
	keys := &clusterauth.Keyring{}
	if err := keys.Update(ourCluster, theirToken, time.Now()); err != nil {
		t.Fatal(err)
	}
	ln := loopback.Listen(t, types.PortStatus)
	l.server = ln.Addr().(*net.TCPAddr).AddrPort().Addr()
	server := &http.Server{TLSConfig: keys.ServerConfig(), Handler: http.HandlerFunc(names), ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = server.ServeTLS(ln, "", "") }()
	t.Cleanup(func() { _ = server.Close() })
	for socket, want := range map[string]string{agentOf(t, theirToken, ourToken): "MayJoin", "": "StatusOtherToken"} {
		l.paths.Socket = socket
		l.askPeers(t.Context())
		if got := l.facts.Peers[0].Status; got.Reason != want {
			t.Errorf("%q: %+v", socket, got)
		}
	}
}

func TestTheStampOfANodeIsFoundHoweverItsAddressIsWritten(t *testing.T) {
	l := joinLook{}
	l.facts.Nodes = []types.Node{{Name: "n1", InternalIP: "FD00:0::0001"}, {Name: "n2", InternalIP: "::ffff:10.0.0.2"}, {Name: "n3", InternalIP: "x"}}
	for ip, want := range map[string]string{"fd00::1": "n1", "10.0.0.2": "n2", "10.0.0.3": ""} {
		if got := l.peer(netip.MustParseAddr(ip)); got.Name != want {
			t.Errorf("%s: %+v", ip, got)
		}
	}
	if got := l.peer(netip.Addr{}); got.Name != "" {
		t.Errorf("a name is %+v", got)
	}
}
