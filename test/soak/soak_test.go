//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestShortScenesKeepTheRules has the short forms of some scenes, with fixed seeds.
func TestShortScenesKeepTheRules(t *testing.T) {
	var flags []string
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		flags = append(flags, "-race")
	}
	program, err := build(t.Context(), "../..", t.TempDir(), flags...)
	if err != nil {
		t.Fatal(err)
	}
	for _, short := range []struct {
		scene         string
		seed          uint64
		kills, faults int // at least
		judged        []string
	}{
		{"drains", 1, 50, 1, []string{"complete", "order", "one at a time", "locked", "cordons", "explained", "one copy", "one reporter", "evicts", "runs again"}},
		{"alone", 5, 0, 2, []string{"one at a time", together, "cordons"}}, // two of the three devices are
		{"replicas", 1, 0, len(losses), []string{"complete", lastWhole, "cordons"}},
	} {
		t.Run(short.scene, func(t *testing.T) {
			i := slices.IndexFunc(scenes(), func(s Scene) bool { return s.Name == short.scene })
			counts, took, _, err := once(t.Context(), scenes()[i], options{program: program, seed: short.seed, short: true}, Counts{}, t.Output())
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d kills, %d faults, %d operations in %s; checked %v", total(counts.Kills), total(counts.Faults), counts.Operations, took, counts.Checked)
			for _, found := range counts.Found {
				t.Error(found)
			}
			for _, what := range short.judged {
				if counts.Checked[what] == 0 {
					t.Errorf("nothing was there to judge: %q", what)
				}
			}
			if total(counts.Kills) < short.kills || total(counts.Faults) < short.faults {
				t.Error("next to nothing happened")
			}
		})
	}
}

