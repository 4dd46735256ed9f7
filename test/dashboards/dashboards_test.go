package dashboards

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"github.com/zedkube/zedkube/test/promtool"
)

var update = flag.Bool("update", false, "rewrite docs/dashboards")

// built are the dashboards as they are in files, by name.
func built(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for name, b := range All() {
		d, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Validate(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		content, err := json.MarshalIndent(d, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		files[name] = append(content, '\n')
	}
	return files
}

func TestTheDashboardsInDocsAreThoseOfTheCode(t *testing.T) {
	for name, want := range built(t) {
		file := filepath.Join("../../docs/dashboards", name+".json")
		if *update {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not as the code makes it (%v): go test ./test/dashboards -update", file, err)
		}
	}
}

// queries are the queries of a dashboard.
func queries(t *testing.T, content []byte) (found []string) {
	t.Helper()
	var d struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(content, &d); err != nil {
		t.Fatal(err)
	}
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			found = append(found, q.Expr)
		}
	}
	return found
}

func TestGrafanasSchemaKnowsEveryField(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	files, err := filepath.Glob("../../docs/dashboards/*.json")
	if err != nil || len(files) != 3 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard.Dashboard
		if err := d.UnmarshalJSONStrict(content); err != nil && err.Error() != "" { // it returns a list, which may be empty
			t.Errorf("%s: %v", file, err)
		}
		if len(queries(t, content)) < 10 {
			t.Errorf("%s has only %d queries", file, len(queries(t, content)))
		}
	}
}

