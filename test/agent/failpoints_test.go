package agent

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// listOf are the kill points that the test build lists.
func listOf(t *testing.T, program string) []string {
	t.Helper()
	out, err := exec.Command(program, "failpoints").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

func TestTheReleasedProgramHasNoKillPoints(t *testing.T) {
	released, err := os.ReadFile(Build(t))
	if err != nil {
		t.Fatal(err)
	}
	program := BuildFailpoints(t)
	made, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	points := listOf(t, program)
	if len(points) < 400 {
		t.Fatalf("only %d kill points are listed", len(points))
	}
	texts := []string{Failpoints, "drop backup of", "unlisted/"}
	for i := 0; i < len(points); i += 40 { // to look for each would take a minute
		texts = append(texts, filepath.Dir(points[i]))
	}
	for _, text := range texts {
		if !bytes.Contains(made, []byte(text)) {
			t.Errorf("the test build does not contain %q: this test does not see what it looks for", text)
		}
		if bytes.Contains(released, []byte(text)) {
			t.Errorf("the released program contains %q", text)
		}
	}
	if out, err := exec.Command(Build(t), "failpoints").CombinedOutput(); err == nil {
		t.Errorf("the released program has the command: %s", out)
	}
}

// device is the test build on a device alone.
type device struct {
	t             *testing.T
	program, root string
}

func (d device) file(name string) string { return filepath.Join(d.root, name) }

// lines of a file; none where it is missing.
func (d device) lines(name string) []string {
	content, err := os.ReadFile(d.file(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(content)), "\n")
}

// run runs the program until it ends, or is done, and returns how it ended.
func (d device) run(done func() bool) *os.ProcessState {
	d.t.Helper()
	c := exec.Command(d.program, "--root", d.root)
	c.Env = append(os.Environ(), Failpoints+"="+d.file("failpoints"))
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var log bytes.Buffer
	c.Stdout, c.Stderr = &log, &log
	if err := c.Start(); err != nil {
		d.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Wait()
	}()
	patience, tick := time.NewTimer(2*time.Minute), time.NewTicker(20*time.Millisecond)
	defer patience.Stop()
	defer tick.Stop()
	told := false
	for {
		select {
		case <-ended:
			return c.ProcessState
		case <-tick.C:
			if !told && done() {
				told = true
				_ = c.Process.Signal(syscall.SIGTERM)
			}
		case <-patience.C:
			_ = c.Process.Kill()
			<-ended
			d.t.Fatalf("it was not killed, and not done:\n%s", log.String())
		}
	}
}

func TestTheTestBuildKillsItselfWhereItIsTold(t *testing.T) {
	d := device{t: t, program: BuildFailpoints(t), root: t.TempDir()}
	if err := os.MkdirAll(d.file("failpoints"), 0o700); err != nil {
		t.Fatal(err)
	}
	listed := listOf(t, d.program)
	never := func() bool { return false }
	status := "run/zedkube/NodeDrainStatus/global.json"
	there := func(name string) bool { _, err := os.Stat(d.file(name)); return err == nil }
	var killed []string
	for _, row := range []struct {
		order, point string
		file         string
		there        bool // after the kill
	}{
		{"1", "drain/publish zedkube/NodeDrainStatus/before", status, false},
		{"1", "drain/publish zedkube/NodeDrainStatus/after", status, true},
		{"1", "watchdog/write /run/zedkube.pid/before", "run/zedkube.pid", true}, // of the process before
		{"3", "watchdog/publish zedkube/WatchdogBeat/after", "run/zedkube.touch", true},
	} {
		if err := os.WriteFile(d.file("failpoints/kill"), []byte(row.order+" "+row.point+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		how := d.run(never).Sys().(syscall.WaitStatus)
		if !how.Signaled() || how.Signal() != syscall.SIGKILL {
			t.Errorf("%s: it ended by itself: %v", row.point, how)
		}
		killed = append(killed, row.point)
		if got := d.lines("failpoints/killed"); !slices.Equal(got, killed) {
			t.Errorf("it notes that it was killed at %q, not at %q", got, killed)
		}
		if there(row.file) != row.there {
			t.Errorf("%s: file %s is there: %v", row.point, row.file, !row.there)
		}
		if there("failpoints/kill") {
			t.Error("the order stands: it would kill the next process too")
		}
	}
	// Of several points it is the one that it comes to; the others stand.
	elsewhere := "1 members/cordon: patch nodes/before\n"
	if err := os.WriteFile(d.file("failpoints/kill"), []byte(elsewhere+"1 watchdog/write /run/zedkube.pid/after\n"+elsewhere), 0o600); err != nil {
		t.Fatal(err)
	}
	d.run(never)
	if left, err := os.ReadFile(d.file("failpoints/kill")); err != nil || string(left) != elsewhere+elsewhere {
		t.Errorf("after one of three orders there are %q, %v", left, err)
	}
	// What it was killed at holds the next one up by nothing.
	end := "watchdog/remove /run/zedkube.pid/after"
	if err := os.Remove(d.file("failpoints/passed")); err != nil {
		t.Fatal(err)
	}
	how := d.run(func() bool {
		return slices.Contains(d.lines("failpoints/passed"), "watchdog/touch /run/zedkube.touch/after")
	})
	if !how.Success() || there("run/zedkube.pid") {
		t.Errorf("it ended so: %v; its pid file is there: %v", how, there("run/zedkube.pid"))
	}
	passed := d.lines("failpoints/passed")
	for _, point := range passed {
		if !slices.Contains(listed, point) {
			t.Errorf("it came to %q, which is not listed", point)
		}
	}
	if !slices.Contains(passed, end) {
		t.Errorf("it came to %q, not to %s", passed, end)
	}
}
