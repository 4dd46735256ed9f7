//go:build soak

package sriov

import "testing"

func TestSoakWhateverHappensEveryPluginOffersItsOwnInTheEnd(t *testing.T) {
	for seed := range uint64(300) {
		if play(t, 1000+seed, 60); t.Failed() {
			return
		}
	}
}
