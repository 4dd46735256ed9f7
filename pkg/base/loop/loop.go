// Package loop runs one step again and again: when an input rings, when the
// period is over, and, after an error, later and later. It is the only place
// that starts timers, backs off and logs a failed step.
package loop

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"
)

const (
	// stepTimeout bounds one step: an API call that hangs costs at most that.
	stepTimeout = 30 * time.Second
	minBackoff  = time.Second
	maxBackoff  = time.Minute
	// failurePause is how long even a ringing bell waits after a failed step,
	// so that inputs in full motion do not turn a failure into a storm.
	failurePause = 250 * time.Millisecond
)

// Input is anything that rings a bell when it has news.
type Input interface{ Notify(bell chan<- struct{}) }

// Step is one pass: look, decide, act. It returns soon; to wait is to return.
type Step func(context.Context) error

// After is what a Step returns, joined with its errors or alone, to be called
// again sooner than its period. It is not a failure and is never logged.
type After time.Duration

// Error implements error.
func (a After) Error() string { return "step again in " + time.Duration(a).String() }

// Again is After(d), and nothing where d is 0: for a component that then waits for
// its inputs and its period.
func Again(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	return After(d)
}

// Run calls step at once and then until ctx is done. Steps never overlap. A
// failure is logged when it first appears and when its text changes, not at
// every try.
func Run(ctx context.Context, log logrus.FieldLogger, pulse *Pulse, every time.Duration, step Step, inputs ...Input) {
	bell := make(chan struct{}, 1)
	for _, in := range inputs {
		in.Notify(bell)
	}
	backoff, logged := minBackoff, ""
	for {
		pulse.Begin()
		wait, err := once(ctx, step, every)
		pulse.End(max(wait, maxBackoff), err != nil)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if err.Error() != logged {
				logged = err.Error()
				log.WithError(err).Error("step failed")
			}
			wait = min(wait, backoff)
			backoff = min(2*backoff, maxBackoff)
			if !sleep(ctx, failurePause, nil) {
				return
			}
		case logged != "":
			log.Info("step succeeds again")
			fallthrough
		default:
			backoff, logged = minBackoff, ""
		}
		if !sleep(ctx, wait, bell) {
			return
		}
	}
}

// sleep waits for d or a bell; it reports false when ctx is done.
func sleep(ctx context.Context, d time.Duration, bell <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-bell:
	case <-timer.C:
	}
	return true
}

// once runs step and takes the wish for an earlier call out of its error.
func once(ctx context.Context, step Step, every time.Duration) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	err := step(ctx)
	if a, ok := errors.AsType[After](err); ok {
		return min(time.Duration(a), every), withoutRequest(err)
	}
	return every, err
}

// withoutRequest is err without the After joined to it, whose changing text would
// make the same failure look new at every try.
func withoutRequest(err error) error {
	if _, ok := errors.AsType[After](err); !ok {
		return err
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	var rest []error
	for _, e := range joined.Unwrap() {
		rest = append(rest, withoutRequest(e))
	}
	return errors.Join(rest...)
}

// Pulse shows from outside whether a loop still turns. Its zero value belongs
// to a loop that has not started.
type Pulse struct {
	mu       sync.Mutex
	stepping time.Time     // when the running step began; zero between steps
	idle     time.Time     // when the last step ended
	wait     time.Duration // the longest the loop may idle
	counts   Counts
}

// Counts is what a loop has done since it began.
type Counts struct {
	Steps   uint64
	Failed  uint64        // of Steps
	Took    time.Duration // all of them together
	Longest time.Duration // the longest of them
}

// Counts returns what the loop has done; a step under way is not in it yet.
func (p *Pulse) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

// Begin notes that a step begins. Run calls it; who has a loop of his own does
// so himself.
func (p *Pulse) Begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stepping = time.Now()
}

