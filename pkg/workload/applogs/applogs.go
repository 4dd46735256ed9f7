// Package applogs hands what the applications on this node write to EVE's log.
//
//	reads:  AppInstanceConfig, EdgeNodeInfo, nodes, app pods, the API's health
//	writes: EVE's log lines (docs/wire.md, "App log lines"), and how far each log is
//	acts:   follows the logs of the containers
//
// Each log is read by a goroutine of its own, beside the steps. What cannot be
// written is not read: then the kubelet keeps it, not this process.
package applogs

import (
	"context"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/time/rate"

	"github.com/zedkube/zedkube/pkg/base/keptfile"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// period is in case an event was missed.
const period = 30 * time.Second

// What the fields of a Component are on a device.
const (
	// DefaultMaxRecord is what a full pipe takes whole or not at all (PIPE_BUF of
	// Linux): others write into the same one. It is less than what memlogd keeps of a
	// line (docs/wire.md, "App log lines").
	DefaultMaxRecord = 4096
	// LargestRecord leaves a line of 256 KiB of plain text whole.
	LargestRecord = 256<<10 + 1<<10
	// SmallestRecord has room for the fields and a few words.
	SmallestRecord = 1 << 10

	DefaultRate        = 4 << 20  // one application leaves others their share of a slow flash
	DefaultBurst       = 32 << 20 // three times what a kubelet keeps of one log by default
	DefaultJournal     = "/run/zedkube.applogs"
	DefaultCheckpoints = "/persist/kube-status/zedkube-applogs.jsonl"
)

// Kube is what the component does to the cluster.
type Kube interface {
	// Logs opens a container's log. Reading it ends when ctx does, when the
	// container has ended, or with the connection. Its error wraps types.ErrNoLog
	// where there is no such log.
	Logs(ctx context.Context, pod types.Pod, o types.LogOptions) (io.ReadCloser, error)
	// LogFiles lists the files that the own node's kubelet keeps of a container's log, as they
	// were written. Its error wraps types.ErrNoLog where it does not serve them.
	LogFiles(ctx context.Context, node types.Node, pod types.Pod, container string) ([]types.LogFile, error)
	// LogFile opens one of them; its lines are as those of Logs.
	LogFile(ctx context.Context, node types.Node, pod types.Pod, container string, file types.LogFile) (io.ReadCloser, error)
}

// Component is the log collector. Every exported field is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	Configs pubsub.Source[types.AppInstanceConfig]
	Info    pubsub.Reader[types.EdgeNodeInfo]
	Nodes   pubsub.Reader[types.Node]
	AppPods pubsub.Reader[types.Pod]
	API     pubsub.Reader[types.APIStatus]
	Kube    Kube

	Out         io.Writer // gets whole lines; each Write is one batch, and none is begun before the last has ended
	MaxRecord   int       // bytes of one line of Out, its end included; what is longer is split with marks
	Streams     int       // logs that are followed at the same time, at least 1; the others are read from time to time
	Rate        int       // bytes per second that one application may write
	Burst       int       // bytes that it may write at once
	Journal     string    // file that is lost with a reboot, and only then: how far each log is
	Checkpoints string    // file that is kept: the same, up to a minute old

	// What this process remembers.
	known     map[string]checkpoint    // of the logs that have a slot, by key; what their tracks know is newer
	slots     map[string]int           // by key
	free      []int                    // slots
	followers map[string]*follower     // by key
	unread    map[string]bool          // logs that were not at their end when the process before ended, and that this one did not see, by key
	gone      map[string]time.Time     // since when a log's pod is gone, by key
	limits    map[string]*rate.Limiter // by application
	pods      pubsub.Pick[types.Pod]   // those on this node
	results   pubsub.Table[struct{}]   // by key: its track has ended
	readSlots *readSlots
	reading   sync.WaitGroup // the tracks
	out       *output
	giveUp    chan struct{} // closed when a stop does not wait for the output any more
	full      bool          // there are more logs than slots
}

// Run reads logs until ctx is done.
func (c *Component) Run(ctx context.Context) {
	c.open()
	written := make(chan struct{})
	go func() { defer close(written); c.out.run() }()
	loop.Run(ctx, c.Log, c.Pulse, period, loop.Throttled(c.Step, loop.Sparing), c.Configs, c.Info, c.Nodes, &c.pods, c.API, &c.results)
	for _, t := range c.followers {
		t.stop()
	}
	// An output that is stuck keeps nobody from stopping: its batch may come again.
	timer := time.AfterFunc(patience, func() { close(c.giveUp) })
	defer timer.Stop()
	c.reading.Wait()
	close(c.out.in)
	select {
	case <-written:
	case <-c.giveUp:
	}
}

// Step looks which logs there are, and sees to it that they are read.
func (c *Component) Step(ctx context.Context) error { return c.apply(ctx, decide(c.look())) }

func (c *Component) look() facts {
	for key, t := range c.followers {
		select {
		case <-t.finished:
			c.known[key] = t.written
			delete(c.followers, key)
			_ = c.results.Unpublish(key)
		default:
		}
	}
	// The state of the API is read before the tables: they can only be more
	// complete than it says.
	api, known := c.API.Get(types.Global)
	info, _ := c.Info.Get(types.Global)
	node, _ := types.OwnNode(c.Nodes.All(), info)
	f := facts{
		seen: known && api.Answers() && api.Synced && c.Configs.Synced(), self: types.Node{Name: node.Name, InternalIP: node.InternalIP},
		configs: c.Configs.All(),
		known:   c.known, gone: map[string]time.Duration{},
	}
	pods := c.pods.Of(c.AppPods, node.Name, func(p types.Pod) bool { return p.NodeName == node.Name })
	f.pods = slices.Collect(maps.Values(pods))
	for key, since := range c.gone {
		f.gone[key] = time.Since(since)
	}
	return f
}

// rest reads nothing while nobody wants the log. It reports false when ctx is
// done or the pod is gone.
func (t *follower) rest(ctx context.Context) bool {
	t.press(false)
	if !t.written.Off {
		s := t.written
		s.Off = true
		l := &look{follower: t, state: s, noted: s, written: t.written}
		_ = l.flush(ctx) // what is not noted now is noted with the next look
		t.written = s
	}
	return !t.want.gone && t.await(ctx, quiet)
}

// from is where a log begins that is wanted from now on.
func (s checkpoint) from(w want, now time.Time) checkpoint {
	c := w.container
	s.ID, s.Run, s.Begun, s.Whole, s.Off = c.Now.ID, c.Restarts, true, !c.Now.Finished.IsZero(), false
	if s.ID == "" {
		s.ID, s.Run, s.Whole = c.Last.ID, c.Restarts-1, true
	}
	s.position, s.Dropped = position{At: now.UTC()}, dropped{}
	return s
}

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
	c.readSlots, c.giveUp = &readSlots{reads: make(chan struct{}, maxReads), free: c.Streams}, make(chan struct{})
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
	if s := c.known[key]; c.unread[key] && !s.Off {
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
