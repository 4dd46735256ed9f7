package listwatch

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestTurnsThatAreNotUsedAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewSharedBackoff(LastGap)
		for range 5 { // as often as the server dies while all views wait
			alive, kill := context.WithCancel(t.Context())
			for range 4 {
				go turns.wait(t.Context(), alive, 0)
			}
			time.Sleep(100 * time.Millisecond)
			kill()
			synctest.Wait()
		}
		start := time.Now()
		if !turns.wait(t.Context(), t.Context(), 0) || time.Since(start) > firstGap {
			t.Errorf("the next turn came after %v", time.Since(start))
		}
	})
}

func TestATableThatHasGoneWellWaitsForNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewSharedBackoff(time.Minute)
		for range 8 { // of one that fails
			turns.wait(t.Context(), t.Context(), 0)
		}
		start := time.Now()
		if !turns.wait(t.Context(), t.Context(), steady) || time.Since(start) > firstGap {
			t.Errorf("its next try came after %v", time.Since(start))
		}
	})
}

func TestTurnsAreTakenOneByOneUntilASuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewSharedBackoff(LastGap)
		start := time.Now()
		var at []time.Duration
		done := make(chan time.Duration)
		for range 8 {
			go func() {
				turns.wait(t.Context(), t.Context(), 0)
				done <- time.Since(start)
			}()
		}
		for range 4 {
			at = append(at, <-done)
		}
		for i := 2; i < len(at); i++ {
			if gap := at[i] - at[i-1]; gap < 2*time.Second || gap > LastGap*11/10 {
				t.Errorf("turns at %v", at)
			}
		}
		turns.success()
		before := time.Since(start)
		for range 4 {
			if d := <-done; d != before {
				t.Errorf("after a success at %v one waited until %v", before, d)
			}
		}
	})
}
