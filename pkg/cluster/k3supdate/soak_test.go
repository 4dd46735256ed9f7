//go:build soak

package k3supdate

import "testing"

func TestSoakInRandomHistoriesOneNodeChangesAtATime(t *testing.T) {
	histories(t, 10_000, 3000, 2000)
	histories(t, 1_000_000, 400, 300)
}
