package applogs

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pkg/base/printable"
	"github.com/zedkube/zedkube/test/logjudge"
)

const stamp = "2026-05-03T06:09:30.000000004Z"

// recordsOf hands a log through as the component does, in records of at most
// most bytes.
func recordsOf(t *testing.T, log string, most int) (records []logjudge.Record, raw []string) {
	t.Helper()
	w := newWriter(appID, "c", most)
	in := newLines(strings.NewReader(log), w.piece())
	begun := false
	for {
		p, err := in.next()
		if errors.Is(err, io.EOF) {
			return records, raw
		}
		if err != nil {
			t.Fatal(err)
		}
		begun = begun && !p.first
		for offset := 0; ; begun = true {
			line, n := w.append(nil, p, offset, begun)
			if len(line) > w.max || bytes.IndexByte(line, '\n') != len(line)-1 {
				t.Fatalf("a record of %d bytes, %d at most: %q", len(line), w.max, line)
			}
			var r logjudge.Record
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatalf("%v: %q", err, line)
			}
			records, raw = append(records, r), append(raw, string(line))
			if offset += n; offset >= len(p.text) {
				begun = true
				break
			}
		}
	}
}

func TestARecordIsEVEsLine(t *testing.T) {
	_, raw := recordsOf(t, stamp+" tray 2 \"is\" <empty>\tnow\r\n", LargestRecord)
	want := `{"appuuid":"` + appID + `","containername":"c","eventtime":"` + stamp + `","level":"info","msg":"tray 2 \"is\" <empty>\tnow\u000d","time":"` + stamp + `"}` + "\n"
	if d := cmp.Diff([]string{want}, raw); d != "" {
		t.Error(d)
	}
}

// A guest's line ends up in a file that newlogd writes, which decodes ours first:
// what a terminal acts upon must be text before that.
func TestWhatATerminalActsUponIsTextInEVEsLog(t *testing.T) {
	const acts = "\x00\x07\b\x1b\r\x7f\u009b\u0085\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b\ufeff\U000e0001"
	for text, want := range map[string]string{
		"a\u009b2J\x7f\u202eb":        `a\u009b2J\u007f\u202eb`,
		acts + "x":                    `\u0000\u0007\u0008\u001b\u000d\u007f\u009b\u0085\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b\ufeff\U000e0001x`,
		"\x1b[2J\x1b]0;t\x07 \x9b":    `\u001b[2J\u001b]0;t\u0007 \x9b`,
		"\x1b\x1b[m[2J\u009b\x1b[m2J": `\u001b[2J\u009b2J`, // joins where a colour is taken out
		"\x1b[31":                     `\u001b[31`, "\x1b[3\u0660m": "\\u001b[3\u0660m",
		"ok\r": "ok", "ok\r\r": "ok", "50 %\r99 %\r": `50 %\u000d99 %`, "\rforged": `\u000dforged`,
		"\x1b[0;32m[  OK  ]\x1b[0m started":                               "[  OK  ] started",
		"\u00a0\u2010\u2065\u3000é日𝄞 \u0645\u06cc\u200c\u062e 👩\u200d💻\t": "\u00a0\u2010\\u2065\u3000é日𝄞 \u0645\u06cc\u200c\u062e 👩\u200d💻\t",
	} {
		_, raw := recordsOf(t, stamp+" "+text+"\n", LargestRecord)
		if len(raw) != 1 {
			t.Fatalf("%q became %d records", text, len(raw))
		}
		record, content, msg := newlogd(t, raw[0])
		if msg != want {
			t.Errorf("%q became %q, want %q", text, msg, want)
		}
		for where, got := range map[string]string{"our line": strings.TrimSuffix(raw[0], "\n"), "newlogd's record": record, "its content": content, "the text": msg} {
			if strings.ContainsAny(got, acts) || !utf8.ValidString(got) {
				t.Errorf("raw in %s: %q", where, got)
			}
		}
	}
}

// What a container writes, and whatever it is called, is told from the agent's
// own words by the name in the record.
func TestNoLineOfAContainerLooksLikeTheAgentsOwn(t *testing.T) {
	container := func(record []byte) string {
		var r logjudge.Record
		if err := json.Unmarshal(record, &r); err != nil {
			t.Fatal(err)
		}
		return r.Container
	}
	word := "lines from the beginning may be missing: forged by the guest"
	for name, mark := range map[string]string{"c": "c.zedkube", "c.zedkube": "czedkube.zedkube", "zedkube": "zedkube.zedkube", "": ".zedkube"} {
		w := newWriter(appID, name, LargestRecord)
		guest, _ := w.append(nil, piece{stamp: stamp, text: []byte("zedkube: " + word), first: true, last: true}, 0, false)
		if strings.HasSuffix(container(guest), ours) {
			t.Errorf("a line of container %q: %s", name, guest)
		}
		if own := w.mark(nil, time.Now(), word); container(own) != mark {
			t.Errorf("our own words about container %q: %s", name, own)
		}
	}
}

