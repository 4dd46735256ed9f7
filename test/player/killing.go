package player

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Failpoints is the directory by which the test build is told where to kill itself
// (docs/contributing.md, "Kill points"). Whoever wants that makes it, or calls KillAt.
func (d *Device) Failpoints() string { return filepath.Join(d.Root, "failpoints") }

// few points are ordered whole: an agent seldom comes to all of them.
const few = 20

// KillAtSome is KillAt for about half of the points, or for all of a few.
func (d *Device) KillAtSome(points []string, rng *rand.Rand) error {
	if len(points) > few {
		points = slices.DeleteFunc(slices.Clone(points), func(string) bool { return rng.IntN(2) == 0 })
	}
	return d.KillAt(points, rng)
}

// KillAt has the agent kill itself at each of the points once, when it comes there for the
// first or the second time. What it was told before no longer holds.
func (d *Device) KillAt(points []string, rng *rand.Rand) error {
	var orders strings.Builder
	for _, point := range points {
		fmt.Fprintf(&orders, "%d %s\n", 1+rng.IntN(3)/2, point)
	}
	if err := os.MkdirAll(d.Failpoints(), 0o700); err != nil {
		return err
	}
	file := filepath.Join(d.Failpoints(), "kill")
	part := file + ".part" // the agent reads it at any moment
	if err := os.WriteFile(part, []byte(orders.String()), 0o600); err != nil {
		return err
	}
	return os.Rename(part, file)
}

// KilledAt are the points at which the agent has killed itself, in that order.
func (d *Device) KilledAt() []string { return d.pointsIn("killed") }

// PassedPoints are those that each process of the agent has come to, where there is the directory of Failpoints.
func (d *Device) PassedPoints() []string { return d.pointsIn("passed") }

func (d *Device) pointsIn(name string) []string {
	content, err := os.ReadFile(filepath.Join(d.Failpoints(), name))
	if err != nil { // it has not come to any
		return nil
	}
	return strings.FieldsFunc(string(content), func(r rune) bool { return r == '\n' })
}
