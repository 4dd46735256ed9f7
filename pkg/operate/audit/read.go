package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/base/printable"
	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/types"
)

// What is read at most: someone may have put anything there.
const (
	maxFiles = 64      // the newest
	maxFile  = 8 << 20 // bytes of each
	maxLine  = 64 << 10
)

// Problems is what was not as it should be in the lines that were read.
type Problems struct {
	Torn int `json:"torn,omitempty"` // lines that are no operation: a power cut tears the last one
	Lost int `json:"lost,omitempty"` // lines that were never written, as the disk was full
}

// Read returns the operations of a directory in the order in which they began,
// each with the end that it had. A directory that is not there holds none. With
// an error come the operations that could be read anyway. It may be called
// while the agent writes.
func Read(dir string) ([]types.Operation, Problems, error) {
	b := book{at: map[string]int{}}
	files, err := segments(dir)
	errs := []error{err}
	for _, f := range files[max(0, len(files)-maxFiles):] {
		content, err := readSegment(filepath.Join(dir, f.name))
		if errors.Is(err, os.ErrNotExist) { // the oldest one has gone meanwhile
			continue
		}
		errs = append(errs, err)
		b.read(content)
	}
	return b.operations, b.problems, errors.Join(errs...)
}

func readSegment(path string) ([]byte, error) {
	f, _, err := safefile.OpenFile(path, os.O_RDONLY|safefile.NoFollow, 0)
	if err != nil {
		return nil, fmt.Errorf("open audit file: %w", err)
	}
	defer f.Close()
	content, err := safefile.Head(f, maxFile)
	if err != nil {
		return content, fmt.Errorf("read audit file %s: %w", path, err)
	}
	return content, nil
}

type book struct {
	operations []types.Operation
	at         map[string]int // place of an operation, by ID
	problems   Problems
}

// read takes the lines of one file. Of an operation that has several the last
// one counts: each says all that was known.
func (b *book) read(content []byte) {
	for line := range bytes.Lines(content) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		o, lost, ok := parse(line)
		switch {
		case !ok:
			b.problems.Torn++
		case lost > 0:
			b.problems.Lost += lost
		default:
			b.note(o)
		}
	}
}

func (b *book) note(o types.Operation) {
	i, known := b.at[o.ID]
	if !known {
		b.at[o.ID] = len(b.operations)
		b.operations = append(b.operations, o)
		return
	}
	if o.Outcome != types.OperationBegun {
		b.operations[i] = o
	}
}

// parse reads one line: an operation, or how many lines were lost.
func parse(line []byte) (o types.Operation, lost int, ok bool) {
	var v struct {
		types.Operation
		Lost int `json:"lost"`
	}
	if len(line) > maxLine || json.Unmarshal(line, &v) != nil {
		return types.Operation{}, 0, false
	}
	if v.Lost > 0 {
		return types.Operation{}, v.Lost, true
	}
	return v.Operation, 0, v.ID != "" && v.Op != ""
}

// Remarks say what of the trail is missing, a sentence each: the rest is shown all the
// same. err is Read's.
func Remarks(p Problems, err error) (says []string) {
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			says = append(says, "A part of the audit trail cannot be read and is not shown: "+printable.Escape(strings.TrimSpace(line)))
		}
	}
	if p.Torn > 0 {
		says = append(says, fmt.Sprintf("%d lines are invalid and left out; a power failure can truncate the last one.", p.Torn))
	}
	if p.Lost > 0 {
		says = append(says, fmt.Sprintf("%d lines were lost because they could not be written.", p.Lost))
	}
	return says
}

// Filter says which operations are wanted. Its zero value wants all.
type Filter struct {
	Since, Until time.Time // zero for no bound; what is tried again and again counts by its last try
	Ops          []string  // whole names, or first words of them: "delete" for "delete pod" as well
	Components   []string
	By           []string // any of several requesters is enough
	Target       string   // a part of it
	Failed       bool     // only what did not end well
}

// Wants reports whether an operation passes.
func (f Filter) Wants(o types.Operation) bool {
	latest := o.At
	if o.Last.After(latest) {
		latest = o.Last
	}
	switch {
	case !f.Since.IsZero() && latest.Before(f.Since), !f.Until.IsZero() && o.At.After(f.Until):
		return false
	case f.Failed && (o.Outcome == types.OperationOK || o.Outcome == types.OperationBegun):
		return false
	case !strings.Contains(o.Target, f.Target):
		return false
	}
	return anyOf(f.Ops, func(op string) bool { return o.Op == op || strings.HasPrefix(o.Op, op+" ") }) &&
		anyOf(f.Components, func(c string) bool { return o.Component == c }) &&
		anyOf(f.By, func(by string) bool {
			return slices.ContainsFunc(strings.Split(o.By, ","), func(one string) bool { return strings.EqualFold(one, by) })
		})
}

// anyOf reports that one of them is right, or that there are none.
func anyOf(words []string, right func(string) bool) bool {
	return len(words) == 0 || slices.ContainsFunc(words, right)
}

var errTime = errors.New("want a duration such as 90m, 2h or 7d, or a time such as 2026-01-31, 2026-01-31T15:04:05Z or 15:04, in UTC")

// ParseTime reads a time, or how long it is ago.
func ParseTime(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n < 100_000 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly, time.DateTime, "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	if at, err := time.Parse("15:04", text); err == nil {
		y, m, d := now.UTC().Date()
		return time.Date(y, m, d, at.Hour(), at.Minute(), 0, 0, time.UTC), nil
	}
	return time.Time{}, fmt.Errorf("time %q: %w", text, errTime)
}

// Stamp changes whenever a directory has other lines than before.
func Stamp(dir string) string {
	files, err := segments(dir)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, f := range files {
		if info, err := os.Lstat(filepath.Join(dir, f.name)); err == nil {
			fmt.Fprintf(&b, "%s %d %d;", f.name, info.Size(), info.ModTime().UnixNano())
		}
	}
	return b.String()
}
