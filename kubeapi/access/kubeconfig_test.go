package access

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"
	"k8s.io/client-go/rest"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/base/redact"
	"github.com/zedkube/zedkube/test/kubetest"
)

// follow watches path and hands out the hosts that were applied.
func follow(t *testing.T, path string) (hosts <-chan string, log *logtest.Hook) {
	t.Helper()
	logger, hook := logtest.NewNullLogger()
	applied := make(chan string, 10)
	k := &KubeconfigFile{
		Log: logger, Path: path, Pulse: &loop.Pulse{}, Missing: func(string) {},
		Apply: func(cfg *rest.Config) error {
			if strings.Contains(cfg.Host, "unusable") {
				return errors.New("cannot be used")
			}
			applied <- cfg.Host
			return nil
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); k.Watch(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return applied, hook
}

func expect(t *testing.T, hosts <-chan string, want string) {
	t.Helper()
	select {
	case host := <-hosts:
		if host != want {
			t.Fatalf("host %s is applied, want %s", host, want)
		}
	case <-time.After(time.Minute):
		t.Fatalf("host %s is not applied", want)
	}
}

func expectNone(t *testing.T, hosts <-chan string) {
	t.Helper()
	select {
	case host := <-hosts:
		t.Fatalf("host %s is applied", host)
	case <-time.After(4 * Settle):
	}
}

func TestAKubeconfigMayComeLateInADirectoryThatComesLate(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, ".kube", "k3s", "k3s.yaml")
	hosts, _ := follow(t, path)
	expectNone(t, hosts)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	kubetest.WriteFile(t, path, kubetest.KubeconfigText("https://a", ""))
	expect(t, hosts, "https://a")

	// The kube container removes it all and begins anew.
	if err := os.RemoveAll(filepath.Join(root, ".kube")); err != nil {
		t.Fatal(err)
	}
	expectNone(t, hosts)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	kubetest.WriteFile(t, path+".tmp", kubetest.KubeconfigText("https://b", ""))
	if err := os.Rename(path+".tmp", path); err != nil {
		t.Fatal(err)
	}
	expect(t, hosts, "https://b")
}

func TestAHalfWrittenKubeconfigIsReportedOnceAndLeavesTheOldOneInUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k3s.yaml")
	kubetest.WriteFile(t, path, kubetest.KubeconfigText("https://a", ""))
	hosts, log := follow(t, path)
	expect(t, hosts, "https://a")
	whole := kubetest.KubeconfigText("https://b", "")
	for _, cut := range []int{0, 40, len(whole) / 2, strings.Index(whole, "  user: {token")} {
		log.Reset()
		kubetest.WriteFile(t, path, whole[:cut])
		expectNone(t, hosts)
		kubetest.WriteFile(t, path, whole[:cut]) // touched, not changed
		expectNone(t, hosts)
		if n := len(log.AllEntries()); n != 1 {
			t.Errorf("cut at %d: %d log lines", cut, n)
		}
	}
	log.Reset()
	kubetest.WriteFile(t, path, whole)
	expect(t, hosts, "https://b")
	kubetest.WriteFile(t, path, whole)
	expectNone(t, hosts)
	if n := len(log.AllEntries()); n != 0 {
		t.Errorf("%d log lines for a whole file", n)
	}
}

func TestAKubeconfigThatCannotBeUsedDoesNotReplaceAGoodOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k3s.yaml")
	kubetest.WriteFile(t, path, kubetest.KubeconfigText("https://a", ""))
	hosts, _ := follow(t, path)
	expect(t, hosts, "https://a")
	kubetest.WriteFile(t, path, kubetest.KubeconfigText("https://unusable", ""))
	expectNone(t, hosts)
	kubetest.WriteFile(t, path, kubetest.KubeconfigText("https://a", ""))
	expectNone(t, hosts)
}

func TestEveryCutOfAKubeconfigIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k3s.yaml")
	whole := kubetest.KubeconfigText("https://a", "")
	for cut := range strings.Index(whole, "secret-token") {
		kubetest.WriteFile(t, path, whole[:cut])
		_, _, err := RestConfig(path, ReadTrusted)
		if err == nil {
			t.Errorf("taken: %q", whole[:cut])
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("error shows a secret: %v", err)
		}
	}
}

