package house

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// A surface whose test was renamed or removed is one that nobody looks at.
func TestEachTestThatTheThreatModelNamesExists(t *testing.T) {
	model, err := os.ReadFile("../../docs/threat-model.md")
	if err != nil {
		t.Fatal(err)
	}
	found, err := exec.Command("git", "-C", "../..", "grep", "-hoE", `^func (Test|Fuzz)[A-Za-z0-9]+`, "--", "*_test.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	exists := map[string]bool{}
	for name := range strings.Lines(string(found)) {
		exists[strings.TrimSpace(strings.TrimPrefix(name, "func "))] = true
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+)`").FindAllSubmatch(model, -1)
	for _, name := range named {
		if !exists[string(name[1])] {
			t.Errorf("there is no test %s", name[1])
		}
	}
	column := -1 // of the tests, in the table that is read
	rows := 0
	for line := range strings.Lines(string(model)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		switch {
		case len(cells) < 3:
			column = -1
		case strings.TrimSpace(cells[len(cells)-2]) == "test":
			column = len(cells) - 2
		case column > 0 && !strings.HasPrefix(cells[1], "---"):
			rows++
			if len(cells) != column+2 || !strings.Contains(cells[column], "`Test") {
				t.Errorf("a surface without a test: %s", line)
			}
		}
	}
	if rows < 20 || len(named) < rows {
		t.Errorf("%d surfaces with %d tests were found", rows, len(named))
	}
}
