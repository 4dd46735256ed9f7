//go:build linux

package wallclock

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/agent"
)

func TestOnlyTheWallClockIsSet(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "prints")
	if err := Go(t.Context(), ".", "build", "-o", program, "./testdata/prints"); err != nil {
		t.Fatal(err)
	}
	clock, err := New(filepath.Join(dir, "offset"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { clock.Close() })
	command := append(clock.Env(), program)
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for _, wrong := range []time.Duration{0, 7 * time.Second, -time.Nanosecond, -56 * 365 * 24 * time.Hour, 100 * 365 * 24 * time.Hour} {
		if err := clock.Set(wrong); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		fmt.Fprintln(in)
		if !lines.Scan() {
			t.Fatal("the program has ended")
		}
		at, passed, _ := strings.Cut(lines.Text(), " ")
		says, err := time.Parse(time.RFC3339Nano, at)
		if err != nil {
			t.Fatal(err)
		}
		if is := says.Add(-wrong); is.Before(before.Round(0)) || is.After(time.Now().Round(0)) {
			t.Errorf("with %s of error it says %s", wrong, says)
		}
		if long, err := time.ParseDuration(passed); err != nil || long < 0 || long > time.Since(began) {
			t.Errorf("with %s of error, %s have passed (%v)", wrong, passed, err)
		}
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(program); err != nil || !bytes.Contains(content, []byte(Variable)) {
		t.Errorf("a program that has it does not show it: %v", err)
	}
}

func TestTheProgramForDevicesHasNoClockThatCanBeSet(t *testing.T) {
	content, err := os.ReadFile(agent.Build(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(content) == 0 || bytes.Contains(content, []byte(Variable)) || bytes.Contains(content, []byte("offsetNow")) {
		t.Errorf("it reads %s", Variable)
	}
}

func TestAToolchainThatAsksTheClockElsewhereIsRefused(t *testing.T) {
	for _, text := range []string{"", "package time", asked + asked} {
		if _, err := patched([]byte(text)); err == nil || !strings.Contains(err.Error(), "has changed") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
