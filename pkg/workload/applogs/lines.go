package applogs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/zedkube/zedkube/types"
)

const bufferSize = 32 << 10

// piece is a line of a log, or a part of one that is too long to be held.
type piece struct {
	at          time.Time
	stamp       string // the same, as it was written
	text        []byte // valid until the next piece
	first, last bool   // of its line; a line that is one piece is both
}

type lines struct {
	r        *bufio.Reader
	max      int    // bytes of a piece
	held     []byte // of the present line, not handed out yet
	spare    []byte // what was handed out last
	inside   bool   // the beginning of the present line is handed out
	at       time.Time
	stamp    string
	reported bool   // report is something, maybe an empty line
	report   string // what first came without a time: the kubelet's own words, or the end of a line that begins before
}

func newLines(r io.Reader, most int) *lines {
	return &lines{r: bufio.NewReaderSize(r, bufferSize), max: most}
}

// next returns the next piece, or what ended the log. A line without an end,
// which is the last one, is not handed out: unended returns it.
func (l *lines) next() (piece, error) {
	for {
		part, err := l.r.ReadSlice('\n')
		ended := err == nil
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			l.held = append(l.held, part...)
			return piece{}, err
		}
		if ended && len(l.held) == 0 {
			if p, ok := l.cut(part[:len(part)-1], true); ok {
				return p, nil
			}
			continue
		}
		l.held = append(l.held, part...)
		if !ended && len(l.held) < l.max {
			continue
		}
		text, whole := l.held, len(l.held)-1
		if !ended {
			whole = completeRunes(text)
		}
		l.held, l.spare = l.spare[:0], text
		if !ended {
			l.held = append(l.held, text[whole:]...)
		}
		text = text[:whole]
		if p, ok := l.cut(text, ended); ok {
			return p, nil
		}
	}
}

// unterminated is the line, or what is left of it, that had no end when the log
// ended; it is the last piece of its line if nothing more is to come.
func (l *lines) unterminated() (piece, bool) {
	if len(l.held) == 0 && !l.inside {
		return piece{}, false
	}
	text := l.held
	l.held = nil
	return l.cut(text, true)
}

// cut makes a piece of text; it reports false for what is no line of the log.
func (l *lines) cut(text []byte, last bool) (piece, bool) {
	p := piece{first: !l.inside, last: last}
	if p.first {
		stamp, rest, _ := bytes.Cut(text, []byte{' '})
		at, err := time.Parse(time.RFC3339Nano, string(stamp))
		if err != nil {
			if !l.reported {
				l.reported, l.report = true, string(text[:min(len(text), 200)])
			}
			return piece{}, false
		}
		l.at, l.stamp, text = at.UTC(), string(stamp), rest
	}
	l.inside = !last
	p.at, p.stamp, p.text = l.at, l.stamp, text
	return p, true
}

// completeRunes is how many bytes of text there are without the beginning of a
// character at its end, whose rest is still to come.
func completeRunes(text []byte) int {
	for i := 1; i < utf8.UTFMax && i < len(text); i++ {
		if b := text[len(text)-i]; utf8.RuneStart(b) {
			if !utf8.FullRune(text[len(text)-i:]) {
				return len(text) - i
			}
			break
		}
	}
	return len(text)
}

const rotated = "the kubelet no longer has them"

var (
	// errNotKept is that there are no rotated files available.
	errNotKept = errors.New("no rotated files")
	// errRestarted is that the newest file is of another run of the container.
	errRestarted = errors.New("the container was restarted")
)

type oldLog struct {
	body  io.Closer
	in    *lines
	first piece // of it; valid until in is read on
}

// fetch hands on what is missing before p: p is the first line of the newest
// file, and what was rotated away since the last known line stands in files
// before. Its error wraps errNotKept where nothing of that can be obtained, or
// errRestarted; with another one it may be tried again.
func (l *look) fetch(ctx context.Context, p piece) error {
	// The runtime may still write to the file before.
	if err := wait(ctx, min(settled, settled-time.Since(p.at))); err != nil {
		return err
	}
	old, err := l.rotatedSince(ctx, p.at)
	defer func() {
		for _, o := range old {
			_ = o.body.Close()
		}
	}()
	if err != nil {
		return err
	}
	l.old, l.seek = true, newSeeker(l.state.position)
	l.seek.found = l.seek.found || !l.resume
	defer func() {
		l.old, l.use, l.skip, l.begun = false, false, 0, false
		l.idle.Reset(l.patience())
	}()
	for _, o := range old {
		if err := l.replay(ctx, o); err != nil {
			return err
		}
	}
	if !l.seek.found && l.seek.n == 0 {
		l.gap(p, rotated)
	}
	l.seek.found = true
	return nil
}

// earlier hands on what was rotated away before this log was read for the first time. p is
// the first line of the newest file. What cannot be read is tried again once, and then gets its mark.
func (l *look) earlier(ctx context.Context, p piece) error {
	files, err := l.files(ctx, l.reading)
	mine := func(f types.LogFile) bool { return f.Run == l.reading.run && f.Rotated }
	if err == nil && !l.overwritten(files) && slices.ContainsFunc(files, mine) {
		err = l.fetch(ctx, p)
	}
	again := !l.retried
	l.retried = false
	switch {
	case errors.Is(err, types.ErrNoLog), errors.Is(err, errRestarted): // there are none, or they are of another run
		return nil
	case errors.Is(err, errNotKept) && again:
		l.retried = true
	case errors.Is(err, errNotKept):
		l.log.WithField("app", l.app).WithField("pod", l.pod.Key()).WithError(err).Warn("log lines from before the first read may be missing")
		l.gap(p, rotated)
		return nil
	}
	return err
}

