package access

import (
	"bytes"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// pipe is a connection from which is read what is put into in; that waits there, as in a socket.
type pipe struct {
	net.Conn
	in   chan []byte
	rest []byte
}

func (p *pipe) Read(b []byte) (n int, err error) {
	if len(p.rest) == 0 {
		first, open := <-p.in
		if !open {
			return 0, net.ErrClosed
		}
		p.rest = first
	}
	for {
		took := copy(b[n:], p.rest)
		n, p.rest = n+took, p.rest[took:]
		if n == len(b) {
			return n, nil
		}
		select {
		case more, open := <-p.in:
			if !open {
				return n, nil
			}
			p.rest = more
		default:
			return n, nil
		}
	}
}

func (p *pipe) Close() error { close(p.in); return nil }

// reads is how often g is read until total bytes have come, and how late the last one was.
func reads(t *testing.T, lines int, every time.Duration, size int) (count int, late time.Duration) {
	t.Helper()
	p := &pipe{in: make(chan []byte, 1<<16)}
	g := gathers(p)
	time.Sleep(2 * begins)
	var last time.Time
	go func() {
		for range lines {
			time.Sleep(every)
			last = time.Now()
			p.in <- bytes.Repeat([]byte("x"), size)
		}
	}()
	buffer := make([]byte, 16<<10)
	for got := 0; got < lines*size; count++ {
		n, err := g.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		got += n
	}
	return count, time.Since(last)
}

func TestLinesThatComeOneByOneAreReadTogether(t *testing.T) {
	for name, test := range map[string]struct {
		lines       int
		every       time.Duration
		size        int
		least, most int // reads
		late        time.Duration
	}{
		"ten lines a second":     {600, 100 * time.Millisecond, 130, 60, 130, gather},
		"a line every 5 seconds": {100, 5 * time.Second, 130, 100, 100, 0},
		"two megabytes a second": {2000, time.Millisecond, 2000, 1500, 2000, 0},
		"many short ones":        {20000, time.Millisecond, 60, 15000, 20000, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				count, late := reads(t, test.lines, test.every, test.size)
				if count < test.least || count > test.most || late > test.late {
					t.Errorf("%d reads, the last %v late; want %d to %d, at most %v", count, late, test.least, test.most, test.late)
				}
			})
		})
	}
}

func TestANewConnectionDoesNotPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipe{in: make(chan []byte, 1)}
		g, began := gathers(p), time.Now()
		for range 5 {
			p.in <- []byte("a part of a handshake")
			if _, err := g.Read(make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(began); took != 50*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

func TestAPausingReadEndsWithItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipe{in: make(chan []byte, 1)}
		g := gathers(p)
		g.pause = true
		began := time.Now()
		go func() { _ = g.Close() }()
		if _, err := g.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) || time.Since(began) != 0 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
