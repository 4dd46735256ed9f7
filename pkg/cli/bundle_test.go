package cli

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/bundle"
	"github.com/zedkube/zedkube/test/cmdtest"
)

// runCommand runs the program in this process.
func runCommand(t *testing.T, args ...string) (out, said string, code int) {
	t.Helper()
	out, said, err := cmdtest.Run(t.Context(), New("devel", nil), args...)
	return out, said, terminal.ExitCode(err)
}

func untar(t *testing.T, file string) (root string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	gz, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	root = t.TempDir()
	for r := tar.NewReader(gz); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return root
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		to := filepath.Join(root, filepath.FromSlash(h.Name))
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, content, 0o600), os.Chtimes(to, h.ModTime, h.ModTime)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheCommandsWorkOnAnUnpackedBundle(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.tar.gz")
	if _, said, code := runCommand(t, "--root", cmdtest.SilentDevice(t), "support-bundle", "-f", file); code != 0 || !strings.Contains(said, "files in") {
		t.Fatalf("exit code %d, %s", code, said)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	root := untar(t, file)
	nodes, err := json.Marshal(cmdtest.TroubledNodes())
	answer := filepath.Join(root, bundle.Extras, "kubernetes/nodes.json") // of an agent that ran
	if err := errors.Join(err, os.MkdirAll(filepath.Dir(answer), 0o700), os.WriteFile(answer, nodes, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, r := range []struct {
		args []string
		says string
	}{
		{[]string{"nodes"}, "NotReachable"},
		{[]string{"nodes"}, "by the agent of this node"},
		{[]string{"nodes", "node-2"}, "the device reboots"},
		{[]string{"doctor", "--only", "etcd"}, "All 3 members"},
		{[]string{"drain", "status"}, "1 of 2 gone"},
		{[]string{"status"}, "node-2"},
		{[]string{"topics"}, "zedkube/NodeDrainProgress"},
		{[]string{"topics", "NodeDrainProgress"}, "Emptying"},
		{[]string{"doctor"}, "This is a copy"},
		{[]string{"audit"}, ""},
	} {
		out, said, code := runCommand(t, append([]string{"--root", root}, r.args...)...)
		if !strings.Contains(out, r.says) || code == 1 || code == 99 || strings.Contains(out, "hush-hush") {
			t.Errorf("%v: exit code %d\n%s%s", r.args, code, out, said)
		}
	}
	for _, want := range []string{"commands/status.json", "commands/doctor.txt", "versions.json"} {
		if raw, err := os.ReadFile(filepath.Join(root, bundle.Extras, want)); err != nil || len(raw) == 0 || bytes.Contains(raw, []byte("hush-hush")) {
			t.Errorf("%s: %v\n%s", want, err, raw)
		}
	}
	var m bundle.Manifest
	raw, err := os.ReadFile(filepath.Join(root, bundle.ManifestFile))
	if err := errors.Join(err, json.Unmarshal(raw, &m)); err != nil || m.Node != "node-2" {
		t.Errorf("%+v, %v", m, err)
	}
	if !slices.ContainsFunc(m.LeftOut, func(l bundle.Lack) bool { return strings.HasSuffix(l.Path, "agent/metrics.txt") }) {
		t.Errorf("that the agent did not answer is not said: %+v", m.LeftOut)
	}
}

func TestABundleIsWrittenWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(t.TempDir(), "somebody's")
	link := filepath.Join(dir, "b.tar.gz")
	if err := errors.Join(os.WriteFile(target, []byte("mine"), 0o600), os.Symlink(target, link)); err != nil {
		t.Fatal(err)
	}
	if _, said, code := runCommand(t, "--root", cmdtest.SilentDevice(t), "support-bundle", "-f", link); code != 0 {
		t.Fatalf("exit code %d, %s", code, said)
	}
	kept, err := os.ReadFile(target)
	if info, lerr := os.Lstat(link); err != nil || lerr != nil || string(kept) != "mine" || !info.Mode().IsRegular() {
		t.Errorf("a link was followed: %q, %v, %v", kept, err, lerr)
	}
	if _, said, code := runCommand(t, "--root", cmdtest.SilentDevice(t), "support-bundle", "-f", filepath.Join(dir, "none/b.tar.gz")); code != 2 {
		t.Errorf("no directory: exit code %d, %s", code, said)
	}
	if _, _, code := runCommand(t, "--root", filepath.Join(dir, "none"), "support-bundle", "-f", filepath.Join(dir, "c.tar.gz")); code != 1 {
		t.Errorf("no device: exit code %d", code)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("parts were left: %v, %v", entries, err)
	}
	out, _, code := runCommand(t, "--root", cmdtest.SilentDevice(t), "support-bundle", "-f", "-")
	if _, err := gzip.NewReader(strings.NewReader(out)); code != 0 || err != nil {
		t.Errorf("to stdout: exit code %d, %v", code, err)
	}
}

func TestABundleIsNotWrittenOnATerminalThatGoesAway(t *testing.T) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP) // else it ends the tests where the command does not heed it
	defer signal.Stop(hangup)
	root, dir := cmdtest.SilentDevice(t), t.TempDir()
	l, err := net.Listen("unix", filepath.Join(root, "run/zedkube/zedkube.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // an agent that does not answer
		if _, err := l.Accept(); err == nil {
			_ = syscall.Kill(os.Getpid(), syscall.SIGHUP)
		}
	}()
	if _, said, code := runCommand(t, "--root", root, "support-bundle", "-f", filepath.Join(dir, "b.tar.gz")); code != terminal.ExitUsage || !strings.Contains(said, "interrupted") {
		t.Errorf("exit code %d, %s", code, said)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("parts were left: %v, %v", entries, err)
	}
}