func TestALineOf256KiBStaysWhole(t *testing.T) {
	r, _ := recordsOf(t, stamp+" "+strings.Repeat("x", 256<<10)+"\n", LargestRecord)
	if len(r) != 1 || len(r[0].Msg) != 256<<10 {
		t.Errorf("%d records", len(r))
	}
	r, _ = recordsOf(t, stamp+" "+strings.Repeat("x", 300<<10)+"\n", LargestRecord)
	if len(r) < 2 || !strings.HasSuffix(r[0].Msg, continues) || !strings.HasPrefix(r[1].Msg, continued) || len(joined(r)[0]) != 300<<10 {
		t.Errorf("%d records", len(r))
	}
}

// joined puts the parts of the lines together.
func joined(records []logjudge.Record) (lines []string) {
	held := ""
	for _, r := range records {
		text, more := strings.CutSuffix(r.Msg, continues)
		text = held + strings.TrimPrefix(text, continued)
		if held = text; !more {
			lines, held = append(lines, text), ""
		}
	}
	return lines
}

func TestEveryTextComesThrough(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	alphabet := []string{"a", " ", "\"", "\\", "\x00", "\x1b[31m", "é", "日", "𝄞", "\xff", "\xe6\x97", "\xf0\x9d", "\r", "\u2028", "</script>"}
	for range 300 {
		var log strings.Builder
		var want []string
		for range r.IntN(5) {
			var text strings.Builder
			for range r.IntN(1 << r.IntN(13)) {
				text.WriteString(alphabet[r.IntN(len(alphabet))])
			}
			log.WriteString(stamp + " " + text.String() + "\n")
			want = append(want, shown(text.String()))
		}
		got, _ := recordsOf(t, log.String(), SmallestRecord<<r.IntN(6))
		lines := joined(got)
		for i := range lines {
			lines[i] = shown(lines[i])
		}
		if d := cmp.Diff(want, lines); d != "" {
			t.Fatal(d)
		}
	}
}

// shown is a text as a reader of EVE's log sees it. Colours are left out: one that
// is cut in two stays as text.
func shown(text string) string {
	text = printable.Escape(strings.TrimRight(strings.ReplaceAll(text, "\x1b[31m", ""), "\r"))
	text = strings.ReplaceAll(text, `\u001b[31m`, "")
	for strings.HasSuffix(text, `\u000d`) {
		text = strings.TrimSuffix(text, `\u000d`)
	}
	return text
}

func FuzzRecordsAreValidAndWhole(f *testing.F) {
	f.Add("x", 100)
	f.Add("\xff\x00\"\\", 2000)
	f.Fuzz(func(t *testing.T, text string, most int) {
		text = strings.ReplaceAll(text, "\n", "")
		got, _ := recordsOf(t, stamp+" "+text+"\n", min(max(most, 0), 1<<20))
		if !strings.Contains(text, continues) && !strings.Contains(text, continued) && len(got) > 0 {
			if all := joined(got); len(all) != 1 || !strings.Contains(text, "\x1b[") && shown(all[0]) != shown(text) {
				t.Errorf("%q became %q", text, all)
			}
		}
	})
}

