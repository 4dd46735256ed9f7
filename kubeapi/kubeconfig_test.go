package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"
	"k8s.io/client-go/rest"
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
		log: logger, path: path, missing: func(string) {},
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
	case <-time.After(3 * time.Second):
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
		_, _, err := (&kubeconfig{log: quiet(), path: path}).read()
		if err == nil {
			t.Errorf("taken: %q", whole[:cut])
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("error shows a secret: %v", err)
		}
	}
}

func TestAChangedCertificateFileIsAChangedKubeconfig(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "k3s.yaml")
	write(t, filepath.Join(dir, "ca.pem"), "one")
	write(t, path, config("https://a", "certificate-authority: ca.pem,"))
	applied := 0
	k := &kubeconfig{log: quiet(), path: path, missing: func(string) {}, apply: func(*rest.Config) error { applied++; return nil }}
	k.look()
	k.look()
	if applied != 1 {
		t.Fatalf("applied %d times", applied)
	}
	write(t, filepath.Join(dir, "ca.pem"), "two")
	k.look()
	if applied != 2 {
		t.Errorf("a new CA was not noticed")
	}
	if err := os.Remove(filepath.Join(dir, "ca.pem")); err != nil {
		t.Fatal(err)
	}
	k.look()
	if applied != 2 {
		t.Errorf("applied without its CA")
	}
}
