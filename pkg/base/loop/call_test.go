package loop

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestACallRingsWhenItEndsAndItsResultIsTakenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Call[int]
		bell := make(chan struct{}, 1)
		c.Notify(bell)
		step, over := context.WithCancel(t.Context())
		if !c.Begin(step, time.Minute, func(ctx context.Context) int {
			select {
			case <-ctx.Done():
				return -1
			case <-time.After(time.Second):
				return 7
			}
		}) {
			t.Fatal("an idle call does not begin")
		}
		over() // the step has returned
		if _, ok := c.Take(); ok || !c.Busy() {
			t.Error("there is a result before the end")
		}
		if c.Begin(t.Context(), time.Minute, func(context.Context) int { return 8 }) {
			t.Error("a second call began beside the first")
		}
		<-bell
		if c.Begin(t.Context(), time.Minute, func(context.Context) int { return 8 }) {
			t.Error("a call began over a result that nobody has taken")
		}
		if n, ok := c.Take(); n != 7 || !ok || c.Busy() {
			t.Errorf("the result is %d, %v", n, ok)
		}
		if _, ok := c.Take(); ok {
			t.Error("a result is taken twice")
		}
	})
}

func TestACallEndsWithItsTimeAndWhenItIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Call[error]
		wait := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		c.Begin(t.Context(), time.Minute, wait)
		time.Sleep(time.Minute)
		synctest.Wait()
		if err, ok := c.Take(); !errors.Is(err, context.DeadlineExceeded) || !ok {
			t.Errorf("after its time: %v, %v", err, ok)
		}
		c.Cancel() // nothing to cancel
		c.Begin(t.Context(), time.Minute, wait)
		c.End()
		if err, ok := c.Take(); !errors.Is(err, context.Canceled) || !ok {
			t.Errorf("after the cancel: %v, %v", err, ok)
		}
	})
}
