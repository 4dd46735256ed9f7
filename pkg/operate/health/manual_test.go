package health

import (
	"os"
	"strings"
	"testing"
)

// TestTheManualExplainsEveryProblem holds docs/operations.md against the rules.
func TestTheManualExplainsEveryProblem(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	headings := map[string]bool{}
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "##") {
			headings[strings.TrimSpace(strings.TrimLeft(line, "#"))] = true
		}
	}
	for _, r := range rules() {
		if !headings[r.anchor] {
			t.Errorf("%s leads to a heading that is not there: %q", r.name, r.anchor)
		}
		if !strings.Contains(string(raw), r.name) {
			t.Errorf("the manual does not say what %s is", r.name)
		}
	}
}
