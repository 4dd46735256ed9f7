//go:build soak

package pubsub

import "testing"

// A thousand kills instead of sixty: the windows between two system calls are
// narrow.
func TestSoakAProcessKilledWhileItPublishesLosesNothing(t *testing.T) {
	killOften(t, 1000)
}
