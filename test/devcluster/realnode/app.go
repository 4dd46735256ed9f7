//go:build linux

package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// app prints numbered lines, and says on the node's disk that it runs.
type app struct {
	rate      float64
	length    int
	stderr    int
	exit      int
	well      bool
	most      int
	gate      string
	heartbeat string
	load      load

	out, err *bufio.Writer
	printed  int
}

// errTold is the end after as many lines as were asked for.
var errTold = errors.New("told to end")

// turn is how often the lines that are due are printed.
const turn = 10 * time.Millisecond

func runApp(args []string) error {
	var a app
	flags := flag.NewFlagSet("app", flag.ContinueOnError)
	flags.Float64Var(&a.rate, "rate", 1, "lines per second; 0 is none")
	flags.IntVar(&a.length, "length", 0, "bytes of a line, without its end, if it is not longer anyway")
	flags.IntVar(&a.stderr, "stderr", 0, "every so manyth line goes to stderr; 0 is none")
	flags.IntVar(&a.exit, "exit", 0, "end with status 1 after so many lines; 0 is never")
	flags.BoolVar(&a.well, "well", false, "end with status 0 instead")
	flags.IntVar(&a.most, "most", 0, "print no more lines than this, and go on; 0 is no end")
	flags.StringVar(&a.gate, "gate", "", "file before which there are no lines")
	flags.StringVar(&a.heartbeat, "heartbeat", "", "file that gets a line each second")
	flags.Float64Var(&a.load.cpu, "cpu", 0, "part of a core to keep busy")
	flags.IntVar(&a.load.memory, "memory", 0, "bytes to hold")
	flags.IntVar(&a.load.disk, "disk", 0, "bytes to write at the start, in whole MiB")
	flags.IntVar(&a.load.net, "net", 0, "bytes to send at the start")
	flags.StringVar(&a.load.to, "to", "", "address and port to send to")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := a.load.begin(); err != nil {
		return err
	}
	a.out, a.err = bufio.NewWriterSize(os.Stdout, 1<<16), bufio.NewWriterSize(os.Stderr, 1<<16)
	return a.run(told())
}

func (a *app) run(end <-chan os.Signal) error {
	begin, beats := time.Now(), 0
	opened := begin
	tick := time.NewTicker(turn)
	defer tick.Stop()
	for now := begin; ; {
		if due := int(now.Sub(begin).Seconds()) + 1; beats < due {
			beats = due
			if err := a.beat(now); err != nil {
				return err
			}
		}
		if a.closed() {
			opened = now
		}
		if err := a.print(now, a.due(now.Sub(opened))); err != nil {
			if a.well && errors.Is(err, errTold) {
				return nil
			}
			return err
		}
		select {
		case <-end:
			return nil
		case now = <-tick.C:
		}
	}
}

// closed reports that the gate is; once open it stays so.
func (a *app) closed() bool {
	if a.gate == "" {
		return false
	}
	if _, err := os.Stat(a.gate); err != nil {
		return true
	}
	a.gate = ""
	return false
}

// due is how many lines are to be there in all, so long after the gate opened.
func (a *app) due(after time.Duration) int {
	if a.rate <= 0 || a.gate != "" {
		return 0
	}
	due := int(after.Seconds()*a.rate) + 1
	if a.most > 0 {
		due = min(due, a.most)
	}
	return due
}

// print prints as many lines as are due in all.
func (a *app) print(now time.Time, due int) error {
	for ; a.printed < due; a.printed++ {
		if a.exit > 0 && a.printed == a.exit {
			a.flush()
			return errTold
		}
		number, to := a.printed+1, io.Writer(a.out)
		if a.stderr > 0 && number%a.stderr == 0 {
			to = a.err
		}
		line := fmt.Sprintf("%d %s", number, now.UTC().Format(time.RFC3339Nano))
		if more := a.length - len(line) - 1; more > 0 {
			line += " " + strings.Repeat("x", more)
		}
		fmt.Fprintln(to, line)
	}
	a.flush()
	return nil
}

func (a *app) flush() {
	// Nobody who reads us is left, if this fails.
	_ = a.out.Flush()
	_ = a.err.Flush()
}

// beat notes who runs: the host name of a container is the name of its pod.
func (a *app) beat(now time.Time) error {
	if a.heartbeat == "" {
		return nil
	}
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(a.heartbeat), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(a.heartbeat, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = fmt.Fprintln(file, name, now.UTC().Format(time.RFC3339Nano))
	return err
}
