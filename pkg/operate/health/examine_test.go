package health

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

func TestChecksRunTogetherAndALateOneIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context) types.Finding { <-ctx.Done(); return bad("mend it", "no answer in time") }
		release := make(chan struct{})
		stuck := func(context.Context) types.Finding { <-release; return ok("never seen") }
		start := time.Now()
		found := Examine(t.Context(), []Check{{"a", "", slow}, {"stuck", "", stuck}, {"b", "", slow}, {"c", "", func(context.Context) types.Finding { return ok("fine") }}})
		if took := time.Since(start); took > patience+patience/4 {
			t.Errorf("took %s", took)
		}
		for i, want := range []types.Severity{Fail, Unknown, Fail, OK} {
			if found[i].Severity != want {
				t.Errorf("%+v, want %s", found[i], want)
			}
		}
		if found[1].Rule != "stuck" || !strings.Contains(found[1].Evidence, "did not finish within 2s") {
			t.Errorf("%+v", found[1])
		}
		close(release)
	})
}

// bare is a device on which there is nothing.
func bareDevice(t *testing.T) *Device {
	t.Helper()
	root := t.TempDir()
	return &Device{
		Root: root, Kubeconfig: filepath.Join(root, "none"), Socket: filepath.Join(root, "sock"), Seen: overview.Read(root, now),
		Nodes: func(context.Context) (overview.Nodes, error) { return overview.Nodes{}, errOdd },
		Lock:  func(context.Context) (types.DrainLock, error) { return types.DrainLock{}, errOdd },
		ReadKubeconfig: func(path string, _ bool) (Kubeconfig, error) {
			_, err := os.ReadFile(path)
			return Kubeconfig{}, err
		},
	}
}

func TestADeviceWithNothingOnItFailsOnlyForWhatIsKnown(t *testing.T) {
	fails := map[string]bool{"agent": true, "kubeconfig": true}
	for _, f := range Examine(t.Context(), bareDevice(t).Checks()) {
		if bad := f.Severity == Fail; bad != fails[f.Rule] && f.Rule != "disk" && f.Rule != "limits" {
			t.Errorf("%s: %s, %q", f.Rule, f.Severity, f.Evidence)
		}
	}
}

func TestLeftoversAreFound(t *testing.T) {
	d := bareDevice(t)
	old := now.Add(-8 * 24 * time.Hour)
	for file, content := range map[string]string{
		"tmp/DrainStatus_FaultInjection_Wait":                               "",
		"run/zedkube.pid":                                                   "4194304999\n",
		"run/zedkube-cli/NodeDrainRequest/global.json":                      "{}",
		"run/zedkube-cli/ClusterLeaveRequest/global.json":                   "{}",
		"run/zedkube/NodeDrainStatus/tmp123":                                "",
		"run/zedkube/NodeDrainStatus/global.json":                           "{}",
		"run/edgeview/VncParams/.vmiVNC.run.part":                           "",
		"persist/pubsub-large/zedkube/KubeClusterInfo/pubsub-file-AppPods1": "",
		"persist/status/zedkube/NodeDrainJournal/global.json":               `{"Phase":"Emptying"}`,
		"persist/kube-status/force-NodeDrainStatus-global.json":             `{"Status":1}`,
	} {
		path := filepath.Join(d.Root, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600), os.Chtimes(path, old, old)); err != nil {
			t.Fatal(err)
		}
	}
	d.Seen = overview.Read(d.Root, now)
	f := d.lookForFiles()
	var got []string
	for _, l := range f.found {
		got = append(got, l.path)
	}
	text := strings.Join(got, " ")
	for _, want := range []string{"FaultInjection", "zedkube.pid", "NodeDrainRequest", "ClusterLeaveRequest", "tmp123", ".vmiVNC.run.part", "pubsub-file-AppPods1", "NodeDrainJournal", "force-"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%s is not among %s", want, text)
		}
	}
	if f.err != nil || len(got) != 9 {
		t.Errorf("%v, %v", f.err, got)
	}
	remedy := remedyForFiles(f.found)
	for _, want := range []string{"for NodeDrainRequest: zedkube drain cancel", "for ClusterLeaveRequest: zedkube leave --cancel", "for NodeDrainJournal: zedkube drain status"} {
		if !strings.Contains(remedy, want) {
			t.Errorf("it does not say %q: %s", want, remedy)
		}
	}
	for _, keep := range []string{"Request/global.json", "NodeDrainJournal/"} {
		if strings.Contains(remedy, keep) {
			t.Errorf("it has %s removed: %s", keep, remedy)
		}
	}
	for _, away := range []string{"if it is no longer needed: rm /persist/kube-status/force-NodeDrainStatus-global.json /tmp/DrainStatus", "if it is not in use: rm /run/zedkube.pid"} {
		if !strings.Contains(remedy, away) {
			t.Errorf("it does not say %q: %s", away, remedy)
		}
	}
}

