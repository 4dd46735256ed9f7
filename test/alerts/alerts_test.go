// Package alerts tries docs/alerts.yaml.
package alerts

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/zedkube/zedkube/test/promtool"
)

// manual is where the entries of the runbook are read.
const manual = "https://github.com/zedkube/zedkube/blob/main/docs/alerts.md#"

const rulesFile = "../../docs/alerts.yaml"

func TestPrometheusTakesTheRules(t *testing.T) { promtool.Run(t, "", "check", "rules", rulesFile) }

func TestAlertsFireWhenTheyShouldAndNotBefore(t *testing.T) {
	promtool.Run(t, "", "test", "rules", "alerts_test.yaml")
}

// TestTheMetricsAreNamedAsPrometheusWants lets promtool judge what the agent answers. The one
// complaint is of a name that is still there for operators' alerts.
func TestTheMetricsAreNamedAsPrometheusWants(t *testing.T) {
	raw, err := os.ReadFile("../../pkg/operate/metrics/testdata/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	deprecated := regexp.MustCompile(`(?m)^(# (HELP|TYPE) )?zedkube_certificate_days_left\b.*\n`)
	if !deprecated.Match(raw) {
		t.Error("the deprecated metric is gone: so may this exception be")
	}
	promtool.Run(t, deprecated.ReplaceAllString(string(raw), ""), "check", "metrics")
}

// rules is the part of the files that is judged here.
type rules struct {
	Groups []struct {
		Rules []struct {
			Alert       string
			Record      string
			Expr        string
			Labels      map[string]string
			Annotations map[string]string
		}
	}
	Tests []struct {
		AlertRuleTest []struct {
			Alertname string
			ExpAlerts []any `json:"exp_alerts"`
		} `json:"alert_rule_test"`
	}
}

func read(t *testing.T, path string) rules {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var r rules
	if err := yaml.Unmarshal(content, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestProblemsInRulesAreThoseOfTheProgram finds names in the rules that no problem has, and that what
// is counted once is the same in both halves of its rule.
func TestProblemsInRulesAreThoseOfTheProgram(t *testing.T) {
	known := anchors(t, "../../docs/runbook.md") // which has an entry for each
	named := regexp.MustCompile(`name(!~|=~)"([^"]+)"`)
	lists := 0
	for _, g := range read(t, rulesFile).Groups {
		for _, r := range g.Rules {
			found := named.FindAllStringSubmatch(r.Expr, -1)
			lists += len(found)
			for _, m := range found {
				for name := range strings.SplitSeq(m[2], "|") {
					if !known[strings.ToLower(name)] {
						t.Errorf("%s%s names %s, which is no problem of zedkube status", r.Alert, r.Record, name)
					}
				}
				if m[2] != found[0][2] {
					t.Errorf("%s%s has two lists of problems: %s and %s", r.Alert, r.Record, found[0][2], m[2])
				}
			}
		}
	}
	if lists < 3 {
		t.Errorf("only %d lists of problems are found", lists)
	}
}

func TestEveryAlertIsTriedAndHasItsRunbook(t *testing.T) {
	fires, waits := map[string]bool{}, map[string]bool{}
	for _, test := range read(t, "alerts_test.yaml").Tests {
		for _, at := range test.AlertRuleTest {
			fires[at.Alertname] = fires[at.Alertname] || len(at.ExpAlerts) > 0
			waits[at.Alertname] = waits[at.Alertname] || len(at.ExpAlerts) == 0
		}
	}
	book := anchors(t, "../../docs/alerts.md")
	all := read(t, rulesFile).Groups[0].Rules
	if len(all) < 8 {
		t.Errorf("there are only %d alerts", len(all))
	}
	for _, r := range all {
		if !fires[r.Alert] {
			t.Errorf("no test makes %s fire", r.Alert)
		}
		if !waits[r.Alert] {
			t.Errorf("no test keeps %s from firing", r.Alert)
		}
		if s := r.Labels["severity"]; s != "warning" && s != "critical" {
			t.Errorf("%s is %q", r.Alert, s)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s says nothing", r.Alert)
		}
		anchor, ok := strings.CutPrefix(r.Annotations["runbook_url"], manual)
		if !ok || anchor != strings.ToLower(r.Alert) || !book[anchor] {
			t.Errorf("%s: the runbook has no entry %q", r.Alert, anchor)
		}
	}
}

var heading = regexp.MustCompile(`(?m)^#+ (.+)$`)

// anchors are what links to the headings of a document say.
func anchors(t *testing.T, path string) map[string]bool {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(string(content), -1) {
		text := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z':
				return r
			}
			return -1
		}, strings.ToLower(h[1]))
		out[text] = true
	}
	return out
}
