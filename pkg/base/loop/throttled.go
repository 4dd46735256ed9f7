package loop

import (
	"context"
	"errors"
	"time"
)

const (
	// cpuShare bounds what a throttled step takes of a processor that always has
	// news for it: 2 %.
	cpuShare = 50
	// maxThrottle is the longest that news wait for a throttled step.
	maxThrottle = time.Second
)

// Throttled spaces out steps that look at tables of thousands of rows which change
// many times a second: a step that took long is not repeated at once. The shorter
// it takes the sooner the next one comes. free is left off each pause, so that in
// clusters of usual size news are acted upon as they come.
// It is for components that wait for nothing but processors.
func Throttled(step Step, free time.Duration) Step {
	var next time.Time
	var failed error // of the last step: a rest does not make it good
	return func(ctx context.Context) error {
		if wait := time.Until(next); wait > 0 {
			return errors.Join(failed, After(wait))
		}
		began := time.Now()
		err := step(ctx)
		failed = withoutRequest(err)
		now := time.Now()
		next = now.Add(min(cpuShare*now.Sub(began)-free, maxThrottle))
		return err
	}
}
