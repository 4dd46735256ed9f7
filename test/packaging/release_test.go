package packaging

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// release packs a release in a copy of this tree with made-up programs, and
// says where.
func release(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"Makefile", "LICENSE", "README.md", "CHANGELOG.md", "docs/eve-image.md", "docs/alerts.yaml", ".package"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("cp", "-R", "../../"+name, filepath.Join(dir, name)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	made := map[string]string{"docs/man/zedkube.1": ".TH ZEDKUBE 1\n"}
	for _, arch := range []string{"amd64", "arm64"} {
		for _, name := range []string{"zedkube", "THIRD-PARTY-LICENSES", "zedkube.cdx.json"} {
			made["bin/linux-"+arch+"/"+name] = name + " of " + arch
		}
	}
	for name, content := range made {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command("make", "-C", dir, "-o", "archs", "-o", "sbom", "release", "VERSION=v1.2.3", "EPOCH=1700000000")
	c.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "VERSION=") })
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return filepath.Join(dir, "bin/release")
}

func TestAReleaseHoldsWhatItTakesToRunIt(t *testing.T) {
	dir := release(t)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{
		"SHA256SUMS", "zedkube-v1.2.3-linux-amd64.cdx.json", "zedkube-v1.2.3-linux-amd64.tar.gz",
		"zedkube-v1.2.3-linux-arm64.cdx.json", "zedkube-v1.2.3-linux-arm64.tar.gz",
	}; !slices.Equal(names, want) {
		t.Errorf("it has %q, want %q", names, want)
	}
	check := exec.Command("sha256sum", "--strict", "-c", "SHA256SUMS")
	check.Dir = dir
	if out, err := check.CombinedOutput(); err != nil || strings.Count(string(out), ": OK") != 4 {
		t.Errorf("checksums: %v: %s", err, out)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		top := "zedkube-v1.2.3-linux-" + arch
		packed := unpack(t, filepath.Join(dir, top+".tar.gz"))
		for name, mode := range map[string]int64{
			"/": 0o755, "/man/": 0o755, "/zedkube": 0o755, "/zedkube-start.sh": 0o755, "/zedkube.openrc": 0o755,
			"/zedkube.service": 0o644, "/LICENSE": 0o644, "/README.md": 0o644, "/CHANGELOG.md": 0o644, "/THIRD-PARTY-LICENSES": 0o644,
			"/eve-image.md": 0o644, "/alerts.yaml": 0o644, "/man/zedkube.1": 0o644,
		} {
			h, ok := packed[top+name]
			if !ok || h.Mode != mode || h.Uid != 0 || h.Gid != 0 || h.ModTime.Unix() != 1_700_000_000 {
				t.Errorf("%s%s: %v %+v", top, name, ok, h)
			}
			delete(packed, top+name)
		}
		for name := range packed {
			t.Errorf("%s is in it", name)
		}
	}
}

// unpack reads an archive.
func unpack(t *testing.T, file string) map[string]tar.Header {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]tar.Header{}
	for archive := tar.NewReader(zip); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		} else if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = *h
		if content, err := io.ReadAll(archive); err != nil || strings.HasSuffix(h.Name, "/zedkube") && !strings.Contains(file, strings.TrimPrefix(string(content), "zedkube of ")) {
			t.Errorf("%s in %s: %v: %q", h.Name, file, err, content)
		}
	}
}

func TestTheSameReleaseHasTheSameBytes(t *testing.T) {
	first, err1 := os.ReadFile(filepath.Join(release(t), "SHA256SUMS"))
	second, err2 := os.ReadFile(filepath.Join(release(t), "SHA256SUMS"))
	if err1 != nil || err2 != nil || string(first) != string(second) {
		t.Errorf("%v %v:\n%s\n%s", err1, err2, first, second)
	}
}
