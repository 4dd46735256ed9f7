package topcmd

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
)

// topKeys says how to work it.
const topKeys = "q ends; c m n sort; arrows, space, b scroll"

// lines is the table as a screen of a width and a height; height 0 is without
// end. from is the row at the top, and comes back within what there is.
func (t topTable) lines(o topOptions, width, height int, colour bool, from *int) []string {
	l := topLook{now: t.At, ascii: o.ascii}
	s := &terminal.Screen{Width: width, Colour: colour}
	what := strings.ToUpper(t.Of[:1]) + t.Of[1:]
	if t.Of != topNodes {
		what += " of " + cmp.Or(terminal.Clean(t.Node), "this node")
	}
	s.Put(0, terminal.Plain, l.plain(fmt.Sprintf("%s, by %s, %s", what, o.sort, t.At.UTC().Format("2006-01-02 15:04:05Z"))))
	problems := t.Problems
	const most = 6
	if height > 0 && len(problems) > most {
		problems = append(problems[:most-1:most-1], fmt.Sprintf("and %d more problems: zedkube top %s --once", len(problems)-most+1, t.Of))
	}
	for _, p := range problems {
		s.Put(2, terminal.Red, l.plain(terminal.Clean(p)))
	}
	if height > 0 && len(s.Lines) > height/2 { // the table comes first
		s.Lines = s.Lines[:max(height/2, 1)]
	}
	if len(t.Rows) == 0 && len(t.Problems) == 0 {
		s.Put(2, terminal.Plain, "there are none")
	}
	head, row := l.lines(t, max(width-1, 1))
	shown := len(t.Rows)
	if height > 0 {
		room := max(height-len(s.Lines)-3, 1) // head, foot and the cursor's line
		*from = max(min(*from, len(t.Rows)-room), 0)
		shown = min(room, len(t.Rows)-*from)
	}
	if len(t.Rows) > 0 {
		putLine(s, terminal.Bold, head)
	}
	for i := *from; i < *from+shown; i++ {
		look := terminal.Plain
		if t.Rows[i].Old {
			look = terminal.Yellow
		}
		putLine(s, look, row(i))
	}
	putFoot(s, t, o, *from, shown, height > 0)
	return s.Lines
}

// putFoot says what is not to be seen.
func putFoot(s *terminal.Screen, t topTable, o topOptions, from, shown int, live bool) {
	var said []string
	if shown < len(t.Rows) {
		said = append(said, fmt.Sprintf("%d to %d of %d", from+1, from+shown, len(t.Rows)))
	}
	if t.Hidden > 0 && !o.all {
		said = append(said, fmt.Sprintf("%d of other namespaces: --all", t.Hidden))
	}
	if live {
		said = append(said, topKeys)
		text, _ := terminal.Cut(strings.Join(said, "; "), max(s.Width-1, 1))
		putLine(s, terminal.Plain, text)
		return
	}
	if len(said) > 0 {
		s.Put(0, terminal.Plain, strings.Join(said, "; "))
	}
}

// putLine adds a line that fits as it is.
func putLine(s *terminal.Screen, look terminal.Style, text string) {
	if s.Colour && look != terminal.Plain {
		text = "\x1b[" + string(look) + "m" + text + "\x1b[0m"
	}
	s.Lines = append(s.Lines, text)
}
