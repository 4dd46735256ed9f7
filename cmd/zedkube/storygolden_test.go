package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
)

// changing are what no two runs have in common, and what stands for it. Their
// order counts.
var changing = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "UUID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z|\b\d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`\b127\.\d+\.\d+\.\d+\b`), "ADDRESS"},
	{regexp.MustCompile(`\b([Pp])rocess \d+`), "${1}rocess PID"},
	{regexp.MustCompile(`ADDRESS:\d{5}\b`), "ADDRESS:PORT"},
	{regexp.MustCompile(`\b(go|v)\d+\.\d+(\.\d+)?([-+][\w.+-]+)?\b`), "VERSION"},
	{regexp.MustCompile(`\b[0-9a-f]{40}\b`), "COMMIT"},
	{regexp.MustCompile(`-[bcdf-hj-np-tv-xz2-9]{5}\b`), "-RANDOM"}, // as Kubernetes names pods
	{regexp.MustCompile(`\b(\d+(\.\d+)?(ms|µs|ns|y|d|h|m|s))+\b|\b\d+ days\b`), "SPAN"},
	{regexp.MustCompile(`\b\d+(\.\d+)?([KMG]i?)?B\b|\b\d+(\.\d+)?[KMGT]i\b`), "SIZE"},
	{regexp.MustCompile(`\b\d+(\.\d+)?%`), "N%"},
	{regexp.MustCompile(`linux/(amd64|arm64)`), "PLATFORM"},
	{regexp.MustCompile(`\bNone of \d+ operations\b`), "None of N operations"}, // a node stamps twice whose configuration comes after its first look
	{regexp.MustCompile(` {2,}`), "  "},                                        // columns are as wide as what changes
}

// atRest is until what a golden file is made of changes no more.
const atRest = 4 * time.Second

// golden is golden FILE [WORDS...]: what the last command said is in
// testdata/golden, but for times, ages, addresses and names that chance made; or
// what zedkube says when it is called with these words, as soon as it does. go test
// ./cmd/zedkube -run Stories -update writes it anew.
func golden(_ *story, ts *testscript.TestScript, args []string) error {
	file := filepath.Join("testdata/golden", args[0]+".txt")
	want, err := os.ReadFile(file)
	switch {
	case *update:
		if len(args) > 1 {
			time.Sleep(atRest)
			_ = ts.Exec("zedkube", args[1:]...) // how it ends is in what it says
		}
		return errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(steady(ts)), 0o644))
	case err != nil:
		return err
	case len(args) == 1:
		return unlike(file, string(want), steady(ts))
	}
	return eventually(func() string {
		_ = ts.Exec("zedkube", args[1:]...)
		if err := unlike(file, string(want), steady(ts)); err != nil {
			return err.Error()
		}
		return ""
	})
}

func unlike(file, want, got string) error {
	if d := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); d != "" {
		return fmt.Errorf("%s: want -, got +\n%s", file, d)
	}
	return nil
}

// steady is what the last command said, without what changes.
func steady(ts *testscript.TestScript) string {
	text := ts.ReadFile("stdout")
	if said := ts.ReadFile("stderr"); said != "" {
		text += "stderr:\n" + said
	}
	text = strings.ReplaceAll(text, ts.Getenv("WORK"), "WORK")
	for _, c := range changing {
		text = c.what.ReplaceAllString(text, c.by)
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}
