package metrics

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/operate/health"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/types"
)

var update = flag.Bool("update", false, "rewrite testdata")

func TestTheNumbersAreThoseOfTheTables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var own []string
		for _, line := range full(time.Now()).scrape(t) {
			if strings.Contains(line, "zedkube_") && !strings.Contains(line, "zedkube_process_threads") {
				own = append(own, line)
			}
		}
		golden := filepath.Join("testdata", "metrics.txt")
		got := strings.Join(own, "\n") + "\n"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), got); d != "" {
			t.Error(d)
		}
	})
}

func TestADeviceOfWhichNothingIsKnownHasMetricsToo(t *testing.T) {
	lines := newStage().scrape(t)
	found := families(lines)
	for _, name := range []string{
		"zedkube_build_info", "zedkube_component_steps_total", "go_goroutines", "go_memstats_heap_alloc_bytes", "zedkube_process_threads",
		"process_resident_memory_bytes", "process_virtual_memory_bytes", "process_open_fds", "process_cpu_seconds_total", "process_start_time_seconds",
	} {
		if !found[name] {
			t.Errorf("%s is missing", name)
		}
	}
	for _, line := range lines {
		if strings.HasPrefix(line, "zedkube_api_up") || strings.HasPrefix(line, "zedkube_drain") || strings.HasPrefix(line, "zedkube_certificate") {
			t.Errorf("what is not known is claimed: %s", line)
		}
	}
}

func TestStepsAreCountedWithTheirFailuresAndTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		s.Pulses = map[string]*loop.Pulse{"drain": stepped(t)}
		own := strings.Join(s.scrape(t), "\n")
		for _, want := range []string{
			`zedkube_component_steps_total{component="drain"} 2`, `zedkube_component_step_errors_total{component="drain"} 1`,
			`zedkube_component_step_seconds_total{component="drain"} 4`, `zedkube_component_step_longest_seconds{component="drain"} 3`,
			`zedkube_component_stuck{component="drain"} 0`,
		} {
			if !strings.Contains(own, want+"\n") {
				t.Errorf("%s is missing", want)
			}
		}
	})
}

// TestHostileNamesAddNoSeries feeds every place that takes a name from outside
// with thousands of them.
func TestHostileNamesAddNoSeries(t *testing.T) {
	s := full(time.Now())
	s.Requests.Answered("no verb", 999, time.Second)
	s.Requests.Answered("no verb", 299, time.Second)
	s.Operations.Begin(types.Operation{Op: "no deed"})("no outcome", nil)
	usual := len(series(s.scrape(t)))
	conditions, _ := s.conditions.Get(types.Global)
	for i := range 2000 {
		bad := fmt.Sprintf("\"}\n\x1b[31m evil{%d} \xff", i)
		for _, verb := range append(slices.Clone(verbs), bad) {
			s.Requests.Answered(verb, i-200, time.Second)
		}
		s.Operations.Begin(types.Operation{Op: bad, Target: bad, By: bad, Component: bad})(types.OperationOutcome(bad), fmt.Errorf("%s", bad))
		_ = s.nodes.Publish(bad, types.Node{Name: bad, Unschedulable: true})
		_ = s.leases.Publish(bad, types.Lease{Name: bad, Holder: bad, Renewed: time.Now()})
		conditions.Conditions = append(conditions.Conditions, types.NodeStateCondition{Type: types.NodeStateType(bad), Status: types.ConditionStatus(bad), Since: time.Now()})
		conditions.Certificates = append(conditions.Certificates, types.NodeCertificate{Name: bad, Subject: bad, NotAfter: time.Now()})
	}
	hostile(s, conditions)
	lines := s.scrape(t)
	// Every verb may now have every code that is told apart: 18 and none, five classes and other.
	most := usual + (len(verbs)+1)*(18+1+5+1) + (len(verbs)+1)*9 + 10
	if got := len(series(lines)); got > most || got > 1000 {
		t.Errorf("%d series became %d; at most %d may be", usual, got, most)
	}
	for _, line := range lines {
		if strings.Contains(line, "evil") && !strings.HasPrefix(line, "zedkube_cluster_info{") {
			t.Errorf("a label says what a stranger wrote: %q", line)
		}
		if !utf8.ValidString(line) || strings.Contains(line, "\x1b") {
			t.Errorf("a label carries control characters: %q", line)
		}
	}
}

