package applogs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/time/rate"

	"github.com/zedkube/zedkube/types"
)

const (
	// minPause and maxPause are between tries to read a log that cannot be obtained.
	minPause = time.Second
	maxPause = 30 * time.Second
	// settled is how long the last known line may be missing before its log is
	// taken for rotated: the kubelet knows of a new instance sooner than we do.
	settled = 2 * time.Second
	// lasting is how long a stream lasts of a kubelet that does not end it at once:
	// one that does is asked less and less often, whatever it brings.
	lasting = time.Minute
	// quiet is how long a log may be silent before it is asked for again: a
	// stream can be dead without anyone having said so.
	quiet = 10 * time.Minute
	// oneMebibyte is a tenth of what a kubelet keeps in one file by default.
	oneMebibyte = 1 << 20
	// turn is how often it is looked whether a stream still serves its end.
	turn = 15 * time.Second
	// minPoll and maxPoll are between two reads of a log that has no stream: some two
	// in a minute, which leaves room for a third request when it is rotated.
	minPoll = 28 * time.Second
	maxPoll = 31 * time.Second
	// heavy is what a log without a stream wrote between two reads, in bytes, when
	// it needs one: a kubelet may rotate it before the next read. light is what a
	// stream brings in a turn when another log needs it more.
	heavy = 128 << 10
	light = 16 << 10
)

// follower reads the log of one container, one instance after the other.
type follower struct {
	log       logrus.FieldLogger
	kube      Kube
	readSlots *readSlots
	limit     *rate.Limiter // of the application
	records   writer
	slot      int

	in       chan want // the newest one only
	out      chan<- delivery
	stop     context.CancelFunc
	finished chan struct{}
	giveUp   <-chan struct{} // closed when an output that is stuck is not waited for any more
	told     string          // the last trouble
	pause    time.Duration
	reread   time.Duration // the pause before restart, none at first: a kubelet's times may never make sense
	sure     bool          // the next look believes that the last known line is gone
	restart  bool          // the next look takes no line for known, whatever the times say
	urgent   bool          // it has no stream, and writes much
	yields   bool          // the next look takes no stream
	broken   bool          // the last look did not see the end
	retried  bool          // the files of before the first read could not be read, and are tried again
	searched position      // up to which rotated files were read to their end, where nothing came after them
	want     want
	written  checkpoint // what is out
}

func (t *follower) run(ctx context.Context) {
	defer close(t.finished)
	defer t.press(false)
	t.pause = minPause
	for ctx.Err() == nil {
		if t.want.off {
			if !t.rest(ctx) {
				return
			}
			continue
		}
		if t.written.Off {
			t.written = t.written.from(t.want, time.Now())
		}
		r, ok := next(t.want, t.written)
		if !ok {
			if t.want.gone || !t.await(ctx, quiet) {
				return
			}
			continue
		}
		o := t.watch(ctx, r)
		if ctx.Err() != nil || t.want.gone && t.leave(ctx, o) {
			return
		}
		if !t.settle(ctx, r, o) {
			return
		}
	}
}

// settle takes in what came of a look, and waits until the next one is due. It
// reports false when ctx is done.
func (t *follower) settle(ctx context.Context, r reading, o outcome) bool {
	again := t.restart
	t.sure, t.broken, t.restart = false, o.err != nil, o.restart
	if o.over || o.news && !o.brief {
		t.pause = minPause
	}
	if o.news && !again {
		t.reread = 0
	}
	t.tell(o.err)
	t.press(o.polled && o.taken >= heavy)
	switch {
	case o.over, o.cut:
		return true
	case o.missing: // what the row says of the container may be too old
		return t.lastLine(ctx, r, again)
	case o.restart:
		d := t.reread
		t.reread = min(max(minPause, 2*d), maxPause)
		return t.await(ctx, d)
	case o.err == nil && o.news && r.ended(): // to be sure that this was the end
		return true
	case o.err == nil && o.polled:
		return t.awaitPoll(ctx, r, minPoll+rand.N(maxPoll-minPoll))
	}
	wait := t.pause + rand.N(t.pause/4)
	if o.err != nil || !o.news || o.brief {
		t.pause = min(2*t.pause, maxPause)
	}
	if o.brief {
		return t.awaitPoll(ctx, r, wait)
	}
	return t.await(ctx, wait)
}

// await waits for news of the container, but not longer than d.
func (t *follower) await(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case w := <-t.in:
		t.learn(w)
	case <-timer.C:
	}
	return true
}

// awaitPoll waits for d until a log without a stream is to be read again, but not
// when its instance is no longer what it was. Other news of its pod change nothing.
func (t *follower) awaitPoll(ctx context.Context, r reading, d time.Duration) bool {
	if t.want.gone {
		return t.await(ctx, settled)
	}
	due := time.Now().Add(d)
	for time.Now().Before(due) && !t.want.gone && !t.want.off && !r.overtaken(t.want) && t.want.container.Now.Finished.IsZero() {
		if !t.await(ctx, time.Until(due)) {
			return false
		}
	}
	return true
}

// press notes whether the log needs a stream more than others do.
func (t *follower) press(urgent bool) {
	switch {
	case urgent && !t.urgent:
		t.readSlots.press(1)
	case !urgent && t.urgent:
		t.readSlots.press(-1)
	}
	t.urgent = urgent
}

