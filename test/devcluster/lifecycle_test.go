//go:build linux

package devcluster

import (
	"bufio"
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

// childEnv makes this test binary start a cluster, say where, and wait; "hosts"
// one of hosts, "real" one of a real node that runs a pod.
const childEnv = "DEVCLUSTER_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		goleak.VerifyTestMain(m)
	}
	kind := os.Getenv(childEnv)
	c, err := Start(context.Background(), Options{Log: os.Stderr, Nodes: 1, Hosts: kind != "1", Real: kind == "real"})
	if err == nil && kind == "real" {
		err = runInChild(c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(c.Dir)
	for _, place := range []int{Switch, 0} {
		if command := c.HostCommand(place); command != nil {
			fmt.Println(strings.TrimPrefix(command[1], "--net="))
		}
	}
	fmt.Println("up")
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
	child, said := startChild(t, "1")
	dir := said[0]
	running := processesOf(t, dir)
	child.kill()
	if len(running) != 6 { // four of the control plane, a kubelet, the reaper
		t.Errorf("%d processes ran, want 6: %q", len(running), running)
	}
	eventually(t, 5*time.Second, "the directory to go", func() bool {
		_, err := os.Stat(dir)
		return os.IsNotExist(err)
	})
	assertNothingLeft(t, dir)
}

// child is another process with a cluster.
type child struct {
	t    *testing.T
	cmd  *exec.Cmd
	dead bool
}

// startChild returns what it says when the cluster is up.
func startChild(t *testing.T, kind string) (*child, []string) {
	t.Helper()
	c := &child{t: t, cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), childEnv+"="+kind)
	c.cmd.Stderr = t.Output()
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	var said []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "up" {
			return c, said
		}
		said = append(said, lines.Text())
	}
	t.Fatal("the child's cluster did not start")
	return nil, nil
}

func (c *child) kill() {
	if !c.dead {
		c.dead = true
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	}
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
