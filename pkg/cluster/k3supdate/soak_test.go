//go:build soak

package k3supdate

import "testing"

// Most of the histories of the soak are short ones: what happens at first happens
// in most orders.
func TestSoakInShortHistoriesOneNodeChangesAtATime(t *testing.T) { histories(t, 10_000, 400, 300) }