// End notes that the step has ended and that the next one comes within wait.
func (p *Pulse) End(wait time.Duration, failed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	took := now.Sub(p.stepping)
	p.counts.Steps++
	if failed {
		p.counts.Failed++
	}
	p.counts.Took += took
	p.counts.Longest = max(p.counts.Longest, took)
	p.stepping, p.idle, p.wait = time.Time{}, now, wait
}

// Stuck reports that a step runs for three times its bound, so that it cannot
// be waiting for a call with a deadline, or that the next step is overdue by
// as much. A loop that has not started is not stuck.
func (p *Pulse) Stuck(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	const slack = 3 * stepTimeout
	if !p.stepping.IsZero() {
		return now.Sub(p.stepping) > slack
	}
	return !p.idle.IsZero() && now.Sub(p.idle) > p.wait+slack
}

const (
	// Sparing is the share of a processor, in percent, of a step that nobody waits for.
	Sparing = 2
	// Prompt is that of a step whose result somebody waits for: a change that comes
	// while it rests waits for four times what a step costs.
	Prompt = 20
	// maxThrottle is the longest that news wait for a throttled step.
	maxThrottle = time.Second
)

// Throttled spaces out steps that look at tables of thousands of rows which change
// many times a second, so that they take no more than a share of a processor, in
// percent. The less a step costs the sooner the next one comes. Time in which others
// had the processor is no cost: on a busy machine news would wait twice for it.
func Throttled(step Step, share int) Step { return throttled(step, share, threadTime) }

func throttled(step Step, share int, spent func() time.Duration) Step {
	var next time.Time
	var failed error // of the last step: a rest does not make it good
	return func(ctx context.Context) error {
		if wait := time.Until(next); wait > 0 {
			return errors.Join(failed, After(wait))
		}
		runtime.LockOSThread() // whose time is taken
		defer runtime.UnlockOSThread()
		began, before := time.Now(), spent()
		err := step(ctx)
		failed = withoutRequest(err)
		now := time.Now()
		cost := min(now.Sub(began), spent()-before) // none in the time of a test
		next = now.Add(min(cost*time.Duration(100-share)/time.Duration(share), maxThrottle))
		return err
	}
}

// threadTime is the processor time of this thread so far; 0 where the kernel does
// not tell, so that nothing is throttled.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// Call is one piece of work beside the steps, for what may hang: a step begins
// it, and a later one takes what came of it. The zero value is ready.
type Call[T any] struct {
	mu     sync.Mutex
	bell   chan<- struct{}
	cancel context.CancelFunc // nil while none is under way
	ended  bool
	result T
	work   sync.WaitGroup
}

// Begin does the work for at most timeout, under a context that outlives the
// step's. While another is under way, or its result is not taken, it returns
// false and does nothing.
func (c *Call[T]) Begin(ctx context.Context, timeout time.Duration, do func(context.Context) T) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	c.cancel, c.ended = cancel, false
	c.work.Go(func() {
		defer cancel()
		result := do(ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.result, c.ended = result, true
		select {
		case c.bell <- struct{}{}: // a nil bell never takes it
		default:
		}
	})
	return true
}

// Busy reports whether one is under way or its result is not taken.
func (c *Call[T]) Busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cancel != nil
}

// Take returns the result of the work that has ended, once.
func (c *Call[T]) Take() (result T, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel == nil || !c.ended {
		return result, false
	}
	var none T
	result, c.result, c.cancel = c.result, none, nil
	return result, true
}

// Cancel cuts the work under way short; it still has a result.
func (c *Call[T]) Cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		c.cancel()
	}
}

// End cancels, and returns when the work has ended.
func (c *Call[T]) End() {
	c.Cancel()
	c.work.Wait()
}

// EndWithin is End for work that may ignore the end of its context, as a call of
// the kernel does: it reports whether the work has ended within the time.
func (c *Call[T]) EndWithin(patience time.Duration) bool {
	c.Cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.work.Wait()
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// Notify makes the end of the work ring a bell: it is an Input of Run.
func (c *Call[T]) Notify(bell chan<- struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bell = bell
}