// rotatedSince opens the rotated files from the one that holds the last known
// line, or from the first where none is known, to the one before the newest, or as many of them as there are. The newest
// begins at that time. They are to be closed in any case.
func (l *look) rotatedSince(ctx context.Context, newest time.Time) (old []oldLog, err error) {
	files, err := l.files(ctx, l.reading)
	if err != nil {
		return nil, err
	}
	if l.overwritten(files) {
		return nil, errRestarted
	}
	for _, f := range slices.Backward(files) {
		if f.Run != l.reading.run || !f.Rotated {
			continue
		}
		l.idle.Reset(doubting)
		body, err := l.kube.LogFile(ctx, l.node, l.pod, l.container.Name, f)
		if err != nil {
			return old, notKept(err)
		}
		o := oldLog{body: body, in: newLines(body, l.records.piece())}
		old = slices.Insert(old, 0, o)
		if old[0].first, err = o.in.next(); err != nil {
			return old, notKept(fmt.Errorf("read %s: %w", f.Name, err))
		}
		switch at := old[0].first.at; {
		case at.Equal(newest): // it was the newest one until now, and so were those after it
			for _, o := range old {
				_ = o.body.Close()
			}
			old = nil
		case l.resume && !at.After(l.state.At) && !l.state.ahead(time.Now()):
			return old, nil
		}
	}
	if len(old) == 0 {
		return nil, notKept(types.ErrNoLog)
	}
	return old, nil
}

// files are those that the kubelet keeps of the container, as they were written.
func (t *follower) files(ctx context.Context, r reading) ([]types.LogFile, error) {
	ctx, cancel := context.WithTimeout(ctx, doubting)
	defer cancel()
	files, err := t.kube.LogFiles(ctx, r.node, r.pod, r.container.Name)
	if err != nil {
		return nil, notKept(err)
	}
	return files, nil
}

// overwritten reports that the newest file is not of the run that r takes for
// the current one: the kubelet knows of a restart sooner than the row.
func (r reading) overwritten(files []types.LogFile) bool {
	return !r.previous && len(files) > 0 && files[len(files)-1].Run > r.run
}

func notKept(err error) error { return fmt.Errorf("%w: %w", errNotKept, err) }

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

func (l *look) replay(ctx context.Context, o oldLog) error {
	for p, err := o.first, error(nil); ; p, err = o.in.next() {
		if err != nil {
			half, ok := o.in.unterminated()
			if !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || ctx.Err() != nil {
				return fmt.Errorf("read a rotated log of pod %s: %w", l.pod.Key(), err)
			}
			if !ok {
				return l.flush(ctx)
			}
			return l.replayed(ctx, half)
		}
		if err := l.replayed(ctx, p); err != nil {
			return err
		}
	}
}

func (l *look) replayed(ctx context.Context, p piece) error {
	if o, stop := l.hand(ctx, p); stop {
		return o.err
	}
	if len(l.batch) >= batchSize {
		return l.flush(ctx)
	}
	return nil
}

// missed is for a line, or an end, before which the last known line should have
// come. It reports true where reading on is no use.
func (l *look) missed(ctx context.Context, p piece) (outcome, bool) {
	err := l.fetch(ctx, p)
	switch {
	case err == nil:
		return outcome{}, false
	case errors.Is(err, errRestarted), errors.Is(err, errNotKept) && !l.sure:
		return outcome{missing: true}, true
	case !errors.Is(err, errNotKept):
		return outcome{news: l.news, err: err}, true
	}
	l.log.WithField("app", l.app).WithField("pod", l.pod.Key()).WithError(err).Warn("log lines were lost")
	l.gap(p, rotated)
	return outcome{}, false
}

// unfound is for the end of a newest file that does not have the last known line,
// nor any after it: it was rotated away, and nothing was written since.
func (l *look) unfound(ctx context.Context) outcome {
	if !l.unseen() {
		return outcome{}
	}
	err := l.fetch(ctx, piece{at: time.Now().UTC()})
	switch {
	case errors.Is(err, errNotKept):
		if errors.Is(err, types.ErrNoLog) {
			l.searched = l.state.position
		}
		return outcome{} // the next line tells
	case errors.Is(err, errRestarted):
		return outcome{missing: true}
	case err == nil:
		l.searched = l.state.position
	}
	return outcome{news: l.news, err: err}
}

// unseen reports that the last known line has not come, and that the rotated
// files were not looked into for it.
func (l *look) unseen() bool {
	return l.resume && !l.seek.found && l.state.N > 0 && (l.searched != l.state.position || l.misjudged())
}

// misjudged reports that lines of the newest file were taken for known although the last
// known line is not there: it was rotated away, and the clock was set back since.
func (l *look) misjudged() bool {
	return l.resume && !l.old && !l.seek.found && l.skipped && l.seek.n == 0 && l.seek.from.N > 0
}
