package applogs

import (
	"context"
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/zedkube/zedkube/pkg/base/keptfile"
)

// open finds out how far the logs are: the journal knows best, if this boot has one.
func (c *Component) open() {
	j, slots, err := openJournal(c.Journal)
	if err != nil {
		c.Log.WithError(err).Error("app log lines may be repeated after a restart")
		slots = make([]checkpoint, maxLogs)
	}
	var changed []int // slots of the journal that are not what they should be
	rebooted := !slices.ContainsFunc(slots, func(s checkpoint) bool { return s.Pod != "" })
	if rebooted {
		if slots, err = keptSlots(c.Checkpoints); err != nil {
			c.Log.WithError(err).Error("app log lines may be repeated after a reboot")
		}
	}
	c.known, c.slots, c.followers = map[string]checkpoint{}, map[string]int{}, map[string]*follower{}
	c.unread = map[string]bool{}
	c.gone, c.limits = map[string]time.Time{}, map[string]*rate.Limiter{}
	c.readSlots, c.giveUp = newReadSlots(c.Streams), make(chan struct{})
	for i, s := range slots {
		key := keyOf(s.Pod, s.Container)
		_, twice := c.known[key]
		if rebooted && s.Pod != "" || twice {
			changed = append(changed, i)
		}
		if s.Pod == "" || twice {
			slots[i] = checkpoint{}
			c.free = append(c.free, i)
			continue
		}
		c.known[key], c.slots[key], c.unread[key] = s, i, s.Begun && !s.Whole
	}
	c.out = &output{
		log: c.Log, w: c.Out, journal: j, slots: slots, in: make(chan delivery),
		kept: keptfile.File{Path: c.Checkpoints, Name: "checkpoints of app logs", MakeDir: true},
	}
	c.out.note(changed...)
}

// apply starts what is to be read, and tells what is read already what is new.
func (c *Component) apply(ctx context.Context, a action) error {
	if a.keep {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(a.read)) {
		w := a.read[key]
		delete(c.gone, key)
		if t, ok := c.followers[key]; ok {
			t.notify(w)
		} else if c.place(key, w) {
			c.start(ctx, key, w)
		}
	}
	for key, t := range c.followers {
		if _, ok := a.read[key]; !ok {
			t.notify(want{gone: true})
		}
	}
	for key := range c.known {
		if _, ok := a.read[key]; !ok && c.gone[key].IsZero() {
			c.gone[key] = time.Now()
		}
	}
	for _, key := range a.forget {
		c.forget(key)
	}
	return nil
}

// place finds a slot for a log that has none.
func (c *Component) place(key string, w want) bool {
	if _, ok := c.slots[key]; ok {
		return true
	}
	full := len(c.free) == 0
	if full != c.full && full {
		c.Log.WithField("pod", w.pod.Key()).Errorf("more than %d app logs: the rest are not read", maxLogs)
	}
	if c.full = full; full {
		return false
	}
	c.slots[key], c.free = c.free[0], c.free[1:]
	c.known[key] = checkpoint{App: w.app, Pod: w.pod.UID, Container: w.container.Name}
	return true
}

// start reads a log beside the steps, under a context that outlives this one.
func (c *Component) start(ctx context.Context, key string, w want) {
	if c.limits[w.app] == nil {
		c.limits[w.app] = rate.NewLimiter(rate.Limit(c.Rate), max(c.Burst, 1))
	}
	t := &follower{
		log: c.Log, kube: c.Kube, readSlots: c.readSlots, limit: c.limits[w.app],
		records: newWriter(w.app, w.container.Name, c.MaxRecord), slot: c.slots[key],
		in: make(chan want, 1), out: c.out.in, finished: make(chan struct{}), giveUp: c.giveUp,
		want: w, written: c.known[key],
	}
	ctx, t.stop = context.WithCancel(context.WithoutCancel(ctx))
	c.followers[key] = t
	delete(c.unread, key)
	c.reading.Go(func() {
		defer t.stop()
		t.run(ctx)
		_ = c.results.Publish(key, struct{}{})
	})
}

// forget gives up a slot. While the output is busy it is tried again later.
func (c *Component) forget(key string) {
	if _, ok := c.followers[key]; ok {
		return
	}
	d := delivery{slot: c.slots[key], done: make(chan error, 1)}
	if s := c.known[key]; c.unread[key] {
		s.Gaps++
		now := time.Now().UTC()
		d.text = newWriter(s.App, s.Container, c.MaxRecord).mark(nil, now, s.gap(now, podGone))
	}
	select {
	case c.out.in <- d:
	default:
		return
	}
	c.free = append(c.free, c.slots[key])
	delete(c.slots, key)
	delete(c.known, key)
	delete(c.gone, key)
	delete(c.unread, key)
}
