// Package logjudge tells whether each line that was written to a log came out
// of the agent exactly once. Who writes writes lines made by Line; the judge
// reads the agent's output, EVE's app log lines.
package logjudge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zedkube/zedkube/pkg/base/printable"
)

// The marks of EVE's app log lines that are split.
const (
	continued = "[continued] "
	continues = " [continues]"
)

// Ours follows the container's name in records of the agent's own words.
const Ours = ".zedkube"

// Line is the nth line of a writer, from 1, without an end; padding makes it
// as much longer. Its checksum is that of what comes out, where what a terminal acts
// upon is an escape.
func Line(writer string, n int, padding string) string {
	text := fmt.Sprintf("judged %s %d %s", writer, n, padding)
	return fmt.Sprintf("%s #%08x", text, crc32.ChecksumIEEE([]byte(printable.Escape(text))))
}

// Record is one of EVE's app log lines.
type Record struct {
	App       string    `json:"appuuid"`
	Container string    `json:"containername"`
	Event     string    `json:"eventtime"`
	Level     string    `json:"level"`
	Msg       string    `json:"msg"`
	Time      time.Time `json:"time"`
}

// Judge is an io.Writer for what the agent writes. Its zero value is ready.
type Judge struct {
	mu     sync.Mutex
	half   []byte
	long   map[string]string // by app and container: the beginning of a split line
	came   map[string][]int  // by writer: numbers as they came
	marks  []Record
	faults []string
}

// Write implements io.Writer; it never fails.
func (j *Judge) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.half = append(j.half, p...)
	for {
		i := bytes.IndexByte(j.half, '\n')
		if i < 0 {
			return len(p), nil
		}
		j.take(j.half[:i])
		j.half = append([]byte(nil), j.half[i+1:]...)
	}
}

func (j *Judge) take(line []byte) {
	var r Record
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		if !bytes.Contains(line, []byte(`"appuuid"`)) {
			return // the agent's own log
		}
		j.fault("not one of EVE's lines: %v: %.200s", err, line)
		return
	}
	if r.App == "" {
		return
	}
	if _, err := time.Parse(time.RFC3339Nano, r.Event); err != nil {
		j.fault("eventtime: %v", err)
	}
	if strings.HasSuffix(r.Container, Ours) {
		j.marks = append(j.marks, r)
		return
	}
	if j.long == nil {
		j.long, j.came = map[string]string{}, map[string][]int{}
	}
	key := r.App + "/" + r.Container
	text, goesOn := strings.CutSuffix(r.Msg, continues)
	text, isRest := strings.CutPrefix(text, continued)
	if held := j.long[key]; isRest != (held != "") {
		j.fault("%s: a part of a line is missing near %.100q", key, text)
	} else {
		text = held + text
	}
	delete(j.long, key)
	if goesOn {
		j.long[key] = text
		return
	}
	j.count(text)
}

func (j *Judge) count(text string) {
	body, sum, _ := strings.Cut(text, " #")
	f := strings.SplitN(body, " ", 4)
	if len(f) != 4 || f[0] != "judged" {
		return // somebody else's line
	}
	n, err := strconv.Atoi(f[2])
	if err != nil || sum != fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(body))) {
		j.fault("line is damaged: %.200q", text)
		return
	}
	j.came[f[1]] = append(j.came[f[1]], n)
}

func (j *Judge) fault(format string, args ...any) {
	if len(j.faults) < 20 {
		j.faults = append(j.faults, fmt.Sprintf(format, args...))
	}
}

// Came is how many lines of a writer have come, each counted once.
func (j *Judge) Came(writer string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	seen := map[int]bool{}
	for _, n := range j.came[writer] {
		seen[n] = true
	}
	return len(seen)
}

// Marks are the agent's own words among the lines, in the order they came.
func (j *Judge) Marks() []Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]Record(nil), j.marks...)
}

// Verdict is nil when the lines first to last of a writer came exactly once and
// in order, and nothing that came was damaged.
func (j *Judge) Verdict(writer string, first, last int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var errs []error
	for _, f := range j.faults {
		errs = append(errs, errors.New(f))
	}
	times := map[int]int{}
	before := 0
	for _, n := range j.came[writer] {
		if times[n]++; n < before && times[n] == 1 {
			errs = append(errs, fmt.Errorf("%s: line %d came after %d", writer, n, before))
		}
		before = n
	}
	for n := first; n <= last && len(errs) < 20; n++ {
		if times[n] != 1 {
			errs = append(errs, fmt.Errorf("%s: line %d came %d times", writer, n, times[n]))
		}
	}
	return errors.Join(errs...)
}
