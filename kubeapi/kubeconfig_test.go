package kubeapi

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
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
)

func config(server, ca string) string {
	return fmt.Sprintf(`apiVersion: v1
clusters:
- cluster: {%s server: %q}
  name: default
contexts:
- context: {cluster: default, user: default}
  name: default
current-context: default
kind: Config
users:
- name: default
  user: {token: secret-token}
`, ca, server)
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// eventually waits for what takes up to quiet on a quiet machine; other tests may
// have both processors.
func eventually(t *testing.T, what string, quiet time.Duration, ok func() bool) {
	t.Helper()
	limit := 4 * quiet
	for end := time.Now().Add(limit); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// follow watches path and hands out the hosts that were applied.
func follow(t *testing.T, path string) (hosts <-chan string, log *logtest.Hook) {
	t.Helper()
	logger, hook := logtest.NewNullLogger()
	applied := make(chan string, 10)
	k := &kubeconfig{
		log: logger, path: path, pulse: &loop.Pulse{}, missing: func(string) {},
		apply: func(cfg *rest.Config) error {
			if strings.Contains(cfg.Host, "unusable") {
				return errors.New("cannot be used")
			}
			applied <- cfg.Host
			return nil
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); k.watch(ctx) }()
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
	case <-time.After(4 * settle):
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
	write(t, path, config("https://a", ""))
	expect(t, hosts, "https://a")

	// The kube container removes it all and begins anew.
	if err := os.RemoveAll(filepath.Join(root, ".kube")); err != nil {
		t.Fatal(err)
	}
	expectNone(t, hosts)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, path+".tmp", config("https://b", ""))
	if err := os.Rename(path+".tmp", path); err != nil {
		t.Fatal(err)
	}
	expect(t, hosts, "https://b")
}

func TestAHalfWrittenKubeconfigIsReportedOnceAndLeavesTheOldOneInUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k3s.yaml")
	write(t, path, config("https://a", ""))
	hosts, log := follow(t, path)
	expect(t, hosts, "https://a")
	whole := config("https://b", "")
	for _, cut := range []int{0, 40, len(whole) / 2, strings.Index(whole, "  user: {token")} {
		log.Reset()
		write(t, path, whole[:cut])
		expectNone(t, hosts)
		write(t, path, whole[:cut]) // touched, not changed
		expectNone(t, hosts)
		if n := len(log.AllEntries()); n != 1 {
			t.Errorf("cut at %d: %d log lines", cut, n)
		}
	}
	log.Reset()
	write(t, path, whole)
	expect(t, hosts, "https://b")
	write(t, path, whole)
	expectNone(t, hosts)
	if n := len(log.AllEntries()); n != 0 {
		t.Errorf("%d log lines for a whole file", n)
	}
}

func TestAKubeconfigThatCannotBeUsedDoesNotReplaceAGoodOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k3s.yaml")
	write(t, path, config("https://a", ""))
	hosts, _ := follow(t, path)
	expect(t, hosts, "https://a")
	write(t, path, config("https://unusable", ""))
	expectNone(t, hosts)
	write(t, path, config("https://a", ""))
	expectNone(t, hosts)
}

func TestEveryCutOfAKubeconfigIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k3s.yaml")
	whole := config("https://a", "")
	for cut := range strings.Index(whole, "secret-token") {
		write(t, path, whole[:cut])
		_, _, err := readKubeconfig(path, readTrusted)
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
	write(t, filepath.Join(dir, "secret"), "SECRET")
	ran := filepath.Join(dir, "ran")
	token := "token: secret-token"
	for name, row := range map[string]struct{ text, why string }{
		"a program": {
			strings.Replace(config("https://a", ""), token, "exec: {apiVersion: client.authentication.k8s.io/v1, command: /usr/bin/touch, args: ["+ran+"], interactiveMode: Never}", 1),
			"exec plug-in",
		},
		"an auth provider":            {strings.Replace(config("https://a", ""), token, "auth-provider: {name: oidc}", 1), "auth-provider"},
		"a token in a file":           {strings.Replace(config("https://a", ""), token, "tokenFile: secret", 1), "tokenFile"},
		"a token, and one in a file":  {strings.Replace(config("https://a", ""), token, token+", tokenFile: secret", 1), "tokenFile"},
		"a certificate in a file":     {strings.Replace(config("https://a", ""), token, "client-certificate: secret, client-key: secret", 1), "client-certificate"},
		"a key in a file":             {strings.Replace(config("https://a", ""), token, token+", client-key: secret", 1), "client-key"},
		"an authority in a file":      {config("https://a", "certificate-authority: secret,"), "certificate-authority"},
		"a server that nobody checks": {config("https://a", "insecure-skip-tls-verify: true,"), "insecure-skip-tls-verify"},
		"a proxy":                     {config("https://a", "proxy-url: http://10.0.0.9:3128,"), "proxy-url"},
		"another user":                {strings.Replace(config("https://a", ""), token, token+", as: admin", 1), "acts as another"},
		"another group":               {strings.Replace(config("https://a", ""), token, token+", as-groups: [system:masters]", 1), "acts as another"},
		"another UID":                 {strings.Replace(config("https://a", ""), token, token+", as-uid: x", 1), "acts as another"},
		"more about another user":     {strings.Replace(config("https://a", ""), token, token+", as-user-extra: {scopes: [x]}", 1), "acts as another"},
	} {
		write(t, path, row.text)
		_, _, err := readKubeconfig(path, readTrusted)
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
	write(t, path, config("https://a", ""))
	for mode, want := range map[os.FileMode]bool{0o600: true, 0o644: true, 0o400: true, 0o620: false, 0o602: false, 0o666: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, _, err := readKubeconfig(path, readTrusted); (err == nil) != want {
			t.Errorf("mode %#o: %v", mode, err)
		}
	}
}

func TestAKubeconfigOfAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	path := filepath.Join(t.TempDir(), "k3s.yaml")
	write(t, path, config("https://a", ""))
	for uid, want := range map[int]bool{0: true, 65534: false, 1000: false} {
		if err := os.Chown(path, uid, -1); err != nil {
			t.Fatal(err)
		}
		if _, _, err := readKubeconfig(path, readTrusted); (err == nil) != want {
			t.Errorf("uid %d: %v", uid, err)
		}
	}
}

func TestARefusedKubeconfigLeavesTheOldOneInUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k3s.yaml")
	good := config("https://a", "")
	for name, refused := range map[string]func(){
		"others may write it": func() {
			write(t, path, config("https://b", ""))
			if err := os.Chmod(path, 0o666); err != nil {
				t.Fatal(err)
			}
		},
		"a proxy":      func() { write(t, path, config("https://b", "proxy-url: http://10.0.0.9:3128,")) },
		"another user": func() { write(t, path, strings.Replace(config("https://b", ""), "token:", "as: admin, token:", 1)) },
	} {
		write(t, path, good)
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		applied, missing := []string{}, 0
		k := &kubeconfig{
			log: quiet(), path: path, missing: func(string) { missing++ },
			apply: func(cfg *rest.Config) error { applied = append(applied, cfg.Host); return nil },
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
		write(t, path, good)
		if k.look(); len(applied) != 1 || k.reported != "" { // it was in use all the time
			t.Errorf("%s: after it %v are applied, %q is reported", name, applied, k.reported)
		}
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
	write(t, path, "")
	if err := os.Truncate(path, 3<<30); err != nil { // no block of it is on disk
		t.Fatal(err)
	}
	expectNone(t, hosts)
	write(t, path, config("https://a", ""))
	expect(t, hosts, "https://a")
}

func TestAKubeconfigIsReadAsTheAgentUsesIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k3s.yaml")
	own := newAuthority(t)
	_, _, cert, key := own.sign(t, &x509.Certificate{})
	data := base64.StdEncoding.EncodeToString
	whole := strings.Replace(config("https://127.0.0.1:6443", "certificate-authority-data: "+data(own.pem)+","),
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
		"without its key":            {hidden, false, "not a whole kubeconfig", ""},
		"a token":                    {config("https://127.0.0.1:6443", ""), false, "", ""},
		"an authority that is none":  {config("https://127.0.0.1:6443", "certificate-authority-data: eHg=,"), false, "set up certificates", ""},
		"a server that is no URL":    {config("::", ""), false, "no credentials", ""},
		"a file beside it":           {config("https://127.0.0.1:6443", "certificate-authority: ca.pem,"), false, "certificate-authority", ""},
	} {
		write(t, path, row.text)
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
