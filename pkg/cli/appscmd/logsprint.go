package appscmd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/base/printable"
)

// printedLine is how much of a line is held, in bytes: a longer one is printed in
// parts, as in EVE's log.
const printedLine = 256 << 10

// What tells the parts of a line.
const (
	continuedMark = "[continued] "
	continuesMark = " [continues]"
)

// printLines hands on the lines of a log, each with a head. What a guest wrote
// may be anything: escape is for a terminal, which would obey some of it.
func printLines(ctx context.Context, log io.Reader, head string, escape bool, lines chan<- []byte) error {
	in := bufio.NewReaderSize(log, printedLine)
	begun := false
	for {
		part, err := in.ReadSlice('\n')
		more := errors.Is(err, bufio.ErrBufferFull)
		if len(part) > 0 {
			line := []byte(head)
			if begun {
				line = append(line, continuedMark...)
			}
			if escape {
				text, end := bytes.CutSuffix(part, []byte("\n"))
				line = append(line, printable.Escape(string(text))...)
				part = part[:0]
				if end {
					part = []byte("\n")
				}
			}
			line = append(line, part...)
			switch {
			case more:
				line = append(line, continuesMark+"\n"...)
			case err != nil: // the last one may have no end
				line = append(line, '\n')
			}
			select {
			case lines <- line:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		switch begun = more; {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !more:
			return err
		}
	}
}

// loggedLine is a line of an application's log, as data.
type loggedLine struct {
	At        time.Time `json:",omitzero"`
	Pod       string
	Container string
	Text      string
	Continued bool `json:",omitzero"` // it goes on with the line before
	Continues bool `json:",omitzero"` // and the next one goes on with it
}

// logLineOf takes a printed line of a log apart: pod/container, time, text.
func logLineOf(line string) any {
	head, text, _ := strings.Cut(line, " ")
	l := loggedLine{}
	l.Pod, l.Container, _ = strings.Cut(head, "/")
	text, l.Continued = strings.CutPrefix(text, continuedMark)
	text, l.Continues = strings.CutSuffix(text, continuesMark)
	if at, rest, ok := strings.Cut(text, " "); ok && !l.Continued {
		if t, err := time.Parse(time.RFC3339Nano, at); err == nil {
			l.At, text = t, rest
		}
	}
	l.Text = text
	return l
}