// trusting is a kubeconfig for a server, with the authority of that one, nil for
// none.
func trusting(server *httptest.Server, authority *x509.Certificate) kubeconfig {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if authority != nil {
		cfg.RootCAs = x509.NewCertPool()
		cfg.RootCAs.AddCert(authority)
	}
	return kubeconfig{Kubeconfig: Kubeconfig{Server: server.URL, Token: "abc", TLS: cfg}}
}

func TestTheAPIServerIsAskedAsTheKubeconfigSays(t *testing.T) {
	var asked []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path+" "+r.Header.Get("Authorization"))
	}))
	defer server.Close()
	k := trusting(server, server.Certificate())
	f := askUntil(t, k, func(f apiFacts) bool { return f.err == nil })
	if f.err != nil || f.status != 200 || f.server == nil || !f.dated || !f.here || f.ahead.Abs() > time.Second {
		t.Errorf("%+v", f)
	}
	if len(asked) == 0 || asked[0] != "/version Bearer abc" {
		t.Errorf("asked %v", asked)
	}
}

// askUntil asks a few times: an answer may take as long on a busy machine that it
// counts as none.
func askUntil(t *testing.T, k kubeconfig, done func(apiFacts) bool) (f apiFacts) {
	t.Helper()
	for range 10 {
		if f = askAPI(t.Context(), k); done(f) {
			return f
		}
	}
	t.Fatalf("%+v", f)
	return f
}

func TestAServerThatProvesNothingIsToldNoToken(t *testing.T) {
	asked := false
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer server.Close()
	for name, authority := range map[string]*x509.Certificate{"no authority": nil, "another authority": authority(t)} {
		f := askUntil(t, trusting(server, authority), func(f apiFacts) bool { return f.server != nil })
		if f.err == nil || asked {
			t.Errorf("%s: %+v, asked %v", name, f, asked)
		}
	}
}

// authority makes a certificate that signs nobody's.
func authority(t *testing.T) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestAKubeconfigThatCannotBeUsedSaysWhy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k3s.yaml")
	if err := os.WriteFile(path, nil, 0o640); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		err  error
		gone bool
		why  string
	}{
		"usable":  {nil, false, ""},
		"refused": {errors.New("refuse kubeconfig: the user has a tokenFile"), false, "refuse kubeconfig: the user has a tokenFile"},
		"none":    {fmt.Errorf("read kubeconfig: %w", fs.ErrNotExist), true, "there is no kubeconfig " + path},
	} {
		d := &Device{Kubeconfig: path, Seen: overview.Overview{Copied: true}, ReadKubeconfig: func(read string, copied bool) (Kubeconfig, error) {
			if read != path || !copied {
				t.Errorf("%s is read, copied %v", read, copied)
			}
			return Kubeconfig{Server: "https://a"}, row.err
		}}
		if k := d.readKubeconfig(); k.why != row.why || k.gone != row.gone || k.Server != "https://a" || k.mode != 0o640 {
			t.Errorf("%s: %+v", name, k)
		}
	}
}

func TestTheAgentIsAskedOnItsSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }), ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	if status, _, err := askSocket(t.Context(), socket); err != nil || status != http.StatusTeapot {
		t.Errorf("%d, %v", status, err)
	}
	if _, _, err := askSocket(t.Context(), socket+"none"); err == nil {
		t.Error("no socket is no error")
	}
}

func TestTheKernelsLimitsAreRead(t *testing.T) {
	proc := t.TempDir()
	for file, content := range map[string]string{
		"sys/fs/file-nr": "100\t0\t1000\n", "sys/fs/inotify/max_user_instances": "128\n", "sys/fs/inotify/max_user_watches": "4096\n",
		"7/limits": "Limit   Soft   Hard\nMax open files            1024                 4096                 files\n", "7/fd/1": "", "7/fdinfo/3": "pos: 0\ninotify wd:1 ino:2\ninotify wd:2 ino:3\n",
	} {
		path := filepath.Join(proc, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("anon_inode:inotify", filepath.Join(proc, "7/fd/3")); err != nil {
		t.Fatal(err)
	}
	want := []limit{
		{"open files of the machine", 100, 1000, "fs.file-max"},
		{"inotify instances of root", 1, 128, "fs.inotify.max_user_instances"},
		{"inotify watches of root", 2, 4096, "fs.inotify.max_user_watches"},
		{"open files of the agent", 2, 1024, ""},
	}
	got := lookAtLimits(t.Context(), proc, 7)
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
	if got := lookAtLimits(t.Context(), filepath.Join(proc, "none"), 7); len(got) != 0 {
		t.Errorf("no kernel: %+v", got)
	}
}
