//go:build linux && soak

package report

import (
	"testing"
	"time"
)

// TestSoakReportsAreHonest is TestReportsAreHonest for twenty minutes.
func TestSoakReportsAreHonest(t *testing.T) {
	honest(t, 20*time.Minute)
}
