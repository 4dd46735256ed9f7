package cli

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zedkube/zedkube/test/cmdtest"
)

const referenceFile = "../../docs/commands.md"

// TestCommandReference holds docs/commands.md true. What stands between these marks is made of
// what the command says of itself; what follows is written by hand and stays.
func TestCommandReference(t *testing.T) {
	got, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	commands := referenced(New("devel", nil))
	want, left := reference(string(got), commands)
	for _, name := range left {
		t.Errorf("docs/commands.md has a chapter for no command: %s", name)
	}
	if *cmdtest.Update && len(left) == 0 {
		if err := os.WriteFile(referenceFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(got) != want {
		t.Error("docs/commands.md is stale: go test ./pkg/cli -run CommandReference -update")
	}
}

const (
	madeBegin = "<!-- made from the program -->\n"
	madeEnd   = "<!-- end -->\n"
)

// made matches what is made, with both marks.
var made = regexp.MustCompile(`(?s)\n*` + madeBegin + `.*?` + madeEnd)

// referenced are the commands that have a chapter: those that do something of their own.
func referenced(root *cobra.Command) (list []*cobra.Command) {
	for _, c := range everyCommand(root) {
		if c.HasParent() {
			list = append(list, c)
		}
	}
	return list
}

// reference is the document with its made parts made again, and the names of chapters that belong
// to no command.
func reference(old string, commands []*cobra.Command) (text string, left []string) {
	chapters := strings.Split("\n"+old, "\n## ")
	written := map[string]string{}
	for _, chapter := range chapters[1:] {
		title, body, _ := strings.Cut(chapter, "\n")
		written[title] = strings.Trim(made.ReplaceAllString(body, ""), "\n")
	}
	var b strings.Builder
	b.WriteString(strings.Trim(made.ReplaceAllString(chapters[0], ""), "\n") + "\n\n" + contents(commands))
	for _, c := range commands {
		fmt.Fprintf(&b, "\n## %s\n\n%s", c.CommandPath(), ofCommand(c))
		if body := written[c.CommandPath()]; body != "" {
			b.WriteString("\n" + body + "\n")
		}
		delete(written, c.CommandPath())
	}
	for title := range written {
		left = append(left, title)
	}
	slices.Sort(left)
	return b.String(), left
}

// contents is the table at the beginning.
func contents(commands []*cobra.Command) string {
	var b strings.Builder
	b.WriteString(madeBegin + "\n| command | does |\n|---|---|\n")
	for _, c := range commands {
		fmt.Fprintf(&b, "| [%s](#%s) | %s |\n", c.CommandPath(), strings.ToLower(strings.ReplaceAll(c.CommandPath(), " ", "-")), cell(c.Short))
	}
	b.WriteString("\n" + madeEnd)
	return b.String()
}

func ofCommand(c *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n    %s\n", madeBegin, c.UseLine())
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	text, codes, found := strings.Cut(long, "Exit codes:\n")
	fmt.Fprintf(&b, "\n%s\n", indented(strings.TrimSpace(text)))
	if c.HasAvailableSubCommands() {
		var names []string
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				names = append(names, fmt.Sprintf("[%s](#%s)", sub.Name(), strings.ToLower(strings.ReplaceAll(sub.CommandPath(), " ", "-"))))
			}
		}
		fmt.Fprintf(&b, "\nCommands: %s.\n", strings.Join(names, ", "))
	}
	b.WriteString(options(c.NonInheritedFlags()))
	if found {
		b.WriteString("\n| exit code | |\n|---|---|\n")
		for _, m := range exits.FindAllStringSubmatch(codes, -1) {
			fmt.Fprintf(&b, "| %s | %s |\n", m[1], cell(m[2]))
		}
	}
	if c.Example != "" {
		fmt.Fprintf(&b, "\n%s\n", indented(c.Example))
	}
	b.WriteString("\n" + madeEnd)
	return b.String()
}

func options(flags *pflag.FlagSet) string {
	var rows bytes.Buffer
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if value != "" {
			name += " " + value
		}
		fmt.Fprintf(&rows, "| `%s` | %s |\n", cell(name), cell(usage))
	})
	if rows.Len() == 0 {
		return ""
	}
	return "\n| option | |\n|---|---|\n" + rows.String()
}

// cell is text as a cell of a table has to have it.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", `\<`).Replace(text)
}

// indented is text for a document, in which what is indented by two stands as it is.
func indented(text string) string {
	var b strings.Builder
	inside := false
	for line := range strings.SplitSeq(text, "\n") {
		is := strings.HasPrefix(line, "  ")
		if is != inside && b.Len() > 0 {
			b.WriteByte('\n')
		}
		inside = is
		if is {
			b.WriteString("  " + line + "\n")
			continue
		}
		b.WriteString(strings.ReplaceAll(line, "<", `\<`) + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

func TestWhatIsWrittenOfACommandStays(t *testing.T) {
	root := &cobra.Command{Use: "tool", Short: "A tool"}
	c := &cobra.Command{Use: "do THING", Short: "Do it", Long: "Do it, <root>.\n  as is\n\nExit codes:\n  0   done\n  3  a|b", Run: func(*cobra.Command, []string) {}}
	c.Flags().StringP("output", "o", "table", "`FORM` of it")
	root.AddCommand(c)
	got, left := reference("# Commands\n\nBefore.\n\n## tool do\n\n"+madeBegin+"old\n"+madeEnd+"\nBy hand.\n\n## tool gone\n\nBy hand.\n", referenced(root))
	want := "# Commands\n\nBefore.\n\n" + madeBegin + "\n| command | does |\n|---|---|\n| [tool do](#tool-do) | Do it |\n\n" + madeEnd +
		"\n## tool do\n\n" + madeBegin + "\n    tool do THING [flags]\n\nDo it, \\<root>.\n\n    as is\n\n| option | |\n|---|---|\n| `-o, --output FORM` | FORM of it |\n" +
		"\n| exit code | |\n|---|---|\n| 0 | done |\n| 3 | a\\|b |\n\n" + madeEnd + "\nBy hand.\n"
	if got != want || !slices.Equal(left, []string{"tool gone"}) {
		t.Errorf("got %q of no command and:\n%s\nwant:\n%s", left, got, want)
	}
	if again, _ := reference(got, referenced(root)); again != got {
		t.Errorf("made twice it is:\n%s", again)
	}
}
