package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
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
	if c.Deprecated != "" || c.DisableFlagParsing {
		return nil // the command that it is now, or the program that it runs, has them
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

// TestDocumentsKeepTheirContract holds what every command with -o prints against docs/json.md.
func TestDocumentsKeepTheirContract(t *testing.T) {
	for _, c := range []struct{ text, says string }{
		{`{"APIVersion":"zedkube/v1","Kind":"A","Items":[{"Name":"n","TookSeconds":1}]}`, ""},
		{`{"APIVersion":"zedkube/v2","Kind":"A"}`, "has the version zedkube/v2"},
		{`{"APIVersion":"zedkube/v1","Kind":"B"}`, "is of kind B"},
		{`[]`, "is no object"},
		{`{"APIVersion":"zedkube/v1","Kind":"A","Items":[{"name":1}]}`, "Items.name"},
		{`{"APIVersion":"zedkube/v1","Kind":"A","Topics":[{"Value":{"name":1}}]}`, ""},
		{`{"APIVersion":"zedkube/v1","Kind":"A","Took":1}`, "Took has no unit"},
		{`{"APIVersion":"zedkube/v1","Kind":"A","Took":"1s"}`, ""},
	} {
		if got := strings.Join(breaches(t, []byte(c.text), "A"), "; "); !strings.Contains(got, c.says) || (c.says == "") != (got == "") {
			t.Errorf("%s: %q", c.text, got)
		}
	}
	others := []string{"cluster", "export"} // their documents are not ours
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		path := strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
		text, err := os.ReadFile(filepath.Join(golden.Dir, strings.ToLower(strings.ReplaceAll(path, " ", "-"))+"-json.txt"))
		if err != nil || c.Deprecated != "" || slices.Contains(others, path) {
			return // TestEveryCommandHasItsGoldenOutput
		}
		document, _, _ := strings.Cut(string(text), "stderr:\n")
		now := strings.ReplaceAll(document, ": N", ": 0") // what is masked
		kind := ""
		for _, word := range strings.FieldsFunc(strings.Replace(path, "vmiDetach", "apps detach", 1), func(r rune) bool { return r == ' ' || r == '-' }) {
			kind += strings.ToUpper(word[:1]) + word[1:]
		}
		for _, breach := range breaches(t, []byte(now), kind) {
			t.Errorf("zedkube %s -o json: %s", path, breach)
		}
	}
	walk(cli.New("devel", nil))
}

var (
	capital  = regexp.MustCompile(`^[A-Z]\w*$`)
	noUnit   = regexp.MustCompile(`(Took|Age|Every|Elapsed|Duration|Timeout|Interval|Uptime|Grace)$`)
	oldNames = []string{"operations", "problems", "remarks"}
)

// breaches are what in documents of a kind is not as docs/json.md has it.
func breaches(t *testing.T, documents []byte, kind string) (list []string) {
	t.Helper()
	var look func(path string, v any)
	look = func(path string, v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				look(path, item)
			}
		case map[string]any:
			for name, value := range v {
				at := strings.TrimPrefix(path+"."+name, ".")
				if _, number := value.(float64); number && noUnit.MatchString(name) {
					list = append(list, at+" has no unit")
				}
				switch {
				case path == "" && slices.Contains(oldNames, name) || name == "Value":
				case !capital.MatchString(name):
					list = append(list, at)
				default:
					look(at, value)
				}
			}
		}
	}
	for d := json.NewDecoder(bytes.NewReader(documents)); d.More(); {
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%s: %v\n%s", kind, err, documents)
		}
		object, is := v.(map[string]any)
		switch {
		case !is:
			return []string{"a document is no object"}
		case object["APIVersion"] != terminal.APIVersion:
			list = append(list, fmt.Sprintf("a document has the version %v", object["APIVersion"]))
		case object["Kind"] != kind:
			list = append(list, fmt.Sprintf("a document is of kind %v", object["Kind"]))
		}
		look("", v)
	}
	return list
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
