//go:build linux

package main

import (
	"cmp"
	_ "embed" // what was found and fixed
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
	began   time.Time
	earlier time.Duration // of runs that an earlier soak has noted
	commit  string        // that runs
	commits []string      // that have run
	short   int           // runs
	rows    []*row
	book    string // a file for the runs, see done; "" for none
}

// row is all runs of a scene.
type row struct {
	Scene
	Counts
	runs   int
	took   time.Duration
	gained bool     // the last run came to listed points that lacked hits, and some still do
	found  []string // with seed
	notRun string   // why
	cannot bool     // run here
}

func newReport(now time.Time) *report { return &report{began: now, commit: commit()} }

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

// next is the scene of the next run: first one that was not run yet, then one whose last run came
// to points that lacked hits and that has more of them, then any; of these the one that was run least, and of
// these the one that takes least. Where the time is bounded it is one that has time left. False:
// enough was run.
func (r *report) next(all []Scene, o options) (next Scene, ok bool) {
	type order struct {
		later int
		runs  int
		takes time.Duration
	}
	var first order
	for _, s := range all {
		row := r.row(s)
		is := order{runs: row.runs, takes: s.takes()}
		if row.runs > 0 {
			is.takes = row.took / time.Duration(row.runs)
			if is.later = 1; !row.gained {
				is.later = 2
			}
		}
		switch {
		case row.cannot, row.runs > 0 && (o.long == 0 || o.seed != 0): // once is enough
		case o.long > 0 && time.Since(r.began)+is.takes > o.long:
		case !ok || cmp.Or(cmp.Compare(is.later, first.later), cmp.Compare(is.runs, first.runs), cmp.Compare(is.takes, first.takes)) < 0:
			next, first, ok = s, is, true
		}
	}
	return next, ok
}

// miss notes why a scene was not run, if so.
func (r *report) miss(s Scene, why string) {
	if row := r.row(s); row.runs == 0 && row.notRun == "" {
		row.notRun = why
	}
}

// add runs a scene once and counts what came of it.
func (r *report) add(s Scene, short bool, once func() (Counts, time.Duration, uint64, error)) error {
	counts, took, seed, err := once()
	if err != nil {
		to := r.row(s)
		to.notRun = err.Error()
		to.cannot = true
		return nil
	}
	run := done{s.Name, seed, r.commit, short, took, counts}
	r.count(s, run)
	return run.note(r.book)
}

// count counts a run.
func (r *report) count(s Scene, run done) {
	to := r.row(s)
	lacked := r.lacks(s)
	to.runs++
	to.took += run.Took
	to.Operations += run.Operations
	to.Histories += run.Histories
	for _, sum := range []struct{ to, from map[string]int }{{to.Kills, run.Kills}, {to.Faults, run.Faults}, {to.Checked, run.Checked}} {
		for what, n := range sum.from {
			sum.to[what] += n
		}
	}
	lacks := r.lacks(s)
	to.gained = 0 < lacks && lacks < lacked
	for _, what := range run.Found {
		to.found = append(to.found, fmt.Sprintf("seed %d, commit %s: %s", run.Seed, run.Commit, what))
	}
	if !slices.Contains(r.commits, run.Commit) {
		r.commits = append(r.commits, run.Commit)
	}
	if run.Short {
		r.short++
	}
}

// lacks is how many hits the listed points of a scene lack.
func (r *report) lacks(s Scene) (n int) {
	hit := r.hits()
	for _, point := range s.KillPoints {
		n += max(0, enough-hit.Kills[point])
	}
	for _, point := range s.FaultPoints {
		n += max(0, enough-hit.Faults[point])
	}
	return n
}

// hits is how often each point was hit, whatever the scene.
func (r *report) hits() Counts {
	all := newCounts()
	for _, row := range r.rows {
		for point, n := range row.Kills {
			all.Kills[point] += n
		}
		for point, n := range row.Faults {
			all.Faults[point] += n
		}
	}
	return all
}

// runs is how many there were.
func (r *report) runs() (n int) {
	for _, row := range r.rows {
		n += row.runs
	}
	return n
}

