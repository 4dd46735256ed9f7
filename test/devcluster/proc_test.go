//go:build linux

package devcluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func startCrew(t *testing.T) (*crew, chan error) {
	t.Helper()
	marker, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer marker.Close()
	failed := make(chan error, 1)
	c, err := newCrew(filepath.Join(t.TempDir(), "crew"), nil, marker, func(err error) { failed <- err })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.stop() })
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return c, failed
}

func TestAProgramThatEndsUnaskedIsReportedWithItsLog(t *testing.T) {
	c, failed := startCrew(t)
	if _, err := c.start("etcd", "/bin/sh", "-c", "echo no room on disk; exit 3"); err != nil {
		t.Fatal(err)
	}
	err := <-failed
	for _, want := range []string{"etcd ended", "exit status 3", "no room on disk"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

func TestAKilledProgramIsNotReported(t *testing.T) {
	c, failed := startCrew(t)
	p, err := c.start("kubelet", "/bin/sleep", "1000")
	if err != nil {
		t.Fatal(err)
	}
	c.kill(p)
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-failed:
		t.Error(err)
	default:
	}
}

func TestStopEndsTheChildrenOfProgramsToo(t *testing.T) {
	c, _ := startCrew(t)
	if _, err := c.start("parent", "/bin/sh", "-c", "/bin/sh -c 'sleep 1000; : "+c.dir+"' & echo started; wait"); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "the child", func() bool {
		log, _ := os.ReadFile(filepath.Join(c.dir, "parent.log"))
		return strings.Contains(string(log), "started")
	})
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	assertNothingLeft(t, c.dir)
	if _, err := c.start("late", "/bin/true"); err == nil {
		t.Error("a stopped cluster started a program")
	}
	if err := c.stop(); err != nil {
		t.Errorf("the second stop: %v", err)
	}
}