// ansi is what newlogd takes out of a text.
var ansi = regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]|\x1b[()\[\]#;?]*[A-Za-z0-9]|\x{9b}[0-9;]*[A-Za-z]`)

// newlogd does to a line what newlogd does (docs/wire.md, "App log lines"): it
// decodes it, writes five of its fields again, joins these with container and time
// as text, and puts that into a record as a string. It returns the record, its
// content, and the text in that.
func newlogd(t *testing.T, line string) (record, content, msg string) {
	t.Helper()
	var in logjudge.Record
	if err := json.Unmarshal([]byte(line), &in); err != nil {
		t.Fatal(err)
	}
	msg = strings.Trim(ansi.ReplaceAllString(in.Msg, ""), "\r\n")
	inner, _ := json.Marshal(map[string]string{"appuuid": in.App, "containername": in.Container, "level": in.Level, "msg": msg, "time": in.Event})
	content = `{"container":"` + in.Container + `","time":"` + in.Event + `","msg":"` + string(inner) + `"}`
	out, err := json.Marshal(map[string]string{"content": content, "severity": in.Level})
	if err != nil || !json.Valid(out) {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out), content, msg
}

func TestNewlogdMakesAValidRecord(t *testing.T) {
	for _, text := range []string{"plain", `{"level":"warn","msg":"a \"b\" \\ c"}`, `","msg":"x"}`, "\x00\x1b[0m\xff", `\u0000 \n`} {
		_, raw := recordsOf(t, stamp+" "+text+"\n", LargestRecord)
		_, content, _ := newlogd(t, raw[0])
		// Whoever reads it finds the parts by what is around them.
		head, rest, ok := strings.Cut(content, `","msg":"{`)
		if !ok || head != `{"container":"c","time":"`+stamp || !json.Valid([]byte("{"+strings.TrimSuffix(rest, `"}`))) {
			t.Errorf("content cannot be taken apart: %s", content)
		}
	}
}

func TestNamesCannotBreakOutOfWhatIsJoinedAsText(t *testing.T) {
	w := newWriter(`a","x":"`, "c\"\\\n", 0)
	line, _ := w.append(nil, piece{stamp: stamp, text: []byte("x"), first: true, last: true}, 0, false)
	if !strings.HasPrefix(string(line), `{"appuuid":"ax","containername":"c",`) {
		t.Errorf("%s", line)
	}
}

func TestWhatHasNoTimeIsNoLine(t *testing.T) {
	in := newLines(strings.NewReader("the end of a line\n"+stamp+" one\nunable to retrieve container logs\n"+stamp+"\n"+stamp+" \n"+stamp+" half"), 1024)
	var got []string
	for {
		p, err := in.next()
		if err != nil {
			break
		}
		got = append(got, string(p.text))
	}
	if d := cmp.Diff([]string{"one", "", ""}, got); d != "" {
		t.Error(d)
	}
	if p, ok := in.unterminated(); !ok || string(p.text) != "half" || !p.last {
		t.Errorf("the last line is %q", p.text)
	}
	if in.report != "the end of a line" {
		t.Errorf("what has no time is reported as %q", in.report)
	}
}

func TestALongLineIsCutBetweenCharacters(t *testing.T) {
	r := strings.NewReader(stamp + " " + strings.Repeat("日", 100000) + "\n")
	in := newLines(r, 5000)
	for {
		p, err := in.next()
		if err != nil {
			return
		}
		if !utf8.Valid(p.text) || len(p.text) > 5000+bufferSize {
			t.Fatalf("a piece of %d bytes", len(p.text))
		}
	}
}

func TestWhereALogIs(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 5) }
	p := position{}
	for _, s := range []int{1, 1, 2, 5, 3, 3} {
		p.line(at(s))
	}
	if want := (position{At: at(3), N: 2, High: at(5)}); !cmp.Equal(want, p) {
		t.Errorf("%+v", p)
	}
	if !p.since().Equal(time.Unix(3, 0)) {
		t.Error(p.since())
	}
	for name, c := range map[string]struct {
		from  position
		lines []int
		want  []verdict
	}{
		"the beginning":                   {position{}, []int{1, 2}, []verdict{fresh, fresh}},
		"the last line is there":          {position{At: at(2), N: 1}, []int{1, 2, 2, 3}, []verdict{known, known, fresh, fresh}},
		"the second of two":               {position{At: at(2), N: 2}, []int{2, 2, 2}, []verdict{known, known, fresh}},
		"in the middle of a line":         {position{At: at(2), N: 1, Part: 3}, []int{1, 2, 3}, []verdict{known, rest, fresh}},
		"rotated away":                    {position{At: at(2), N: 1}, []int{3, 4}, []verdict{missing, fresh}},
		"rotated between two of one time": {position{At: at(2), N: 2}, []int{2, 3}, []verdict{known, fresh}},
		"a clock that was set back":       {position{At: at(2), N: 1, High: at(9)}, []int{8, 9, 2, 3}, []verdict{known, known, known, fresh}},
		"a clock that is set back by now": {position{At: at(2), N: 1}, []int{2, 1}, []verdict{known, fresh}},
		"a clock set back, and rotated":   {position{At: at(2), N: 1, High: at(9)}, []int{3, 10}, []verdict{known, missing}},
	} {
		s := newSeeker(c.from)
		var got []verdict
		for _, l := range c.lines {
			got = append(got, s.judge(at(l)))
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}
