package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// made is a layout in the making.
type made struct {
	*testing.T
	dir      string
	programs map[string][]byte // by architecture
	extra    []tar.Header      // in arm64's image
	mode     int64             // of the program
	user     string
	about    map[string]string
}

// build makes a small program for each architecture, which knows its version and
// plays a device's agent, as badly as fault says.
func build(t *testing.T, fault string) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	source, err := os.ReadFile("testdata/tiny.go.txt")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "go.mod"), "module tiny\n\ngo 1.26\n")
	write(t, filepath.Join(dir, "main.go"), string(source))
	programs := map[string][]byte{}
	for _, arch := range architectures {
		c := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w -X main.fault="+fault, "-o", arch, ".")
		c.Dir = dir
		c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if programs[arch], err = os.ReadFile(filepath.Join(dir, arch)); err != nil {
			t.Fatal(err)
		}
	}
	return programs
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// put writes a blob and says its digest.
func (m *made) put(content any) descriptor {
	m.Helper()
	raw, isRaw := content.([]byte)
	if !isRaw {
		var err error
		if raw, err = json.Marshal(content); err != nil {
			m.Fatal(err)
		}
	}
	sum := sha256.Sum256(raw)
	name := hex.EncodeToString(sum[:])
	write(m.T, filepath.Join(m.dir, "blobs/sha256", name), string(raw))
	return descriptor{Digest: "sha256:" + name}
}

func (m *made) layer(arch string) []byte {
	m.Helper()
	var packed bytes.Buffer
	zip, err := gzip.NewWriterLevel(&packed, gzip.NoCompression) // the race detector makes any other slow
	if err != nil {
		m.Fatal(err)
	}
	out := tar.NewWriter(zip)
	put := func(h tar.Header, content []byte) {
		h.Size = int64(len(content))
		if err := out.WriteHeader(&h); err != nil {
			m.Fatal(err)
		}
		if _, err := out.Write(content); err != nil {
			m.Fatal(err)
		}
	}
	put(tar.Header{Name: "LICENSE", Mode: 0o644}, []byte("text"))
	put(tar.Header{Name: "zedkube-start.sh", Mode: 0o755}, []byte("#!/bin/sh\n"))
	put(tar.Header{Name: "zedkube", Mode: m.mode}, m.programs[arch])
	if arch == "arm64" {
		for _, h := range m.extra {
			put(h, nil)
		}
	}
	if out.Close() != nil || zip.Close() != nil {
		m.Fatal("cannot pack")
	}
	return packed.Bytes()
}

// write makes the layout, with an image for each of archs.
func (m *made) write(archs ...string) {
	m.Helper()
	if err := os.MkdirAll(filepath.Join(m.dir, "blobs/sha256"), 0o755); err != nil {
		m.Fatal(err)
	}
	var list index
	for _, arch := range archs {
		var c config
		c.OS, c.Architecture = "linux", arch
		c.Config.Entrypoint, c.Config.Labels, c.Config.User = []string{"/zedkube"}, m.about, m.user
		d := m.put(manifest{Config: m.put(c), Layers: []descriptor{m.put(m.layer(arch))}, Annotations: m.about})
		d.Platform.OS, d.Platform.Architecture = "linux", arch
		list.Manifests = append(list.Manifests, d)
	}
	top, err := json.Marshal(index{Manifests: []descriptor{m.put(list)}})
	if err != nil {
		m.Fatal(err)
	}
	write(m.T, filepath.Join(m.dir, "index.json"), string(top))
}

