//go:build linux

package applogs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zedkube/zedkube/test/logjudge"
)

// source is one container of an application on one device.
type source struct{ app, container string }

// line is one that a container printed: its number, which begins anew with each
// run of the container, and when the container printed it.
type line struct {
	n       int
	printed time.Time
}

// telling is one time that the agent told a line.
type telling struct {
	line
	at         time.Time // as the runtime took it
	begin, end int64     // where it is in all that the agent told
}

// mark is the agent's word that lines are missing.
type mark struct {
	from, to time.Time // zero from: the beginning
	runs     int       // whole runs of the container that are missing
	text     string
}

// book is all that one device's agent writes. It goes through a pipe, as on a
// device: what is in there when the agent is killed is not lost.
type book struct {
	pipe *os.File // to write to
	file *os.File
	done chan struct{}

	mu     sync.Mutex
	size   int64
	kills  []int64 // where the agent was killed
	lines  map[source][]telling
	marks  map[source][]mark
	disk   map[source]map[line]bool // what the runtime was seen to have
	faults []string
}

// killMark stands where the agent was killed.
const killMark = "the agent was killed"

func newBook(path string) (*book, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	b := &book{pipe: in, file: file, done: make(chan struct{}), lines: map[source][]telling{}, marks: map[source][]mark{}, disk: map[source]map[line]bool{}}
	go func() {
		defer close(b.done)
		defer out.Close()
		b.read(out)
	}()
	return b, nil
}

// end is when nobody writes any more; it says what was wrong.
func (b *book) end() []string {
	_ = b.pipe.Close()
	<-b.done
	_ = b.file.Close()
	return b.faults
}

// killed notes that the agent was killed and is dead.
func (b *book) killed() {
	fmt.Fprintln(b.pipe, killMark)
}

func (b *book) read(in io.Reader) {
	for r := bufio.NewReader(in); ; {
		text, err := r.ReadBytes('\n')
		if len(text) > 0 {
			_, _ = b.file.Write(text)
			b.take(text)
		}
		if err != nil {
			return
		}
	}
}

// disorder is what no agent may say.
var disorder = regexp.MustCompile(`^(WARNING: DATA RACE|panic: |fatal error: )`)

func (b *book) take(text []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case bytes.HasPrefix(text, []byte(killMark)):
		b.kills = append(b.kills, b.size)
		return
	case disorder.Match(text):
		b.fault("the agent says %s", text)
		return
	case !bytes.Contains(text, []byte(`"appuuid"`)):
		return // of the agent's own log
	}
	begin := b.size
	b.size += int64(len(text))
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var r logjudge.Record
	if err := d.Decode(&r); err != nil {
		b.fault("not one of EVE's lines: %v: %.200q", err, text)
		return
	}
	if event, err := time.Parse(time.RFC3339Nano, r.Event); err != nil || !event.Equal(r.Time) || r.Level != "info" || r.Container == "" {
		b.fault("not what newlogd reads: %.200q", text)
	}
	container, ours := strings.CutSuffix(r.Container, logjudge.Ours)
	of := source{r.App, container}
	if ours {
		b.mark(of, strings.TrimPrefix(r.Msg, "zedkube: "))
		return
	}
	l, ok := parse(r.Msg)
	if !ok {
		b.fault("nobody printed %.200q", text)
		return
	}
	b.lines[of] = append(b.lines[of], telling{line: l, at: r.Time, begin: begin, end: b.size})
}

// parse reads a line of devcluster.Prints.
func parse(text string) (l line, ok bool) {
	f := strings.Fields(text)
	if len(f) < 2 {
		return l, false
	}
	n, failed := strconv.Atoi(f[0])
	at, err := time.Parse(time.RFC3339Nano, f[1])
	return line{n, at}, errors.Join(failed, err) == nil
}

// gapWords are what the agent says of a gap (docs/wire.md, "App log lines").
var (
	gapWords  = regexp.MustCompile(`^lines from (the beginning|\S+) to (\S+) may be missing: .* \(gap \d+ of this container\)$`)
	runsWords = regexp.MustCompile(`, including (\d+) complete runs of the container`)
)

func (b *book) mark(of source, text string) {
	f := gapWords.FindStringSubmatch(text)
	if f == nil {
		b.fault("the agent says of %v: %s", of, text)
		return
	}
	m := mark{text: text}
	var errs [2]error
	if f[1] != "the beginning" {
		m.from, errs[0] = time.Parse(time.RFC3339Nano, f[1])
	}
	m.to, errs[1] = time.Parse(time.RFC3339Nano, f[2])
	if err := errors.Join(errs[:]...); err != nil {
		b.fault("a mark has strange times: %s: %v", text, err)
	}
	if f := runsWords.FindStringSubmatch(text); f != nil {
		m.runs, _ = strconv.Atoi(f[1])
	}
	b.marks[of] = append(b.marks[of], m)
}

func (b *book) fault(format string, args ...any) {
	if len(b.faults) < 20 {
		b.faults = append(b.faults, fmt.Sprintf(format, args...))
	}
}
