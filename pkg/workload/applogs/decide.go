package applogs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/zedkube/zedkube/types"
)

// guestConsole is the one container of a launcher pod that speaks for the
// application (docs/wire.md, "App objects"); the others are KubeVirt's own.
const guestConsole = "guest-console-log"

// facts is everything decide may look at.
type facts struct {
	seen    bool   // the pods are all there are
	self    string // name of the own Node; "" while it is not in the cluster
	configs map[string]types.AppInstanceConfig
	pods    []types.Pod           // of this node
	known   map[string]checkpoint // of logs that are or were read here, by key
	gone    map[string]time.Duration
}

// action is everything decide may ask for.
type action struct {
	keep   bool            // change nothing
	read   map[string]want // the logs to read, by key
	forget []string        // the logs that will not be read again
}

// want is one log to read: all that is known of a container.
type want struct {
	app       string
	pod       types.Pod
	container types.Container
	off       bool // nobody wants its log
	orphan    bool // its application has no configuration any more
	gone      bool // the pod is not there any more
}

// forgetAfter is how long what is known of the log of a pod that is gone is
// kept, should the pod have been missed by mistake.
const forgetAfter = 10 * time.Minute

// decide says which logs to read, from facts alone. What is not seen is not gone.
func decide(f facts) action {
	if !f.seen || f.self == "" {
		return action{keep: true}
	}
	a := action{read: map[string]want{}}
	owners := types.NewAppOwners(f.configs)
	for _, p := range f.pods {
		if p.NodeName != f.self {
			continue
		}
		w, vmi := appOf(p, owners, f.known)
		for _, c := range p.Containers {
			if w.app == "" || vmi && c.Name != guestConsole || c.Now.ID == "" && c.Last.ID == "" {
				continue
			}
			w.container = c
			a.read[keyOf(p.UID, c.Name)] = w
		}
	}
	for _, key := range slices.Sorted(maps.Keys(f.known)) {
		if _, ok := a.read[key]; !ok && f.gone[key] >= forgetAfter {
			a.forget = append(a.forget, key)
		}
	}
	return a
}

// appOf tells which application runs in p, and whether its log is wanted. One
// whose configuration is gone while its pod still ends keeps the log of that pod
// as it was.
func appOf(p types.Pod, owners types.AppOwners, known map[string]checkpoint) (w want, vmi bool) {
	if cfg, ok := owners.Of(p); ok {
		return want{app: cfg.UUIDandVersion.UUID.String(), pod: p, off: cfg.DisableLogs}, cfg.IsVMI()
	}
	for _, c := range p.Containers {
		if s, ok := known[keyOf(p.UID, c.Name)]; ok {
			return want{app: s.App, pod: p, off: s.Off, orphan: true}, p.VMIName() != ""
		}
	}
	return want{}, false
}

func keyOf(uid, container string) string { return uid + "/" + container }

// reading is one look into a log.
type reading struct {
	want
	id       string // of the container's instance
	run      int32  // which of its instances that is, from 0
	previous bool
	resume   bool // from where the log is
	lost     int  // instances between the last that was read and this one
	torn     bool // the last that was read was not read to its end
}

// ended reports that nothing is added to the log any more.
func (r reading) ended() bool { return r.previous || !r.container.Now.Finished.IsZero() }

// next says what to read now. Instances are read in the order in which they ran.
func next(w want, s checkpoint) (r reading, ok bool) {
	now, last := w.container.Now.ID, w.container.Last.ID
	present := reading{want: w, id: now, run: w.container.Restarts}
	former := reading{want: w, id: last, run: w.container.Restarts - 1, previous: true}
	switch {
	case s.ID != "" && s.ID == now && s.Whole:
		return reading{}, false
	case s.ID != "" && s.ID == now:
		r = present
	case s.ID != "" && s.ID == last && !s.Whole:
		r = former
	case last != "" && s.ID != last:
		r = former
	case now != "":
		r = present
	default:
		return reading{}, false
	}
	r.resume = s.ID == r.id && s.Begun
	switch s.ID {
	case "": // nobody has read the runs before
		r.lost = int(r.run)
	case r.id:
	default:
		r.lost = max(0, int(r.run-s.Run)-1)
		r.torn = !s.Whole
	}
	return r, true
}

// overtaken reports that r is of an instance that is not the current one any
// more, though it was.
func (r reading) overtaken(w want) bool {
	return !r.previous && w.container.Now.ID != r.id
}

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
