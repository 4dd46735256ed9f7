package terminal

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

// RunAction runs what a command does. What it says is for people as it comes; for
// programs it is one document at the end, with how it ended.
func (o *Outputs) RunAction(c *cobra.Command, do func(w io.Writer) error) error {
	if err := o.Parse(); err != nil {
		return err
	}
	if o.People() {
		return do(c.OutOrStdout())
	}
	var said bytes.Buffer
	err := do(&said)
	r := outcome{At: time.Now().UTC(), Command: c.CommandPath(), Said: []string{}, ExitCode: ExitCode(err)}
	for line := range strings.Lines(said.String()) {
		r.Said = append(r.Said, strings.TrimRight(line, "\n"))
	}
	if err != nil {
		r.Error = err.Error()
	}
	return errors.Join(err, o.Encode(c.OutOrStdout(), r, "  "))
}

// longestLine bounds what is held of a line that has no end, in bytes.
const longestLine = 1 << 20

// lineWriter turns lines into a document each.
type lineWriter struct {
	out  *Outputs
	to   io.Writer
	of   func(line string) any
	rest []byte
}

// Lines is where a command writes its lines: w for people, else a document for
// each of them.
func (o *Outputs) Lines(w io.Writer, of func(line string) any) io.Writer {
	if o.People() {
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
		if err := w.out.Encode(w.to, w.of(line), ""); err != nil {
			return 0, err
		}
	}
}

// saidLine is a line with its time, as data.
type saidLine struct {
	At   time.Time `json:",omitzero"`
	Text string
}

// Stamped takes a line apart that begins with a time.
func Stamped(line string) any {
	if head, text, ok := strings.Cut(line, "Z "); ok {
		if at, err := time.Parse("2006-01-02 15:04:05", head); err == nil {
			return saidLine{at, text}
		}
	}
	return saidLine{Text: line}
}

// Completed gives the values of a flag to the shell.
func Completed(c *cobra.Command, flag string, values ...string) {
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// CompleteArgs gives what stands at each place to the shell.
func CompleteArgs(of ...func(ctx context.Context) []string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(of) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return of[len(args)](c.Context()), cobra.ShellCompDirectiveNoFileComp
	}
}
