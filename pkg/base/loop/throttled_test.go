package loop

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAThrottledStepRestsAsLongAsItsCostDemands(t *testing.T) {
	failed := errors.New("failed")
	for _, c := range []struct {
		costs time.Duration
		share int
		rests time.Duration
	}{
		{0, Sparing, 0},
		{time.Millisecond, Sparing, 49 * time.Millisecond},
		{5 * time.Millisecond, Prompt, 20 * time.Millisecond},
		{time.Minute, Prompt, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			steps, spent := 0, time.Duration(0)
			step := throttled(func(context.Context) error { steps++; spent += c.costs; time.Sleep(c.costs); return failed },
				c.share, func() time.Duration { return spent })
			if err := step(t.Context()); !errors.Is(err, failed) {
				t.Errorf("a step of %s ends with %v", c.costs, err)
			}
			err := step(t.Context())
			if wait, rests := errors.AsType[After](err); rests != (c.rests > 0) || time.Duration(wait) != c.rests {
				t.Errorf("after a step of %s: %v, want a rest of %s", c.costs, err, c.rests)
			}
			if rests := c.rests > 0; rests && !errors.Is(err, failed) {
				t.Errorf("a rest makes the failure good: %v", err)
			}
			before := steps
			time.Sleep(c.rests)
			if _ = step(t.Context()); steps != before+1 {
				t.Errorf("after a step of %s and a rest there were %d steps", c.costs, steps)
			}
		})
	}
}

// Time that passes without the processor, as where others have it, makes no news wait.
func TestOnlyProcessorTimeCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step := Throttled(func(context.Context) error { time.Sleep(time.Minute); return nil }, Prompt)
		_ = step(t.Context())
		if wait, _ := errors.AsType[After](step(t.Context())); time.Duration(wait) > maxThrottle/2 {
			t.Errorf("after a step that only waited the next one has to wait for %s", time.Duration(wait))
		}
		busy := Throttled(func(context.Context) error {
			for began := threadTime(); threadTime()-began < 5*time.Millisecond; {
			}
			time.Sleep(5 * time.Millisecond)
			return nil
		}, Prompt)
		_ = busy(t.Context())
		if wait, _ := errors.AsType[After](busy(t.Context())); time.Duration(wait) != 20*time.Millisecond {
			t.Errorf("after 5 ms of the processor the next step has to wait for %s", time.Duration(wait))
		}
	})
}