// hostile publishes what else may hold bad names.
func hostile(s *stage, conditions types.KubeNodeConditions) {
	const bad = "\"} evil \x1b[2J\xff\n1"
	conditions.Kubernetes, conditions.CNI = bad, strings.Repeat(bad, 1000)
	_ = s.conditions.Publish(types.Global, conditions)
	progress, _ := s.progress.Get(types.Global)
	progress.Phase, progress.Cordon = bad, bad
	health, _ := s.health.Get(types.Global)
	for i := range 2000 {
		name := fmt.Sprint(bad, i)
		progress.Blockers = append(progress.Blockers, types.DrainBlocker{Pod: name, Outlook: types.DrainOutlook(name)})
		progress.Volumes = append(progress.Volumes, types.DrainVolume{Name: name, Outlook: types.DrainOutlook(name)})
		health.Sections = append(health.Sections, types.ReportSection{Name: name, StaleSince: time.Now()})
	}
	_ = s.progress.Publish(types.Global, progress)
	_ = s.health.Publish(types.Global, health)
}

func TestWhoKeepsANodeCordoned(t *testing.T) {
	for name, test := range map[string]struct {
		node types.Node
		by   string
		want string
	}{
		"nobody":             {types.Node{}, "", ""},
		"the drain":          {types.Node{Unschedulable: true}, "zedkube", "zedkube"},
		"somebody else":      {types.Node{Unschedulable: true}, "", "other"},
		"the tie-breaker":    {types.Node{Unschedulable: true}, "tie-breaker", "tie-breaker"},
		"workloads are off":  {types.Node{Unschedulable: true}, types.CordonedDisabled, "workloads"},
		"a word of long ago": {types.Node{}, "zedkube", ""},
	} {
		s := newStage()
		test.node.Name = "node-1"
		_ = s.nodes.Publish("node-1", test.node)
		_ = s.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "node-1"})
		_ = s.progress.Publish(types.Global, types.NodeDrainProgress{Cordon: test.by})
		got := ""
		for _, line := range s.scrape(t) {
			if by, ok := strings.CutPrefix(line, `zedkube_node_cordoned{by="`); ok && strings.HasSuffix(line, " 1") {
				got += strings.TrimSuffix(by, `"} 1`)
			}
		}
		if got != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestOfSeveralCertificatesTheFirstToEndCounts(t *testing.T) {
	s := newStage()
	_ = s.conditions.Publish(types.Global, types.KubeNodeConditions{Certificates: []types.NodeCertificate{
		{Name: "x", NotAfter: time.Now().Add(240 * time.Hour)}, {Name: "y", NotAfter: time.Now().Add(-48 * time.Hour)}, {Name: "z", NotAfter: time.Now().Add(24 * time.Hour)},
	}})
	lines := strings.Join(s.scrape(t), "\n")
	if !regexp.MustCompile(`(?m)^zedkube_certificate_days_left{certificate="other"} -2\.0`).MatchString(lines) ||
		!regexp.MustCompile(`(?m)^zedkube_certificate_left_seconds{certificate="other"} -1728\d\d`).MatchString(lines) {
		t.Errorf("got %s", lines)
	}
}

func TestTimesToComeAreNoAges(t *testing.T) {
	s := newStage()
	later := time.Now().Add(time.Hour)
	_ = s.leases.Publish(s.Lease, types.Lease{Renewed: later})
	_ = s.progress.Publish(types.Global, types.NodeDrainProgress{Phase: types.PhaseGates, Started: later})
	_ = s.api.Publish(types.Global, types.APIStatus{SilentSince: later})
	lines := strings.Join(s.scrape(t), "\n") + "\n"
	for _, want := range []string{"zedkube_lease_renewal_age_seconds 0", "zedkube_drain_seconds 0", "zedkube_api_silent_seconds 0", "zedkube_api_up 0"} {
		if !strings.Contains(lines, want+"\n") {
			t.Errorf("%s is missing", want)
		}
	}
}

func TestAReportOfNothingHasNoAge(t *testing.T) {
	s := newStage()
	_ = s.health.Publish(types.Global, types.KubeReportHealth{Reports: true, Sections: []types.ReportSection{{Name: types.SectionNodes}}})
	for _, line := range s.scrape(t) {
		if strings.HasPrefix(line, "zedkube_report_age_seconds") {
			t.Errorf("it says %q of a report that never was", line)
		}
	}
}

// recordedOp is an operation in the table of docs/wire.md, "Audit".
var recordedOp = regexp.MustCompile("`([a-z-]+)[A-Za-z0-9 -]*`")

