//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// load is what the application uses besides.
type load struct {
	cpu    float64
	memory int
	disk   int
	net    int
	to     string

	held []byte
}

// block is what is written and sent at a time: whole pages, and less than what
// any network takes for a datagram.
const (
	block    = 1 << 20
	datagram = 1000
)

// begin takes the memory, writes and sends, and leaves the CPU under way.
func (l *load) begin() error {
	var err error
	if l.held, err = pages(l.memory); err != nil {
		return fmt.Errorf("take memory: %w", err)
	}
	if err := l.write(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := l.send(); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if l.cpu > 0 {
		go l.burn()
	}
	return nil
}

// pages are bytes of memory that is really there.
func pages(n int) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	held, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	for i := 0; i < len(held); i += os.Getpagesize() {
		held[i] = 1
	}
	return held, err
}

// write writes past the page cache, so that the bytes count for whoever writes
// them.
func (l *load) write() error {
	if l.disk == 0 {
		return nil
	}
	from, err := pages(block)
	if err != nil {
		return err
	}
	flags := os.O_CREATE | os.O_TRUNC | os.O_WRONLY | os.O_SYNC
	file, err := os.OpenFile("/load", flags|syscall.O_DIRECT, 0o600)
	if errors.Is(err, syscall.EINVAL) {
		file, err = os.OpenFile("/load", flags, 0o600)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	for range l.disk / block {
		if _, err := file.Write(from); err != nil {
			return err
		}
	}
	return nil
}

// send sends datagrams that nobody takes.
func (l *load) send() error {
	if l.net == 0 {
		return nil
	}
	to, err := net.ResolveUDPAddr("udp", l.to)
	if err != nil {
		return err
	}
	from, err := net.ListenUDP("udp", nil)
	if err != nil {
		return err
	}
	defer from.Close()
	for sent := 0; sent < l.net; sent += datagram {
		if _, err := from.WriteTo(make([]byte, datagram), to); err != nil {
			return err
		}
	}
	return nil
}

// burn uses as much of a CPU as it was told to, by the time that it has really
// had one.
func (l *load) burn() {
	runtime.LockOSThread()
	begin, first := time.Now(), onCPU()
	tick := time.NewTicker(turn)
	defer tick.Stop()
	for range tick.C {
		for due := time.Duration(float64(time.Since(begin)) * l.cpu); onCPU()-first < due; {
		}
	}
}

// onCPU is how long this thread has had a CPU.
func onCPU() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}
