package applogs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/zedkube/zedkube/types"
)

// doubting is how long a look for the last known line may take.
const doubting = 30 * time.Second

// lastLine is for a look that did not find the last known line. The next one may be
// sure that it is gone where nothing tells of a restart of the container: neither
// the row, nor the kubelet, which knows sooner. It reports false when ctx is done.
func (t *follower) lastLine(ctx context.Context, r reading) bool {
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
	t.sure = true
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