func TestEveryRecordedOperationIsCountedByItsName(t *testing.T) {
	content, err := os.ReadFile("../../../docs/wire.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(content), "\n| `op` | `target` |\n|---|---|\n")
	table, _, ok := strings.Cut(section, "\n\n")
	if !ok {
		t.Fatal(`docs/wire.md, "Audit" has no table of operations`)
	}
	for row := range strings.Lines(table) {
		for _, op := range recordedOp.FindAllStringSubmatch(strings.Split(row, "|")[1], -1) {
			if oneOf(op[1], operationVerbs) == other {
				t.Errorf("%s is counted as other", op[0])
			}
		}
	}
}

// asked is every metric that the alerts ask for.
var asked = regexp.MustCompile(`\b(zedkube|process|go)_[a-z0-9_]+`)

// answering are the metrics of a device whose API server is silent, and then answers.
func answering(t *testing.T) map[string]bool {
	t.Helper()
	s := full(time.Now())
	found := families(s.scrape(t))
	if found["zedkube_node_ready"] {
		t.Error("it is said whether the Node is ready while the API server is silent")
	}
	_ = s.api.Publish(types.Global, types.APIStatus{Synced: true})
	maps.Copy(found, families(s.scrape(t)))
	return found
}

func TestEveryMetricOfTheAlertsIsThere(t *testing.T) {
	content, err := os.ReadFile("../../../docs/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := answering(t)
	names := asked.FindAllString(string(content), -1)
	if len(names) < 8 {
		t.Errorf("only %v is asked for", names)
	}
	for _, name := range names {
		if !found[name] {
			t.Errorf("docs/alerts.yaml names %s, which there is not", name)
		}
	}
}

func TestEveryMetricIsDocumented(t *testing.T) {
	content, err := os.ReadFile("../../../docs/wire.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(content), "\n## Metrics\n")
	if !ok {
		t.Fatal(`docs/wire.md has no section "Metrics"`)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for name := range answering(t) {
		if strings.HasPrefix(name, "zedkube_") && !strings.Contains(section, "`"+name+"`") {
			t.Errorf(`docs/wire.md, "Metrics" does not name %s`, name)
		}
	}
}

func TestApplicationsThatAreSwitchedOffAreNotMissing(t *testing.T) {
	s := full(time.Now())
	s.overview.Workloads = types.WorkloadsStatus{Phase: types.WorkloadsDisabled}
	lines := s.scrape(t)
	for _, want := range []string{`zedkube_apps{state="not_running"} 0`, `zedkube_apps{state="disabled"} 6`} {
		if !slices.Contains(lines, want) {
			t.Errorf("%s is missing", want)
		}
	}
}

// TestAVolumeAtItsLastReplicaIsOneOfStatus compares the number with the problem of zedkube status.
func TestAVolumeAtItsLastReplicaIsOneOfStatus(t *testing.T) {
	for want, v := range map[string]overview.Volume{
		"last_replica": {Robustness: "Degraded", Replicas: 3, Online: 1, Healthy: 1},
		"last_replica, whose lost replica's object is gone": {Robustness: "Degraded", Replicas: 1, Online: 1, Healthy: 1},
		"last_replica, that another one is rebuilt from":    {Robustness: "Degraded", Replicas: 2, Online: 1, Healthy: 1, Rebuilding: 42},
		"last_replica, while it is attached":                {Robustness: "Unknown", Replicas: 2, Online: 1, Healthy: 1},
		"degraded":                                          {Robustness: "Degraded", Replicas: 3, Online: 2, Healthy: 2},
		"healthy, with one replica as it should be":         {Robustness: "Healthy", Replicas: 1, Online: 1, Healthy: 1},
		"faulted": {Robustness: "Faulted", Replicas: 2},
		"unknown": {Robustness: "Unknown", Replicas: 2, Healthy: 2},
	} {
		v.Name, v.Here = "v", true
		state, _, _ := strings.Cut(want, ",")
		if got := stateOf(v); got != state {
			t.Errorf("%s: %s", want, got)
		}
		shown := slices.ContainsFunc(health.Problems(overview.Overview{Storage: overview.Storage{Volumes: []overview.Volume{v}}}), func(f types.Finding) bool { return f.Rule == "LastReplica" })
		if shown != (state == "last_replica") {
			t.Errorf("%s: status shows LastReplica: %v", want, shown)
		}
	}
}
