package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pseudoTerminal is a terminal and what is to be seen and typed on it.
type pseudoTerminal struct {
	t     *testing.T
	own   *os.File // our end
	other *os.File

	mu    sync.Mutex
	shown bytes.Buffer
}

func newPseudoTerminal(t *testing.T, width, height uint16) *pseudoTerminal {
	t.Helper()
	own, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Skip("this machine has no pseudo terminals: ", err)
	}
	fd := int(own.Fd()) // also makes it blocking; reads end when the other end is closed
	unlock := 0
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, unlock)
	}
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &pseudoTerminal{t: t, own: own, other: other}
	p.resize(width, height)
	var reading sync.WaitGroup
	reading.Go(p.read)
	t.Cleanup(func() { other.Close(); reading.Wait(); own.Close() })
	return p
}

func (p *pseudoTerminal) read() {
	var part [4096]byte
	for {
		n, err := p.own.Read(part[:])
		p.mu.Lock()
		p.shown.Write(part[:n])
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (p *pseudoTerminal) resize(width, height uint16) {
	p.t.Helper()
	if err := unix.IoctlSetWinsize(int(p.own.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pseudoTerminal) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shown.String()
}

// sees waits for a text on the terminal from a point on, and returns the point
// behind it.
func (p *pseudoTerminal) sees(text string, from int) int {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		all := p.text()
		if i := strings.Index(all[from:], text); i >= 0 {
			return from + i + len(text)
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("no %q in %q", text, all[from:])
		}
	}
}

func (p *pseudoTerminal) types(keys string) {
	p.t.Helper()
	if _, err := p.own.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

func TestTopOnATerminalTakesKeysAndGivesItBack(t *testing.T) {
	for _, end := range []string{"q", "\x03"} {
		s := newTopStage(t)
		m := busyNode()
		m.At = time.Now()
		s.publish("KubeNodeMetrics", m)
		p := newPseudoTerminal(t, 100, 24)
		before, err := unix.IoctlGetTermios(int(p.other.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		program, err := exec.LookPath("zedkube") // testscript's main puts it there
		if err != nil {
			program = os.Args[0]
		}
		cmd := exec.Command(program, "--root", s.root, "top", "pods")
		cmd.Args[0] = "zedkube"
		cmd.Env = append(os.Environ(), "TERM=xterm", "LC_ALL=C.UTF-8", "NO_COLOR=1")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = p.other, p.other, p.other
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // so that it gets Ctrl-C, and news of the size
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		at := p.sees("\x1b[?1049h", 0)
		at = p.sees("▂▃▄▅▅▆▇█", at)
		p.types("n")
		at = p.sees("by name", at)
		p.resize(50, 24)
		at = p.sees("camera-inspe…line-3-9f27b   800m   270Mi", at)
		if looks, _ := filepath.Glob(filepath.Join(s.root, "run/zedkube-cli/MetricsLook/*.json")); len(looks) != 1 {
			t.Errorf("%v lie there for the agent", looks)
		}
		p.types(end)
		p.sees("\x1b[?1049l", at)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%q: %v: %s", end, err, p.text()[at:])
		}
		after, err := unix.IoctlGetTermios(int(p.other.Fd()), unix.TCGETS)
		if err != nil || *after != *before {
			t.Errorf("%q: the terminal is not as it was: %v", end, err)
		}
		if looks := s.looks(); len(looks) != 0 {
			t.Errorf("%q: left behind: %v", end, looks)
		}
	}
}
