package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/edge/edgecmd"
	"github.com/zedkube/zedkube/test/cmdtest"
)

// TestManPages holds docs/man true: a page for each command, made of what the
// command says of itself.
func TestManPages(t *testing.T) {
	for dir, root := range map[string]*cobra.Command{
		"../../docs/man": New("devel", nil), "../../docs/man/edge": edgecmd.New(edgecmd.Program{Version: "devel"}),
	} {
		manPages(t, dir, root)
	}
}

func manPages(t *testing.T, dir string, root *cobra.Command) {
	want := map[string][]byte{}
	for _, c := range everyCommand(root) {
		name := manName(c) + ".1"
		date := dateOf(filepath.Join(dir, name))
		page := manPage(c, date)
		if old, _ := os.ReadFile(filepath.Join(dir, name)); *cmdtest.Update && !bytes.Equal(old, page) {
			page = bytes.Replace(page, []byte(" 1 "+date+" "), []byte(" 1 "+time.Now().UTC().Format(time.DateOnly)+" "), 1)
		}
		if want[name] = page; c.Example == "" {
			t.Errorf("%s has no example: examples.go", c.CommandPath())
		}
		if c.CommandPath() != "zedkube" && !strings.Contains(c.Example, c.CommandPath()) && !strings.Contains(c.Example, "zedkube "+c.Name()) {
			t.Errorf("the example of %s is of another command: %s", c.CommandPath(), c.Example)
		}
	}
	if *cmdtest.Update {
		writePages(t, dir, want)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if want[e.Name()] == nil && !e.IsDir() {
			t.Errorf("%s/%s is the page of no command", dir, e.Name())
		}
	}
	for name, page := range want {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(got, page) {
			t.Errorf("%s/%s is stale (%v): go test ./pkg/cli -run ManPages -update", dir, name, err)
		}
	}
}

// dated matches the date of a page, which is when its text last changed.
var dated = regexp.MustCompile(`^\.TH \S+ 1 (\d{4}-\d\d-\d\d) `)

func dateOf(file string) string {
	content, _ := os.ReadFile(file)
	if m := dated.FindSubmatch(content); m != nil {
		return string(m[1])
	}
	return ""
}

// TestNoExampleIsOfACommandThatThereIsNot holds them against the program: what they type is parsed
// up to its flags.
func TestNoExampleIsOfACommandThatThereIsNot(t *testing.T) {
	root := New("devel", nil)
	for path := range examples() {
		if c, rest, err := root.Find(strings.Fields(path)[1:]); err != nil || len(rest) > 0 || c.CommandPath() != path || c.Deprecated != "" {
			t.Errorf("there is an example of %s", path)
		}
	}
	for _, c := range everyCommand(root) {
		for line := range strings.Lines(c.Example) {
			words := strings.Fields(line)
			if i := slices.Index(words, "zedkube"); i >= 0 {
				found, _, err := root.Find(words[i+1:])
				if err != nil || !found.IsAvailableCommand() && found != root {
					t.Errorf("%s: the example %q: %v", c.CommandPath(), line, err)
					continue
				}
				for _, word := range words[i+1:] {
					name, _, _ := strings.Cut(word, "=")
					long, isLong := strings.CutPrefix(name, "--")
					if isLong && found.Flags().Lookup(long) == nil && found.InheritedFlags().Lookup(long) == nil && long != "help" {
						t.Errorf("%s: the example %q has a flag that %s has not", c.CommandPath(), line, found.CommandPath())
					}
				}
			}
		}
	}
}

// TestThereAreFewCommands bounds what an operator has to choose from, those that other
// programs call and those under an older name left out.
func TestThereAreFewCommands(t *testing.T) {
	root := New("devel", nil)
	shown := 1 // help
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			shown++
		}
	}
	if shown > 24 {
		t.Errorf("zedkube --help lists %d commands", shown)
	}
	for older, now := range map[string]string{"certs": "k3s certs", "certs reset": "k3s certs reset", "members remove": "nodes remove", "members forget": "nodes forget", "wait-join": "join wait", "vmiDetach": "apps detach"} {
		c, _, err := root.Find(strings.Fields(older))
		if is, _, _ := root.Find(strings.Fields(now)); err != nil || c == root || is == root || c.IsAvailableCommand() || !is.IsAvailableCommand() || c.Short != is.Short {
			t.Errorf("%s is not %s: %v", older, now, err)
		}
	}
	out, err := commanded(t.Context(), "--root", t.TempDir(), "certs", "-o", "json")
	if !strings.HasPrefix(out, "Command \"certs\" is deprecated, it is now \"zedkube k3s certs\"") || strings.Count(out, "\n") != 1 || terminal.ExitCode(err) == 0 {
		t.Errorf("under its older name it says %q, %v", out, err)
	}
	if out, err := commanded(t.Context(), "--version"); out != "zedkube version devel\n" || err != nil {
		t.Errorf("--version prints %q, %v", out, err)
	}
}

