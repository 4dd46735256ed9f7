package applogs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/zedkube/zedkube/types"
)

type outcome struct {
	news    bool  // something was new
	over    bool  // the instance has ended, and all it wrote is out
	missing bool  // the last known line is not there
	restart bool  // lines were taken for known that are not
	cut     bool  // it was cut short here
	polled  bool  // the log goes on, and was not followed
	brief   bool  // it was followed, and the other side ended that soon
	taken   int64 // bytes that were new
	err     error
}

type look struct {
	*follower
	reading
	seek    seeker
	seen    bool // there are lines
	skipped bool // lines were taken for known
	skip    int64
	use     bool // the present line is handed on
	over    bool // it is left out, for the rate
	begun   bool // some of it is out

	state   checkpoint // after what was read
	batch   []byte
	noted   checkpoint // after the batch
	written checkpoint // after what is out
	news    bool
	taken   atomic.Int64 // bytes that were new
	follows atomic.Bool
	polls   bool // no stream is taken
	old     bool // the present line is from a rotated file
	idle    *time.Timer
}

// run reads to the end; cut is called when nothing comes for too long.
func (l *look) run(ctx context.Context, cut func()) (o outcome) {
	l.noted, l.written = l.state, l.state
	follow := !l.polls && l.readSlots.follow(l.urgent)
	if l.follows.Store(follow); follow {
		defer l.readSlots.unfollow()
	} else if err := l.readSlots.read(ctx); err != nil {
		return outcome{err: err}
	} else {
		defer l.readSlots.unread()
	}
	defer func() { o.polled, o.taken = !follow && !l.ended(), l.taken.Load() }()
	options := types.LogOptions{Container: l.container.Name, Previous: l.previous, Follow: follow, Since: l.from(l.reading)}
	l.idle = time.AfterFunc(l.patience(), cut) // a kubelet answers when there is something to say
	defer l.idle.Stop()
	body, err := l.kube.Logs(ctx, l.pod, options)
	if err != nil {
		return l.unread(ctx, err)
	}
	defer body.Close()
	l.begin()
	o = l.take(ctx, newLines(body, l.records.piece()))
	if l.state.Dropped.Lines > 0 && o.err == nil {
		l.announce(time.Now().UTC())
	}
	if err := l.flush(ctx); err != nil && o.err == nil {
		o.err = err
	}
	return o
}

// begin sets the position to where this instance is.
func (l *look) begin() {
	l.seek = newSeeker(l.state.position)
	started := l.container.Now.Started
	if l.previous {
		started = l.container.Last.Started
	}
	// Where the clock was set back between two instances, times tell nothing.
	if !l.resume && (l.restart || started.Before(l.state.At.Add(-settled))) {
		l.seek.found = true
	}
	if l.resume {
		l.seek.absent = l.restart
		return
	}
	l.state.App, l.state.Pod, l.state.Container = l.app, l.pod.UID, l.container.Name
	l.state.ID, l.state.Run, l.state.Begun, l.state.Whole = l.id, l.reading.run, false, false
}

// unread takes in that there is no log available.
func (l *look) unread(ctx context.Context, err error) outcome {
	if !l.previous || !errors.Is(err, types.ErrNoLog) || l.gone {
		return outcome{err: err}
	}
	// The runtime has removed it; there will not be another chance.
	if !l.sure {
		return outcome{missing: true}
	}
	l.begin()
	whole := l.lost
	if !l.resume {
		whole++
	}
	l.gap(piece{at: time.Now().UTC()}, fmt.Sprintf("the kubelet has removed them, including %d complete runs of the container", whole))
	l.state.Whole, l.state.Part = true, 0
	l.noted = l.state
	return outcome{over: true, err: l.flush(ctx)}
}

func (l *look) take(ctx context.Context, in *lines) outcome {
	for {
		p, err := in.next()
		if err != nil {
			o := l.end(ctx, in, err)
			o.brief = l.follows.Load() && !l.ended()
			return o
		}
		if o, stop := l.hand(ctx, p); stop {
			return o
		}
		if len(l.batch) >= batchSize || in.r.Buffered() == 0 { // the next piece may take a while
			if err := l.flush(ctx); err != nil {
				return outcome{news: l.news, err: err}
			}
		}
	}
}

