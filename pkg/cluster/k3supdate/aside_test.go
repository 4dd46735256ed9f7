package k3supdate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// k3sFiles are files of k3s below a directory, each with its own name as content.
func k3sFiles(t *testing.T, names string) LeafFiles {
	t.Helper()
	dir := t.TempDir()
	for name := range strings.FieldsSeq(names) {
		writeFile(t, filepath.Join(dir, name), name)
	}
	return LeafFiles{Dirs: []string{filepath.Join(dir, "not-there"), dir}}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (l LeafFiles) read(name string) string {
	raw, _ := os.ReadFile(filepath.Join(l.Dirs[1], name))
	return string(raw)
}

const ofServer = "server/tls/client-admin.crt server/tls/client-admin.key server/tls/server-ca.crt server/tls/serving-kube-apiserver.crt " +
	"server/tls/etcd/peer-ca.crt server/tls/etcd/client.crt server/tls/kube-scheduler/kube-scheduler.crt agent/serving-kubelet.crt"

func TestLeavesAreMovedAsideAndBack(t *testing.T) {
	l := k3sFiles(t, ofServer)
	if why := l.Unknown(true); why != "" {
		t.Fatal(why)
	}
	for range 2 { // an agent that was killed does it again
		if err := l.Aside(); err != nil {
			t.Fatal(err)
		}
	}
	for name := range strings.FieldsSeq(ofServer) {
		leaf := strings.HasPrefix(name, "server/") && strings.HasSuffix(name, ".crt") && !strings.HasSuffix(name, "-ca.crt")
		if moved := l.read(name) == ""; moved != leaf || leaf && l.read(filepath.Join(kept, name)) != name {
			t.Errorf("%s: moved %v, aside %q", name, moved, l.read(filepath.Join(kept, name)))
		}
	}
	writeFile(t, filepath.Join(l.Dirs[1], "server/tls/client-admin.crt"), "a new one")
	for range 2 {
		if err := l.Back(); err != nil {
			t.Fatal(err)
		}
	}
	for name := range strings.FieldsSeq(ofServer) {
		if got := l.read(name); got != name {
			t.Errorf("%s is %q", name, got)
		}
	}
}

func TestAnUnknownLayoutIsLeftAlone(t *testing.T) {
	for name, files := range map[string]string{
		"a certificate of another name":      ofServer + " server/tls/client-new-part.crt",
		"a server without any":               "agent/serving-kubelet.crt",
		"a certificate of an unknown member": ofServer + " server/tls/etcd/learner.crt",
	} {
		l := k3sFiles(t, files)
		if why := l.Unknown(true); !strings.Contains(why, "not the known one") {
			t.Errorf("%s: %q", name, why)
		}
		if err := l.Aside(); err == nil && strings.Contains(files, "server") {
			t.Errorf("%s: they are moved", name)
		}
		for file := range strings.FieldsSeq(files) {
			if l.read(file) != file {
				t.Errorf("%s: %s is %q", name, file, l.read(file))
			}
		}
	}
	if why := k3sFiles(t, "agent/serving-kubelet.crt").Unknown(false); why != "" {
		t.Errorf("a worker has none: %s", why)
	}
	if why := (LeafFiles{Dirs: []string{filepath.Join(t.TempDir(), "none")}}).Unknown(false); why == "" {
		t.Error("no directory of k3s is known")
	}
}
