//go:build linux

package main

import (
	"fmt"
	"maps"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/test/history"
)

// report is docs/reliability.md, row by row.
type report struct {
	began time.Time
	rows  []*row
}

// row is all runs of a scene.
type row struct {
	Scene
	Counts
	runs   int
	took   time.Duration
	found  []string // with seed
	notRun string   // why
}

func newReport(now time.Time) *report { return &report{began: now} }

// row is that of a scene.
func (r *report) row(s Scene) *row {
	for _, known := range r.rows {
		if known.Name == s.Name {
			return known
		}
	}
	r.rows = append(r.rows, &row{Scene: s, Counts: newCounts()})
	return r.rows[len(r.rows)-1]
}

// miss notes that a scene was no part of this, if so.
func (r *report) miss(s Scene) {
	if row := r.row(s); row.runs == 0 && row.notRun == "" {
		row.notRun = "not a part of this run"
	}
}

// add runs a scene once and counts what came of it.
func (r *report) add(s Scene, once func() (Counts, time.Duration, uint64, error)) {
	to := r.row(s)
	counts, took, seed, err := once()
	if err != nil {
		to.notRun = err.Error()
		return
	}
	to.runs++
	to.took += took
	to.Operations += counts.Operations
	to.Histories += counts.Histories
	for _, sum := range []struct{ to, from map[string]int }{{to.Kills, counts.Kills}, {to.Faults, counts.Faults}, {to.Checked, counts.Checked}} {
		for what, n := range sum.from {
			sum.to[what] += n
		}
	}
	for _, what := range counts.Found {
		to.found = append(to.found, fmt.Sprintf("seed %d: %s", seed, what))
	}
}

func (r *report) findings() (n int) {
	for _, row := range r.rows {
		n += len(row.found)
	}
	return n
}

func total(of map[string]int) (n int) {
	for _, times := range of {
		n += times
	}
	return n
}

// text is the document.
func (r *report) text(now time.Time) string {
	var s strings.Builder
	fmt.Fprintf(&s, `# Reliability

Written by `+"`make soak`"+` on %s, after a run of %s (commit %s, %d CPUs, %s/%s).

Agents are killed with SIGKILL, meet faults at their API server, lose it, reboot. What they publish, what the API server has and is asked, and
when agents and devices run is recorded as one history of each run. It is judged afterwards by the rules below (test/history), which are themselves tested
with violations of each kind. A kill point is a distinct place at which an agent dies; a fault point is a fault together with what the drain was doing.

`, now.UTC().Format(time.DateOnly), now.Sub(r.began).Round(time.Second), commit(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	s.WriteString("## On a real control plane\n\n| scene | runs | kills (points) | faults (points) | operations | checks | found | time |\n|---|---|---|---|---|---|---|---|\n")
	for _, row := range r.rows {
		if !row.Fake {
			fmt.Fprintf(&s, "| %s | %d | %d (%d) | %d (%d) | %d | %d | %s | %s |\n", row.Name, row.runs, total(row.Kills), len(row.Kills),
				total(row.Faults), len(row.Faults), row.Operations, total(row.Checked), row.verdict(), row.took.Round(time.Second))
		}
	}
	s.WriteString("\n## In fake time\n\n| scene | runs | histories | found | time |\n|---|---|---|---|---|\n")
	histories := 0
	for _, row := range r.rows {
		if row.Fake {
			histories += row.Histories
			fmt.Fprintf(&s, "| %s | %d | %d | %s | %s |\n", row.Name, row.runs, row.Histories, row.verdict(), row.took.Round(time.Second))
		}
	}
	fmt.Fprintf(&s, "\nTogether %d histories.\n", histories)
	r.writeScenes(&s)
	r.writeRules(&s)
	r.writeFound(&s)
	return s.String()
}

func (r *row) verdict() string {
	switch {
	case len(r.found) > 0:
		return fmt.Sprintf("**%d**", len(r.found))
	case r.runs == 0:
		return "not run"
	}
	return "nothing"
}

// writeScenes says what each scene is, and which listed points it did not reach.
func (r *report) writeScenes(s *strings.Builder) {
	s.WriteString("\n## Scenes\n\nOne of them: `make soak SCENE=name`, with `SEED=n` as it was.\n\n")
	for _, row := range r.rows {
		fmt.Fprintf(s, "- `%s`: %s.", row.Name, row.Does)
		if row.notRun != "" {
			fmt.Fprintf(s, " Not run here: %s.", strings.TrimSpace(row.notRun))
		}
		for _, points := range []struct {
			what   string
			listed []string
			hit    map[string]int
		}{{"kill", row.KillPoints, row.Kills}, {"fault", row.FaultPoints, row.Faults}} {
			if len(points.listed) > 0 {
				fmt.Fprintf(s, " %s", reached(points.what, points.listed, points.hit))
			}
		}
		s.WriteString("\n")
	}
}

// enough is how often each listed point is to be hit.
const enough = 3

// reached compares what was listed with what was hit.
func reached(what string, listed []string, hit map[string]int) string {
	var never, seldom []string
	for _, point := range listed {
		switch n := hit[point]; {
		case n == 0:
			never = append(never, "`"+point+"`")
		case n < enough:
			seldom = append(seldom, "`"+point+"`")
		}
	}
	text := fmt.Sprintf("Of %d listed %s points %d were hit at least %d times.", len(listed), what, len(listed)-len(never)-len(seldom), enough)
	if len(seldom) > 0 {
		text += " Less often: " + strings.Join(seldom, ", ") + "."
	}
	if len(never) > 0 {
		text += " Never: " + strings.Join(never, ", ") + "."
	}
	return text
}

// writeRules says what was checked, and how often there was something to check.
func (r *report) writeRules(s *strings.Builder) {
	s.WriteString("\n## What is checked\n\n| rule | | how often there was something to judge |\n|---|---|---|\n")
	checked := newCounts().Checked
	for _, row := range r.rows {
		for what, n := range row.Checked {
			checked[what] += n
		}
	}
	for _, rule := range history.Rules() {
		fmt.Fprintf(s, "| %s | %s | %d |\n", rule.Name, rule.Says, checked[rule.Name])
		delete(checked, rule.Name)
	}
	for _, what := range slices.Sorted(maps.Keys(checked)) {
		fmt.Fprintf(s, "| %s | judged by the test itself | %d |\n", what, checked[what])
	}
}

func (r *report) writeFound(s *strings.Builder) {
	s.WriteString("\n## Found\n\n")
	if r.findings() == 0 {
		s.WriteString("Nothing.\n")
	}
	for _, row := range r.rows {
		for _, what := range row.found {
			fmt.Fprintf(s, "- `%s`, %s\n", row.Name, strings.ReplaceAll(strings.TrimSpace(what), "\n", " "))
		}
	}
}

// commit is what was measured.
func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
