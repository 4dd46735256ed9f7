package k3sbinary

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/base/k3sprocess"
)

const next = "v1.35.0+k3s1"

// script is a binary that prints that it is of a version.
func script(version string) string {
	return "#!/bin/sh\necho \"k3s version " + version + " (0123abcd)\"\necho go version go1.26\n"
}

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// newFiles is a device with k3s v1.34.4+k3s1.
func newFiles(t *testing.T) (f Files, dir string) {
	t.Helper()
	root := t.TempDir()
	f = Files{VarLib: filepath.Join(root, "kube"), K3s: k3sprocess.K3s{PID: filepath.Join(root, "k3s.pid"), Proc: "/proc"}}
	dir = filepath.Join(f.VarLib, "k3s/bin")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "k3s"), script("v1.34.4+k3s1"))
	return f, dir
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// entries are the names in a directory.
func entries(t *testing.T, dir string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestABinarySaysItsVersion(t *testing.T) {
	f, _ := newFiles(t)
	path, err := f.Binary()
	if err != nil {
		t.Fatal(err)
	}
	if v, err := Version(t.Context(), path); err != nil || v != "v1.34.4+k3s1" {
		t.Errorf("%q, %v", v, err)
	}
	for name, row := range map[string]struct{ text, why string }{
		"no program":       {"hello", "run "},
		"another program":  {"#!/bin/sh\necho hello\n", "it does not print a version of k3s"},
		"no version":       {script("../../x"), "it is not a version"},
		"it fails":         {script(next) + "exit 3\n", "exit status 3"},
		"endless":          {"#!/bin/sh\nwhile :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx || exit; n=x$n; [ ${#n} -lt 3000 ] || exit 0; done\n", "it does not print a version of k3s"},
		"terminal escapes": {script("\x1b[31mv1.35.0+k3s1"), "it prints \"\\x1b"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Version(t.Context(), write(t, filepath.Join(t.TempDir(), "k3s"), row.text))
			if err == nil || !strings.Contains(err.Error(), row.why) {
				t.Errorf("the error is %v, want %q", err, row.why)
			}
		})
	}
	if _, err := Version(t.Context(), "/dev/null"); err == nil {
		t.Error("a device was run")
	}
}

func TestABinaryRunsWithoutRightsAndEnvironment(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become nobody")
	}
	t.Setenv("SECRET", "hunter2")
	dir := filepath.Join(t.TempDir(), "for root alone")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	checks := "#!/bin/sh\n[ $(id -u) = 65534 ] && [ $(id -G) = 65534 ] && [ -z \"$SECRET\" ] && [ $(wc -l < /proc/net/dev) = 3 ] && echo k3s version " + next + "\n"
	if v, err := Version(t.Context(), write(t, filepath.Join(dir, "k3s"), checks)); err != nil || v != next {
		t.Errorf("%q, %v", v, err)
	}
}

func TestABinaryThatHangsIsKilled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	text := "#!/bin/sh\nsleep 1000 & sleep 1000\n"
	if _, err := Version(ctx, write(t, filepath.Join(t.TempDir(), "k3s"), text)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
}

func TestABinaryIsStagedOnceItIsVerified(t *testing.T) {
	f, dir := newFiles(t)
	text := script(next)
	s, err := f.Stage(t.Context(), strings.NewReader(text), next, sumOf(text))
	if err != nil {
		t.Fatal(err)
	}
	if s.Version != next || s.Path != filepath.Join(dir, ".k3s-"+next) || s.Size != int64(len(text)) || time.Since(s.At) > time.Hour {
		t.Errorf("%+v", s)
	}
	if got := entries(t, dir); got != ".k3s-"+next+" k3s" {
		t.Errorf("the directory has %s", got)
	}
	if raw, err := os.ReadFile(filepath.Join(dir, "k3s")); err != nil || string(raw) != script("v1.34.4+k3s1") {
		t.Error("the binary in use was changed")
	}
	later := script("v1.35.1+k3s1")
	if s, err = f.Stage(t.Context(), strings.NewReader(later), "v1.35.1+k3s1", sumOf(later)); err != nil || s.Version != "v1.35.1+k3s1" {
		t.Errorf("%+v, %v", s, err)
	}
	if got := entries(t, dir); got != ".k3s-v1.35.1+k3s1 k3s" {
		t.Errorf("two are staged: %s", got)
	}
}