// TestPanelsFitAndSayWhatTheyShow judges what a person sees: the grid of Grafana has 24 columns, and
// what lies over another panel, or is a line without a name among several, is not seen.
func TestPanelsFitAndSayWhatTheyShow(t *testing.T) {
	for name, content := range built(t) {
		var d struct {
			Panels []panel
		}
		if err := json.Unmarshal(content, &d); err != nil {
			t.Fatal(err)
		}
		for _, wrong := range misplaced(d.Panels) {
			t.Errorf("%s: %s", name, wrong)
		}
	}
	whole, half := place{W: 24, H: 7}, place{X: 12, W: 12, H: 7}
	line := []target{{Expr: "up", LegendFormat: "x"}}
	for want, panels := range map[string][]panel{
		"":                        {{Title: "a", GridPos: place{W: 12, H: 7}, Type: "stat", Targets: []target{{Expr: "up"}}}, {Title: "b", GridPos: half, Type: "stat"}},
		"a does not fit":          {{Title: "a", GridPos: place{X: 8, W: 24, H: 7}}},
		"b lies over a":           {{Title: "a", GridPos: whole}, {Title: "b", GridPos: half}},
		"a has a nameless line":   {{Title: "a", GridPos: whole, Type: "timeseries", Targets: []target{{Expr: "up"}}}},
		"a hides its legend":      {{Title: "a", GridPos: whole, Type: "timeseries", Targets: line}},
		"a has two lines named x": {{Title: "a", GridPos: whole, Type: "timeseries", Targets: append(line, line...), Options: options{Legend: legend{true}}}},
	} {
		if got := strings.Join(misplaced(panels), "; "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

type (
	place  struct{ X, Y, W, H int }
	target struct{ Expr, LegendFormat string }
	legend struct{ ShowLegend bool }
	// options are those of how a panel is drawn.
	options struct{ Legend legend }
	panel   struct {
		Title, Type string
		GridPos     place
		Targets     []target
		Options     options
	}
)

// misplaced says what of a dashboard would not be seen.
func misplaced(panels []panel) (wrong []string) {
	for i, p := range panels {
		g := p.GridPos
		if g.X < 0 || g.Y < 0 || g.W < 1 || g.H < 1 || g.X+g.W > 24 {
			wrong = append(wrong, p.Title+" does not fit")
		}
		for _, o := range panels[:i] {
			if g.X < o.GridPos.X+o.GridPos.W && o.GridPos.X < g.X+g.W && g.Y < o.GridPos.Y+o.GridPos.H && o.GridPos.Y < g.Y+g.H {
				wrong = append(wrong, p.Title+" lies over "+o.Title)
			}
		}
		if p.Type != "timeseries" {
			continue
		}
		names := map[string]bool{}
		for _, q := range p.Targets {
			switch {
			case q.LegendFormat == "":
				wrong = append(wrong, p.Title+" has a nameless line")
			case names[q.LegendFormat]:
				wrong = append(wrong, p.Title+" has two lines named "+q.LegendFormat)
			case !p.Options.Legend.ShowLegend: // also of one query, which may have several series
				wrong = append(wrong, p.Title+" hides its legend")
			}
			names[q.LegendFormat] = true
		}
	}
	return wrong
}

// recorded are series as an agent answers them (pkg/operate/metrics/testdata), and what
// Prometheus adds, that stay the same for an hour, but that counters grow.
func recorded(t *testing.T) []string {
	t.Helper()
	content, err := os.ReadFile("../../pkg/operate/metrics/testdata/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	values := regexp.MustCompile(`(?m)^([a-z0-9_]+)(\{.*\})? (\S+)$`)
	kinds := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`).FindAllStringSubmatch(string(content), -1) {
		kinds[m[1]] = m[2]
	}
	lines := []string{
		`up{job="zedkube",instance="node-1"} 1x70`, `up{job="zedkube",instance="node-2"} 0x70`,
		`process_start_time_seconds{job="zedkube",instance="node-1"} 1x70`, `process_cpu_seconds_total{job="zedkube",instance="node-1"} 0+1x70`,
		`process_resident_memory_bytes{job="zedkube",instance="node-1"} 5e7x70`, `go_memstats_heap_inuse_bytes{job="zedkube",instance="node-1"} 1e7x70`,
		`zedkube_node_ready{job="zedkube",instance="node-1"} 1x70`, // the API server of the recording is silent
		`zedkube_component_step_errors_total{job="zedkube",instance="node-1",component="apps"} 0+1x70`,
	}
	seen := map[string]bool{}
	for _, m := range values.FindAllStringSubmatch(string(content), -1) {
		labels := strings.TrimSuffix(strings.TrimPrefix(m[2], "{"), "}")
		if labels != "" {
			labels += ","
		}
		series := m[1] + "{" + labels + `job="zedkube",instance="node-1"}`
		step := ""
		if kinds[m[1]] == "counter" {
			step = "+1"
		}
		if strings.Contains(m[1], "component_step_errors") || seen[series] {
			continue
		}
		seen[series] = true
		lines = append(lines, fmt.Sprintf("%s %s%sx70", series, m[3], step))
	}
	return lines
}

// TestEveryQueryFindsSomething runs the queries of all dashboards on recorded series. A query that
// looks for what is wrong finds it there: the node of the recording is in the midst of a drain.
func TestEveryQueryFindsSomething(t *testing.T) {
	var rules, series, wanted strings.Builder
	files := built(t)
	n := 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for _, q := range queries(t, files[name]) {
			n++
			expr := strings.NewReplacer("$__rate_interval", "5m", "$instance", "node-1").Replace(q)
			fmt.Fprintf(&rules, "      - alert: Query%d\n        expr: count(%s) > 0\n", n, expr)
			fmt.Fprintf(&wanted, "      - eval_time: 60m\n        alertname: Query%d\n        exp_alerts: [{exp_labels: {}}] # %s: %s\n", n, name, strings.ReplaceAll(q, "\n", " "))
		}
	}
	for _, line := range recorded(t) {
		at := strings.LastIndex(line, "} ") + 1
		fmt.Fprintf(&series, "      - series: '%s'\n        values: %s\n", line[:at], line[at+1:])
	}
	dir := t.TempDir()
	alerts, err := filepath.Abs("../../docs/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "rules.yaml"), "groups:\n  - name: queries\n    rules:\n"+rules.String())
	test := filepath.Join(dir, "test.yaml")
	write(t, test, "rule_files: ["+filepath.Join(dir, "rules.yaml")+", "+alerts+"]\nevaluation_interval: 1m\ntests:\n  - interval: 1m\n    input_series:\n"+
		series.String()+"    alert_rule_test:\n"+wanted.String())
	promtool.Run(t, "", "test", "rules", test)
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
