package applogs

import (
	"strings"
	"time"
	"unicode/utf8"
)

// The marks of a line that is longer than a record.
const (
	continued = "[continued] "
	continues = " [continues]"
)

// minRecord is what a record needs to hold anything at all, in bytes.
const minRecord = 1024

// writer writes records of one container: EVE's app log lines (docs/wire.md,
// "App log lines"). newlogd takes containername and eventtime out of them and
// joins these with the rest as text: in them is nothing that would need an
// escape. The rest is JSON once more, escaped as any JSON is: newlogd decodes it
// and writes it anew before it joins, so what we escape beyond that would stay.
type writer struct {
	head string // up to the time
	max  int    // bytes of a record
}

func newWriter(app, container string, most int) writer {
	return writer{head: `{"appuuid":"` + plain(app) + `","containername":"` + plain(container) + `","eventtime":"`, max: max(most, minRecord)}
}

// piece is how many bytes of plain text fit into a record.
func (w writer) piece() int { return w.max - len(w.head) - 2*len(time.RFC3339Nano) - 100 }

// plain leaves out of a name what is not in names of Kubernetes, if somebody
// should have smuggled it in.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '.', r == '_':
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
	dst, n := escape(dst, text, room)
	if n < len(text) || !p.last && len(dst)-body+len(continues) > room {
		dst, n = escape(dst[:body], text, room-len(continues))
	}
	if n < len(text) || !p.last {
		dst = append(dst, continues...)
	}
	dst = append(dst, `","time":"`...)
	dst = append(dst, p.stamp...)
	return append(dst, "\"}\n"...), n
}

const hex = "0123456789abcdef"

// escape appends text as the inside of a JSON string of at most room bytes, and
// returns how much of it that is: all of it, or up to a character.
func escape(dst, text []byte, room int) ([]byte, int) {
	limit := len(dst) + room
	i := 0
	for i < len(text) {
		run := i // of characters that stand for themselves
		for run < len(text) && text[run] >= ' ' && text[run] < utf8.RuneSelf && text[run] != '"' && text[run] != '\\' {
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
		size := 1
		switch b := text[i]; {
		case b == '"' || b == '\\':
			dst = append(dst, '\\', b)
		case b == '\t':
			dst = append(dst, `\t`...)
		case b < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
		default:
			var r rune
			r, size = utf8.DecodeRune(text[i:])
			dst = utf8.AppendRune(dst, r) // U+FFFD for what is no character
		}
		if len(dst) > limit {
			return dst[:was], i
		}
		i += size
	}
	return dst, i
}
