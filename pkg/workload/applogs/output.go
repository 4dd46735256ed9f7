package applogs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/failpoint"
	"github.com/zedkube/zedkube/pkg/base/keptfile"
)

const (
	// batchSize is how much is written at once, but for a record that is longer:
	// what a pipe takes whole or not at all, from a process that dies, too, and
	// does not mix with what others write (PIPE_BUF of Linux).
	batchSize = 4096
	// keepEvery is how old the file that outlives a boot may be: after a power cut, or a
	// reboot that does not wait for the agent, that much comes twice. Each time is a sync: every 5 s it
	// would be 17,000 of them a day.
	keepEvery = time.Minute
	// patience is how long a stop waits for an output that is stuck.
	patience = 2 * time.Second
)

// delivery is records to write, and where the log is once they are written.
type delivery struct {
	slot  int
	text  []byte
	state checkpoint
	done  chan<- error // has room for one
}

// output writes what the readers bring and notes at once that it is written. A
// process that dies between the two writes this one batch again.
type output struct {
	log     logrus.FieldLogger
	w       io.Writer
	journal *os.File // of slots; nil where it could not be opened
	kept    keptfile.File

	in    chan delivery
	slots []checkpoint
	told  string // what was last wrong with the journal
}

// note puts slots into the journal.
func (o *output) note(slots ...int) {
	for _, i := range slots {
		slot, err := encodeSlot(o.slots[i])
		if err == nil && o.journal != nil {
			err = failpoint.Do("write to", o.journal.Name(), func() error { _, err := o.journal.WriteAt(slot, int64(i)*slotSize); return err })
			if err != nil {
				err = fmt.Errorf("write journal of app logs: %w", err)
			}
		}
		o.report(err, &o.told, "app log lines may be repeated after a restart")
	}
}

// run serves deliveries until in is closed; meanwhile it has the slots kept.
func (o *output) run() {
	jobs := make(chan string, 1)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		o.keep(jobs)
	}()
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	changed := true
	for open := true; open; {
		select {
		case d, ok := <-o.in:
			if open = ok; ok {
				d.done <- o.deliver(d)
				changed = true
			}
		case <-tick.C:
			if changed {
				select {
				case jobs <- keptText(o.slots):
					changed = false
				default: // the disk is slow
				}
			}
		}
	}
	_ = o.journal.Close() // nil is none
	wait := time.NewTimer(patience)
	defer wait.Stop()
	select {
	case jobs <- keptText(o.slots):
	case <-wait.C:
	}
	close(jobs)
	select {
	case <-stopped:
	case <-wait.C:
		o.log.Warn("the positions in the app logs could not be saved: the disk does not answer")
	}
}

// deliver writes and notes. What fails to be noted was written anyway.
func (o *output) deliver(d delivery) error {
	if len(d.text) > 0 {
		if _, err := o.w.Write(d.text); err != nil {
			return err
		}
	}
	o.slots[d.slot] = d.state
	o.note(d.slot)
	return nil
}

// report logs an error once; told is the text of the last one, "" for none.
func (o *output) report(err error, told *string, consequence string) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != *told && err != nil {
		o.log.WithError(err).Error(consequence)
	}
	*told = text
}

func (o *output) keep(jobs <-chan string) {
	told := ""
	for content := range jobs {
		_, err := o.kept.Keep(keptfile.Desired{Do: keptfile.Write, Content: content})
		o.report(err, &told, "app log lines may be repeated after a reboot")
	}
}

// record puts a piece into the batch, as one record or as several.
func (l *look) record(ctx context.Context, p piece) error {
	if skip := min(l.skip, int64(len(p.text))); skip > 0 {
		l.skip -= skip
		p.text = p.text[skip:]
		if len(p.text) == 0 && !p.last {
			return nil
		}
	}
	if l.begun {
		l.news = true
	}
	if l.state.Part > 0 { // a line that is long enough is too much by itself
		l.limited(p)
	}
	if l.over {
		l.drop(p)
		return nil
	}
	for offset := 0; ; {
		start := len(l.batch)
		batch, n := l.records.append(l.batch, p, offset, l.begun)
		if start > 0 && len(batch) > batchSize {
			if err := l.flush(ctx); err != nil {
				return err
			}
			batch, n = l.records.append(l.batch[:0], p, offset, l.begun)
		}
		l.batch, l.begun = batch, true
		offset += n
		l.state.Part += int64(n)
		whole := offset >= len(p.text)
		if whole && p.last {
			l.state.Part = 0
		}
		l.noted = l.state
		if whole {
			return nil
		}
	}
}

// limited decides whether p, and the line that it begins, may be handed on. Who writes
// too much for long is left out until half of what may be written at once has
// been saved up: one mark tells of many lines.
func (l *look) limited(p piece) {
	now, was := time.Now(), l.over && !p.first
	l.over = false
	switch {
	case l.state.Dropped.Lines > 0 && l.limit.TokensAt(now) < float64(l.limit.Burst()/2):
		l.over = true
	case !l.limit.AllowN(now, min(len(p.text)+1, l.limit.Burst())):
		l.over = true
	}
	if l.over {
		if l.state.Dropped.Lines == 0 {
			l.state.Dropped.From = p.at
		}
		if !was {
			l.state.Dropped.Lines++
		}
		return
	}
	if l.state.Dropped.Lines > 0 {
		l.announce(p.at)
	}
}

func (l *look) drop(p piece) {
	l.state.Dropped.Bytes += len(p.text)
	l.state.Part += int64(len(p.text))
	if p.last {
		l.state.Part = 0
	}
	l.begun = true
	l.noted = l.state
}

func (l *look) announce(at time.Time) {
	d := l.state.Dropped
	l.state.Dropped = dropped{}
	l.mark(at, fmt.Sprintf("%d lines (%d bytes) from %s on are left out: the application writes more than %d bytes per second",
		d.Lines, d.Bytes, d.From.Format(time.RFC3339Nano), int64(l.limit.Limit())))
}

// gap tells that lines may be missing before p.
func (l *look) gap(p piece, why string) {
	l.state.Gaps++
	l.mark(p.at, l.state.gap(p.at, why))
}

// gap are the words for lines that may be missing up to a time.
func (s checkpoint) gap(to time.Time, why string) string {
	from := "the beginning"
	if !s.At.IsZero() {
		from = s.At.Format(time.RFC3339Nano)
	}
	return fmt.Sprintf("lines from %s to %s may be missing: %s (gap %d of this container)", from, to.Format(time.RFC3339Nano), why, s.Gaps)
}

// mark puts words of our own into the batch.
func (l *look) mark(at time.Time, text string) {
	l.batch = l.records.mark(l.batch, at, text)
	l.noted = l.state
}

func (w writer) mark(dst []byte, at time.Time, text string) []byte {
	p := piece{at: at, stamp: at.Format(time.RFC3339Nano), text: []byte("zedkube: " + text), first: true, last: true}
	w.head = head(w.app, w.container+ours)
	dst, _ = w.append(dst, p, 0, false)
	return dst
}

var errStuck = errors.New("write app logs: the output does not accept them")

// flush has the batch written, and returns when it is. It waits as long as the
// output takes: meanwhile the kubelet keeps what comes.
func (l *look) flush(ctx context.Context) error {
	if len(l.batch) == 0 && l.noted == l.written {
		return nil
	}
	done := make(chan error, 1)
	select {
	case l.out <- delivery{slot: l.slot, text: l.batch, state: l.noted, done: done}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("write app logs: %w", err)
		}
	case <-l.giveUp:
		return errStuck
	}
	l.written, l.batch = l.noted, l.batch[:0]
	return nil
}
