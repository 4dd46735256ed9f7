package health

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/zedkube/zedkube/types"
)

// Check is one precondition of a healthy node.
type Check struct {
	Name string
	What string // the precondition, a sentence
	Look func(ctx context.Context) types.Finding
}

// patience is how long one check may take.
const patience = 2 * time.Second

// Examine carries out the checks at the same time and returns what they found,
// in their order. One that does not end in time is left behind, and its finding
// is unknown: a disk that hangs cannot be interrupted.
func Examine(ctx context.Context, checks []Check) []types.Finding {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found := make([]chan types.Finding, len(checks))
	for i, c := range checks {
		found[i] = make(chan types.Finding, 1)
		go func() { found[i] <- c.Look(ctx) }()
	}
	late := make(chan struct{})
	end := time.AfterFunc(patience+patience/4, func() { close(late) }) // a look notices the end of ctx and says what it knows
	defer end.Stop()
	findings := make([]types.Finding, len(checks))
	for i, c := range checks {
		select {
		case findings[i] = <-found[i]:
		case <-late:
			findings[i] = unknown("The check did not end within %s.", patience)
			select { // it may have ended since, while others were waited for
			case findings[i] = <-found[i]:
			default:
			}
		}
		findings[i].Rule = c.Name
	}
	return findings
}

// Named are the checks of those names, all for none; unknown are names of none.
func Named(checks []Check, names []string) (chosen []Check, unknown []string) {
	if len(names) == 0 {
		return checks, nil
	}
	for _, name := range names {
		at := slices.IndexFunc(checks, func(c Check) bool { return c.Name == name })
		if at < 0 {
			unknown = append(unknown, name)
			continue
		}
		chosen = append(chosen, checks[at])
	}
	return chosen, unknown
}

// once looks something up once, for all checks that need it.
type once[T any] struct {
	look func(ctx context.Context) T
	mu   sync.Mutex
	done chan struct{}
	v    T
}

// get waits for what the first one who asked has begun.
func (o *once[T]) get(ctx context.Context) (T, bool) {
	o.mu.Lock()
	if o.done == nil {
		o.done = make(chan struct{})
		go func() {
			o.v = o.look(ctx)
			close(o.done)
		}()
	}
	o.mu.Unlock()
	select {
	case <-o.done:
		return o.v, true
	case <-ctx.Done():
		var none T
		return none, false
	}
}
