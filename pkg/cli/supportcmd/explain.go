package supportcmd

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/manual"
)

// NewExplainCommand prints what the documents for operators say about a name.
func NewExplainCommand(*device.Options) *cobra.Command {
	var out terminal.Outputs
	return out.Flag(&cobra.Command{
		Use:   "explain [NAME]",
		Short: "Explain a problem, what blocks a drain, a condition, a phase, a state or an alert",
		Long: "Explain NAME as the documents for operators do, which are a part of this program: what it means, where to look and\n" +
			"what to do. NAME is a problem, a cause that blocks a drain, a condition, a phase, a state, an alert or the title of\n" +
			"a chapter. Without NAME it lists all but the titles.\n\n" +
			"Exit codes:\n  0   shown\n  1   wrong usage, or nothing has that name\n  99  unknown command",
		Example: "  zedkube explain DrainNever        a problem that zedkube status shows\n" +
			"  zedkube explain budget            why a pod does not leave the node\n" +
			"  zedkube explain ClockInStep       a condition\n" +
			"  zedkube explain the force file    a chapter",
		ValidArgsFunction: completeNames,
		RunE: func(c *cobra.Command, args []string) error {
			book, err := manual.Read()
			if err != nil {
				return err
			}
			t := terminal.Of(c.OutOrStdout())
			if len(args) == 0 {
				return out.Print(t, listed(book))
			}
			name := terminal.Named("problem", strings.Join(args, " "))
			found := book.Find(name)
			if len(found) == 0 {
				return terminal.ExitWith(terminal.ExitUsage, unknownName(book, name))
			}
			return out.Print(t, terminal.View{Data: toldOf(found), Draw: func(s *terminal.Screen) { drawEntries(s, found) }})
		},
	})
}

func unknownName(book *manual.Manual, name string) error {
	hint := `"zedkube explain" lists the names`
	if like := book.Like(name); len(like) > 0 {
		hint = "did you mean " + strings.Join(like, " or ") + "?"
	}
	return fmt.Errorf("nothing is called %q; %s", terminal.Clean(name), hint)
}

func completeNames(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	book, err := manual.Read()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, kind := range manual.Kinds() {
		for _, name := range book.Names(kind) {
			names = append(names, cobra.CompletionWithDesc(name, kind))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// listed is all names, by kind.
func listed(book *manual.Manual) terminal.View {
	var all []entryName
	for _, kind := range manual.Kinds() {
		for _, name := range book.Names(kind) {
			all = append(all, entryName{name, kind})
		}
	}
	return terminal.View{Data: all, Draw: func(s *terminal.Screen) {
		for _, kind := range manual.Kinds() {
			s.Field(kind, terminal.Plain, strings.Join(book.Names(kind), ", "))
		}
	}}
}

// entryName is what is listed of an entry.
type entryName struct{ Name, Kind string }

// entryText is an entry as data.
type entryText struct {
	Name    string
	Kind    string
	File    string
	Chapter string
	Text    string // as it is printed, in complete lines
}

func toldOf(found []manual.Entry) (list []entryText) {
	for _, e := range found {
		list = append(list, entryText{e.Name, e.Kind, e.File, e.Chapter, strings.Join(terminal.Draw(1<<16, false, func(s *terminal.Screen) { drawBlocks(s, e.Blocks) }), "\n")})
	}
	return list
}

func drawEntries(s *terminal.Screen, found []manual.Entry) {
	for i, e := range found {
		if i > 0 && e.Kind == found[i-1].Kind && e.Chapter == found[i-1].Chapter {
			s.Gap()
			drawBlocks(s, e.Blocks)
			continue
		}
		if i > 0 {
			s.Gap()
		}
		where := e.Kind
		if e.Kind != "chapter" {
			where += ", " + e.Chapter
		}
		s.Put(0, terminal.Bold, e.Name+": "+where+" ("+e.File+")")
		drawBlocks(s, e.Blocks)
	}
}

func drawBlocks(s *terminal.Screen, blocks []manual.Block) {
	for i, b := range blocks {
		if i > 0 {
			s.Gap()
		}
		switch b.Kind {
		case manual.Heading:
			s.Put(0, terminal.Bold, manual.Plain(b.Text))
		case manual.Paragraph:
			s.Put(2, terminal.Plain, manual.Plain(b.Text))
		case manual.Code:
			for line := range strings.SplitSeq(b.Text, "\n") {
				s.Lines = append(s.Lines, strings.TrimRight("      "+line, " "))
			}
		case manual.List:
			for _, item := range b.Items {
				s.Hang("  - ", 4, terminal.Plain, manual.Plain(item))
			}
		case manual.Table:
			drawTable(s, b.Rows)
		}
	}
}

// drawTable draws the rows one below the other: a cell of a document is too long for a column of a
// terminal.
func drawTable(s *terminal.Screen, rows [][]string) {
	header := rows[0]
	for i, row := range rows[1:] {
		if len(row) == 2 && header[1] == "" {
			s.Field(manual.Plain(row[0]), terminal.Plain, manual.Plain(row[1]))
			continue
		}
		if i > 0 {
			s.Gap()
		}
		s.Put(2, terminal.Bold, manual.Plain(row[0]))
		for j, cell := range row[1:] {
			label := manual.Plain(header[j+1])
			switch {
			case cell == "":
			case len(label) > terminal.LabelWidth-4:
				s.Put(2, terminal.Plain, label+": "+manual.Plain(cell))
			default:
				s.Field(label, terminal.Plain, manual.Plain(cell))
			}
		}
	}
}
