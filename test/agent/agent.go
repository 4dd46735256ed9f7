// Package agent has the program for tests that run it as a process of its own.
package agent

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/zedkube/zedkube/test/seeds"
)

// Made is the environment variable that names the program as `make test` has
// made it, once for all packages.
const Made = "ZEDKUBE_PROGRAM"

// MadeWithFailpoints names the test build as `make test` has made it.
const MadeWithFailpoints = "ZEDKUBE_FAILPOINTS_PROGRAM"

// Failpoints is the environment variable of the test build that names the directory by
// which it is told where to kill itself (docs/contributing.md, "Kill points").
const Failpoints = "ZEDKUBE_FAILPOINTS"

// Build is the path of the program, made as the calling test was made, with the
// race detector if that has it. The test is one of a package two directories
// below the module's.
func Build(t testing.TB) string {
	t.Helper()
	return build(t, Made, "kustomize_disable_go_plugin_support")
}

// BuildFailpoints is Build for the test build, which can be killed at its kill points.
func BuildFailpoints(t testing.TB) string {
	t.Helper()
	return build(t, MadeWithFailpoints, "kustomize_disable_go_plugin_support,failpoints")
}

func build(t testing.TB, variable, tags string) string {
	t.Helper()
	if made := os.Getenv(variable); made != "" {
		if _, err := os.Stat(made); err != nil { // and so a kept result of the test depends on it
			t.Fatal(err)
		}
		return made
	}
	program := filepath.Join(t.TempDir(), "zedkube")
	args := []string{"build", "-tags", tags, "-o", program}
	info, ok := debug.ReadBuildInfo()
	if ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = append(args, "-race")
	}
	build := exec.Command("go", append(args, "./cmd/zedkube")...)
	build.Dir = "../.." // its module, which may not be the test's
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatal(errors.Join(err, errors.New(string(out))))
	}
	return program
}

// Points are the kill points that test/soak/reach.txt has for a scene, those that a soak has hit
// seldom where it has hit others often.
func Points(t testing.TB, scene string) (points []string) {
	t.Helper()
	reach, err := os.ReadFile("../../test/soak/reach.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(reach)) {
		if effect, by, _ := strings.Cut(strings.TrimSpace(line), "\t"); by == scene {
			points = append(points, effect+"/before", effect+"/after")
		}
	}
	return seeds.Seldom(t, points)
}

// DiesAt runs a test of this binary alone, in a process of its own that kills itself at a kill
// point when it comes there for the first time. env is what it has besides.
func DiesAt(t testing.TB, test, point string, env ...string) {
	t.Helper()
	orders := t.TempDir()
	if err := os.WriteFile(filepath.Join(orders, "kill"), []byte("1 "+point+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0], "-test.run=^"+test+"$")
	c.Env = append(append(os.Environ(), Failpoints+"="+orders), env...)
	out, err := c.CombinedOutput()
	exit, is := errors.AsType[*exec.ExitError](err)
	if !is || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("it was not killed at %s: %v: %s", point, err, out)
	}
}
