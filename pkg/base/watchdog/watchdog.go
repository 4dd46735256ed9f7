// Package watchdog tells EVE's watchdog that this agent works: not that its
// process exists, but that a value it publishes comes back through its own
// socket and that every loop turns. A slow or dead API server is no reason to
// reboot the device and never stops it; a deadlock is and does.
//
//	reads:  WatchdogBeat (its own, through the socket), the pulses of the loops
//	writes: WatchdogBeat, the touch file
package watchdog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/failpoint"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// period is how often the touch file is renewed: EVE's agents do so at least
// every 25 s, and the device reboots after 300 s without.
const period = 10 * time.Second

// Component is the watchdog's feeder. Every exported field is required.
type Component struct {
	Log       logrus.FieldLogger
	Beat      pubsub.Writer[types.WatchdogBeat]
	Echo      pubsub.Source[types.WatchdogBeat] // the same topic, read back
	Pulses    map[string]*loop.Pulse            // of every other loop, by component
	TouchFile string

	first, sent uint64    // the first and the last beat published by this process
	sentAt      time.Time // zero before the first
	heard       uint64    // the last beat that has come back; 0 for none
	back        bool      // one has come back since the last was sent
	touched     bool      // for that one
	stuck       string    // the loops last reported as stuck
	silent      bool      // the beat was reported as lost
	unpublished bool      // the beat was reported as not published
}

// Run feeds until ctx is done. Its own loop needs no pulse: when it hangs,
// nothing feeds.
func (c *Component) Run(ctx context.Context) {
	loop.Run(ctx, c.Log, &loop.Pulse{}, period, c.Step, c.Echo)
}

// Step sends a beat each period and touches the file when one has come back: on a
// busy device that may be the one before.
func (c *Component) Step(context.Context) error {
	now := time.Now()
	if c.sentAt.IsZero() || now.Sub(c.sentAt) >= period {
		c.beat(now)
	}
	if echo, ok := c.Echo.Get(types.Global); ok && c.first <= echo.Count && echo.Count <= c.sent && echo.Count > c.heard {
		c.heard, c.back = echo.Count, true
	}
	return c.feed(now)
}

// feed touches the file at most once each period, for a beat that has come back
// in it, while every loop turns.
func (c *Component) feed(now time.Time) error {
	again := loop.After(c.sentAt.Add(period).Sub(now))
	if !c.back || c.touched || c.anyStuck(now) {
		return again
	}
	if err := touch(c.TouchFile, now); err != nil {
		return errors.Join(err, again)
	}
	c.touched = true
	return again
}

// beat publishes the next beat. It counts on from what an earlier process
// sent, so that an old echo proves nothing.
//
// A beat that cannot be published, as on a full disk, is no deadlock: the
// publisher has answered, and a reboot would repair nothing. It feeds too.
func (c *Component) beat(now time.Time) {
	c.report(&c.silent, !c.sentAt.IsZero() && !c.back, nil,
		"watchdog not fed: no round trip through pubsub", "the round trip through pubsub works again")
	last, _ := c.Beat.Get(types.Global)
	next := types.WatchdogBeat{Count: last.Count + 1}
	err := c.Beat.Publish(types.Global, next)
	if c.sentAt.IsZero() {
		c.first = next.Count
	}
	c.sent, c.sentAt, c.back, c.touched = next.Count, now, err != nil, false
	c.report(&c.unpublished, err != nil, err,
		"the watchdog beat cannot be published; the watchdog is fed anyway", "the watchdog beat can be published again")
}

// report logs that something is wrong, or right again, once per change.
func (c *Component) report(was *bool, is bool, err error, wrong, right string) {
	if *was == is {
		return
	}
	*was = is
	log := c.Log.WithField("topic", "WatchdogBeat")
	switch {
	case !is:
		log.Info(right)
	case err != nil:
		log.WithError(err).Error(wrong)
	default:
		log.Error(wrong)
	}
}

// anyStuck reports, once per change, which loops do not turn any more.
func (c *Component) anyStuck(now time.Time) bool {
	var stuck []string
	for _, name := range slices.Sorted(maps.Keys(c.Pulses)) {
		if c.Pulses[name].Stuck(now) {
			stuck = append(stuck, name)
		}
	}
	list := strings.Join(stuck, ", ")
	if list != c.stuck {
		c.stuck = list
		if list == "" {
			c.Log.Info("all loops are running again")
		} else {
			c.Log.WithField("loops", list).Error("watchdog not fed: loops are stuck")
		}
	}
	return list != ""
}

// touch sets the time of the file at path and makes it where it is missing.
func touch(path string, now time.Time) error {
	err := failpoint.Do("touch", path, func() error { return os.Chtimes(path, now, now) })
	if errors.Is(err, fs.ErrNotExist) {
		var f *os.File
		if f, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY|syscall.O_NONBLOCK, 0o644); err == nil { //nolint:gosec // EVE's watchdog reads it
			err = errors.Join(f.Close(), os.Chtimes(path, now, now))
		}
	}
	if err != nil {
		return fmt.Errorf("touch watchdog file: %w", err)
	}
	return nil
}

// FeedOnly touches the file every period until ctx is done: the whole job on a
// hypervisor without Kubernetes.
func FeedOnly(ctx context.Context, log logrus.FieldLogger, touchFile string) {
	step := func(context.Context) error { return touch(touchFile, time.Now()) }
	loop.Run(ctx, log, &loop.Pulse{}, period, step)
}

// WritePID writes our process id to path and returns what removes it again.
// Whatever stands there is replaced and not written to, since to open a FIFO
// would hang: after a crash it is stale, and its number may belong to any other
// process by now. On a full /run the stale file is removed, and ours is written
// once there is room: commands would take the dead process for the agent.
func WritePID(log logrus.FieldLogger, path string) (remove func()) {
	log = log.WithField("file", path)
	own := os.Getpid()
	if old, ok := readPID(path); ok && old != own {
		if err := syscall.Kill(old, 0); err == nil || errors.Is(err, syscall.EPERM) {
			log.WithField("pid_found", old).Warn("pid file names another running process, replacing it")
		} else {
			log.WithField("pid_found", old).Info("stale pid file, replacing it")
		}
	}
	write := func() error { return safefile.Replace(path, path+".new", strconv.Itoa(own)+"\n", 0o644) }
	stop := make(chan struct{})
	var again sync.WaitGroup
	if err := write(); err != nil {
		log.WithError(err).Error("cannot write pid file, will try again")
		removePID(log, path)
		again.Go(func() { writeLater(log, write, stop) })
	}
	return func() {
		close(stop)
		again.Wait()
		if pid, ok := readPID(path); ok && pid == own { // else it is someone else's by now
			removePID(log, path)
		}
	}
}

// writeLater writes the pid file as soon as that works.
func writeLater(log logrus.FieldLogger, write func() error, stop <-chan struct{}) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			if write() == nil {
				log.Info("the pid file is written")
				return
			}
		}
	}
}

func removePID(log logrus.FieldLogger, path string) {
	if err := failpoint.Do("remove", path, func() error { return os.Remove(path) }); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.WithError(err).Error("cannot remove pid file")
	}
}

func readPID(path string) (int, bool) {
	raw, err := safefile.Read(path, safefile.Small)
	if err != nil {
		return 0, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	return pid, err == nil && pid > 0
}
