// Package peer says which process is at the other end of a unix socket, and who
// is behind it, as the kernel tells.
package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/zedkube/zedkube/pkg/base/safefile"
)

// Peer is the process that opened a connection.
type Peer struct {
	UID uint32
	PID int // 0 where it is in another PID namespace
}

// Of asks the kernel who opened conn, a connection of a unix socket
// (SO_PEERCRED).
func Of(conn net.Conn) (Peer, error) {
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return Peer{}, errors.New("no credentials: this is not a Unix socket")
	}
	raw, err := unixConn.SyscallConn()
	if err != nil {
		return Peer{}, fmt.Errorf("credentials of peer: %w", err)
	}
	var cred *unix.Ucred
	var asked error
	if err := raw.Control(func(fd uintptr) { cred, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return Peer{}, fmt.Errorf("credentials of peer: %w", err)
	}
	if asked != nil {
		return Peer{}, fmt.Errorf("credentials of peer: %w", asked)
	}
	return Peer{UID: cred.Uid, PID: int(cred.Pid)}, nil
}

// Self is this process.
func Self() Peer { return Peer{UID: uint32(os.Geteuid()), PID: os.Getpid()} } //nolint:gosec // a user ID of Linux

// IsTrusted reports whether p may ask for everything: root, and the user of this
// process where that is not root.
func (p Peer) IsTrusted() bool { return p.UID == 0 || p.UID == Self().UID }

type key struct{}

// NewContext returns ctx with p in it.
func NewContext(ctx context.Context, p Peer) context.Context { return context.WithValue(ctx, key{}, p) }

// FromContext returns the peer whose request ctx belongs to.
func FromContext(ctx context.Context) (Peer, bool) {
	p, ok := ctx.Value(key{}).(Peer)
	return p, ok
}

const (
	// noLogin is the login UID of a process that no login led to.
	noLogin = 1<<32 - 1
	// maxEnvironment is how much of a process' environment is read, and
	// maxWord the longest value of a variable, both in bytes.
	maxEnvironment = 128 << 10
	maxWord        = 64
)

// Who says in one line who p is: "uid 0, login uid 1000, terminal pts/1, ssh from
// 10.0.0.5, sudo by anna". Login UID and terminal are the kernel's word, the rest
// that of the process' environment. What cannot be obtained is left out.
func (p Peer) Who() string { return p.who("/proc") }

func (p Peer) who(proc string) string {
	parts := []string{fmt.Sprintf("uid %d", p.UID)}
	if p.PID <= 0 {
		return parts[0]
	}
	dir := filepath.Join(proc, strconv.Itoa(p.PID))
	if text := read(filepath.Join(dir, "loginuid"), 16); text != "" {
		if login, err := strconv.ParseUint(text, 10, 32); err == nil && login != noLogin {
			parts = append(parts, fmt.Sprintf("login uid %d", login))
		}
	}
	if name := terminal(read(filepath.Join(dir, "stat"), 4096)); name != "" {
		parts = append(parts, "terminal "+name)
	}
	for v := range strings.SplitSeq(read(filepath.Join(dir, "environ"), maxEnvironment), "\x00") {
		name, value, _ := strings.Cut(v, "=")
		switch {
		case value == "":
		case name == "SSH_CONNECTION":
			from, _, _ := strings.Cut(value, " ")
			parts = append(parts, "ssh from "+word(from))
		case name == "SUDO_USER":
			parts = append(parts, "sudo by "+word(value))
		}
	}
	return strings.Join(parts, ", ")
}

// read returns the beginning of a file of /proc without blanks around it, "" where
// it cannot be read.
func read(path string, most int64) string {
	f, err := safefile.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	content, err := safefile.Head(f, most)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}

// terminal is the controlling terminal in a process' stat, "" for none. It is the
// fifth field behind the name, which may hold blanks and brackets (proc(5)).
func terminal(stat string) string {
	_, rest, ok := strings.Cut(stat[strings.LastIndex(stat, ")")+1:], " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 5 {
		return ""
	}
	device, err := strconv.ParseUint(fields[4], 10, 32)
	if err != nil || device == 0 {
		return ""
	}
	major, minor := device>>8&0xfff, device&0xff|device>>12&0xfff00
	switch {
	case major >= 136 && major <= 143: // Unix98 terminals, 256 for each number
		return fmt.Sprintf("pts/%d", (major-136)*256+minor)
	case major == 4 && minor < 64:
		return fmt.Sprintf("tty%d", minor)
	case major == 4:
		return fmt.Sprintf("ttyS%d", minor-64)
	}
	return fmt.Sprintf("%d:%d", major, minor)
}

// word is a part of an environment as it may stand in a line.
func word(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsGraphic(r) || r == ',' || r == ' ' {
			return '?'
		}
		return r
	}, s)
	if len(s) > maxWord {
		s = strings.ToValidUTF8(s[:maxWord], "?")
	}
	return s
}

// maxSocketPath is what fits sockaddr_un beside its final zero byte.
const maxSocketPath = 107

// Reach calls f with a path to the socket at path that fits a socket address: one
// that is too long leads through the open directory, so that a root may lie
// anywhere.
func Reach(path string, f func(short string) error) error {
	if len(path) <= maxSocketPath {
		return f(path)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return f(fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)))
}

// Dial connects to the stream socket at path.
func Dial(ctx context.Context, path string) (conn net.Conn, err error) {
	err = Reach(path, func(short string) error {
		conn, err = (&net.Dialer{}).DialContext(ctx, "unix", short)
		return err
	})
	return conn, err
}
