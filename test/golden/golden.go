// Package golden compares what a command says with a file, but for what no two
// runs have in common: times, sizes, addresses and names that chance made.
package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// Dir is where the files are, as seen from any package of tests that has some:
// all of them lie two folders deep.
const Dir = "../../cmd/zedkube/testdata/golden"

// changing are what no two runs have in common, and what stands for it. Their
// order counts.
var changing = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "UUID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z|\b\d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`\b(127\.\d+|10\.42)\.\d+\.\d+\b`), "ADDRESS"},
	{regexp.MustCompile(`\b([Pp])rocess \d+`), "${1}rocess PID"},
	{regexp.MustCompile(`ADDRESS:\d{5}\b`), "ADDRESS:PORT"},
	{regexp.MustCompile(`\b(go|v)\d+\.\d+(\.\d+)?([-+][\w.+-]+)?\b`), "VERSION"},
	{regexp.MustCompile(`\b([0-9a-f]{40}|[0-9a-f]{32})\b`), "HASH"},
	{regexp.MustCompile(`("id": )"[^"]*"|("ID": )"[0-9a-z]+-\d+"`), `$1$2"ID"`}, // of the audit
	{regexp.MustCompile(`("took": |"TookSeconds": )[\d.e-]+`), "${1}N"},
	{regexp.MustCompile(`\n *"AgentUnsure": true,`), ""}, // until the agents are known for ten minutes
	{regexp.MustCompile(`("from": )"[^"]*"|("From": )"uid \d+"`), `$1$2"WHO"`},
	{regexp.MustCompile(`-[bcdf-hj-np-tv-xz2-9]{5}\b`), "-RANDOM"}, // as Kubernetes names pods
	{regexp.MustCompile(`\b(\d+(\.\d+)?(ms|µs|ns|y|d|h|m|s))+\b|\b\d+ days\b`), "SPAN"},
	{regexp.MustCompile(`\b\d+(\.\d+)?([KMG]i?)?B\b|\b\d+(\.\d+)?[KMGT]i\b`), "SIZE"},
	{regexp.MustCompile(`\b\d+(\.\d+)?%`), "N%"},
	{regexp.MustCompile(`linux/(amd64|arm64)`), "PLATFORM"},
	{regexp.MustCompile(`\bmatches, of \d+ operations\b`), "matches, of N operations"}, // a node stamps twice whose configuration comes after its first look
	{regexp.MustCompile(`\b\d+ deprecated APIs?\b`), "N deprecated APIs"},              // other stories ask the same API server
	{regexp.MustCompile(`\b\d+ files in\b`), "N files in"},                             // of a bundle: a file's former value lies there once it has changed
	{regexp.MustCompile(`(\S) {2,}`), "$1  "},                                          // columns are as wide as what changes; what a line begins with stays
}

// Steady is what a command said, without what changes.
func Steady(text string) string {
	for _, c := range changing {
		text = c.what.ReplaceAllString(text, c.by)
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}

// Check compares the file of that name with what a command said, made steady.
func Check(name, got string) error {
	want, err := os.ReadFile(path(name))
	if err != nil {
		return fmt.Errorf("read a golden output: %w", err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		return fmt.Errorf("%s: want -, got +\n%s", name, d)
	}
	return nil
}

// Write makes the file of that name anew.
func Write(name, got string) error {
	if err := os.MkdirAll(Dir, 0o755); err != nil {
		return fmt.Errorf("make %s: %w", Dir, err)
	}
	if err := os.WriteFile(path(name), []byte(got), 0o644); err != nil {
		return fmt.Errorf("write a golden output: %w", err)
	}
	return nil
}

func path(name string) string { return filepath.Join(Dir, name+".txt") }