func TestTheNextSceneIsOneThatWasRunLeastAndHasTimeLeft(t *testing.T) {
	quick, slow, away := Scene{Name: "quick"}, Scene{Name: "slow", Takes: 20 * time.Minute}, Scene{Name: "away"}
	all := []Scene{slow, away, quick}
	ran := func(took time.Duration, err error) func() (Counts, time.Duration, uint64, error) {
		return func() (Counts, time.Duration, uint64, error) { return newCounts(), took, 1, err }
	}
	for name, r := range map[string]struct {
		asked options
		spent time.Duration
		want  string
	}{
		"once each":              {options{}, 0, "quick slow"},
		"once each with a seed":  {options{long: time.Hour, seed: 3}, 0, "quick slow"},
		"until the time is over": {options{long: 21*time.Minute + 30*time.Second}, 18 * time.Minute, "quick quick quick"},
		"in turn":                {options{long: time.Hour}, 0, "quick slow quick slow quick quick quick quick quick"},
	} {
		report := newReport(time.Now().Add(-r.spent))
		add(t, report, away, ran(0, errors.New("not here")))
		var got []string
		for len(got) < 9 {
			s, ok := report.next(all, r.asked)
			if !ok {
				break
			}
			got = append(got, s.Name)
			took := max(s.Takes, time.Minute)
			add(t, report, s, ran(took, nil))
			report.began = report.began.Add(-took)
		}
		if strings.Join(got, " ") != r.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func add(t *testing.T, r *report, s Scene, once func() (Counts, time.Duration, uint64, error)) {
	t.Helper()
	if err := r.add(s, true, once); err != nil {
		t.Fatal(err)
	}
}

func TestScenesThatCameToPointsThatLackHitsComeFirst(t *testing.T) {
	killed := func(points ...string) func() (Counts, time.Duration, uint64, error) {
		counts := newCounts()
		for _, point := range points {
			counts.Kills[point]++
		}
		return func() (Counts, time.Duration, uint64, error) { return counts, 2 * time.Minute, 1, nil }
	}
	quick, kills := Scene{Name: "quick"}, Scene{Name: "kills", KillPoints: []string{"a", "b"}, Takes: 2 * time.Minute}
	report, all := newReport(time.Now()), []Scene{quick, kills}
	asked := options{long: time.Hour}
	for i, step := range []struct {
		want string
		then []string
	}{
		{"quick", nil},
		{"kills", []string{"a"}},
		{"kills", []string{"a"}},
		{"kills", []string{"a", "b"}},
		{"kills", []string{"a"}}, // that has hits enough: nothing is gained
		{"quick", nil},
		{"quick", nil},
		{"quick", nil},
		{"quick", nil},
		{"kills", []string{"b", "b"}}, // its turn: as often as the other
		{"quick", nil},
	} {
		s, ok := report.next(all, asked)
		if !ok || s.Name != step.want {
			t.Fatalf("step %d: %q, wanted %q", i, s.Name, step.want)
		}
		add(t, report, s, killed(step.then...))
	}
}

func TestASoakGoesOnWithTheRunsOfTheOneBefore(t *testing.T) {
	book := filepath.Join(t.TempDir(), "new", "runs.jsonl")
	began := time.Now()
	open := func(more bool) *report {
		t.Helper()
		r := newReport(began)
		r.book, r.commit = book, "c"+strconv.FormatBool(more)
		if err := r.open(more); err != nil {
			t.Fatal(err)
		}
		return r
	}
	point := reachedBy("killpoints")[0]
	one := func(r *report) {
		t.Helper()
		add(t, r, scenes()[1], func() (Counts, time.Duration, uint64, error) {
			return Counts{Kills: map[string]int{point: 2}, Operations: 5, Checked: map[string]int{"complete": 3}, Found: []string{"a lie"}}, time.Minute, 7, nil
		})
	}
	one(open(true)) // there is none before
	second := open(true)
	second.commit = "another"
	one(second)
	text := open(true).text(began.Add(time.Hour))
	for _, want := range []string{
		"after 2 runs of 1h2m0s together (commit ctrue, another,",
		"2 runs are short ones",
		"| killpoints | 2 | 4 (1) | 0 (0) | 10 | 6 | **2** | 2m0s |",
		"- `killpoints`, seed 7, commit another: a lie",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if r := open(false); r.runs() != 0 {
		t.Errorf("a new soak begins with %d runs", r.runs())
	}
	if r := open(true); r.runs() != 0 {
		t.Errorf("after a new soak the one before it stands with %d runs", r.runs())
	}
	if err := os.WriteFile(book, []byte(`{"scene":"gone"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newReport(began)
	r.book = book
	if err := r.open(true); err == nil || !strings.Contains(err.Error(), `no scene "gone"`) {
		t.Errorf("a run of a scene that is gone: %v", err)
	}
}

func TestEveryTestThatIsASceneIsThere(t *testing.T) {
	known := map[string]bool{}
	for _, s := range scenes() {
		if known[s.Name] || s.Name == "" || s.Does == "" || (s.Run == nil) == (s.Test == "") {
			t.Errorf("the scene %+v", s)
		}
		known[s.Name] = true
		if s.Run != nil {
			continue
		}
		files, _ := filepath.Glob(filepath.Join("../..", s.Package, "*_test.go"))
		function := regexp.MustCompile(`(?m)^func ` + s.Test + `\(`)
		if !slices.ContainsFunc(files, func(file string) bool {
			content, err := os.ReadFile(file)
			return err == nil && function.Match(content)
		}) {
			t.Errorf("%s: there is no %s in %s", s.Name, s.Test, s.Package)
		}
	}
}

func TestTheReportSaysWhatWasFoundAndWhatWasNotReached(t *testing.T) {
	began := time.Now()
	r := newReport(began)
	points := reachedBy("killpoints")
	often, seldom := points[0], points[1]
	real := Scene{Name: "real", Does: "something", KillPoints: []string{often, "b", "c"}}
	for _, found := range [][]string{nil, {"a lie"}} {
		add(t, r, real, func() (Counts, time.Duration, uint64, error) {
			return Counts{Kills: map[string]int{often: 2, seldom: 1, "b": 1}, Operations: 5, Checked: map[string]int{"complete": 3, "TestX": 1}, Found: found}, time.Minute, 7, nil
		})
	}
	add(t, r, Scene{Name: "fake", Does: "nothing real", Fake: true}, func() (Counts, time.Duration, uint64, error) {
		return Counts{Histories: 1000}, time.Second, 8, nil
	})
	add(t, r, Scene{Name: "away", Does: "nothing", Needs: nil}, func() (Counts, time.Duration, uint64, error) {
		return Counts{}, 0, 0, errors.New("no root")
	})
	r.miss(Scene{Name: "late", Does: "nothing"}, "the time was over")
	text := r.text(began.Add(time.Hour))
	for _, want := range []string{
		"after 3 runs of 1h0m0s together (commit " + commit() + ", ",
		"| real | 2 | 8 (3) | 0 (0) | 10 | 8 | **1** | 2m0s |",
		"| fake | 1 | 1000 | 0 (0) | nothing | 1s |",
		"Together 1000 histories.",
		"| away | 0 | 0 (0) | 0 (0) | 0 | 0 | not run | 0s |",
		"Not run here: no root.",
		"Of 3 listed kill points 1 were hit at least 3 times, 1 less often, 1 never.",
		"- `real`, seldom: `b`\n- `real`, never: `c`\n",
		"while a pod, a volume or the quorum needs the node | 6 |",
		"| TestX | judged by the test itself | 2 |",
		"- `real`, seed 7, commit " + commit() + ": a lie",
		"| length | 8h0m0s | 1h0m0s | |",
		"| scenes | 4 | 2 | |",
		"| kills | 1000 | 8 | 64 |",
		fmt.Sprintf("| listed kill points, hit 3 times or more | %d | 1 | |", 2*len(listed())),
		"| histories in fake time | 1000000 | 1000 | 8000 |",
		"Not run: `away`, `late`.",
		"The program lists 464 of them",
		"| killpoints | 154 | 1 | 1 | 152 |",
		"Not run here: the time was over.",
		"| restores | 2860464385 | 0f859d19 | ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if r.findings() != 1 {
		t.Errorf("%d findings", r.findings())
	}
	if t.Failed() {
		t.Log(text)
	}
}