func TestAnImageIsJudgedByWhatIsInIt(t *testing.T) {
	programs := build(t, "")
	qemu := ""
	if runtime.GOARCH == "amd64" {
		for _, name := range []string{"qemu-aarch64", "qemu-aarch64-static"} {
			if found, err := exec.LookPath(name); err == nil {
				qemu = found
			}
		}
	}
	both := []string{"amd64", "arm64"}
	for _, row := range []struct {
		name  string
		archs []string
		edit  func(m *made)
		fails string
	}{
		{"as it should be", both, func(*made) {}, ""},
		{"one architecture", both[:1], func(*made) {}, "want one for each"},
		{"another version", both, func(m *made) { m.about[about+"version"] = "v9" }, "label version"},
		{"no revision", both, func(m *made) { delete(m.about, about+"revision") }, "annotation revision"},
		{"another user", both, func(m *made) { m.user = "1000" }, "not as root"},
		{"writable by all", both, func(m *made) { m.mode = 0o777 }, "mode"},
		{"not to be run", both, func(m *made) { m.mode = 0o644 }, "mode"},
		{"a file too many", both, func(m *made) { m.extra = []tar.Header{{Name: "etc/passwd", Mode: 0o644}} }, "arm64: unpack"},
		{"a secret", both, func(m *made) { m.extra = []tar.Header{{Name: "key.pem", Mode: 0o600}} }, "it holds [LICENSE key.pem"},
		{"a link", both, func(m *made) {
			m.extra = []tar.Header{{Name: "sh", Linkname: "/bin/sh", Typeflag: tar.TypeSymlink}}
		}, "no regular file"},
		{"a way out", both, func(m *made) { m.extra = []tar.Header{{Name: "../../out", Mode: 0o644}} }, "escapes"},
		{"one program for both", both, func(m *made) {
			m.programs = map[string][]byte{"amd64": programs["amd64"], "arm64": programs["amd64"]}
		}, "the program is one of EM_X86_64"},
		{"no program", both, func(m *made) {
			m.programs = map[string][]byte{"amd64": []byte("#!/bin/sh\n"), "arm64": nil}
		}, "read program"},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := &made{T: t, dir: t.TempDir(), programs: programs, mode: 0o755, about: map[string]string{
				about + "version": "v1.2.3", about + "revision": "abc", about + "licenses": "Apache-2.0", about + "source": "https://github.com/zedkube/zedkube",
			}}
			m.about = maps.Clone(m.about)
			row.edit(m)
			m.write(row.archs...)
			err := check(t.Context(), m.dir, wanted{"v1.2.3", "abc"}, qemu)
			if (err == nil) != (row.fails == "") || err != nil && !strings.Contains(err.Error(), row.fails) {
				t.Errorf("got %v, want %q", err, row.fails)
			}
		})
	}
}

// unpacked is a root with the small program for this processor.
func unpacked(t *testing.T, fault string) (root string, r *runner) {
	t.Helper()
	root = t.TempDir()
	write(t, filepath.Join(root, "zedkube"), string(build(t, fault)[runtime.GOARCH]))
	if err := os.Chmod(filepath.Join(root, "zedkube"), 0o755); err != nil {
		t.Fatal(err)
	}
	return root, newRunner(root, runtime.GOARCH, "")
}

func TestAProgramThatCallsItselfOtherwiseIsFound(t *testing.T) {
	_, r := unpacked(t, "")
	if err := r.runs(t.Context(), "v1.2.4"); err == nil || !strings.Contains(err.Error(), `calls itself "v1.2.3"`) {
		t.Errorf("got %v", err)
	}
}

func TestAProgramThatDoesNotServeIsFound(t *testing.T) {
	for fault, want := range map[string]string{
		"": "", "ends": "it ends by itself", "another": `want "`, "mute": "its status is", "fails": "told to end: exit status 3",
	} {
		root, r := unpacked(t, fault)
		if err := r.serves(t.Context(), root); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", fault, err, want)
		}
	}
}

func TestABlobOfAnotherContentIsFound(t *testing.T) {
	m := &made{T: t, dir: t.TempDir(), programs: build(t, ""), mode: 0o755}
	m.write("amd64", "arm64")
	blobs, err := filepath.Glob(filepath.Join(m.dir, "blobs/sha256/*"))
	if err != nil || len(blobs) == 0 {
		t.Fatal(err)
	}
	for _, b := range blobs {
		write(t, b, "{}")
	}
	if err := check(t.Context(), m.dir, wanted{}, ""); err == nil || !strings.Contains(err.Error(), "another content") {
		t.Errorf("got %v", err)
	}
	if _, err := blob(m.dir, "sha256:../../../etc/passwd"); err == nil {
		t.Error("a digest may be a path")
	}
}
