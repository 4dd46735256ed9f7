package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli"
	"github.com/zedkube/zedkube/test/golden"
)

// TestEveryCommandHasItsGoldenOutput holds the golden files against the program
// and against the tests that compare them.
func TestEveryCommandHasItsGoldenOutput(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(golden.Dir, "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	asked := goldenAsked(t)
	there := map[string]bool{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		there[name] = true
		if !asked[name] {
			t.Errorf("testdata/golden/%s.txt is compared by no test", name)
		}
	}
	for _, name := range withoutGolden(cli.New("devel", nil), there) {
		t.Errorf("there is no testdata/golden/%s.txt: let newoperator.txtar ask for it, or the tests on real nodes", name)
	}
}

func TestACommandWithoutGoldenOutputIsFound(t *testing.T) {
	run := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "tool"}
	parent := &cobra.Command{Use: "doIt", Run: run}
	form := &cobra.Command{Use: "as-told THING", Run: run}
	form.Flags().StringP("output", "o", "table", "")
	parent.AddCommand(form)
	root.AddCommand(parent, &cobra.Command{Use: "hidden", Hidden: true, Run: run})
	for _, r := range []struct{ there, want []string }{
		{nil, []string{"doit", "doit-as-told", "doit-as-told-json", "hidden", "tool"}},
		{[]string{"tool", "doit-as-told", "hidden-json"}, []string{"doit", "doit-as-told-json", "hidden"}},
		{[]string{"tool", "doit", "doit-as-told", "doit-as-told-jsonpath", "hidden"}, nil},
	} {
		there := map[string]bool{}
		for _, name := range r.there {
			there[name] = true
		}
		if d := cmp.Diff(r.want, withoutGolden(root, there)); d != "" {
			t.Errorf("with %v, want -, got +\n%s", r.there, d)
		}
	}
}

// withoutGolden names the golden files that c and all below it lack, those that
// people are not shown too: one of what it says, and where it has -o one of what
// programs get.
func withoutGolden(c *cobra.Command, there map[string]bool) (lacks []string) {
	if c.Deprecated != "" {
		return nil // the command that it is now has them
	}
	name := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" "), " ", "-"))
	if !there[name] {
		lacks = append(lacks, name)
	}
	if c.Flags().Lookup("output") != nil && !there[name+"-json"] && !there[name+"-jsonpath"] {
		lacks = append(lacks, name+"-json")
	}
	for _, sub := range c.Commands() {
		lacks = append(lacks, withoutGolden(sub, there)...)
	}
	slices.Sort(lacks)
	return lacks
}

// goldenAsked are the golden files that stories and tests on real nodes compare.
func goldenAsked(t *testing.T) map[string]bool {
	t.Helper()
	asked := map[string]bool{}
	for pattern, ask := range map[string]*regexp.Regexp{
		"testdata/*.txtar":       regexp.MustCompile(`(?m)^golden ([a-z0-9-]+)`),
		"../../test/*/*_test.go": regexp.MustCompile(`\bgoldenIs\(t, "([a-z-]+)"`),
	} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range ask.FindAllSubmatch(text, -1) {
				asked[string(m[1])] = true
			}
		}
	}
	return asked
}
