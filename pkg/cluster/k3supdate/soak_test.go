//go:build soak

package k3supdate

import "testing"

func TestSoakInRandomHistoriesOneNodeChangesAtATime(t *testing.T) { histories(t, 1_000_000) }
