// Package seeds gives tests of random histories their seeds: as many as usual, or
// as many as the soak (test/soak) wants and from where it begins.
package seeds

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The variables by which the soak says what it wants, and hears what it got.
const (
	First = "SOAK_SEED"
	Many  = "SOAK_HISTORIES"
	Book  = "SOAK_COUNTS" // a file
	Brief = "SOAK_SHORT"  // "true" for short runs
	Often = "SOAK_OFTEN"  // a file of kill points that were hit often enough, a line each
)

// Each are the seeds, from 0 on where the soak says nothing. What is played of
// them is counted.
func Each(t testing.TB, usual uint64) iter.Seq[uint64] {
	t.Helper()
	first, many := number(t, First, 0), number(t, Many, usual)
	return func(yield func(uint64) bool) {
		played := 0
		defer func() { Count(t, "histories", played) }()
		for seed := first; seed < first+many; seed++ {
			played++
			if !yield(seed) {
				return
			}
		}
	}
}

// Rand is chance by the seed of the soak. Without one it is by a random seed, and logs how it is repeated.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	seed := uint64(rand.Uint32())
	if os.Getenv(First) == "" {
		t.Logf("%s=%d repeats what happens by chance", First, seed)
	}
	return rand.New(rand.NewPCG(number(t, First, seed), 0))
}

// Split is chance for another goroutine: a *rand.Rand is for one only. The one that has rng calls it.
func Split(rng *rand.Rand) *rand.Rand { return rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64())) }

func number(t testing.TB, name string, usual uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// Some is most of something, or short where the soak wants short runs.
func Some[T any](most, short T) T {
	if os.Getenv(Brief) == "true" {
		return short
	}
	return most
}

// Seldom are those of the kill points that the soak has not hit often enough. Where there are
// none, and without a soak, it is all of them.
func Seldom(t testing.TB, points []string) []string {
	t.Helper()
	path := os.Getenv(Often)
	if path == "" {
		return points
	}
	often, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	known := strings.Split(string(often), "\n")
	seldom := slices.DeleteFunc(slices.Clone(points), func(point string) bool { return slices.Contains(known, point) })
	if len(seldom) == 0 {
		return points
	}
	return seldom
}

// Count tells the soak how many of something there were: histories, kills, faults
// or operations. Without it nobody is told.
func Count(t testing.TB, what string, n int) {
	t.Helper()
	tell(t, what, n)
}

// Killed tells the soak that an agent was killed at a kill point.
func Killed(t testing.TB, point string) {
	t.Helper()
	tell(t, "kills", 1, point)
}

// tell adds a line to the book.
func tell(t testing.TB, line ...any) {
	t.Helper()
	path := os.Getenv(Book)
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintln(f, line...); err != nil {
		t.Fatal(err)
	}
}
