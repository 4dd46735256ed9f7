//go:build linux

package rig

import (
	"os"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/devcluster"
)

// Clock is the format of times of day in what a test prints.
const Clock = "15:04:05.000"

// Patience is how many times longer than a quiet machine needs a test waits for
// what must come: other tests may have both processors.
const Patience = 4

// Since is the time since at, as a test prints it.
func Since(at time.Time) time.Duration { return time.Since(at).Round(10 * time.Millisecond) }

// Until waits for missing to return "", which takes up to quiet on a quiet
// machine, and returns how long that took.
func Until(t *testing.T, quiet time.Duration, missing func() string) time.Duration {
	t.Helper()
	return Within(t, Patience*quiet, missing)
}

// Within waits for missing to return "", but no longer than limit, and returns
// how long that took.
func Within(t *testing.T, limit time.Duration, missing func() string) time.Duration {
	t.Helper()
	for began := time.Now(); ; {
		what := missing()
		if what == "" {
			return Since(began)
		}
		if time.Since(began) > limit {
			t.Fatalf("after %s: %s", limit.Round(time.Millisecond), what)
		}
		Pause(t, 50*time.Millisecond)
	}
}

// Lasts watches for some time that wrong goes on returning "".
func Lasts(t *testing.T, long time.Duration, wrong func() string) {
	t.Helper()
	for began := time.Now(); time.Since(began) < long; {
		if what := wrong(); what != "" {
			t.Fatalf("after %s: %s", Since(began), what)
		}
		Pause(t, 100*time.Millisecond)
	}
}

// Pause waits; the test fails if it is over before.
func Pause(t *testing.T, long time.Duration) {
	t.Helper()
	select {
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	case <-time.After(long):
	}
}

// NeedsHosts skips where there can be no hosts of their own, but not on a build
// machine.
func NeedsHosts(t *testing.T) {
	t.Helper()
	err := devcluster.CanHost()
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skip(err)
	}
}

// NeedsPods skips where nodes cannot be real, but not on a build machine.
func NeedsPods(t *testing.T) {
	t.Helper()
	err := devcluster.CanRunPods()
	if err != nil && !devcluster.MaySkip(err) {
		t.Fatal(err)
	}
	if err != nil {
		t.Skip(err)
	}
}
