//go:build linux

package devcluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// childEnv makes this test binary start a cluster, say where, and wait.
const childEnv = "DEVCLUSTER_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		goleak.VerifyTestMain(m)
	}
	c, err := Start(context.Background(), Options{Log: os.Stderr, Nodes: 1})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(c.Dir)
	select {}
}

func sideBySide(t *testing.T, c *Cluster) {
	other := start(t, Options{Nodes: 1, Dir: filepath.Join(t.TempDir(), "not", "there")})
	if other.Nodes[0].IP == c.Nodes[0].IP || other.Dir == c.Dir {
		t.Fatalf("two clusters share %v and %v", other.Nodes[0], other.Dir)
	}
	for _, x := range []*Cluster{c, other} {
		if !x.takesPods(t.Context(), x.Nodes[0].Name) {
			t.Errorf("the cluster in %s has no ready node", x.Dir)
		}
	}
}

func TestADirectoryInUseIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), Options{Dir: dir}); err == nil {
		t.Error("a cluster started in a directory that is in use")
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

func TestAKilledParentLeavesNothing(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	n, err := out.Read(buf)
	dir := strings.TrimSpace(string(buf[:n]))
	running := processesOf(t, dir)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil || dir == "" {
		t.Fatalf("the child's cluster did not start: %v", err)
	}
	if len(running) != 6 { // four of the control plane, a kubelet, the reaper
		t.Errorf("%d processes ran, want 6: %q", len(running), running)
	}
	eventually(t, 5*time.Second, "the directory to go", func() bool {
		_, err := os.Stat(dir)
		return os.IsNotExist(err)
	})
	assertNothingLeft(t, dir)
}

func assertNothingLeft(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory %s is left: %v", dir, err)
	}
	eventually(t, time.Second, "the processes to go", func() bool { return len(processesOf(t, dir)) == 0 })
}

// processesOf returns the command lines of the processes that know dir.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		line, _ := os.ReadFile(file) // it may be gone by now
		if bytes.Contains(line, []byte(dir)) {
			found = append(found, string(line))
		}
	}
	return found
}
