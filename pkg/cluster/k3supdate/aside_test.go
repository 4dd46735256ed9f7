package k3supdate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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

var reset = time.Unix(1_700_000_000, 5)

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
		if err := l.Aside(reset); err != nil {
			t.Fatal(err)
		}
	}
	for name := range strings.FieldsSeq(ofServer) {
		leaf := strings.HasPrefix(name, "server/") && strings.HasSuffix(name, ".crt") && !strings.HasSuffix(name, "-ca.crt")
		if moved := l.read(name) == ""; moved != leaf || leaf && l.read(filepath.Join(kept, "1700000000", name)) != name {
			t.Errorf("%s: moved %v, aside %q", name, moved, l.read(filepath.Join(kept, "1700000000", name)))
		}
	}
	writeFile(t, filepath.Join(l.Dirs[1], "server/tls/client-admin.crt"), "a new one")
	for range 2 {
		if err := l.Back(reset); err != nil {
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
		if err := l.Aside(reset); err == nil && strings.Contains(files, "server") {
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

func TestWhatIsPutBackIsOfThisResetAlone(t *testing.T) {
	l := k3sFiles(t, ofServer)
	if err := l.Aside(reset); err != nil {
		t.Fatal(err)
	}
	admin, apiserver := "server/tls/client-admin.crt", "server/tls/serving-kube-apiserver.crt"
	for _, name := range []string{admin, apiserver} { // as k3s makes them
		writeFile(t, filepath.Join(l.Dirs[1], name), "second "+name)
	}
	next := reset.Add(24 * time.Hour)
	if l.Kept(next) || !l.Kept(reset) {
		t.Error("which reset they are of is not seen")
	}
	if err := l.Aside(next); err != nil || !l.Kept(next) || l.Kept(reset) {
		t.Fatalf("%v; the former ones are there: %v", err, l.Kept(reset))
	}
	writeFile(t, filepath.Join(l.Dirs[1], admin), "third")
	writeFile(t, filepath.Join(l.Dirs[1], "server/tls/of-another-release.crt"), "no obstacle")
	if err := l.Back(next); err != nil || l.Kept(next) {
		t.Fatal(err)
	}
	for _, name := range []string{admin, apiserver} {
		if got := l.read(name); got != "second "+name {
			t.Errorf("%s is %q", name, got)
		}
	}
	if got := l.read("server/tls/etcd/client.crt"); got != "" {
		t.Errorf("one of a former reset is back: %q", got)
	}
}

// TestAnAgentThatIsKilledAtAnyFileLeavesNoneAside: moving aside and back is cut off after each file.
func TestAnAgentThatIsKilledAtAnyFileLeavesNoneAside(t *testing.T) {
	l := k3sFiles(t, ofServer)
	_, all, err := l.find()
	if err != nil || len(all) < 4 {
		t.Fatal(all, err)
	}
	for n := range len(all) + 1 {
		for _, file := range all[:n] { // what was done before
			if err := move(filepath.Join(l.Dirs[1], file), filepath.Join(keptOf(l.Dirs[1], reset), file)); err != nil {
				t.Fatal(err)
			}
		}
		if l.Kept(reset) != (n > 0) {
			t.Errorf("%d are aside, seen is %v", n, l.Kept(reset))
		}
		if n%2 == 0 { // goes on first
			if err := l.Aside(reset); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Back(reset); err != nil || l.Kept(reset) {
			t.Fatal(err)
		}
		for name := range strings.FieldsSeq(ofServer) {
			if got := l.read(name); got != name {
				t.Errorf("after %d files: %s is %q", n, name, got)
			}
		}
	}
}
