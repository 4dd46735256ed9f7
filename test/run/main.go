// Command run is make run: it builds what the demo needs and then becomes the
// demo. As long as the build takes it shows a recorded run in the terminal, and
// the page of one node of that run on an address of this machine.
//
// It imports little, so that it is there soon on a machine that has compiled
// nothing yet.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/zedkube/zedkube/test/screen"
)

// patience is how long a build takes at most for which nothing is shown.
const patience = 5 * time.Second

// logFile has what the build prints.
const logFile = "bin/run.log"

func main() {
	recorded := flag.Bool("recorded", false, "show the recorded run and build nothing")
	keep := flag.Bool("keep", false, "leave everything running at the end of the demo")
	story := flag.String("story", "", "what the demo tells; help lists it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := run(ctx, *recorded)
	if err == nil && !*recorded {
		err = become("bin/demo", *keep, *story)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		stop()
		os.Exit(1)
	}
}

// become replaces this process by the program.
func become(program string, keep bool, story string) error {
	args := []string{program}
	if keep {
		args = append(args, "-keep")
	}
	if story != "" {
		args = append(args, "-story", story)
	}
	return syscall.Exec(program, args, os.Environ())
}

func run(ctx context.Context, recorded bool) error {
	v := screen.New(os.Stdout)
	if recorded {
		return show(ctx, v, func() string { return "" })
	}
	b := newBuild(time.Now())
	if !v.Live() {
		return b.run(ctx, os.Stderr)
	}
	if err := os.MkdirAll(filepath.Dir(logFile), 0o755); err != nil {
		return err
	}
	log, err := os.Create(logFile)
	if err != nil {
		return err
	}
	defer log.Close()
	built := make(chan error, 1)
	go func() { built <- b.run(ctx, log) }()
	select {
	case err = <-built:
	case <-time.After(patience):
		showing, stop := context.WithCancel(ctx)
		shown := make(chan error, 1)
		go func() { shown <- show(showing, v, func() string { return b.progress(time.Now()) }) }()
		err = <-built
		stop()
		if err := <-shown; err != nil {
			v.Lines("the recorded run: " + err.Error())
		}
		if err == nil {
			v.Lines("", "The recorded run ends here: everything is built. What follows is real.", "")
		}
	}
	if err != nil {
		return fmt.Errorf("%w; all of it is in %s:\n%s", err, logFile, tail(logFile))
	}
	return nil
}

// show plays the recording until ctx is done, again from the beginning after
// its end.
func show(ctx context.Context, v *screen.View, progress func() string) error {
	moments, err := screen.Load(screen.Recording)
	if err != nil {
		return err
	}
	p, address, err := servePage(ctx)
	if err != nil {
		return err
	}
	head := func() []string {
		lines := []string{"RECORDED, not real. The page of node-2 in this run: http://" + address + "/"}
		if is := progress(); is != "" {
			lines = append(lines, is)
		}
		return append(lines, "")
	}
	for ctx.Err() == nil {
		v.Play(ctx, moments, head, p.send)
		v.Lines("", "The recorded run begins again.", "")
	}
	v.End()
	return nil
}

// tail is the end of a file.
func tail(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// makeTarget makes a target of the Makefile and has it name the packages that
// are compiled.
func makeTarget(ctx context.Context, target string, out io.Writer) error {
	flags, err := exec.CommandContext(ctx, "go", "env", "GOFLAGS").Output()
	if err != nil {
		return fmt.Errorf("go env GOFLAGS: %w", err)
	}
	cmd := exec.CommandContext(ctx, "make", "--no-print-directory", target)
	cmd.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(strings.TrimSpace(string(flags))+" -v"))
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("make %s: %w", target, errors.Join(context.Cause(ctx), err))
	}
	return nil
}
