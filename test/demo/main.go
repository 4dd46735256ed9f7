// Command demo shows zedkube's main job on a real control plane: three devices
// form a cluster, report it, and one of them drains before it reboots. Its
// exit code is 0 only if every step of the story was seen.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/zedkube/zedkube/test/screen"
)

func main() {
	program := flag.String("program", "bin/zedkube", "the zedkube program")
	keep := flag.Bool("keep", false, "leave everything running at the end, until interrupted")
	dir := flag.String("dir", "", "directory for the devices (default: a new one under "+os.TempDir()+")")
	record := flag.Bool("record", false, "write what is shown to "+screen.Recording+", for make run to show while it builds")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *program, *dir, *keep, *record); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, program, dir string, keep, record bool) error {
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	if _, err := os.Stat(program); err != nil {
		return fmt.Errorf("%w (make build)", err)
	}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "zedkube-run-"); err != nil {
			return err
		}
	}
	v := screen.New(os.Stdout)
	var recorder *screen.Recorder
	if record {
		recorder = &screen.Recorder{}
	}
	s, err := begin(ctx, v, recorder, program, dir)
	if err != nil {
		return err
	}
	err = s.tell(ctx)
	v.End()
	if record && err == nil {
		err = recorder.Save(screen.Recording)
	}
	s.summary(err)
	if keep && ctx.Err() == nil {
		v.Lines("Left running; press Ctrl-C to end it.", "kubectl:  "+s.kubectlHint())
		<-ctx.Done()
	}
	s.end()
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	return err
}
