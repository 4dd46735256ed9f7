package loop

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAThriftyStepRestsAsLongAsItsCostDemands(t *testing.T) {
	failed := errors.New("failed")
	for _, c := range []struct{ takes, free, rests time.Duration }{
		{0, 0, 0},
		{time.Millisecond, 0, 50 * time.Millisecond},
		{time.Millisecond, 60 * time.Millisecond, 0},
		{4 * time.Millisecond, 60 * time.Millisecond, 140 * time.Millisecond},
		{time.Minute, 0, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			steps := 0
			step := Throttled(func(ctx context.Context) error { steps++; time.Sleep(c.takes); return failed }, c.free)
			if err := step(t.Context()); !errors.Is(err, failed) {
				t.Errorf("a step of %s ends with %v", c.takes, err)
			}
			err := step(t.Context())
			if wait, rests := errors.AsType[After](err); rests != (c.rests > 0) || time.Duration(wait) != c.rests {
				t.Errorf("after a step of %s: %v, want a rest of %s", c.takes, err, c.rests)
			}
			if rests := c.rests > 0; rests && !errors.Is(err, failed) {
				t.Errorf("a rest makes the failure good: %v", err)
			}
			before := steps
			time.Sleep(c.rests)
			if _ = step(t.Context()); steps != before+1 {
				t.Errorf("after a step of %s and a rest there were %d steps", c.takes, steps)
			}
		})
	}
}
