//go:build release

package packaging

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const packer = "../../bin/tools/goreleaser"

// release packs a release in a copy of this tree with a made-up program, and
// says where. Settings are variables for make.
func release(t *testing.T, settings ...string) string {
	t.Helper()
	tool, err := filepath.Abs(packer)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"Makefile", ".goreleaser.yaml", "LICENSE", "README.md", "CHANGELOG.md", "docs/eve-image.md", "docs/edge.md", "pkg/edge/cloud/crds/README.md", "docs/operations.md", "docs/runbook.md", "docs/commands.md", "docs/alerts.md", "docs/files.md", "docs/alerts.yaml", "docs/dashboards", "deploy", ".package", ".ci/sign", "test/provenance"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("cp", "-R", "../../"+name, filepath.Join(dir, name)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	made := map[string]string{
		"docs/man/zedkube.1": ".TH ZEDKUBE 1\n",
		"go.mod":             "module github.com/zedkube/zedkube\n\ngo 1.26.0\n",
	}
	for program := range packed {
		made["cmd/"+program+"/main.go"] = "package main\n\nvar version string\n\nfunc main() { print(version) }\n"
		for _, arch := range []string{"amd64", "arm64"} {
			for _, kind := range []string{".licenses", ".cdx.json"} {
				made["bin/linux-"+arch+"/"+program+kind] = program + kind + " of " + arch
			}
		}
	}
	for name, content := range made {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command("make", "-C", dir, "-o", "sbom", "-o", "bin/tools/goreleaser", "packed", "VERSION=v1.2.3", "EPOCH=1700000000", "REVISION="+revision)
	c.Args = append(c.Args, settings...)
	c.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, "MAKE") || slices.Contains([]string{"VERSION", "GPG_KEY", "COSIGN_KEY", "BUILDER"}, name)
	})
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "bin/tools"), 0o755), os.Symlink(tool, filepath.Join(dir, "bin/tools/goreleaser"))); err != nil {
		t.Fatal(err)
	}
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return filepath.Join(dir, "bin/release")
}

// names are those of the files in a directory.
func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestAReleaseHoldsWhatItTakesToRunIt(t *testing.T) {
	dir := release(t)
	if got, want := names(t, dir), []string{
		"SHA256SUMS", "zedkube-edge-v1.2.3-linux-amd64.cdx.json", "zedkube-edge-v1.2.3-linux-amd64.tar.gz",
		"zedkube-edge-v1.2.3-linux-arm64.cdx.json", "zedkube-edge-v1.2.3-linux-arm64.tar.gz",
		"zedkube-v1.2.3-linux-amd64.cdx.json", "zedkube-v1.2.3-linux-amd64.tar.gz",
		"zedkube-v1.2.3-linux-arm64.cdx.json", "zedkube-v1.2.3-linux-arm64.tar.gz",
	}; !slices.Equal(got, want) {
		t.Errorf("it has %q, want %q", got, want)
	}
	check := exec.Command("sha256sum", "--strict", "-c", "SHA256SUMS")
	check.Dir = dir
	if out, err := check.CombinedOutput(); err != nil || strings.Count(string(out), ": OK") != 8 {
		t.Errorf("checksums: %v: %s", err, out)
	}
	for program, wanted := range packed {
		for _, arch := range []string{"amd64", "arm64"} {
			complete(t, dir, program, arch, wanted)
		}
	}
}

// complete checks the archive of a program.
func complete(t *testing.T, dir, program, arch string, wanted map[string]int64) {
	t.Helper()
	top := program + "-v1.2.3-linux-" + arch
	files := unpack(t, filepath.Join(dir, top+".tar.gz"))
	for name, mode := range wanted {
		f, ok := files[top+"/"+name]
		if !ok || f.Mode != mode || f.Uid != 0 || f.Gid != 0 || f.ModTime.Unix() != 1_700_000_000 {
			t.Errorf("%s/%s: %v %+v", top, name, ok, f.Header)
		}
		delete(files, top+"/"+name)
		built := map[string]string{program: "", "THIRD-PARTY-LICENSES": ".licenses"}
		kind, made := built[name]
		if !made {
			continue
		}
		if want, err := os.ReadFile(filepath.Join(dir, "../linux-"+arch, program+kind)); err != nil || string(want) != f.content {
			t.Errorf("%s/%s is not what was built: %v", top, name, err)
		}
	}
	for name := range files {
		t.Errorf("%s is in it", name)
	}
}

type file struct {
	tar.Header
	content string
}

// unpack reads an archive.
func unpack(t *testing.T, name string) map[string]file {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]file{}
	for archive := tar.NewReader(zip); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		} else if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Errorf("%s in %s: %v", h.Name, name, err)
		}
		files[h.Name] = file{*h, string(content)}
	}
}

func TestTheSameReleaseHasTheSameBytes(t *testing.T) {
	first, err1 := os.ReadFile(filepath.Join(release(t), "SHA256SUMS"))
	second, err2 := os.ReadFile(filepath.Join(release(t), "SHA256SUMS"))
	if err1 != nil || err2 != nil || string(first) != string(second) {
		t.Errorf("%v %v:\n%s\n%s", err1, err2, first, second)
	}
}

func TestAReleaseThatIsSignedCanBeVerified(t *testing.T) {
	keys := makeKeys(t)
	dir := release(t, keys.settings...)
	const statement = "zedkube-v1.2.3.provenance.json"
	if got, want := len(names(t, dir)), 10+2*len(keys.verify); got != want {
		t.Errorf("it has %d files, want %d: %q", got, want, names(t, dir))
	}
	keys.check(t, filepath.Join(dir, "SHA256SUMS"), filepath.Join(dir, statement))
}

// TestWhatIsPackedStarts unpacks what `make release` has packed just now, and
// starts it as docs/eve-image.md says.
func TestWhatIsPackedStarts(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		archives, err := filepath.Glob("../../bin/release/zedkube-[^e]*-linux-" + arch + ".tar.gz")
		if err != nil || len(archives) != 1 {
			t.Fatalf("there are the archives %q, %v", archives, err)
		}
		dir := t.TempDir()
		if out, err := exec.Command("tar", "-xzf", archives[0], "-C", dir, "--strip-components=1").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		program := filepath.Join(dir, "zedkube")
		if arch != runtime.GOARCH {
			if qemu, err := exec.LookPath("qemu-aarch64"); err != nil {
				t.Logf("%s is not run: %v", arch, err)
			} else if out, err := exec.Command(qemu, program, "version").CombinedOutput(); err != nil || len(out) == 0 {
				t.Errorf("%s: %v: %s", arch, err, out)
			}
			continue
		}
		unit, err := os.ReadFile(filepath.Join(dir, "zedkube.service"))
		if err != nil {
			t.Fatal(err)
		}
		t.Run("by its unit", func(t *testing.T) { unitServes(t, program, string(unit)) })
		t.Run("by its service", func(t *testing.T) { serviceServes(t, program, filepath.Join(dir, "zedkube.openrc")) })
		t.Run("by its script", func(t *testing.T) { underPillar(t, program, filepath.Join(dir, "zedkube-start.sh")) })
	}
}
