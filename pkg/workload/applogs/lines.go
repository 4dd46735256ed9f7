package applogs

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"time"
	"unicode/utf8"
)

// bufferSize is what is read at once, in bytes.
const bufferSize = 32 << 10

// piece is a line of a log, or a part of one that is too long to be held.
type piece struct {
	at          time.Time
	stamp       string // the same, as it was written
	text        []byte // valid until the next piece
	first, last bool   // of its line; a line that is one piece is both
}

// lines cuts what a kubelet serves into pieces.
type lines struct {
	r       *bufio.Reader
	max     int    // bytes of a piece
	held    []byte // of the present line, not handed out yet
	spare   []byte // what was handed out last
	inside  bool   // the beginning of the present line is handed out
	at      time.Time
	stamp   string
	reports []string // what came without a time: the kubelet's own words, or the end of a line that begins before
}

func newLines(r io.Reader, most int) *lines {
	return &lines{r: bufio.NewReaderSize(r, bufferSize), max: most}
}

// waits reports that the next piece may take a while.
func (l *lines) waits() bool { return l.r.Buffered() == 0 }

// next returns the next piece, or what ended the log. A line without an end,
// which is the last one, is not handed out: unended returns it.
func (l *lines) next() (piece, error) {
	for {
		part, err := l.r.ReadSlice('\n')
		ended := err == nil
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			l.hold(part)
			return piece{}, err
		}
		if ended && len(l.held) == 0 {
			if p, ok := l.cut(part[:len(part)-1], true); ok {
				return p, nil
			}
			continue
		}
		l.hold(part)
		if !ended && len(l.held) < l.max {
			continue
		}
		text, whole := l.held, len(l.held)-1
		if !ended {
			whole = completeRunes(text)
		}
		l.held, l.spare = l.spare[:0], text
		if !ended {
			l.held = append(l.held, text[whole:]...)
		}
		text = text[:whole]
		if p, ok := l.cut(text, ended); ok {
			return p, nil
		}
	}
}

func (l *lines) hold(part []byte) { l.held = append(l.held, part...) }

// unterminated is the line, or what is left of it, that had no end when the log
// ended; it is the last piece of its line if nothing more is to come.
func (l *lines) unterminated() (piece, bool) {
	if len(l.held) == 0 && !l.inside {
		return piece{}, false
	}
	text := l.held
	l.held = nil
	return l.cut(text, true)
}

// cut makes a piece of text; it reports false for what is no line of the log.
func (l *lines) cut(text []byte, last bool) (piece, bool) {
	p := piece{first: !l.inside, last: last}
	if p.first {
		stamp, rest, _ := bytes.Cut(text, []byte{' '})
		at, err := time.Parse(time.RFC3339Nano, string(stamp))
		if err != nil {
			l.report(text)
			return piece{}, false
		}
		l.at, l.stamp, text = at.UTC(), string(stamp), rest
	}
	l.inside = !last
	p.at, p.stamp, p.text = l.at, l.stamp, text
	return p, true
}

// report keeps what the kubelet says about the log.
func (l *lines) report(text []byte) {
	if len(l.reports) < 3 {
		l.reports = append(l.reports, string(text[:min(len(text), 200)]))
	}
}

// completeRunes is how many bytes of text there are without the beginning of a
// character at its end, whose rest is still to come.
func completeRunes(text []byte) int {
	for i := 1; i < utf8.UTFMax && i < len(text); i++ {
		if b := text[len(text)-i]; utf8.RuneStart(b) {
			if !utf8.FullRune(text[len(text)-i:]) {
				return len(text) - i
			}
			break
		}
	}
	return len(text)
}
