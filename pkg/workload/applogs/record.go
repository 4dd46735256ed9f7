package applogs

import (
	"strings"
	"time"
	"unicode"
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
	app, container string
	head           string // up to the time
	max            int    // bytes of a record
}

// ours follows the name of a container in records of our own words about it. No
// container has a name with a dot, so nothing that it writes looks like them.
const ours = ".zedkube"

func newWriter(app, container string, most int) writer {
	return writer{app: plain(app), container: plain(container), head: head(plain(app), plain(container)), max: max(most, minRecord)}
}

func head(app, container string) string {
	return `{"appuuid":"` + app + `","containername":"` + container + `","eventtime":"`
}

// own writes the records of our own words about the container.
func (w writer) own() writer {
	w.head = head(w.app, w.container+ours)
	return w
}

// piece is how many bytes of plain text fit into a record.
func (w writer) piece() int { return w.max - len(w.head) - 2*len(time.RFC3339Nano) - 100 }

// plain leaves out of a name what is not in names of containers and in UUIDs, if
// somebody should have smuggled it in.
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

const (
	hex = "0123456789abcdef"
	del = 0x7f
)

// acts are the characters that a terminal or a viewer acts upon instead of
// showing them: control characters, and those that turn the direction of text or
// end a line.
var acts = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0, Hi: 0x1f, Stride: 1},
	{Lo: del, Hi: 0x9f, Stride: 1},
	{Lo: 0x61c, Hi: 0x61c, Stride: 1},
	{Lo: 0x200e, Hi: 0x200f, Stride: 1},
	{Lo: 0x2028, Hi: 0x202e, Stride: 1},
	{Lo: 0x2066, Hi: 0x2069, Stride: 1},
}, LatinOffset: 2}

// appendRune appends a character as the inside of a JSON string.
func appendRune(dst []byte, r rune) []byte {
	if !unicode.Is(acts, r) {
		return utf8.AppendRune(dst, r)
	}
	return append(dst, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
}

// escape appends text as the inside of a JSON string of at most room bytes, and
// returns how much of it that is: all of it, or up to a character.
func escape(dst, text []byte, room int) ([]byte, int) {
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
		size := 1
		switch b := text[i]; {
		case b == '"' || b == '\\':
			dst = append(dst, '\\', b)
		case b == '\t':
			dst = append(dst, `\t`...)
		default:
			var r rune
			r, size = utf8.DecodeRune(text[i:])
			dst = appendRune(dst, r) // U+FFFD for what is no character
		}
		if len(dst) > limit {
			return dst[:was], i
		}
		i += size
	}
	return dst, i
}