func writePages(t *testing.T, dir string, pages map[string][]byte) {
	t.Helper()
	err := os.MkdirAll(dir, 0o755)
	old, _ := filepath.Glob(filepath.Join(dir, "*.1")) // and not the whole of it: the pages of another program are below
	for _, name := range old {
		err = errors.Join(err, os.Remove(name))
	}
	for name, page := range pages {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), page, 0o644)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// everyCommand is c and all below it that people are shown.
func everyCommand(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			all = append(all, everyCommand(sub)...)
		}
	}
	return all
}

// manName is the name of a command's page: zedkube-drain-status.
func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// files are what a command reads or writes that an operator may look for.
func files() map[string][]string {
	return map[string][]string{
		"zedkube":                {"/run/zedkube/", "what the agent publishes, a directory for each topic", "/persist/status/zedkube/", "the same, of what outlasts a reboot", "/run/.kube/k3s/k3s.yaml", "how the API server is reached", "/run/zedkube/zedkube.sock", "where commands ask the agent"},
		"zedkube apps detach":    {"/persist/kubelog/detach.log", "what it did"},
		"zedkube audit":          {"/persist/zedkube/audit/", "the audit trail"},
		"zedkube drain status":   {"/run/zedkube/NodeDrainProgress/global.json", "the progress", "/run/zedkube/NodeDrainStatus/global.json", "what EVE's agents see"},
		"zedkube topics":         {"/run/AGENT/TOPIC/KEY.json", "a value", "/persist/status/AGENT/TOPIC/KEY.json", "one that outlasts a reboot"},
		"zedkube support-bundle": {"zedkube-bundle.json", "in the archive: its files, and what is missing"},
	}
}

// manPage is a command's page, in man(7)'s macros. It carries no version, and its date is of its text.
func manPage(c *cobra.Command, date string) []byte {
	var p manual
	fmt.Fprintf(&p, ".TH %s 1 %s zedkube \"zedkube manual\"\n", strings.ToUpper(roff(manName(c))), date)
	p.section("NAME")
	fmt.Fprintf(&p, "%s \\- %s\n", roff(manName(c)), roff(c.Short))
	p.section("SYNOPSIS")
	fmt.Fprintf(&p, ".nf\n\\fB%s\\fR\n", roff(c.UseLine()))
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&p, "\\fB%s\\fR \\fICOMMAND\\fR\n", roff(c.CommandPath()))
	}
	p.WriteString(".fi\n")
	p.section("DESCRIPTION")
	if c.Long == "" {
		p.paragraph(c.Short + ".")
	}
	p.text(c.Long)
	p.commands(c)
	p.flags("OPTIONS", c.NonInheritedFlags())
	p.flags("OPTIONS OF EVERY COMMAND", c.InheritedFlags())
	if c.Example != "" {
		p.section("EXAMPLES")
		p.verbatim(c.Example)
	}
	if list := files()[c.CommandPath()]; len(list) > 0 {
		p.section("FILES")
		for pair := range slices.Chunk(list, 2) {
			fmt.Fprintf(&p, ".TP\n\\fI%s\\fR\n%s\n", roff(pair[0]), roff(pair[1]))
		}
	}
	p.seeAlso(c)
	return p.Bytes()
}

// manual is a page in the making.
type manual struct{ bytes.Buffer }

func (p *manual) section(title string) { fmt.Fprintf(p, ".SH %s\n", title) }

// exits matches the lines of a command's exit codes.
var exits = regexp.MustCompile(`(?m)^  (\d+) +(.*)$`)

