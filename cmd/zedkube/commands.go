package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/supportcmd"
)

// runner runs commands of this program, each as a process of its own: what it takes, such as the
// memory for a support bundle, it gives back, and the agent does not end with it. At the end of ctx it is
// asked to end as by an operator, so that it says in the audit what it did.
func runner(o device.Options) func(ctx context.Context, out io.Writer, args ...string) error {
	return runnerOf(o, func() (string, error) { return cmp.Or(o.Program, "/proc/self/exe"), nil })
}

// edgeRunner runs commands of zedkube-edge, where it is installed.
func edgeRunner(o device.Options) func(ctx context.Context, out io.Writer, args ...string) error {
	return runnerOf(o, func() (string, error) { return supportcmd.EdgeProgram(o.Program) })
}

func runnerOf(o device.Options, find func() (string, error)) func(ctx context.Context, out io.Writer, args ...string) error {
	return func(ctx context.Context, out io.Writer, args ...string) error {
		program, err := find()
		if err != nil {
			return err
		}
		c := exec.CommandContext(ctx, program, append([]string{"--root", o.Root, "--kubeconfig", o.Kubeconfig}, args...)...) //nolint:gosec // commands of a fixed table, and without a shell
		c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
		var wrong tail
		c.Stdout, c.Stderr, c.WaitDelay = out, &wrong, 5*time.Second
		err = c.Run()
		if said := bytes.TrimSpace(wrong); err != nil && len(said) > 0 {
			return errors.New(strings.TrimPrefix(strings.TrimPrefix(string(said), "zedkube: "), "zedkube-edge: "))
		}
		return err
	}
}

// maxWrong is far more than a command says of an error.
const maxWrong = 4 << 10

// tail keeps the end of what is written.
type tail []byte

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	*t = append(*t, b...)
	*t = append(tail(nil), (*t)[max(len(*t)-maxWrong, 0):]...)
	return len(b), nil
}
