package witness

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
	"time"
)

// failed is how net.Dialer reports an error of connect.
func failed(errno syscall.Errno) error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", errno)}
}

// line is a connection that counts as open until it is closed.
type line struct {
	net.Conn
	close func()
}

func (l line) Close() error {
	l.close()
	return l.Conn.Close()
}

// answers says what a connection to host, or host:port, meets from now on.
func (s *stage) answers(host string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines[host] = err
}

// dies takes the device off the network.
func (s *stage) dies(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.lines, node(i).InternalIP)
}

func (s *stage) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil || network != "tcp" {
		return nil, fmt.Errorf("dial %s %q: %w", network, address, err)
	}
	defer s.calls()()
	s.mu.Lock()
	s.dialed = append(s.dialed, address)
	met, ok := s.lines[address]
	if !ok {
		met, ok = s.lines[host]
	}
	s.mu.Unlock()
	switch {
	case ok && met != nil:
		return nil, met
	case ok:
		here, there := net.Pipe()
		_ = there.Close()
		return line{here, s.calls()}, nil
	}
	<-ctx.Done()
	time.Sleep(s.lazy)
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
}

// calls counts one that is open until the function it returns is called.
func (s *stage) calls() func() {
	count := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open += n
	}
	count(1)
	return func() { count(-1) }
}

// dials returns the connections since the last call, sorted, each once.
func (s *stage) dials() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.dialed
	s.dialed = nil
	slices.Sort(out)
	return slices.Compact(out)
}
