package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// outcome is what a command that does something tells programs.
type outcome struct {
	At       time.Time
	Command  string
	Said     []string // what people are told, a line each
	Error    string   // "" for none
	ExitCode int
}

// doing runs what a command does. What it says is for people as it comes; for
// programs it is one document at the end, with how it ended.
func (o *outputs) doing(c *cobra.Command, do func(w io.Writer) error) error {
	if err := o.parse(); err != nil {
		return err
	}
	if o.people() {
		return do(c.OutOrStdout())
	}
	var said bytes.Buffer
	err := do(&said)
	r := outcome{At: time.Now().UTC(), Command: c.CommandPath(), Said: []string{}, ExitCode: exitCode(err)}
	for line := range strings.Lines(said.String()) {
		r.Said = append(r.Said, strings.TrimRight(line, "\n"))
	}
	if err != nil {
		r.Error = err.Error()
	}
	return errors.Join(err, o.encode(c.OutOrStdout(), r, "  "))
}

// longestLine bounds what is held of a line that has no end, in bytes.
const longestLine = 1 << 20

// lineWriter turns lines into a document each.
type lineWriter struct {
	out  *outputs
	to   io.Writer
	of   func(line string) any
	rest []byte
}

// lines is where a command writes its lines: w for people, else a document for
// each of them.
func (o *outputs) lines(w io.Writer, of func(line string) any) io.Writer {
	if o.people() {
		return w
	}
	return &lineWriter{out: o, to: w, of: of}
}

// Write implements io.Writer.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		i := bytes.IndexByte(w.rest, '\n')
		if i < 0 && len(w.rest) < longestLine {
			return len(p), nil
		}
		end := i + 1
		if i < 0 {
			i, end = len(w.rest), len(w.rest)
		}
		line := string(w.rest[:i])
		w.rest = w.rest[end:]
		if err := w.out.encode(w.to, w.of(line), ""); err != nil {
			return 0, err
		}
	}
}

// saidLine is a line with its time, as data.
type saidLine struct {
	At   time.Time `json:",omitzero"`
	Text string
}

// stamped takes a line apart that begins with a time.
func stamped(line string) any {
	if head, text, ok := strings.Cut(line, "Z "); ok {
		if at, err := time.Parse("2006-01-02 15:04:05", head); err == nil {
			return saidLine{at, text}
		}
	}
	return saidLine{Text: line}
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

// completed gives the values of a flag to the shell.
func completed(c *cobra.Command, flag string, values ...string) {
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// completeArgs gives what stands at each place to the shell.
func completeArgs(of ...func(ctx context.Context) []string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(of) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return of[len(args)](c.Context()), cobra.ShellCompDirectiveNoFileComp
	}
}
