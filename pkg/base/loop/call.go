package loop

import (
	"context"
	"sync"
	"time"
)

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
