package appscmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/zedkube/zedkube/pkg/base/printable"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
)

// The logs that are files of EVE's kube container (docs/wire.md, "Files").
const (
	logK3s     = "k3s"
	logUpgrade = "upgrade-component"
)

const (
	fileLines = 1000    // of a file, if --tail does not say otherwise
	fileBytes = 4 << 20 // held of it at once; EVE rotates k3s.log at 5 MiB
)

// fileOf is the file of a log, "" where it is none.
func fileOf(name string) string {
	switch name {
	case logK3s, logUpgrade:
		return filepath.Join("/persist/kubelog", name+".log")
	}
	return ""
}

// printFile prints the end of such a log, and with --follow what comes.
func (l logsOptions) printFile(ctx context.Context, p device.Paths, name string, out *terminal.Outputs, t terminal.Terminal) error {
	if l.container != "" || l.previous || !l.since.IsZero() {
		return terminal.ExitWith(terminal.ExitUsage, fmt.Errorf("%s is a file: it has no containers and no previous instance, and its lines begin with times of several forms; use --tail", name))
	}
	lines := int64(fileLines)
	if l.tail >= 0 {
		lines = l.tail
	}
	f, err := openLog(p.In(fileOf(name)))
	if err != nil {
		return fmt.Errorf("there is no log of %s on this device: %w", name, err)
	}
	defer func() { f.in.Close() }()
	first, err := f.end(int(min(lines, fileBytes)))
	if err != nil {
		return err
	}
	if !l.follow {
		first = append(first, f.part...)
	}
	look := func(context.Context) terminal.View {
		v := terminal.View{Ended: !l.follow}
		text := first
		if first = nil; text == nil {
			text, v.Err = f.more()
			v.Ended = v.Err != nil
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(line, "\n")
			e := terminal.Event{Text: line, Data: fileLine{Log: name, Text: line}}
			if l.escape {
				e.Text = printable.Escape(line)
			}
			v.Events = append(v.Events, e)
		}
		return v
	}
	return out.Follow(ctx, t, terminal.Watch{Look: look, Every: terminal.WatchEvery, Events: true})
}

// fileLine is a line of such a log as a document.
type fileLine struct{ Log, Text string }

// logFile is a log that others write, and that is truncated or replaced at times.
type logFile struct {
	path string
	in   *os.File
	at   int64  // read up to here
	part []byte // of a line that has not ended
}

func openLog(path string) (*logFile, error) {
	in, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	info, err := in.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New(path + " is not a regular file")
	}
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return &logFile{path: path, in: in}, nil
}

// end is the last lines of the log, at most so many, if need be of the file before it.
func (f *logFile) end(lines int) ([]byte, error) {
	text, err := f.rest()
	if err != nil {
		return nil, err
	}
	if bytes.Count(text, []byte("\n")) < lines {
		if before, err := openLog(f.former()); err == nil {
			former, _ := before.rest() // what cannot be read was another log
			text = append(former, text...)
			before.in.Close()
		}
	}
	from := len(text)
	for n := lines; n > 0 && from > 0; n-- {
		from = bytes.LastIndexByte(text[:from-1], '\n') + 1
	}
	return append([]byte{}, text[from:]...), nil // not nil, which would be nothing read yet
}

// former is the file that the log was rotated to last: EVE's scripts call it .1, update-component
// puts the time in its name.
func (f *logFile) former() string {
	named, _ := filepath.Glob(strings.TrimSuffix(f.path, ".log") + "-[0-9]*.log")
	if len(named) == 0 {
		return f.path + ".1"
	}
	return slices.Max(named)
}

// more is what was written since, also to a file that has taken its place.
func (f *logFile) more() ([]byte, error) {
	info, err := f.in.Stat()
	if err == nil && info.Size() < f.at { // truncated
		f.at, f.part = 0, nil
	}
	text, rerr := f.rest()
	if err = cmp.Or(err, rerr); err != nil {
		return nil, err
	}
	if now, err := os.Stat(f.path); err != nil || os.SameFile(now, info) {
		return text, nil // one that is gone is being replaced
	}
	next, err := openLog(f.path)
	if err != nil {
		return text, nil //nolint:nilerr // it is looked at again
	}
	f.in.Close()
	if len(f.part) > 0 {
		text = append(append(text, f.part...), '\n')
	}
	*f = *next
	rest, err := f.rest()
	return append(text, rest...), err
}

// rest is what comes after at, in whole lines; where that is longer than fileBytes, its end.
func (f *logFile) rest() ([]byte, error) {
	info, err := f.in.Stat()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.path, err)
	}
	from := max(f.at, info.Size()-fileBytes)
	text, err := io.ReadAll(io.NewSectionReader(f.in, from, fileBytes))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.path, err)
	}
	jumped := from > f.at // into the middle of a line
	f.at = from + int64(len(text))
	if jumped {
		text, f.part = text[bytes.IndexByte(text, '\n')+1:], nil
	}
	text = append(f.part, text...)
	f.part = nil
	if end := bytes.LastIndexByte(text, '\n') + 1; len(text)-end < printedLine {
		f.part, text = bytes.Clone(text[end:]), text[:end]
	}
	return text, nil
}
