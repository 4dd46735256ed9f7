//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// done is a run that has ended: a line of the book of runs, so that a soak can be done in parts,
// and one that is interrupted loses the run that it was in.
type done struct {
	Scene  string        `json:"scene"`
	Seed   uint64        `json:"seed"`
	Commit string        `json:"commit"`
	Short  bool          `json:"short,omitempty"`
	Took   time.Duration `json:"took"` // nanoseconds
	Counts
}

// note adds the run to the book.
func (d done) note(book string) error {
	if book == "" {
		return nil
	}
	line, err := json.Marshal(d)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(book, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// open begins the book, or counts what it has.
func (r *report) open(more bool) error {
	if r.book == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(r.book), 0o755); err != nil {
		return err
	}
	if !more {
		return os.WriteFile(r.book, nil, 0o644)
	}
	for _, s := range scenes() { // in their order
		r.row(s)
	}
	content, err := os.ReadFile(r.book)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for line := range bytes.Lines(content) {
		var run done
		if err := json.Unmarshal(line, &run); err != nil {
			return fmt.Errorf("read %s: %w", r.book, err)
		}
		i := slices.IndexFunc(scenes(), func(s Scene) bool { return s.Name == run.Scene })
		if i < 0 {
			return fmt.Errorf("read %s: there is no scene %q any more", r.book, run.Scene)
		}
		r.earlier += run.Took
		r.count(scenes()[i], run)
	}
	return nil
}
