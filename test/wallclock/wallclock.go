//go:build linux

// Package wallclock builds programs whose wall clock a test can set, as
// settimeofday does: what measures time that passes (timers, deadlines,
// differences of times taken in one process) goes on unchanged. Nothing of it is in
// the program's source: package time is compiled from a copy that adds an
// offset, which stands in a file that the running program has mapped.
package wallclock

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Variable is the environment variable that names the file with the offset.
// Only a program that Go has made reads it.
const Variable = "WALLCLOCK_OFFSET_FILE"

// What is replaced in the toolchain's package time, in Now.
const (
	asked  = "sec, nsec, mono := runtimeNow()\n\tif mono == 0 {"
	offset = "sec, nsec, mono := offsetNow()\n\tif mono == 0 {"
)

//go:embed offset.go.txt
var added []byte

// Go runs the go command in dir, to build something: build or test, and what
// follows. It compiles all that depends on package time, once for the build cache.
func Go(ctx context.Context, dir, command string, args ...string) error {
	work, err := os.MkdirTemp("", "wallclock-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	overlay, err := prepare(ctx, work)
	if err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", append([]string{command, "-overlay", overlay}, args...)...)
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s with a wall clock that can be set: %w: %s", command, err, out)
	}
	return nil
}

// prepare writes what go build wants to know about the replaced files.
func prepare(ctx context.Context, work string) (overlay string, err error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("find the sources of package time: %w", err)
	}
	source := filepath.Join(strings.TrimSpace(string(root)), "src/time")
	text, err := os.ReadFile(filepath.Join(source, "time.go"))
	if err != nil {
		return "", err
	}
	if text, err = patched(text); err != nil {
		return "", err
	}
	replaced := map[string]string{}
	for name, text := range map[string][]byte{"time.go": text, "offset_linux.go": added} {
		file := filepath.Join(work, name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return "", err
		}
		replaced[filepath.Join(source, name)] = file
	}
	content, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(work, "overlay.json")
	return overlay, os.WriteFile(overlay, content, 0o600)
}

// patched is time.go with the offset, for any toolchain that asks the clock in
// the one place that we know.
func patched(text []byte) ([]byte, error) {
	if n := bytes.Count(text, []byte(asked)); n != 1 {
		return nil, fmt.Errorf("package time of %s has %q in %d places and not in one: how Now asks the clock has changed", runtime.Version(), asked, n)
	}
	return bytes.Replace(text, []byte(asked), []byte(offset), 1), nil
}

// Clock is the wall clock of one device.
type Clock struct{ file *os.File }

// New makes the file of a clock that is right.
func New(path string) (*Clock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	c := &Clock{file}
	if err := c.Set(0); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return c, nil
}

// Set makes the clock wrong by so much, at once and for all programs that run
// with it.
func (c *Clock) Set(wrong time.Duration) error {
	_, err := c.file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(wrong)), 0)
	return err
}

// Env is what to put before a program's command so that it has this clock.
func (c *Clock) Env() []string { return []string{"env", Variable + "=" + c.file.Name()} }

// Close ends the clock for us; programs keep it.
func (c *Clock) Close() error { return c.file.Close() }
