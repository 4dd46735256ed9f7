package agentlog

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func TestALogThatNobodyReadsHoldsNobodyUp(t *testing.T) {
	r, w := pipe(t)
	ctx, cancel := context.WithCancel(t.Context())
	out, own, end := open(ctx, w)
	go func() { _, _ = out.Write(bytes.Repeat([]byte("an application\n"), 1<<20)) }() // fills the pipe
	// What it begins at the end is cut.
	for out.mu.TryLock() {
		out.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
	const lines = 3 * keptLines
	began := time.Now()
	for i := range lines {
		fmt.Fprintf(own, "line %d\n", i)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("%d lines took %s", lines, took)
	}
	var read, lost int
	got := make(chan struct{})
	go func() {
		defer close(got)
		for s := bufio.NewScanner(r); s.Scan(); {
			switch {
			case strings.HasPrefix(s.Text(), "line "):
				read++
			case strings.Contains(s.Text(), "were dropped"):
				var n int
				_, _ = fmt.Sscanf(s.Text()[strings.Index(s.Text(), `"msg":"`)+7:], "%d", &n)
				lost += n
			case s.Text() != "an application":
				t.Errorf("a line that nobody wrote: %q", s.Text())
			}
		}
	}()
	for len(own.lines) > 0 {
		time.Sleep(time.Millisecond)
	}
	fmt.Fprintln(own, "line last")
	end()
	cancel()
	out.file.Close()
	w.Close()
	<-got
	if read+lost != lines+1 || lost == 0 {
		t.Errorf("%d lines read and %d said to be lost, of %d", read, lost, lines+1)
	}
}

func TestTheEndOfTheAgentDoesNotWaitForAReader(t *testing.T) {
	_, w := pipe(t)
	ctx, cancel := context.WithCancel(t.Context())
	out, own, end := open(ctx, w)
	fmt.Fprintln(own, "a line")
	var stuck sync.WaitGroup
	stuck.Go(func() {
		if _, err := out.Write(make([]byte, 1<<20)); err == nil {
			t.Error("a pipe that nobody reads took a megabyte")
		}
	})
	time.Sleep(50 * time.Millisecond)
	began := time.Now()
	cancel()
	stuck.Wait()
	end()
	if took := time.Since(began); took > 3*lastWords {
		t.Errorf("the end took %s", took)
	}
}

func TestLinesInAFileAreAddedToIt(t *testing.T) {
	name := t.TempDir() + "/log"
	if err := os.WriteFile(name, []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out, own, end := open(t.Context(), f)
	fmt.Fprintln(own, "own")
	end()
	fmt.Fprintln(out, "application")
	if got, _ := os.ReadFile(name); string(got) != "before\nown\napplication\n" {
		t.Errorf("the file has %q", got)
	}
}

func TestALineAfterTheEndIsLeftOut(t *testing.T) {
	_, w := pipe(t)
	_, own, end := open(t.Context(), w)
	end()
	if _, err := fmt.Fprintln(own, "too late"); err != nil {
		t.Error(err)
	}
}

func TestAPipeWithoutAReaderDoesNotHoldUpTheStart(t *testing.T) {
	name := filepath.Join(t.TempDir(), "stderr")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	w, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Close()
	opened := make(chan *output, 1)
	go func() { opened <- openOutput(w) }()
	select {
	case out := <-opened:
		if _, err := fmt.Fprintln(out, "kept"); err != nil {
			t.Error(err)
		}
		out.file.Close()
	case <-time.After(time.Minute):
		t.Error("it waits for a reader")
	}
}
