package witness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
)

func TestMeaningOfTheEndOfAnAttempt(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want reply
	}{
		{"connected", nil, answer},
		{"refused", failed(syscall.ECONNREFUSED), answer},
		{"reset", failed(syscall.ECONNRESET), answer},
		{"the time is up", &net.OpError{Op: "dial", Err: context.DeadlineExceeded}, silence},
		{"the time is up, as sockets say it", &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, silence},
		{"the kernel gave up", failed(syscall.ETIMEDOUT), silence},
		{"nobody has the address", failed(syscall.EHOSTUNREACH), silence},
		{"no interface leads there", failed(syscall.ENETUNREACH), untried},
		{"our interface is down", failed(syscall.ENETDOWN), untried},
		{"our address is gone", failed(syscall.EADDRNOTAVAIL), untried},
		{"a firewall of ours", failed(syscall.EPERM), untried},
		{"no more files", fmt.Errorf("socket: %w", syscall.EMFILE), untried},
		{"try again", failed(syscall.EAGAIN), untried},
		{"called off", context.Canceled, untried},
		{"anything else", errors.New("odd"), untried},
	} {
		conn, other := net.Pipe()
		defer other.Close()
		w := &Component{Dial: func(context.Context, string, string) (net.Conn, error) { return conn, c.err }}
		d := dial{}
		if w.connect(t.Context(), &d); d.reply != c.want {
			t.Errorf("%s: %d, want %d", c.name, d.reply, c.want)
		}
	}
}

func TestARealKernelAnswers(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &Component{Dial: (&net.Dialer{}).DialContext}
	attempt := func(ctx context.Context) dial {
		d := dial{address: listener.Addr().String()}
		c.connect(ctx, &d)
		return d
	}
	if d := attempt(t.Context()); d.reply != answer {
		t.Errorf("a listener: %+v", d)
	}
	_ = listener.Close()
	if d := attempt(t.Context()); d.reply != answer {
		t.Errorf("a closed port: %+v", d)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if d := attempt(ended); d.reply != untried || d.why == "" {
		t.Errorf("a look that was cut short: %+v", d)
	}
}
