package terminal

import (
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Keys says how to work a live screen.
const Keys = "q quits; arrows, space, b, g scroll"

// The keys that terminals send as sequences, as the letters that do the same.
var keySequences = strings.NewReplacer(
	"\x1b[A", "k", "\x1b[B", "j", "\x1bOA", "k", "\x1bOB", "j", "\x1b[5~", "b", "\x1b[6~", " ", "\x1b[H", "g", "\x1b[1~", "g")

// typed turns what a terminal has sent into keys, up to a sequence that nobody knows.
func typed(sent string) string {
	keys, _, _ := strings.Cut(keySequences.Replace(sent), "\x1b")
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

// scrolled is the first line on the screen after a key; known is false for a key that does
// not scroll.
func scrolled(from int, key rune, height int) (to int, known bool) {
	switch key {
	case 'j':
		return from + 1, true
	case 'k':
		return max(from-1, 0), true
	case ' ':
		return from + height/2, true
	case 'b':
		return max(from-height/2, 0), true
	case 'g':
		return 0, true
	}
	return from, false
}
