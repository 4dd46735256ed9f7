package cmdtest

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Terminal is a pseudo terminal: what a test types on it and sees.
type Terminal struct {
	t     *testing.T
	own   *os.File // the test's end
	Other *os.File // the program's end

	mu    sync.Mutex
	shown bytes.Buffer
}

// NewTerminal opens one; the test is skipped where the machine has none.
func NewTerminal(t *testing.T, width, height uint16) *Terminal {
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
	p := &Terminal{t: t, own: own, Other: other}
	p.Resize(width, height)
	var reading sync.WaitGroup
	reading.Go(p.read)
	t.Cleanup(func() { other.Close(); reading.Wait(); own.Close() })
	return p
}

func (p *Terminal) read() {
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

// Resize gives it another size.
func (p *Terminal) Resize(width, height uint16) {
	p.t.Helper()
	if err := unix.IoctlSetWinsize(int(p.own.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}); err != nil {
		p.t.Fatal(err)
	}
}

// Text is all that was printed on it.
func (p *Terminal) Text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shown.String()
}

// Sees waits for a text on the terminal from a point on, and returns the point
// behind it.
func (p *Terminal) Sees(text string, from int) int {
	p.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		all := p.Text()
		if i := strings.Index(all[from:], text); i >= 0 {
			return from + i + len(text)
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("no %q in %q", text, all[from:])
		}
	}
}

// Types sends keys to the program.
func (p *Terminal) Types(keys string) {
	p.t.Helper()
	if _, err := p.own.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}