func TestWhatIsNotTheVersionIsNotStaged(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	good := script(next)
	for name, row := range map[string]struct {
		from         io.Reader
		version, sum string
		need         uint64
		why          string
	}{
		"another sum":            {strings.NewReader(good), next, sumOf("x"), 0, "its SHA-256 is " + sumOf(good)},
		"is not even run":        {strings.NewReader("#!/bin/sh\ntouch " + ran + "\n"), next, sumOf("x"), 0, "its SHA-256 is"},
		"another version":        {strings.NewReader(script("v1.34.0+k3s1")), next, sumOf(script("v1.34.0+k3s1")), 0, "it is k3s v1.34.0+k3s1"},
		"no program":             {strings.NewReader("x"), next, sumOf("x"), 0, "run "},
		"a path as version":      {strings.NewReader(good), "../v1", sumOf(good), 0, "it is not a version"},
		"no sum":                 {strings.NewReader(good), next, "", 0, "it is not a SHA-256"},
		"a sum in capitals":      {strings.NewReader(good), next, strings.ToUpper(sumOf(good)), 0, "it is not a SHA-256"},
		"a full disk":            {strings.NewReader(good), next, sumOf(good), 1 << 62, "MiB are free for k3s"},
		"a source that breaks":   {io.MultiReader(strings.NewReader(good), broken{}), next, sumOf(good), 0, "closed pipe"},
		"a source that is empty": {strings.NewReader(""), next, sumOf(""), 0, "run "},
	} {
		t.Run(name, func(t *testing.T) {
			f, dir := newFiles(t)
			before := script("v1.34.5+k3s1")
			if _, err := f.Stage(t.Context(), strings.NewReader(before), "v1.34.5+k3s1", sumOf(before)); err != nil {
				t.Fatal(err)
			}
			f.Need = row.need
			if _, err := f.Stage(t.Context(), row.from, row.version, row.sum); err == nil || !strings.Contains(err.Error(), row.why) {
				t.Errorf("the error is %v, want %q", err, row.why)
			}
			if got := entries(t, dir); got != ".k3s-v1.34.5+k3s1 k3s" {
				t.Errorf("the directory has %s", got)
			}
		})
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a binary with another sum was run")
	}
}

