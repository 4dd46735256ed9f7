package overview

import (
	"sync"
	"time"
)

// Shared is a look whose result serves all who look within a time, which each of them chooses: a look
// reads every file of the agent's topics. What it returns is not to be changed.
func Shared(look func(now time.Time) Overview) (within func(time.Duration) func(now time.Time) Overview) {
	var (
		mu   sync.Mutex // guards the others
		last Overview
		at   time.Time
	)
	return func(within time.Duration) func(now time.Time) Overview {
		return func(now time.Time) Overview {
			mu.Lock()
			defer mu.Unlock()
			if at.IsZero() || now.Sub(at).Abs() >= within {
				last, at = look(now), now
			}
			return last
		}
	}
}
