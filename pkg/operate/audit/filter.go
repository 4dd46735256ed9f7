package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

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
