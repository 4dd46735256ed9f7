package applogs

import (
	"bytes"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zedkube/zedkube/pkg/base/printable"
)

// The marks of a line that is longer than a record.
const (
	continued = "[continued] "
	continues = " [continues]"
)

// writer writes records of one container: EVE's app log lines (docs/wire.md,
// "App log lines"). newlogd takes containername and eventtime out of them and
// joins these with the rest as text: in them is nothing that would need an
// escape. The rest is JSON once more: newlogd decodes it and writes it again before
// it joins, so what a reader of that must not see raw is text before we encode it.
type writer struct {
	app, container string
	head           string // up to the time
	max            int    // bytes of a record
}

// ours follows the name of a container in records of our own words about it. No
// container has a name with a dot, so nothing that it writes looks like them.
const ours = ".zedkube"

func newWriter(app, container string, most int) writer {
	return writer{app: plain(app), container: plain(container), head: head(plain(app), plain(container)), max: max(most, SmallestRecord)}
}

func head(app, container string) string {
	return `{"appuuid":"` + app + `","containername":"` + container + `","eventtime":"`
}

// piece is how many bytes of plain text fit into a record.
func (w writer) piece() int { return w.max - len(w.head) - 2*len(time.RFC3339Nano) - 100 }

// plain leaves out of a name what is not in names of containers and in UUIDs, if
// someone should have smuggled it in.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-':
			return r
		}
		return -1
	}, name)
}

// append appends one record with as much of p's text from offset on as fits,
// and returns how many bytes of text these are. begun tells that some of the
// line is out already.
func (w writer) append(dst []byte, p piece, offset int, begun bool) ([]byte, int) {
	text, start := p.text[offset:], len(dst)
	dst = append(dst, w.head...)
	dst = append(dst, p.stamp...)
	dst = append(dst, `","level":"info","msg":"`...)
	if begun {
		dst = append(dst, continued...)
	}
	body := len(dst)
	room := w.max - (body - start) - len(p.stamp) - len(`","time":""}`+"\n")
	dst, n := escape(dst, text, p.last, room)
	if n < len(text) || !p.last && len(dst)-body+len(continues) > room {
		dst, n = escape(dst[:body], text, p.last, room-len(continues))
	}
	if n < len(text) || !p.last {
		dst = append(dst, continues...)
	}
	dst = append(dst, `","time":"`...)
	dst = append(dst, p.stamp...)
	return append(dst, "\"}\n"...), n
}

const (
	del = 0x7f
	esc = 0x1b
)

// escape appends text, which ends its line if last, as the inside of a JSON string
// of at most room bytes, and returns how much of it that is: all of it, or up to a
// character. What a terminal acts upon becomes text first, once: newlogd decodes
// the JSON, and writes it again with fewer escapes.
func escape(dst, text []byte, last bool, room int) ([]byte, int) {
	limit := len(dst) + room
	i := 0
	for i < len(text) {
		run := i // of characters that stand for themselves
		for run < len(text) && text[run] >= ' ' && text[run] < del && text[run] != '"' && text[run] != '\\' {
			run++
		}
		if run > i {
			n := min(run-i, limit-len(dst))
			dst = append(dst, text[i:i+n]...)
			i += n
			if i < run {
				return dst, i
			}
			continue
		}
		was := len(dst)
		var size int
		dst, size = appendInvalid(dst, text[i:], last)
		if len(dst) > limit {
			return dst[:was], i
		}
		i += size
	}
	return dst, i
}

// appendInvalid appends what text begins with, a character that may not stand for
// itself, and returns how many bytes of text that is.
func appendInvalid(dst, text []byte, last bool) ([]byte, int) {
	switch b := text[0]; b {
	case '"', '\\':
		return append(dst, '\\', b), 1
	case '\t':
		return append(dst, `\t`...), 1
	}
	if n := newlogdRemoves(text, last); n > 0 {
		for _, b := range text[:n] {
			switch b {
			case '\r':
				dst = append(dst, `\u000d`...)
			case esc:
				dst = append(dst, `\u001b`...)
			default:
				dst = append(dst, b)
			}
		}
		return dst, n
	}
	r, size := utf8.DecodeRune(text)
	was := len(dst)
	if dst = printable.AppendRune(dst, r, text[:size]); dst[was] == '\\' {
		dst = slices.Insert(dst, was, '\\')
	}
	return dst, size
}

// longestColour and mostReturns bound what is looked at and kept together, in bytes.
const (
	longestColour = 32
	mostReturns   = 4
)

// newlogdRemoves is how many bytes text begins with that newlogd takes out of a
// line (docs/wire.md, "App log lines"): a colour, or carriage returns at its end.
// As text they would be in most lines of a console.
func newlogdRemoves(text []byte, last bool) int {
	if text[0] == '\r' && last && len(text) <= mostReturns && len(bytes.TrimLeft(text, "\r")) == 0 {
		return len(text)
	}
	if text[0] != esc || len(text) < 2 || text[1] != '[' {
		return 0
	}
	for i, b := range text[2:min(len(text), longestColour)] {
		switch {
		case b == 'm':
			return i + 3
		case (b < '0' || b > '9') && b != ';':
			return 0
		}
	}
	return 0
}
