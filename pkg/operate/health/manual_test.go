package health

import (
	"strings"
	"testing"

	"github.com/zedkube/zedkube/docs"
)

// TestTheManualExplainsEveryProblem holds the documents against the rules: each has its entry in the
// runbook, by its name, and leads to a chapter of one of them.
func TestTheManualExplainsEveryProblem(t *testing.T) {
	headings := map[string]bool{}
	entries := map[string]bool{}
	for _, name := range []string{"runbook.md", "operations.md", "files.md"} {
		raw, err := docs.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			if title, is := strings.CutPrefix(line, "##"); is {
				headings[strings.TrimSpace(strings.TrimLeft(title, "#"))] = true
			}
			if title, is := strings.CutPrefix(line, "### "); is && name == "runbook.md" {
				entries[strings.TrimSpace(title)] = true
			}
		}
	}
	for _, r := range rules() {
		if !headings[r.anchor] {
			t.Errorf("%s leads to a heading that is not there: %q", r.name, r.anchor)
		}
		if !entries[r.name] {
			t.Errorf("docs/runbook.md has no entry for %s", r.name)
		}
	}
}
