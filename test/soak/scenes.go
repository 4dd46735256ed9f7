//go:build linux

package main

// scenes are all of them, in the order in which they run.
func scenes() []Scene {
	return []Scene{
		{
			Name: "drains", Run: drains,
			Does: "three devices drain again and again: reboots, updates, withdrawals, two requesters, drains that cannot end, foreign cordons; their agents are killed and their API servers have faults meanwhile",
		},
	}
}
