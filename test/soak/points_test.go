//go:build linux

package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zedkube/zedkube/test/devcluster"
)

// effects are those that the test build lists.
func effects(t *testing.T) []string {
	t.Helper()
	content, err := os.ReadFile("../../pkg/base/failpoint/effects.txt")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(content)), "\n")
}

func TestEveryKillPointIsReachedByASceneOrTheTableSaysWhyNot(t *testing.T) {
	known := map[string]bool{}
	for line := range strings.Lines(reach) {
		effect, by, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if known[effect] {
			t.Errorf("%s is there twice", effect)
		}
		known[effect] = true
		why, none := strings.CutPrefix(by, "- ")
		if !ok || none && why == "" || !none && !slices.Contains(names(), by) {
			t.Errorf("%s: neither a scene nor a reason: %q", effect, by)
		}
	}
	listed := effects(t)
	for _, effect := range listed {
		if !known[effect] {
			t.Errorf("reach.txt does not say which scene reaches %s", effect)
		}
	}
	for effect := range known {
		if !slices.Contains(listed, effect) {
			t.Errorf("reach.txt has %s, which the program does not list", effect)
		}
	}
	if points := reachedBy("killpoints"); !slices.Contains(points, "drain/cordon: patch nodes/before") || !slices.Contains(points, "drain/cordon: patch nodes/after") {
		t.Errorf("the cordon is not among what killpoints reaches: %q", points)
	}
}

func TestEveryFaultPointIsAFaultOfARequestThatAgentsSend(t *testing.T) {
	var writes []string
	for _, effect := range effects(t) {
		_, request, is := strings.Cut(effect, ": ")
		if !is {
			_, request, _ = strings.Cut(effect, "/")
		}
		writes = append(writes, strings.Replace(request, "pods/eviction", "eviction", 1))
	}
	seen := map[string]bool{}
	for _, p := range faultPoints() {
		if seen[p.String()] {
			t.Errorf("%s is there twice", p)
		}
		seen[p.String()] = true
		if f, err := devcluster.ParseFault(p.fault().String()); err != nil || f == devcluster.None {
			t.Errorf("%s: %v", p, err)
		}
		verb, _, _ := strings.Cut(p.request, " ")
		if verb != "get" && verb != "watch" && verb != "all" && !slices.Contains(writes, p.request) {
			t.Errorf("%s: no component writes that", p)
		}
	}
	if len(seen) < 200 {
		t.Errorf("there are only %d fault points", len(seen))
	}
}