// What a download that a power cut ended has left must not keep the next one from its space.
func TestTheRestOfAKilledDownloadIsRemovedBeforeSpaceIsAskedFor(t *testing.T) {
	f, dir := newFiles(t)
	part := write(t, filepath.Join(dir, ".k3s-part-123"), "")
	if err := os.Truncate(part, 1<<42); err != nil { // it takes no space, and seems to
		t.Fatal(err)
	}
	f.Need = 1 << 42
	if err := f.CheckSpace(); err != nil {
		t.Errorf("with the space of the part: %v", err)
	}
	if _, err := f.Stage(t.Context(), strings.NewReader(script(next)), next, sumOf(script(next))); err == nil || !strings.Contains(err.Error(), "MiB are free for k3s") {
		t.Errorf("without it: %v", err)
	}
	if got := entries(t, dir); got != "k3s" {
		t.Errorf("the directory has %s", got)
	}
	f.Need = 0
	if _, err := f.Stage(t.Context(), strings.NewReader(script(next)), next, sumOf(script(next))); err != nil {
		t.Error(err)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestABinaryWithoutEndIsNotCopiedForEver(t *testing.T) {
	if _, err := copySum(t.Context(), io.Discard, zeros{}); err == nil || !strings.Contains(err.Error(), "it has more than") {
		t.Errorf("the error is %v", err)
	}
}

func TestWhatAKilledRunLeftIsRemoved(t *testing.T) {
	f, dir := newFiles(t)
	write(t, filepath.Join(dir, ".k3s-part-123"), "half")
	text := script(next)
	if _, err := f.Stage(t.Context(), strings.NewReader(text), next, sumOf(text)); err != nil {
		t.Fatal(err)
	}
	if got := entries(t, dir); got != ".k3s-"+next+" k3s" {
		t.Errorf("the directory has %s", got)
	}
}

// stagesFirst stages another binary before it is read.
type stagesFirst struct {
	io.Reader
	stage func()
}

func (r *stagesFirst) Read(p []byte) (int, error) {
	if r.stage != nil {
		r.stage()
		r.stage = nil
	}
	return r.Reader.Read(p)
}

func TestOneIsStagedAtATime(t *testing.T) {
	f, dir := newFiles(t)
	text, later := script(next), script("v1.35.1+k3s1")
	write(t, filepath.Join(dir, oldPart), "of an Install that is at work")
	first := &stagesFirst{strings.NewReader(text), func() {
		if _, err := f.Stage(t.Context(), strings.NewReader(later), "v1.35.1+k3s1", sumOf(later)); err == nil || !strings.Contains(err.Error(), "another k3s is being staged") {
			t.Errorf("the second one: %v", err)
		}
	}}
	if s, err := f.Stage(t.Context(), first, next, sumOf(text)); err != nil || s.Version != next {
		t.Errorf("the first one: %+v, %v", s, err)
	}
	if got := entries(t, dir); got != oldPart+" .k3s-"+next+" k3s" {
		t.Errorf("the directory has %s", got)
	}
	if s, err := f.Stage(t.Context(), strings.NewReader(later), "v1.35.1+k3s1", sumOf(later)); err != nil || s.Version != "v1.35.1+k3s1" {
		t.Errorf("afterwards: %+v, %v", s, err)
	}
}

func TestOnlyWhatRootAloneCouldWriteIsStaged(t *testing.T) {
	f, dir := newFiles(t)
	if s, err := f.Staged(); err != nil || s != (Staged{}) {
		t.Errorf("with none: %+v, %v", s, err)
	}
	if err := os.Chmod(write(t, filepath.Join(dir, ".k3s-"+next), script(next)), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/bin/sh", filepath.Join(dir, ".k3s-v1.36.0+k3s1")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, ".k3s-latest"), script(next))
	if s, err := f.Staged(); err != nil || s != (Staged{}) {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestWhereTheBinaryIs(t *testing.T) {
	f, dir := newFiles(t)
	if got, err := f.Binary(); err != nil || got != filepath.Join(dir, "k3s") {
		t.Errorf("%s, %v", got, err)
	}
	if err := f.CheckSpace(); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(dir, "k3s")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Binary(); !errors.Is(err, ErrNone) {
		t.Errorf("without a binary: %v", err)
	}
	if _, err := f.Staged(); !errors.Is(err, ErrNone) {
		t.Errorf("without a binary: %v", err)
	}
}

// Where the storage of the kube container is a volume of its own, the binary is found
// through the process of k3s, and only of k3s.
func TestTheBinaryIsFoundThroughTheProcessOfK3s(t *testing.T) {
	root := t.TempDir()
	cmd := exec.Command("/bin/sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	pid := strconv.Itoa(cmd.Process.Pid)
	// A /proc as the kernel has it, of a k3s in a container.
	proc := filepath.Join(root, "proc")
	bin := filepath.Join(proc, pid, "root/var/lib/k3s/bin")
	if err := errors.Join(os.MkdirAll(bin, 0o755), os.MkdirAll(filepath.Join(proc, "7"), 0o755)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(bin, "k3s"), script(next))
	write(t, filepath.Join(proc, pid, "stat"), pid+" (k3s) S 7 "+strings.Repeat("0 ", 40))
	write(t, filepath.Join(proc, "7/cmdline"), "/usr/bin/kube-init\x00")
	f := Files{VarLib: filepath.Join(root, "none"), K3s: k3sprocess.K3s{PID: write(t, filepath.Join(root, "k3s.pid"), pid), Proc: proc}}
	write(t, filepath.Join(proc, pid, "cmdline"), "/bin/sleep\x001000\x00")
	if _, err := f.Binary(); !errors.Is(err, ErrNone) {
		t.Errorf("another process: %v", err)
	}
	write(t, filepath.Join(proc, pid, "cmdline"), "/usr/bin/k3s server\x00")
	if got, err := f.Binary(); err != nil || got != filepath.Join(bin, "k3s") {
		t.Errorf("%s, %v", got, err)
	}
	text := script("v1.35.1+k3s1")
	if s, err := f.Stage(t.Context(), strings.NewReader(text), "v1.35.1+k3s1", sumOf(text)); err != nil || filepath.Dir(s.Path) != bin {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestTheBinaryIsFoundThroughKubeInitWhileK3sDoesNotRun(t *testing.T) {
	root := t.TempDir()
	proc, pid := filepath.Join(root, "proc"), strconv.Itoa(os.Getpid()) // who listens
	bin := filepath.Join(proc, pid, "root/var/lib/k3s/bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(bin, "k3s"), script(next))
	gone := k3sprocess.K3s{PID: write(t, filepath.Join(root, "k3s.pid"), "4194303"), Proc: proc, Socket: filepath.Join(root, "s.sock")}
	f := Files{VarLib: filepath.Join(root, "none"), K3s: gone}
	finds := func(when string, want error) {
		t.Helper()
		if got, err := f.Binary(); !errors.Is(err, want) || err == nil && got != filepath.Join(bin, "k3s") {
			t.Errorf("%s: %s, %v", when, got, err)
		}
	}
	write(t, filepath.Join(proc, pid, "cmdline"), "/usr/bin/kube-init\x00")
	finds("nobody listens", ErrNone)
	l, err := net.Listen("unix", gone.Socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	finds("kube-init listens", nil)
	write(t, filepath.Join(proc, pid, "cmdline"), "/bin/sleep\x001000\x00")
	finds("another program listens", ErrNone)
}

// release serves one release of k3s.
func release(t *testing.T, arch string, answers map[string]http.HandlerFunc) Releases {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer := answers[r.URL.EscapedPath()]; answer != nil {
			answer(w, r)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return Releases{URL: s.URL, Arch: arch, Client: s.Client()}
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
}

func TestAReleaseIsFetchedAndStaged(t *testing.T) {
	text := script(next)
	list := sumOf("images") + "  k3s-airgap-images-amd64.tar\n" + sumOf(text) + "  k3s\n" + sumOf("arm") + "  k3s-arm64\n"
	r := release(t, "amd64", map[string]http.HandlerFunc{
		"/v1.35.0%2Bk3s1/sha256sum-amd64.txt": says(list),
		"/v1.35.0%2Bk3s1/sha256sum-arm64.txt": says(list),
		"/v1.35.0%2Bk3s1/k3s":                 func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"/elsewhere":                          says(text),
	})
	sum, err := r.Sum(t.Context(), next)
	if err != nil || sum != sumOf(text) {
		t.Fatalf("the sum is %s, %v", sum, err)
	}
	f, _ := newFiles(t)
	var s Staged
	err = r.Fetch(t.Context(), next, func(ctx context.Context, from io.Reader) (err error) {
		s, err = f.Stage(ctx, from, next, sum)
		return err
	})
	if err != nil || s.Version != next {
		t.Errorf("%+v, %v", s, err)
	}
	r.Arch = "arm64"
	if sum, err := r.Sum(t.Context(), next); err != nil || sum != sumOf("arm") {
		t.Errorf("for arm64 %s, %v", sum, err)
	}
}

func TestWhatIsNoReleaseIsRefused(t *testing.T) {
	plain := httptest.NewServer(says(sumOf("x") + "  k3s\n"))
	t.Cleanup(plain.Close)
	const path = "/v1.35.0%2Bk3s1/sha256sum-amd64.txt"
	for name, row := range map[string]struct {
		version string
		answer  http.HandlerFunc
		why     string
	}{
		"there is none":            {next, nil, "answers 404"},
		"its list has no k3s":      {next, says(sumOf("x") + "  k3s-arm64\n"), "has no sum of k3s"},
		"its list is a page":       {next, says("<html>k3s</html>"), "has no sum of k3s"},
		"its sum is none":          {next, says("abc  k3s\n"), "has no sum of k3s"},
		"its list has no end":      {next, says(strings.Repeat("x\n", maxList) + sumOf("x") + "  k3s\n"), "has no sum of k3s"},
		"it leads to plain HTTP":   {next, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, plain.URL, http.StatusFound) }, "without TLS"},
		"it leads to itself":       {next, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, path, http.StatusFound) }, "redirected too often"},
		"the version is a path":    {"../x", nil, "answers 404"},
		"the connection is closed": {next, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			r := release(t, "amd64", map[string]http.HandlerFunc{path: row.answer})
			if sum, err := r.Sum(t.Context(), row.version); err == nil || !strings.Contains(err.Error(), row.why) {
				t.Errorf("%q, %v; want %q", sum, err, row.why)
			}
		})
	}
}

func TestAServerWithAnUnknownCertificateIsNotAsked(t *testing.T) {
	r := release(t, "amd64", map[string]http.HandlerFunc{"/v1.35.0%2Bk3s1/k3s": says("x")})
	own := NewReleases("amd64")
	own.URL = r.URL
	if _, err := own.Sum(t.Context(), next); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("the error is %v", err)
	}
}
