//go:build linux

package devcluster

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree writes files below a new directory; one that ends with / is a directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := root + "/" + name
		if err := os.MkdirAll(path[:strings.LastIndex(path, "/")], 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			continue
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// mountinfo is a file that says which devices are mounted where, with the type of filesystem.
func mountinfo(t *testing.T, mounts ...[3]string) string {
	t.Helper()
	text := ""
	for _, m := range mounts {
		text += "31 23 " + m[0] + " / " + m[1] + " rw,relatime shared:9 - " + m[2] + " none rw\n"
	}
	return filepath.Join(tree(t, map[string]string{"mountinfo": text}), "mountinfo")
}

func TestControlGroupsAreMadeInEveryHierarchy(t *testing.T) {
	root := tree(t, map[string]string{"cpuset/cpuset.cpus": "0-3", "cpuset/cpuset.mems": "0", "memory/": "", "unified/": ""})
	g, err := newCgroups(mountinfo(t,
		[3]string{"0:28", root, "tmpfs"}, [3]string{"0:29", root + "/cpuset", "cgroup"}, [3]string{"0:30", root + "/memory", "cgroup"},
		[3]string{"0:30", root + "/memory", "cgroup"}, [3]string{"0:31", root + "/unified", "cgroup2"},
		[3]string{"0:31", root + "/of-another-program/no-longer-there", "cgroup2"},
	))
	if err != nil || g.unified || len(g.dirs) != 3 {
		t.Fatalf("found %+v, %v", g, err)
	}
	for range 2 {
		if err := g.add("node-1"); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{g.name, g.name + "/node-1"} {
		cpus, err := os.ReadFile(filepath.Join(root, "cpuset", dir, "cpuset.cpus"))
		if string(cpus) != "0-3" {
			t.Errorf("%s has the processors %q: %v", dir, cpus, err)
		}
		if len(there([]string{filepath.Join(root, "memory", dir), filepath.Join(root, "unified", dir)})) != 2 {
			t.Errorf("%s is not everywhere", dir)
		}
	}
}

func TestControlGroupsOfVersion2GetTheirControllers(t *testing.T) {
	root := tree(t, map[string]string{"cgroup.controllers": "cpu memory rdma\n", "cgroup.subtree_control": ""})
	g, err := newCgroups(mountinfo(t, [3]string{"0:28", root, "cgroup2"}))
	if err != nil || !g.unified {
		t.Fatalf("found %+v, %v", g, err)
	}
	// Only the kernel fills a new group.
	if err := os.MkdirAll(filepath.Join(root, g.name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, g.name, "cgroup.controllers"), []byte("cpu"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := g.add("node-1"); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{"": "+memory", g.name: "+cpu"} {
		if got, err := os.ReadFile(filepath.Join(root, dir, "cgroup.subtree_control")); string(got) != want {
			t.Errorf("%q was told %q last, want %q: %v", dir, got, want, err)
		}
	}
}

func TestWithoutControlGroupsThereAreNoRealNodes(t *testing.T) {
	if g, err := newCgroups(mountinfo(t, [3]string{"254:0", "/", "ext4"})); err == nil {
		t.Errorf("found %+v", g)
	}
}

func TestTheGroupOfANodeGoesAndThatOfTheClusterStays(t *testing.T) {
	root := tree(t, map[string]string{"g/node-1/kubepods/burstable/": "", "g/node-2/": ""})
	g := &cgroups{dirs: []string{filepath.Join(root, "g"), filepath.Join(root, "not-there")}}
	if err := g.remove("node-1"); err != nil {
		t.Fatal(err)
	}
	if left := there([]string{root + "/g/node-1", root + "/g/node-2"}); !slices.Equal(left, []string{root + "/g/node-2"}) {
		t.Errorf("%q are left", left)
	}
}

// unpack returns the files of an archive.
func unpack(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for reader := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := reader.Next()
		if err == io.EOF { //nolint:errorlint // as the package says
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(reader); err != nil {
			t.Fatal(err)
		}
	}
}

func TestImagesRunTheProgramUnderTheirNames(t *testing.T) {
	dir := tree(t, map[string]string{realProgram: "machine code"})
	if err := packImages(dir); err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(filepath.Join(dir, imagesFile))
	if err != nil {
		t.Fatal(err)
	}
	files := unpack(t, archive)
	if got := unpack(t, files["layer.tar"]); string(got[realProgram]) != "machine code" {
		t.Errorf("the layer holds %q", got)
	}
	var manifest []struct {
		Config   string
		RepoTags []string
	}
	if err := json.Unmarshal(files["manifest.json"], &manifest); err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, image := range manifest {
		var config struct {
			Config struct{ Entrypoint []string }
		}
		if err := json.Unmarshal(files[image.Config], &config); err != nil {
			t.Fatal(err)
		}
		for _, name := range image.RepoTags {
			got[name] = config.Config.Entrypoint
		}
	}
	app := []string{"/realnode", "app"}
	want := map[string][]string{AppImage: app, launcherImage: app, pauseImage: {"/realnode", "pause"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPodsAreRealOnHostsOnly(t *testing.T) {
	for _, o := range []Options{{Real: true}, {Hosts: true, LogMaxSize: "1Mi"}} {
		if err := o.checkReal(); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

func TestABuildMachineSkipsOnlyForWantOfAMirror(t *testing.T) {
	other := errors.New("no root")
	for _, tc := range []struct {
		ci, mirror string
		err        error
		want       bool
	}{
		{"", "", other, true},
		{"true", "", errPackages, false},
		{"true", "true", other, false},
		{"true", "true", fmt.Errorf("no runc: %w", errPackages), true},
	} {
		t.Setenv("CI", tc.ci)
		t.Setenv("NO_MIRROR", tc.mirror)
		if got := MaySkip(tc.err); got != tc.want {
			t.Errorf("%+v: got %t", tc, got)
		}
	}
}
