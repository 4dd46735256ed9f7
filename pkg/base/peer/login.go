package peer

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/zedkube/zedkube/pkg/base/safefile"
)

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
