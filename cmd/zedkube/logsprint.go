package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"

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
