//go:build soak && failpoints

package main

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zedkube/zedkube/pkg/base/failpoint"
	"github.com/zedkube/zedkube/test/agent"
	"github.com/zedkube/zedkube/test/seeds"
)

// spared has the points, by how they begin, at which agents of a story do not kill themselves, and why; "" leaves
// the story out.
var spared = map[string]struct {
	points []string
	why    string
}{
	"newoperator": {[]string{""}, "it shows word for word what commands print on a new cluster"},
	"k3s":         {[]string{"k3sconfig/"}, "it waits for what an agent logs when it has written the file"},
	"traces":      {[]string{"k3sconfig/"}, "it waits for the record of a file that was written, which an agent that died of it does not make"},
	"members":     {[]string{"members/create events/before", "members/delete node: delete nodes/after"}, "it waits for an Event, which is sent once"},
	"certs":       {noRestart, "an agent that died between its journal and the restart of k3s tries again after a quarter of an hour"},
	"unheld":      {noRestart, "likewise"},
}

var noRestart = []string{"k3supdate/publish zedkube/KubeLifecycleJournal", "k3supdate/back up zedkube/KubeLifecycleJournal"}

// TestSoakStoriesOfAgentsThatKillThemselves plays the stories while the agents kill themselves at
// the points that test/soak/reach.txt has for this scene, and start again as EVE's watchdog has
// them do. What the stories expect still comes. A short soak tells some of them.
func TestSoakStoriesOfAgentsThatKillThemselves(t *testing.T) {
	stories, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("testdata/killed/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	stories = append(stories, more...)
	points := agent.Points(t, "stories")
	for seed := range seeds.Each(t, 1) {
		next := make(chan string, len(stories))
		for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(len(stories)) {
			if !slices.Contains(spared[nameOf(stories[i])].points, "") && len(next) < seeds.Some(len(stories), 12) {
				next <- stories[i]
			}
		}
		close(next)
		for _, teller := range []string{"one", "other"} {
			t.Run(fmt.Sprintf("seed %d, %s", seed, teller), func(t *testing.T) {
				t.Parallel()
				tellKilled(t, next, seed, points)
			})
		}
	}
}

func nameOf(file string) string { return strings.TrimSuffix(filepath.Base(file), ".txtar") }

// tellKilled is tell while agents are killed.
func tellKilled(t *testing.T, next <-chan string, seed uint64, points []string) {
	cluster := controlPlane(t)
	for file := range next {
		name := nameOf(file)
		kept := slices.DeleteFunc(slices.Clone(points), func(point string) bool {
			return slices.ContainsFunc(spared[name].points, func(begin string) bool { return strings.HasPrefix(point, begin) })
		})
		chance := fnv.New64()
		_, _ = chance.Write([]byte(name))
		rng := rand.New(rand.NewPCG(seed, chance.Sum64()))
		testscript.RunT(inTurn{t}, told(cluster, file, func(s *story, env *testscript.Env) func() {
			if err := askAgain(env); err != nil {
				t.Error(err)
			}
			for _, m := range s.fleet.Members {
				if err := m.KillAtSome(kept, rng); err != nil {
					t.Error(err)
				}
			}
			return func() { s.startKilled(t, name) }
		}))
	}
}

// again is the program for a story's commands: who is told that the agent died meanwhile asks again.
const again = `#!/bin/sh
case "$*" in *--watch*|*"join wait"*) exec PROGRAM "$@" ;; esac
out=$(mktemp) said=$(mktemp)
for try in 1 2 3 4 5; do
	PROGRAM "$@" >"$out" 2>"$said" && code=0 || code=$?
	cat "$out" "$said" | grep -q 'ask the agent: .*\(EOF\|connection refused\|connection reset\)' || break
	sleep 5
done
# The agent may have taken the request before it died, and carried it out since.
[ $try = 1 ] || ! grep -q 'there is nothing to leave\|k3s would renew none' "$said" || code=0
cat "$out"
cat "$said" >&2
rm "$out" "$said"
exit $code
`

// askAgain has the story's commands ask again.
func askAgain(env *testscript.Env) error {
	path := env.Getenv("PATH")
	dir := filepath.Join(env.WorkDir, "again")
	env.Setenv("PATH", dir+string(filepath.ListSeparator)+path)
	script := strings.ReplaceAll(again, "PROGRAM", filepath.Join(filepath.SplitList(path)[0], "zedkube"))
	return errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "zedkube"), []byte(script), 0o700))
}

// startKilled starts agents again that have killed themselves, until the story ends.
func (s *story) startKilled(t *testing.T, name string) {
	for s.plugged.Err() == nil {
		for _, m := range s.fleet.Members {
			if _, err := m.StartEnded(); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	listed := strings.Split(failpoint.List, "\n")
	for _, m := range s.fleet.Members {
		for _, how := range m.Ended() {
			if how != "signal: killed" {
				t.Errorf("%s: the agent of %s ended by itself: %s", name, m.Name, how)
			}
		}
		for _, point := range m.KilledAt() {
			t.Logf("%s: %s killed itself: %s", name, m.Name, point)
			seeds.Killed(t, point)
		}
		for _, point := range m.PassedPoints() {
			if effect := point[:strings.LastIndex(point, "/")]; !slices.Contains(listed, effect) {
				t.Errorf("%s: the agent of %s came to the point %s, which is not listed", name, m.Name, point)
			}
		}
	}
}