// patience is how long to wait for more: not long where something is to be told,
// nor where so much came that the log may have been rotated meanwhile: a kubelet
// that misses that goes on reading the old file. A log that is not followed is
// there at once or not at all, and so is the last known line of one that is.
func (l *look) patience() time.Duration {
	switch {
	case l.old:
		return doubting
	case l.state.Dropped.Lines > 0 || l.taken.Load() >= oneMebibyte:
		return turn
	case !l.follows.Load() || l.unseen():
		return doubting
	}
	return l.readSlots.quiet()
}

func (l *look) end(ctx context.Context, in *lines, err error) outcome {
	if !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || ctx.Err() != nil {
		return outcome{news: l.news, err: fmt.Errorf("read log of pod %s: %w", l.pod.Key(), err)}
	}
	unfound := !l.seek.found && l.seek.from.N > 0
	if l.misjudged() {
		return outcome{restart: true}
	}
	if unfound && l.resume && !l.ended() {
		return l.unfound(ctx)
	}
	if !l.ended() || l.news {
		return outcome{news: l.news}
	}
	p, half := in.unterminated()
	if !l.seen && !half && in.reported {
		return l.unread(ctx, fmt.Errorf("read log of pod %s: %w: %s", l.pod.Key(), types.ErrNoLog, in.report))
	}
	switch {
	case unfound && l.resume:
		if o, stop := l.missed(ctx, piece{at: time.Now().UTC()}); stop {
			return o
		}
	case unfound && l.skipped:
		return outcome{restart: true}
	}
	if half {
		if o, stop := l.hand(ctx, p); stop {
			return o
		}
	} else if !l.state.Begun {
		if err := l.earlier(ctx, piece{at: time.Now().UTC()}); err != nil {
			return outcome{news: l.news, err: err}
		}
	}
	l.state.Whole = true
	l.noted = l.state
	return outcome{over: true, err: l.flush(ctx)}
}

// hand hands a piece on, unless its line is known or left out. It reports true
// where reading on is no use.
func (l *look) hand(ctx context.Context, p piece) (outcome, bool) {
	unseen := l.unseen()
	if p.first {
		if o, stop := l.line(ctx, p); stop {
			return o, true
		}
	}
	// A stream without silence that does not have the last known line would never end.
	if l.old || !l.follows.Load() || !unseen || !l.unseen() {
		l.idle.Reset(l.patience())
	}
	if l.use {
		l.taken.Add(int64(len(p.text)))
		if err := l.record(ctx, p); err != nil {
			return outcome{news: l.news, err: err}, true
		}
	}
	return outcome{}, false
}

// line looks at the beginning of a line. It reports true where reading on is no
// use.
func (l *look) line(ctx context.Context, p piece) (outcome, bool) {
	l.seen, l.use, l.skip, l.begun = true, false, 0, false
	switch l.seek.judge(p.at) {
	case known:
		l.skipped = true
		return outcome{}, false
	case rest:
		l.use, l.skip, l.begun = true, l.state.Part, true
		return outcome{}, false
	case missing:
		switch {
		case l.old:
			l.gap(p, rotated)
		case l.skipped:
			return outcome{restart: true}, true
		case l.resume:
			if o, stop := l.missed(ctx, p); stop {
				return o, true
			}
		}
	}
	if !l.state.Begun && !l.old {
		if err := l.earlier(ctx, p); err != nil {
			return outcome{news: l.news, err: err}, true
		}
	}
	if !l.state.Begun && (l.lost > 0 || l.torn) {
		l.gap(p, fmt.Sprintf("%s, including %d complete runs of the container", rotated, l.lost))
	}
	l.limited(p)
	l.state.line(p.at)
	l.state.Begun, l.use, l.news = true, true, true
	return outcome{}, false
}
