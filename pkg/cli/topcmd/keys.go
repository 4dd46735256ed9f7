package topcmd

import (
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zedkube/zedkube/pubsub"
)

// The keys that terminals send as sequences, as the letters that do the same.
var keySequences = []struct {
	sent string
	key  rune
}{
	{"\x1b[A", 'k'}, {"\x1b[B", 'j'}, {"\x1bOA", 'k'}, {"\x1bOB", 'j'}, {"\x1b[5~", 'b'}, {"\x1b[6~", ' '}, {"\x1b[H", 'g'}, {"\x1b[1~", 'g'}, {"\x03", 'q'},
}

// typed turns what a terminal has sent into keys.
func typed(sent string) (keys []rune) {
next:
	for sent != "" {
		for _, s := range keySequences {
			if rest, ok := strings.CutPrefix(sent, s.sent); ok {
				keys, sent = append(keys, s.key), rest
				continue next
			}
		}
		if sent[0] == '\x1b' { // one that nobody knows: all of it means nothing
			return keys
		}
		keys, sent = append(keys, rune(sent[0])), sent[1:]
	}
	return keys
}

// openKeyboard gives keys to press, without echo and without waiting for the end of a
// line. Where that cannot be had there are no keys; Ctrl-C ends all the same. end gives
// the terminal back as it was.
func openKeyboard(press func(rune)) (end func()) {
	// A description of our own, so that a read can be given up.
	file, err := os.OpenFile("/proc/self/fd/0", os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return func() {}
	}
	was, err := unix.IoctlGetTermios(0, unix.TCGETS)
	if err == nil {
		now := *was
		now.Lflag &^= unix.ICANON | unix.ECHO
		now.Cc[unix.VSUSP] = 0 // stopped, it would leave the terminal like this
		now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
		err = unix.IoctlSetTermios(0, unix.TCSETS, &now)
	}
	if err != nil {
		file.Close()
		return func() {}
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		var sent [64]byte
		for err := error(nil); err == nil; { // until the terminal is gone, or the end
			var n int
			n, err = file.Read(sent[:])
			for _, key := range typed(string(sent[:n])) {
				press(key)
			}
		}
	})
	return func() {
		_ = file.SetReadDeadline(time.Now())
		reading.Wait()
		file.Close()
		_ = unix.IoctlSetTermios(0, unix.TCSETSF, was) // what was typed too late is for nobody
	}
}

// press does what a key says, and has the table drawn again.
func (t *top) press(key rune) {
	_, height := t.out.Size()
	t.mu.Lock()
	switch key {
	case 'q', 'Q':
		t.ended = true
	case 'c':
		t.options.sort = sortCPU
	case 'm':
		t.options.sort = sortMemory
	case 'n':
		t.options.sort = sortName
	case 'j':
		t.from++
	case 'k':
		t.from--
	case ' ':
		t.from += height / 2
	case 'b':
		t.from -= height / 2
	case 'g':
		t.from = 0
	}
	t.mu.Unlock()
	pubsub.Ring(t.wake)
}