func TestAKubeconfigThatReachesBeyondItselfIsRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "k3s.yaml")
	kubetest.WriteFile(t, filepath.Join(dir, "secret"), "SECRET")
	ran := filepath.Join(dir, "ran")
	token := "token: secret-token"
	for name, row := range map[string]struct{ text, why string }{
		"a program": {
			strings.Replace(kubetest.KubeconfigText("https://a", ""), token, "exec: {apiVersion: client.authentication.k8s.io/v1, command: /usr/bin/touch, args: ["+ran+"], interactiveMode: Never}", 1),
			"exec plug-in",
		},
		"an auth provider":            {strings.Replace(kubetest.KubeconfigText("https://a", ""), token, "auth-provider: {name: oidc}", 1), "auth-provider"},
		"a token in a file":           {strings.Replace(kubetest.KubeconfigText("https://a", ""), token, "tokenFile: secret", 1), "tokenFile"},
		"a token, and one in a file":  {strings.Replace(kubetest.KubeconfigText("https://a", ""), token, token+", tokenFile: secret", 1), "tokenFile"},
		"a certificate in a file":     {strings.Replace(kubetest.KubeconfigText("https://a", ""), token, "client-certificate: secret, client-key: secret", 1), "client-certificate"},
		"a key in a file":             {strings.Replace(kubetest.KubeconfigText("https://a", ""), token, token+", client-key: secret", 1), "client-key"},
		"an authority in a file":      {kubetest.KubeconfigText("https://a", "certificate-authority: secret,"), "certificate-authority"},
		"a server that nobody checks": {kubetest.KubeconfigText("https://a", "insecure-skip-tls-verify: true,"), "insecure-skip-tls-verify"},
		"a proxy":                     {kubetest.KubeconfigText("https://a", "proxy-url: http://10.0.0.9:3128,"), "proxy-url"},
		"another user":                {strings.Replace(kubetest.KubeconfigText("https://a", ""), token, token+", as: admin", 1), "impersonates another"},
		"another group":               {strings.Replace(kubetest.KubeconfigText("https://a", ""), token, token+", as-groups: [system:masters]", 1), "impersonates another"},
		"another UID":                 {strings.Replace(kubetest.KubeconfigText("https://a", ""), token, token+", as-uid: x", 1), "impersonates another"},
		"more about another user":     {strings.Replace(kubetest.KubeconfigText("https://a", ""), token, token+", as-user-extra: {scopes: [x]}", 1), "impersonates another"},
	} {
		kubetest.WriteFile(t, path, row.text)
		_, _, err := RestConfig(path, ReadTrusted)
		if err == nil || !strings.Contains(err.Error(), row.why) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the program ran")
	}
}

func TestAKubeconfigThatOthersMayWriteIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k3s.yaml")
	kubetest.WriteFile(t, path, kubetest.KubeconfigText("https://a", ""))
	for mode, want := range map[os.FileMode]bool{0o600: true, 0o644: true, 0o400: true, 0o620: false, 0o602: false, 0o666: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, _, err := RestConfig(path, ReadTrusted); (err == nil) != want {
			t.Errorf("mode %#o: %v", mode, err)
		}
	}
}

func TestAKubeconfigOfAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	path := filepath.Join(t.TempDir(), "k3s.yaml")
	kubetest.WriteFile(t, path, kubetest.KubeconfigText("https://a", ""))
	for uid, want := range map[int]bool{0: true, 65534: false, 1000: false} {
		if err := os.Chown(path, uid, -1); err != nil {
			t.Fatal(err)
		}
		if _, _, err := RestConfig(path, ReadTrusted); (err == nil) != want {
			t.Errorf("uid %d: %v", uid, err)
		}
	}
}

func TestARefusedKubeconfigLeavesTheOldOneInUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k3s.yaml")
	good := kubetest.KubeconfigText("https://a", "")
	for name, refused := range map[string]func(){
		"others may write it": func() {
			kubetest.WriteFile(t, path, kubetest.KubeconfigText("https://b", ""))
			if err := os.Chmod(path, 0o666); err != nil {
				t.Fatal(err)
			}
		},
		"others may write the same": func() {
			if err := os.Chmod(path, 0o666); err != nil {
				t.Fatal(err)
			}
		},
		"a proxy": func() {
			kubetest.WriteFile(t, path, kubetest.KubeconfigText("https://b", "proxy-url: http://10.0.0.9:3128,"))
		},
		"another user": func() {
			kubetest.WriteFile(t, path, strings.Replace(kubetest.KubeconfigText("https://b", ""), "token:", "as: admin, token:", 1))
		},
	} {
		kubetest.WriteFile(t, path, good)
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		applied, missing := []string{}, 0
		k := &KubeconfigFile{
			Log: kubetest.Quiet(), Path: path, Missing: func(string) { missing++ },
			Apply: func(cfg *rest.Config) error { applied = append(applied, cfg.Host); return nil },
		}
		k.look()
		refused()
		k.look()
		if len(applied) != 1 || applied[0] != "https://a" || missing != 1 {
			t.Errorf("%s: %v are applied, %d times it was refused", name, applied, missing)
		}
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		kubetest.WriteFile(t, path, good)
		if k.look(); len(applied) != 1 || k.reported != "" { // it was in use all the time
			t.Errorf("%s: after it %v are applied, %q is reported", name, applied, k.reported)
		}
	}
}