// text writes paragraphs: what is indented stays as it is, and exit codes get a
// section of their own.
func (p *manual) text(long string) {
	for paragraph := range strings.SplitSeq(strings.TrimSpace(long), "\n\n") {
		title, rest, _ := strings.Cut(paragraph, "\n")
		switch {
		case title == "Exit codes:":
			p.section("EXIT STATUS")
			for _, m := range exits.FindAllStringSubmatch(rest, -1) {
				fmt.Fprintf(p, ".TP\n\\fB%s\\fR\n%s\n", m[1], roff(m[2]))
			}
		case paragraph == "":
		default:
			p.paragraph(paragraph)
		}
	}
}

// paragraph writes running text, and below it what is indented as it stands.
func (p *manual) paragraph(text string) {
	fmt.Fprintln(p, ".PP")
	var kept []string
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "  ") {
			kept = append(kept, line)
			continue
		}
		p.verbatim(strings.Join(kept, "\n"))
		kept = nil
		fmt.Fprintln(p, roff(line))
	}
	p.verbatim(strings.Join(kept, "\n"))
}

func (p *manual) verbatim(text string) {
	if text != "" {
		fmt.Fprintf(p, ".nf\n%s\n.fi\n", roff(text))
	}
}

func (p *manual) commands(c *cobra.Command) {
	if !c.HasAvailableSubCommands() {
		return
	}
	p.section("COMMANDS")
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			fmt.Fprintf(p, ".TP\n\\fB%s\\fR(1)\n%s\n", roff(manName(sub)), roff(sub.Short))
		}
	}
}

func (p *manual) flags(title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	p.section(title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		fmt.Fprintln(p, ".TP")
		if f.Shorthand != "" {
			fmt.Fprintf(p, "\\fB%s\\fR, ", roff("-"+f.Shorthand))
		}
		fmt.Fprintf(p, "\\fB%s\\fR", roff("--"+f.Name))
		if value != "" {
			fmt.Fprintf(p, " \\fI%s\\fR", roff(value))
		}
		if unset := []string{"", "false", "0", "0s", "[]"}; !slices.Contains(unset, f.DefValue) && !strings.Contains(usage, "default") {
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(p, "\n%s\n", roff(usage))
	})
}

func (p *manual) seeAlso(c *cobra.Command) {
	var others []string
	if c.HasParent() {
		others = append(others, manName(c.Parent()))
		for _, s := range c.Parent().Commands() {
			if s != c && s.IsAvailableCommand() {
				others = append(others, manName(s))
			}
		}
	}
	if len(others) == 0 {
		return
	}
	p.section("SEE ALSO")
	for i, name := range others {
		end := ","
		if i == len(others)-1 {
			end = ""
		}
		fmt.Fprintf(p, "\\fB%s\\fR(1)%s\n", roff(name), end)
	}
}

// roff writes text so that it stands on the page as it is.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, `-`, `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line // no macro
		}
	}
	return strings.Join(lines, "\n")
}

func TestAManPageShowsTextAsItIs(t *testing.T) {
	root := &cobra.Command{Use: "tool", Short: "A tool"}
	c := &cobra.Command{
		Use: "do-it THING", Short: "Do it", Run: func(*cobra.Command, []string) {},
		Long: "Do it with a \\ and\n.dots at the start.\n  kept  as-is\n\nExit codes:\n  0   done\n  12  not done",
	}
	c.Flags().StringP("output", "o", "table", "how: `FORM`")
	c.Flags().Bool("secret", false, "hidden")
	_ = c.Flags().MarkHidden("secret")
	root.AddCommand(c, &cobra.Command{Use: "gone", Hidden: true, Run: c.Run})
	if n := len(everyCommand(root)); n != 2 {
		t.Errorf("%d commands are shown", n)
	}
	want := `.TH TOOL\-DO\-IT 1 2026-11-26 zedkube "zedkube manual"
.SH NAME
tool\-do\-it \- Do it
.SH SYNOPSIS
.nf
\fBtool do\-it THING [flags]\fR
.fi
.SH DESCRIPTION
.PP
Do it with a \e and
\&.dots at the start.
.nf
  kept  as\-is
.fi
.SH EXIT STATUS
.TP
\fB0\fR
done
.TP
\fB12\fR
not done
.SH OPTIONS
.TP
\fB\-o\fR, \fB\-\-output\fR \fIFORM\fR
how: FORM (default table)
.SH SEE ALSO
\fBtool\fR(1)
`
	if got := string(manPage(c, "2026-11-26")); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
