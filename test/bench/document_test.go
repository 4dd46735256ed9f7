package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func figures(measured string) *bench {
	return &bench{figures: []figure{
		{"way", "—", "≤ 1 s", measured, 2.5},
		{"CPU and RSS", "—", "—", "1 %", 2.5},
		{"the same, slowly", "—", "—", "slow " + measured, 3},
		{"CPU and RSS", "—", "—", "2 %", 3},
		{"other", "—", "—", "x", 1},
	}}
}

// lines are those of the history that tell of a figure.
func lines(t *testing.T, path, of string) (found []string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, history, _ := strings.Cut(string(content), "\n## "+historyTitle+"\n")
	history, _, _ = strings.Cut(history, "\n## ")
	for line := range strings.Lines(history) {
		if strings.HasPrefix(line, "| "+of+" |") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

func TestTheDocumentKeepsOneLineForEachReleaseAndFigure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "performance.md")
	if err := os.WriteFile(path, []byte("# Performance\n\nold\n\n## How it grows\n\nkept\n\n## Logs\n\nkept too\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, run := range []struct{ release, measured string }{{"v1", "1 s"}, {"v2", "2 s"}, {"v2", "3 s"}} {
		if err := figures(run.measured).write(path, run.release); err != nil {
			t.Fatal(err)
		}
	}
	for of, want := range map[string]string{
		"way":                   "| way | v1 | 1 s | 2.5 |\n| way | v2 | 3 s | 2.5 |",
		"way; the same, slowly": "| way; the same, slowly | v1 | slow 1 s | 3.0 |\n| way; the same, slowly | v2 | slow 3 s | 3.0 |",
		"way; the same, slowly; CPU and RSS": "| way; the same, slowly; CPU and RSS | v1 | 2 % | 3.0 |\n" +
			"| way; the same, slowly; CPU and RSS | v2 | 2 % | 3.0 |",
		"other": "| other | v1 | x | 1.0 |\n| other | v2 | x | 1.0 |",
	} {
		if got := strings.Join(lines(t, path, of), "\n"); got != want {
			t.Errorf("of %s it says\n%s\nwant\n%s", of, got, want)
		}
	}
	content, _ := os.ReadFile(path)
	for text, times := range map[string]int{"\nkept\n": 1, "kept too": 1, "## " + historyTitle: 1, "| way | — | ≤ 1 s | 3 s | 2.5 |": 1, "\nold\n": 0, "2 s": 0} {
		if got := strings.Count(string(content), text); got != times {
			t.Errorf("%q is there %d times, want %d", text, got, times)
		}
	}
}
