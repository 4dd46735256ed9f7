package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus/hooks/test"
)

// doorbell is an input the test rings.
type doorbell struct{ bell chan<- struct{} }

func (d *doorbell) Notify(bell chan<- struct{}) { d.bell = bell }

func (d *doorbell) ring() {
	select {
	case d.bell <- struct{}{}:
	default:
	}
}

// bench is a loop with a period of 10 s.
type bench struct {
	door  doorbell
	pulse Pulse
	log   *test.Hook
	mu    sync.Mutex
	began []time.Duration // the steps, from the start
}

// try runs a loop around do, which gets the number of its step, from 1.
func try(t *testing.T, do func(ctx context.Context, n int) error, tell func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		logger, hook := test.NewNullLogger()
		b := &bench{log: hook}
		start := time.Now()
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			Run(ctx, logger, &b.pulse, 10*time.Second, func(ctx context.Context) error {
				b.mu.Lock()
				b.began = append(b.began, time.Since(start))
				n := len(b.began)
				b.mu.Unlock()
				return do(ctx, n)
			}, &b.door)
		}()
		synctest.Wait()
		tell(b)
		cancel()
		<-done
	})
}

func fine(context.Context, int) error   { return nil }
func broken(context.Context, int) error { return errors.New("no") }

func (b *bench) steps() []time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.began)
}

func (b *bench) stepped(t *testing.T, want ...time.Duration) {
	t.Helper()
	synctest.Wait()
	if d := cmp.Diff(want, b.steps()); d != "" {
		t.Error(d)
	}
}

func (b *bench) messages() (lines []string) {
	for _, e := range b.log.AllEntries() {
		line := e.Message
		if err, ok := e.Data["error"]; ok {
			line += ": " + fmt.Sprint(err)
		}
		lines = append(lines, line)
	}
	return lines
}

const s = time.Second

func TestThePeriodAloneMakesSteps(t *testing.T) {
	try(t, fine, func(b *bench) {
		time.Sleep(25 * s)
		b.stepped(t, 0, 10*s, 20*s)
	})
}

func TestARingWakesTheLoopAtOnce(t *testing.T) {
	try(t, fine, func(b *bench) {
		time.Sleep(3 * s)
		b.door.ring()
		b.stepped(t, 0, 3*s)
		time.Sleep(11 * s)
		b.stepped(t, 0, 3*s, 13*s)
	})
}

func TestRingsDuringAStepAreOne(t *testing.T) {
	slowFirst := func(_ context.Context, n int) error {
		if n == 1 {
			time.Sleep(2 * s)
		}
		return nil
	}
	try(t, slowFirst, func(b *bench) {
		time.Sleep(s)
		for range 100 {
			b.door.ring()
		}
		time.Sleep(5 * s)
		b.stepped(t, 0, 2*s)
	})
}

func TestFailuresBackOffUpToThePeriod(t *testing.T) {
	try(t, broken, func(b *bench) {
		time.Sleep(30 * s)
		steps := b.steps()
		for i, gap := range []time.Duration{1, 2, 4, 8, 10} {
			if got := steps[i+1] - steps[i]; got != gap*s+failurePause {
				t.Errorf("gap %d is %s", i, got)
			}
		}
	})
}

func TestRingsDuringAFailureAreNoStorm(t *testing.T) {
	try(t, broken, func(b *bench) {
		for range 10000 {
			time.Sleep(time.Millisecond)
			b.door.ring()
		}
		if n := len(b.steps()); n > 41 {
			t.Errorf("%d steps in ten seconds", n)
		}
	})
}

func TestAWishWakesTheLoopSoonerAndNeverLater(t *testing.T) {
	wish := func(_ context.Context, n int) error {
		if n < 3 {
			return After(2 * s)
		}
		return After(time.Hour)
	}
	try(t, wish, func(b *bench) {
		time.Sleep(15 * s)
		b.stepped(t, 0, 2*s, 4*s, 14*s)
		if lines := b.messages(); len(lines) != 0 {
			t.Errorf("a wish was logged: %q", lines)
		}
	})
}

func TestAWishJoinedWithAFailureCountsAndIsNotLogged(t *testing.T) {
	both := func(_ context.Context, n int) error {
		failure := fmt.Errorf("%w and %w", errors.New("no"), errors.New("neither"))
		return errors.Join(failure, After(time.Duration(10+n)*time.Millisecond))
	}
	try(t, both, func(b *bench) {
		time.Sleep(s)
		if n := len(b.steps()); n != 4 {
			t.Errorf("%d steps in a second", n)
		}
		if d := cmp.Diff([]string{"step failed: no and neither"}, b.messages()); d != "" {
			t.Errorf("the wish made the failure look new: %s", d)
		}
	})
}

func TestAFailureIsLoggedOnceAndSoIsItsEnd(t *testing.T) {
	until4 := func(_ context.Context, n int) error {
		switch {
		case n <= 3:
			return errors.New("no")
		case n == 4:
			return errors.New("still no")
		}
		return nil
	}
	try(t, until4, func(b *bench) {
		time.Sleep(time.Minute)
		want := []string{"step failed: no", "step failed: still no", "step succeeds again"}
		if d := cmp.Diff(want, b.messages()); d != "" {
			t.Error(d)
		}
	})
}

func TestAStepEndsWithItsDeadline(t *testing.T) {
	hang := func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }
	try(t, hang, func(b *bench) {
		time.Sleep(stepTimeout + 2*s)
		b.stepped(t, 0, stepTimeout+s+failurePause)
	})
}

func TestAFailingLoopIsNotStuckAndAHungOneIs(t *testing.T) {
	hungAt20 := func(_ context.Context, n int) error {
		if n < 20 {
			return errors.New("no")
		}
		time.Sleep(200 * s) // deaf to its context, as a deadlock is
		return nil
	}
	try(t, hungAt20, func(b *bench) {
		if (&Pulse{}).Stuck(time.Now()) {
			t.Error("a loop that has not started is stuck")
		}
		for len(b.steps()) < 20 {
			if b.pulse.Stuck(time.Now()) {
				t.Fatal("a failing loop is stuck")
			}
			time.Sleep(s)
		}
		time.Sleep(80 * s)
		if b.pulse.Stuck(time.Now()) {
			t.Error("stuck before three times the bound")
		}
		time.Sleep(20 * s)
		if !b.pulse.Stuck(time.Now()) {
			t.Error("a hung step is not stuck")
		}
		time.Sleep(101 * s)
		if b.pulse.Stuck(time.Now()) {
			t.Error("stuck after it went on")
		}
	})
}
