//go:build linux

package devcluster

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/rand"
)

// cgroups is the control group of a cluster's real nodes: one directory in each
// hierarchy of the machine, with one in it for each node. The kubelet wants to
// find its own.
type cgroups struct {
	name    string
	unified bool // there is nothing but version 2
	dirs    []string
}

// controllers are those of version 2 that the kubelet and runc want, if the
// machine has them. What passes them on goes on doing so: others may count on it.
var controllers = []string{"cpu", "cpuset", "hugetlb", "io", "memory", "pids"}

// newCgroups finds a name for the group and makes nothing. mounts is a mountinfo
// file.
func newCgroups(mounts string) (*cgroups, error) {
	file, err := os.Open(mounts)
	if err != nil {
		return nil, fmt.Errorf("find the control groups: %w", err)
	}
	defer file.Close()
	at := map[string][]string{} // by type of filesystem
	var seen []string           // devices
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		left, right, _ := strings.Cut(lines.Text(), " - ")
		where, kind := strings.Fields(left), strings.Fields(right)
		// A hierarchy that is mounted again, by another program for a while, is the same one.
		if len(where) > 4 && len(kind) > 0 && !slices.Contains(seen, where[2]) {
			seen = append(seen, where[2])
			at[kind[0]] = append(at[kind[0]], where[4])
		}
	}
	// Beside version 1, version 2 has no controllers, but runc makes groups there too.
	g := &cgroups{name: "devcluster-" + rand.String(8), unified: len(at["cgroup"]) == 0}
	roots := append(at["cgroup"], at["cgroup2"]...)
	if len(roots) == 0 {
		return nil, errors.Join(errors.New("real nodes need control groups, and none are mounted"), lines.Err())
	}
	for _, root := range roots {
		g.dirs = append(g.dirs, filepath.Join(root, g.name))
	}
	return g, lines.Err()
}

// add makes the group of a node.
func (g *cgroups) add(node string) error {
	for _, dir := range g.dirs {
		for _, child := range []string{dir, filepath.Join(dir, node)} {
			if err := g.grow(child); err != nil {
				return fmt.Errorf("make the control group %s: %w", child, err)
			}
		}
	}
	return nil
}

// grow makes a group that can do all that its parent can.
func (g *cgroups) grow(dir string) error {
	parent := filepath.Dir(dir)
	if g.unified {
		offered, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers"))
		if err != nil {
			return err
		}
		for _, controller := range strings.Fields(string(offered)) {
			if !slices.Contains(controllers, controller) {
				continue
			}
			if err := os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+"+controller), 0o644); err != nil {
				return fmt.Errorf("pass on %s: %w", controller, err)
			}
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if g.unified {
		return nil
	}
	// A new group of cpuset has neither processors nor memory, and takes nobody.
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		inherited, err := os.ReadFile(filepath.Join(parent, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), inherited, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// remove takes the group of a node away, as its power cycle does. Nothing runs
// there any more.
func (g *cgroups) remove(node string) error {
	var errs []error
	for _, dir := range g.dirs {
		errs = append(errs, prune(filepath.Join(dir, node)))
	}
	return errors.Join(errs...)
}

// prune removes a tree of groups. The files of a group cannot be removed and go
// with it.
func prune(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		if err := prune(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	if err := unix.Rmdir(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the control group %s: %w", dir, err)
	}
	return nil
}
