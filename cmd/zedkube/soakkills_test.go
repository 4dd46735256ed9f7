//go:build soak

package main

import "testing"

// TestSoakDrainKills is TestDrainSurvivesKillsAtRandomPoints for longer.
func TestSoakDrainKills(t *testing.T) { killDrains(t, 500) }
