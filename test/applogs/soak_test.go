//go:build linux && soak

package applogs

import (
	"testing"
	"time"
)

// TestSoakApplicationsOnRealNodes is the story of TestApplicationsOnRealNodes for
// longer.
func TestSoakApplicationsOnRealNodes(t *testing.T) {
	needsPods(t)
	s := newStage(t)
	s.applicationsRun(t)
	for range 3 {
		s.killPoints(t, 33)
		s.hostIsKilled(t)
		s.nodeIsCut(t, 90*time.Second)
	}
	s.everyLineIsTold(t)
}