// watch carries a look out, and cuts it short when it serves no end any more.
func (t *follower) watch(ctx context.Context, r reading) outcome {
	whole := ctx
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	l := &look{follower: t, reading: r, state: t.written, polls: r.ended() || t.yields}
	t.yields = false
	done := make(chan outcome, 1)
	go func() { done <- l.run(ctx, func() { cut(errQuiet) }) }()
	turns := time.NewTicker(turn)
	defer turns.Stop()
	began := time.Now()
	asked, brought := t.from(r), int64(0)
	for {
		select {
		case o := <-done:
			t.written = l.written
			cause := context.Cause(ctx)
			o.cut = o.err != nil && errors.Is(cause, errTurn)
			o.brief = o.brief && cause == nil && time.Since(began) < lasting
			if errors.Is(cause, errQuiet) && l.unseen() {
				t.yields = true // a read that ends tells whether the line is there
			}
			if o.cut || errors.Is(cause, errQuiet) {
				o.err = nil
				if t.written.Dropped.Lines > 0 { // and the log has nothing more to say
					t.say(whole, func(l *look) { l.announce(time.Now().UTC()) })
				}
			}
			return o
		case w := <-t.in:
			t.learn(w)
			if t.want.off || !t.want.gone && r.overtaken(t.want) {
				cut(errTurn)
			}
		case <-turns.C:
			taken := l.taken.Load()
			yields := l.follows.Load() && taken-brought < light && t.readSlots.wanted()
			brought = taken
			// The kubelet does not open another stream of a pod that is gone, while its containers may still end.
			if !t.want.gone && (yields || asked.After(time.Now())) {
				t.yields = yields
				cut(errTurn)
			}
		}
	}
}

var (
	errTurn  = errors.New("it must be requested in another way")
	errQuiet = errors.New("nothing was received for a while")
)

// say puts words of our own behind what is out.
func (t *follower) say(ctx context.Context, words func(*look)) {
	l := &look{follower: t, state: t.written, noted: t.written, written: t.written}
	words(l)
	_ = l.flush(ctx)
	t.written = l.written
}

const podGone = "the pod is gone"

// leave reports that nothing more is available of a pod that is gone.
func (t *follower) leave(ctx context.Context, o outcome) bool {
	if o.err == nil && !o.cut && !o.missing && !o.restart && (o.over || !o.news) {
		return true
	}
	if !errors.Is(o.err, types.ErrNoLog) {
		return false
	}
	if t.broken && t.written.Begun && !t.written.Whole { // it ended while nobody could read it
		t.say(ctx, func(l *look) { l.gap(piece{at: time.Now().UTC(), first: true, last: true}, podGone) })
	}
	return true
}

func (t *follower) tell(err error) {
	text := ""
	if err != nil && !errors.Is(err, types.ErrNoLog) {
		text = err.Error()
	}
	switch {
	case text != "" && t.told == "":
		t.log.WithField("app", t.want.app).WithField("pod", t.want.pod.Key()).WithError(err).Warn("log cannot be read, will retry")
	case text == "" && err == nil && t.told != "":
		t.log.WithField("app", t.want.app).WithField("pod", t.want.pod.Key()).Info("log can be read again")
	case err != nil:
		return
	}
	t.told = text
}

// notify tells what is known of the container now. Only the newest word counts.
func (t *follower) notify(w want) {
	select {
	case <-t.in:
	default:
	}
	t.in <- w
}

func (t *follower) learn(w want) {
	if w.gone {
		t.want.gone = true // the rest is as it was last seen
		return
	}
	if w.orphan {
		w.off = t.want.off
	}
	t.want = w
}

// doubting is how long a look for the last known line may take.
const doubting = 30 * time.Second

// lastLine is for a look that did not find the last known line. The next one may be
// sure that it is gone where nothing tells of a restart of the container: neither
// the row, nor the kubelet, which knows sooner. again is whether the look was to take no
// line for known: so is the next one then. It reports false when ctx is done.
func (t *follower) lastLine(ctx context.Context, r reading, again bool) bool {
	before := t.want.container
	ok := t.await(ctx, max(settled, t.pause))
	after := t.want.container
	if !ok || before.Now.ID != after.Now.ID || before.Last.ID != after.Last.ID {
		return ok
	}
	if !r.previous {
		restarted, err := t.restarted(ctx, r)
		if restarted || err != nil {
			t.pause = min(2*t.pause, maxPause)
			return ctx.Err() == nil
		}
	}
	t.sure, t.restart = true, again
	return ok
}

// restarted reports that the kubelet knows of another run than r, or where it does
// not tell, that the last known line is in the log that it calls the previous one.
func (t *follower) restarted(ctx context.Context, r reading) (bool, error) {
	if files, err := t.files(ctx, r); err == nil {
		return r.overwritten(files), nil
	}
	ctx, cancel := context.WithTimeout(ctx, doubting)
	defer cancel()
	if err := t.readSlots.read(ctx); err != nil {
		return false, err
	}
	defer t.readSlots.unread()
	body, err := t.kube.Logs(ctx, t.want.pod, types.LogOptions{Container: t.want.container.Name, Previous: true, Since: t.written.since()})
	if errors.Is(err, types.ErrNoLog) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer body.Close()
	seek, in := newSeeker(t.written.position), newLines(body, t.records.piece())
	for {
		p, err := in.next()
		if err != nil {
			if last, ok := in.unterminated(); ok && last.first {
				seek.judge(last.at)
			}
			if seek.n > 0 || errors.Is(err, io.EOF) {
				return seek.n > 0, nil
			}
			return false, fmt.Errorf("find the last line of pod %s: %w", t.want.pod.Key(), err)
		}
		if p.first {
			seek.judge(p.at)
		}
		if seek.n > 0 {
			return true, nil
		}
	}
}

// from is what to ask a kubelet for: no time where it lies ahead, for then the
// clock was set back, and a kubelet that is asked for it leaves out what comes.
func (t *follower) from(r reading) time.Time {
	since := t.written.since()
	if !r.resume || since.After(time.Now()) {
		return time.Time{}
	}
	return since
}
