//go:build linux && soak

package report

import (
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/seeds"
)

// TestSoakReportsAreHonest is TestReportsAreHonest for twenty minutes, or three where the soak is short.
func TestSoakReportsAreHonest(t *testing.T) {
	honest(t, seeds.Some(20*time.Minute, 3*time.Minute))
}
