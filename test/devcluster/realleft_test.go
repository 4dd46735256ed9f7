//go:build linux

package devcluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// runInChild runs a pod and says which pid namespace and control groups it is in.
func runInChild(c *Cluster) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience*time.Minute)
	defer cancel()
	if err := c.CreateApp(ctx, App{Name: "orphan", Prints: Prints{Heartbeat: beats}}); err != nil {
		return err
	}
	if _, err := c.WaitRunning(ctx, labelApp+"=orphan", 1); err != nil {
		return err
	}
	number, err := os.ReadFile(c.hostFile(0, "ready"))
	if err != nil {
		return err
	}
	space, err := os.Readlink("/proc/" + string(number) + "/ns/pid")
	fmt.Println(space)
	fmt.Println(strings.Join(c.cgroups.dirs, " "))
	return err
}

// inSpace counts the processes of a pid namespace, as /proc/<pid>/ns/pid names it.
func inSpace(t *testing.T, space string) int {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, link := range links {
		if to, _ := os.Readlink(link); to == space { // it may be gone by now
			n++
		}
	}
	return n
}

// contained counts the processes in control groups and below.
func contained(t *testing.T, dirs []string) int {
	t.Helper()
	n := 0
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			if err != nil || filepath.Base(path) != "cgroup.procs" {
				return nil
			}
			text, _ := os.ReadFile(path)
			n += strings.Count(string(text), "\n")
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func there(dirs []string) []string {
	var found []string
	for _, dir := range dirs {
		if _, err := os.Stat(dir); err == nil {
			found = append(found, dir)
		}
	}
	return found
}

func TestAKilledParentOfRealNodesLeavesNothing(t *testing.T) {
	needsPods(t)
	before := places(t)
	child, said := startChild(t, "real")
	if len(said) != 5 {
		t.Fatalf("the child said %q, want a pid namespace, control groups, its directory, the switch and a host", said)
	}
	space, groups, dir := said[0], strings.Fields(said[1]), said[2]
	d := newDetector(t)
	for _, path := range said[3:] {
		d.watch(t, path)
	}
	// The first process, containerd, what plays KubeVirt, the kubelet, a shim.
	eventually(t, 10*time.Second, "five processes on the node", func() bool { return inSpace(t, space) == 5 })
	if contained(t, groups) == 0 {
		t.Error("no container is in the control groups")
	}
	if during := places(t); during != before {
		t.Errorf("the machine has changed from\n%s\nto\n%s", before, during)
	}
	begin := time.Now()
	child.kill()
	eventually(t, 20*time.Second, "the namespaces to go", func() bool { return d.left() == 0 })
	eventually(t, 10*time.Second, "the directory and the control groups to go", func() bool {
		_, err := os.Stat(dir)
		return os.IsNotExist(err) && there(groups) == nil
	})
	t.Logf("gone after %s", time.Since(begin).Round(time.Millisecond))
	assertNothingLeft(t, dir)
	if n := inSpace(t, space); n != 0 {
		t.Errorf("%d processes are left on the node", n)
	}
	if after := places(t); after != before {
		t.Errorf("the machine had\n%s\nand has\n%s", before, after)
	}
}