// long is how long all runs took.
func (r *report) long(now time.Time) time.Duration {
	return (r.earlier + now.Sub(r.began)).Round(time.Second)
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

Written by `+"`make soak`"+` on %s, after %d runs of %s together (commit %s, %d CPUs, %s/%s).

Agents are killed with SIGKILL, meet faults at their API server, lose it, reboot. What they publish, what the API server has and is asked, and
when agents and devices run is recorded as one history of each run. It is judged afterwards by the rules below (test/history), which are themselves tested
with violations of each kind. A kill point is a distinct place at which an agent dies; a fault point is a fault together with what the drain was doing.

`, now.UTC().Format(time.DateOnly), r.runs(), r.long(now), strings.Join(r.commits, ", "), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	if r.short > 0 {
		fmt.Fprintf(&s, "%d runs are short ones, as in `make test`: they kill and ask less, and play a fifth of the histories.\n\n", r.short)
	}
	r.writeNight(&s, now)
	s.WriteString("## On a real control plane\n\n| scene | runs | kills (points) | faults (points) | operations | checks | found | time |\n|---|---|---|---|---|---|---|---|\n")
	for _, row := range r.rows {
		if !row.Fake {
			fmt.Fprintf(&s, "| %s | %d | %d (%d) | %d (%d) | %d | %d | %s | %s |\n", row.Name, row.runs, total(row.Kills), len(row.Kills),
				total(row.Faults), len(row.Faults), row.Operations, total(row.Checked), row.verdict(), row.took.Round(time.Second))
		}
	}
	s.WriteString("\n## In fake time\n\n| scene | runs | histories | kills (points) | found | time |\n|---|---|---|---|---|---|\n")
	histories := 0
	for _, row := range r.rows {
		if row.Fake {
			histories += row.Histories
			fmt.Fprintf(&s, "| %s | %d | %d | %d (%d) | %s | %s |\n", row.Name, row.runs, row.Histories, total(row.Kills), len(row.Kills), row.verdict(), row.took.Round(time.Second))
		}
	}
	fmt.Fprintf(&s, "\nTogether %d histories.\n", histories)
	r.writePoints(&s)
	r.writeScenes(&s)
	r.writeRules(&s)
	r.writeFound(&s)
	writeFixed(&s)
	r.writeSeldom(&s)
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

// writeScenes says what each scene is, and how many listed points it did not reach.
func (r *report) writeScenes(s *strings.Builder) {
	s.WriteString("\n## Scenes\n\nOne of them: `make soak SCENE=name`, with `SEED=n` as it was.\n\n")
	hit := r.hits()
	for _, row := range r.rows {
		fmt.Fprintf(s, "- `%s`: %s.", row.Name, row.Does)
		if row.notRun != "" {
			fmt.Fprintf(s, " Not run here: %s.", strings.TrimSpace(row.notRun))
		}
		for _, points := range []struct {
			what   string
			listed []string
			hit    map[string]int
		}{{"kill", row.KillPoints, hit.Kills}, {"fault", row.FaultPoints, hit.Faults}} {
			if len(points.listed) > 0 {
				seldom, never := tooSeldom(points.listed, points.hit)
				fmt.Fprintf(s, " Of %d listed %s points %d were hit at least %d times, %d less often, %d never.", len(points.listed), points.what,
					len(points.listed)-len(seldom)-len(never), enough, len(seldom), len(never))
			}
		}
		s.WriteString("\n")
	}
}

// enough is how often each listed point is to be hit.
const enough = 3

// tooSeldom are the listed points that were not hit often enough.
func tooSeldom(listed []string, hit map[string]int) (seldom, never []string) {
	for _, point := range listed {
		switch n := hit[point]; {
		case n == 0:
			never = append(never, point)
		case n < enough:
			seldom = append(seldom, point)
		}
	}
	return seldom, never
}

// writeSeldom lists the points that were not hit often enough, last: there may be many.
func (r *report) writeSeldom(s *strings.Builder) {
	fmt.Fprintf(s, "\n## Points that were hit less than %d times\n\n", enough)
	hit, none := r.hits(), true
	for _, row := range r.rows {
		for _, points := range []struct {
			listed []string
			hit    map[string]int
		}{{row.KillPoints, hit.Kills}, {row.FaultPoints, hit.Faults}} {
			seldom, never := tooSeldom(points.listed, points.hit)
			for _, some := range []struct {
				how    string
				points []string
			}{{"seldom", seldom}, {"never", never}} {
				if len(some.points) > 0 {
					none = false
					fmt.Fprintf(s, "- `%s`, %s: `%s`\n", row.Name, some.how, strings.Join(some.points, "`, `"))
				}
			}
		}
	}
	if none {
		s.WriteString("None.\n")
	}
}

// writePoints says of all kill points that the program lists which scene reaches them, and how
// many of them were hit.
func (r *report) writePoints(s *strings.Builder) {
	fmt.Fprintf(s, "\n## Kill points\n\nThe program lists %d of them: before and after each of its %d effects.\n\n", 2*len(listed()), len(listed()))
	fmt.Fprintf(s, "| reached by | kill points | hit %d times or more | less often | never |\n|---|---|---|---|---|\n", enough)
	hit := r.hits().Kills
	var order []string
	points := map[string][]string{}
	for effect, by := range reachable() {
		if why, none := strings.CutPrefix(by, "- "); none {
			by = "no scene: " + why
		}
		if points[by] == nil {
			order = append(order, by)
		}
		points[by] = append(points[by], effect+"/before", effect+"/after")
	}
	slices.SortStableFunc(order, func(a, b string) int { return len(points[b]) - len(points[a]) })
	for _, by := range order {
		seldom, never := tooSeldom(points[by], hit)
		fmt.Fprintf(s, "| %s | %d | %d | %d | %d |\n", by, len(points[by]), len(points[by])-len(seldom)-len(never), len(seldom), len(never))
	}
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
	s.WriteString("\n## Found in these runs\n\n")
	if r.findings() == 0 {
		s.WriteString("Nothing.\n")
	}
	for _, row := range r.rows {
		for _, what := range row.found {
			fmt.Fprintf(s, "- `%s`, %s\n", row.Name, strings.ReplaceAll(strings.TrimSpace(what), "\n", " "))
		}
	}
}

// found has a line for each finding that is fixed: scene, seed, commit, what was
// wrong, and the subject of the commit that fixes it, with tabs between them.
//
//go:embed found.txt
var found string

func writeFixed(s *strings.Builder) {
	s.WriteString("\n## Found and fixed\n\n| scene | seed | commit | what was wrong | fixed by |\n|---|---|---|---|---|\n")
	for line := range strings.Lines(found) {
		fmt.Fprintf(s, "| %s |\n", strings.ReplaceAll(strings.TrimSpace(line), "\t", " | "))
	}
}

// night is how long the goals have; the rest are the goals.
const (
	night          = 8 * time.Hour
	nightKills     = 1000
	nightFaults    = 1000
	nightHistories = 1_000_000
)

// writeNight compares this run with the goals of a night.
func (r *report) writeNight(s *strings.Builder, now time.Time) {
	long := r.long(now)
	at := func(n int) int { return int(float64(n) * float64(night) / float64(long)) }
	var kills, simulated, faults, histories int
	run, hit := 0, r.hits()
	var killPoints, faultPoints, notRun []string
	for _, row := range r.rows {
		if row.Fake {
			simulated += total(row.Kills)
		} else {
			kills += total(row.Kills)
		}
		faults, histories = faults+total(row.Faults), histories+row.Histories
		killPoints, faultPoints = append(killPoints, row.KillPoints...), append(faultPoints, row.FaultPoints...)
		if row.runs > 0 {
			run++
		} else {
			notRun = append(notRun, "`"+row.Name+"`")
		}
	}
	often := func(points []string, hit map[string]int) int {
		seldom, never := tooSeldom(points, hit)
		return len(points) - len(seldom) - len(never)
	}
	fmt.Fprintf(s, "## Compared with a night\n\nA night is %g hours on two cores. The last column is what came of these runs times %.1f; it is no measurement.\n\n", night.Hours(), float64(night)/float64(long))
	s.WriteString("| | goal of a night | these runs | a night of such runs |\n|---|---|---|---|\n")
	fmt.Fprintf(s, "| length | %s | %s | |\n", night, long)
	fmt.Fprintf(s, "| scenes | %d | %d | |\n", len(r.rows), run)
	fmt.Fprintf(s, "| kills | %d | %d | %d |\n", nightKills, kills, at(kills))
	fmt.Fprintf(s, "| kills in fake time | | %d | %d |\n", simulated, at(simulated))
	fmt.Fprintf(s, "| listed kill points, hit %d times or more | %d | %d | |\n", enough, 2*len(listed()), often(killPoints, hit.Kills))
	fmt.Fprintf(s, "| faults | %d | %d | %d |\n", nightFaults, faults, at(faults))
	fmt.Fprintf(s, "| listed fault points, hit %d times or more | %d | %d | |\n", enough, len(faultPoints), often(faultPoints, hit.Faults))
	fmt.Fprintf(s, "| histories in fake time | %d | %d | %d |\n\n", nightHistories, histories, at(histories))
	if len(notRun) > 0 {
		fmt.Fprintf(s, "Not run: %s. Why is said below.\n\n", strings.Join(notRun, ", "))
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