// It is read six times a minute.
func TestAKubeconfigThatStaysIsNotParsedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k3s.yaml")
	kubetest.WriteFile(t, path, kubetest.KubeconfigText("https://a", ""))
	k := &KubeconfigFile{Log: kubetest.Quiet(), Path: path, Missing: func(string) {}, Apply: func(*rest.Config) error { return nil }}
	parsed := testing.AllocsPerRun(1, func() { k.text = [sha256.Size]byte{}; k.look() })
	if n := testing.AllocsPerRun(10, k.look); n > parsed/10 {
		t.Errorf("%.0f allocations for a look at a file that stays, %.0f to parse it", n, parsed)
	}
}

func TestWhatIsNoKubeconfigHoldsNothingUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k3s.yaml")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	hosts, _ := follow(t, path) // and its end is waited for
	expectNone(t, hosts)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	kubetest.WriteFile(t, path, "")
	if err := os.Truncate(path, 3<<30); err != nil { // no block of it is on disk
		t.Fatal(err)
	}
	expectNone(t, hosts)
	kubetest.WriteFile(t, path, kubetest.KubeconfigText("https://a", ""))
	expect(t, hosts, "https://a")
}

func TestAKubeconfigIsReadAsTheAgentUsesIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k3s.yaml")
	own := kubetest.NewAuthority(t)
	_, _, cert, key := own.Sign(t, &x509.Certificate{})
	data := base64.StdEncoding.EncodeToString
	whole := strings.Replace(kubetest.KubeconfigText("https://127.0.0.1:6443", "certificate-authority-data: "+data(own.Pem)+","),
		"token: secret-token", "client-certificate-data: "+data(cert)+", client-key-data: "+data(key), 1)
	hidden := strings.Replace(whole, data(key), redact.Hidden, 1)
	for name, row := range map[string]struct {
		text   string
		copied bool
		why    string
		client string
	}{
		"whole":                      {whole, false, "", "test"},
		"whole, of a copy":           {whole, true, "", "test"},
		"without its key, of a copy": {hidden, true, "", "test"},
		"without its key":            {hidden, false, "not a complete kubeconfig", ""},
		"nothing":                    {"", false, "current-context", ""},
		"no YAML":                    {"\x00", false, "not a complete kubeconfig", ""},
		"a list":                     {"- a\n- b", false, "not a complete kubeconfig", ""},
		"a number of clusters":       {"clusters: 7", false, "not a complete kubeconfig", ""},
		"a certificate alone":        {strings.Replace(whole, "client-key-data: "+data(key), "", 1), false, "client-key-data", ""},
		"a server without a scheme":  {strings.Replace(whole, "https://", "", 1), false, "no credentials", ""},
		"a token":                    {kubetest.KubeconfigText("https://127.0.0.1:6443", ""), false, "", ""},
		"an authority that is none":  {kubetest.KubeconfigText("https://127.0.0.1:6443", "certificate-authority-data: eHg=,"), false, "set up certificates", ""},
		"a server that is no URL":    {kubetest.KubeconfigText("::", ""), false, "no credentials", ""},
		"a file beside it":           {kubetest.KubeconfigText("https://127.0.0.1:6443", "certificate-authority: ca.pem,"), false, "certificate-authority", ""},
	} {
		kubetest.WriteFile(t, path, row.text)
		k, err := ReadKubeconfig(path, row.copied)
		if row.why != "" {
			if err == nil || !strings.Contains(err.Error(), row.why) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || k.Server != "https://127.0.0.1:6443" || (k.TLS == nil) != row.copied {
			t.Errorf("%s: %+v, %v", name, k, err)
		}
		if k.Client == nil && (row.client != "" || k.Token != "secret-token") || k.Client != nil && (k.Client.Subject.CommonName != row.client || len(k.Authorities) != 1) {
			t.Errorf("%s: it has %+v", name, k)
		}
	}
}
