package supportcmd

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
)

func explain(t *testing.T, args ...string) (string, error) {
	t.Helper()
	c := NewExplainCommand(&device.Options{})
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetErr(io.Discard)
	c.SetArgs(args)
	c.SilenceErrors, c.SilenceUsage = true, true
	err := c.Execute()
	return out.String(), err
}

func TestANameIsExplained(t *testing.T) {
	for args, want := range map[string][]string{
		"drainnever":     {"DrainNever: problem, Drains and cordons (runbook.md)", "  means       ", "  look at     ", "  do          "},
		"budget":         {"budget: cause, What blocks the drain (runbook.md)", "PodDisruptionBudget", "longhorn-system"},
		"COMPLETE":       {"9 COMPLETE", "zedagent, when a reboot or shutdown comes: goes ahead"},
		"The force file": {"The force file: chapter (operations.md)", `      echo '{"Status":9,"RequestedBy":1}'`, "The fault marker"},
		"":               {"problem     AgentDead", "cause       budget", "alert       ZedkubeAgentDown"},
	} {
		got, err := explain(t, strings.Fields(args)...)
		for _, text := range want {
			if err != nil || !strings.Contains(got, text) {
				t.Errorf("explain %s lacks %q (%v):\n%s", args, text, err, got)
			}
		}
		if strings.ContainsAny(got, "`\x1b") || strings.Contains(got, "](") {
			t.Errorf("explain %s shows marks:\n%s", args, got)
		}
	}
}

func TestAnUnknownNameIsAnswered(t *testing.T) {
	for name, want := range map[string]string{
		"drainnevr": `nothing is called "drainnevr"; did you mean DrainNever?`, "xylophone": `nothing is called "xylophone"; "zedkube explain" lists the names`,
		"\x1b[2J": `nothing is called "?[2J"`,
	} {
		_, err := explain(t, name)
		if err == nil || terminal.ExitCode(err) != terminal.ExitUsage || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("explain %q: %v, want %s", name, err, want)
		}
	}
}

func TestAnExplanationAsData(t *testing.T) {
	got, err := explain(t, "LastReplica", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var found []entryText
	if err := json.Unmarshal([]byte(got), &found); err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found[0].Kind != "problem" || !strings.Contains(found[0].Text, "last healthy replica") {
		t.Errorf("got %+v", found)
	}
}

func TestNamesAreCompleted(t *testing.T) {
	names, _ := completeNames(nil, nil, "")
	all := strings.Join(names, "\n")
	for _, want := range []string{"DrainNever\tproblem", "budget\tcause", "ClockInStep\tcondition", "Emptying\tphase", "ZedkubeNoLeader\talert"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not among them", want)
		}
	}
	if more, _ := completeNames(nil, []string{"DrainNever"}, ""); len(more) > 0 {
		t.Errorf("a second name is offered: %q", more)
	}
}
