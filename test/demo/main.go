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
	"time"

	"github.com/zedkube/zedkube/test/screen"
)

// options say what is shown, and how.
type options struct {
	program  []string      // zedkube; before it what runs it, where that is not the kernel
	dir      string        // of the devices; "" makes one
	keep     bool          // leave everything running at the end
	story    string        // what is told; "" for the drain
	record   bool          // for make run to show while it builds
	patience time.Duration // how long a step of the story may take
}

func main() {
	var o options
	program := flag.String("program", "bin/zedkube", "the zedkube program")
	emulator := flag.String("emulator", "", "what runs the program, if it is one for another processor: qemu-aarch64")
	flag.BoolVar(&o.keep, "keep", false, "leave everything running at the end, until interrupted")
	flag.StringVar(&o.story, "story", drainStory, "what is told; help lists it")
	flag.StringVar(&o.dir, "dir", "", "directory for the devices (default: a new one under "+os.TempDir()+")")
	flag.BoolVar(&o.record, "record", false, "write what is shown to "+screen.Recording+", for make run to show while it builds")
	flag.Parse()
	o.program, o.patience = []string{*program}, stepTimeout
	if *emulator != "" {
		o.program, o.patience = []string{*emulator, *program}, emulatedStepTimeout
	}
	if o.story == "help" {
		fmt.Print(storyHelp())
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	steps, err := stepsOf(o.story)
	if err != nil {
		return err
	}
	last := len(o.program) - 1
	program, err := filepath.Abs(o.program[last])
	if err != nil {
		return err
	}
	if _, err := os.Stat(program); err != nil {
		return fmt.Errorf("%w (make build)", err)
	}
	o.program[last] = program
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "zedkube-run-"); err != nil {
			return err
		}
	}
	v := screen.New(os.Stdout)
	var recorder *screen.Recorder
	if o.record {
		recorder = &screen.Recorder{}
	}
	s, err := begin(ctx, v, recorder, o)
	if err != nil {
		return err
	}
	if o.story == failoverStory {
		o.patience *= 3
	}
	err = s.tell(ctx, steps(s), o.patience)
	v.End()
	if o.record && err == nil {
		err = errors.Join(recorder.Save(screen.Recording), recorder.Draw(screen.Picture))
	}
	s.summary(err)
	if o.keep && ctx.Err() == nil {
		unlink, err := s.link()
		watched, failed := s.holdBack(ctx)
		if err := errors.Join(err, failed); err != nil {
			v.Lines("prepare what is left up: " + err.Error())
		}
		s.showcase(program, o.story, watched)
		<-ctx.Done()
		unlink()
	}
	s.end()
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	return err
}
