package terminal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Style is how a line looks where there is colour.
type Style string

// The styles of a line.
const (
	Plain  Style = ""
	Bold   Style = "1"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
)

// Screen collects lines that fit a terminal. Texts have to be clean.
type Screen struct {
	Width  int
	Height int // 0 for no end
	Colour bool
	From   int // the first row, of what scrolls its rows itself (Watch.Scrolls)
	Lines  []string

	list   *listing // what the flags of a list say; nil where there are none
	rooted func(string) string

	kubectl bool // a text tells to type a command of kubectl
}

// Draw is what draw puts on a screen without an end; nothing for nil.
func Draw(width int, colour bool, draw func(*Screen)) []string {
	s := Screen{Width: width, Colour: colour}
	if draw != nil {
		draw(&s)
	}
	return s.Lines
}

// LabelWidth is the column in which the values of fields begin.
const LabelWidth = 14

// Put adds a text, broken to the width, at an indent; more lines of it hang by
// two columns.
func (s *Screen) Put(indent int, look Style, text string) {
	s.Hang(strings.Repeat(" ", indent), indent+2, look, text)
}

// Field adds a labelled value.
func (s *Screen) Field(label string, look Style, text string) {
	s.Hang(fmt.Sprintf("  %-*s", LabelWidth-2, label), LabelWidth, look, text)
}

// Hang adds a text after a head; more lines of it begin at the indent.
func (s *Screen) Hang(head string, indent int, look Style, text string) {
	if s.rooted != nil {
		text = s.rooted(text)
	}
	s.kubectl = s.kubectl || typesKubectl.MatchString(text)
	for i, line := range wrapped(text, max(s.Width-1-indent, 16)) {
		if i > 0 {
			head = strings.Repeat(" ", indent)
		}
		s.Lines = append(s.Lines, s.paint(look, strings.TrimRight(head+line, " ")))
	}
}

// Cut adds a text in one line, cut to the width.
func (s *Screen) Cut(look Style, text string) {
	text, _ = Cut(text, max(s.Width-1, 1))
	s.Lines = append(s.Lines, s.paint(look, text))
}

// Foot adds what is said below a list, for people and not where titles are not wanted either.
func (s *Screen) Foot(text string) {
	if s.Titled() {
		s.Put(0, Plain, text)
	}
}

// whole draws, and says below where what is told to type can be typed.
func (s *Screen) whole(draw func(*Screen)) {
	draw(s)
	if s.kubectl {
		s.Put(0, Plain, InKube+".")
	}
}

// Titled reports that titles are wanted.
func (s *Screen) Titled() bool { return s.list == nil || !s.list.noHeaders }

// Gap adds an empty line.
func (s *Screen) Gap() { s.Lines = append(s.Lines, "") }

func (s *Screen) paint(look Style, text string) string {
	if !s.Colour || look == Plain {
		return text
	}
	return "\x1b[" + string(look) + "m" + text + "\x1b[0m"
}

// MostItems bounds each list of the screen.
const MostItems = 50

// PutList adds the items of a list, at most MostItems, and how many more there are.
// omitted are those that the list itself leaves out.
func PutList[T any](s *Screen, list []T, omitted int, put func(T)) {
	for _, item := range list[:min(len(list), MostItems)] {
		put(item)
	}
	hidden := max(len(list)-MostItems, 0)
	if omitted > 0 && omitted < 1<<40 {
		hidden += omitted
	}
	if hidden > 0 {
		s.Put(2, Plain, fmt.Sprintf("and %d more", hidden))
	}
}

// Listed joins names, at most MostItems of them.
func Listed(names []string) string {
	var b strings.Builder
	for i, name := range names {
		switch {
		case i == MostItems:
			fmt.Fprintf(&b, ", and %d more", len(names)-i)
			return b.String()
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(Clean(name))
	}
	return b.String()
}

// Table is a list for people: columns aligned, cut to the width.
type Table struct {
	Columns []Column
	Rows    [][]Cell // one cell per column; texts have to be clean
	Sorted  bool     // the rows have the order that was asked for
}

// Column is one column of a table.
type Column struct {
	Title  string
	Keep   int    // where the width is short the one with the smallest goes first; 0 never goes
	Right  bool   // aligned at the right, for numbers
	Width  int    // at least, so that a table that is drawn again does not move
	Fair   int    // so much of it is shown before other columns go; 0 for fairColumn
	Middle string // stands for what is taken out of the middle of a long text; "" cuts its end
}

// Cell is one value; "" is shown as unknown.
type Cell struct {
	Text string
	Look Style
}

// What remains of a text that does not fit, in columns: a column goes before the
// others are cut below fairColumn, and none is cut below leastColumn.
const (
	fairColumn  = 20
	leastColumn = 8
)

// Draw adds the head and the rows, and of a list which columns have no room.
func (t Table) Draw(s *Screen) {
	width, headless := s.Width, false
	if l := s.list; l != nil {
		t.Rows, headless = l.sorted(t), l.noHeaders
		if l.wide && s.Height == 0 {
			width = wholeLines
		}
	}
	wide, shown := t.fit(width)
	head := make([]Cell, len(t.Columns))
	for i, c := range t.Columns {
		head[i] = Cell{Text: c.Title, Look: Bold}
	}
	for n, row := range append([][]Cell{head}, t.Rows...) {
		if n == 0 && headless {
			continue
		}
		var b strings.Builder
		gap := ""
		for _, i := range shown {
			if i >= len(row) {
				continue
			}
			c := row[i]
			if c.Text == "" && n > 0 {
				c = Cell{Text: Unknown}
			}
			b.WriteString(gap)
			gap = "  "
			s.cell(&b, c, wide[i], t.Columns[i])
		}
		s.Lines = append(s.Lines, strings.TrimRight(b.String(), " "))
	}
	if s.list == nil || headless {
		return
	}
	var hidden []string
	for i, c := range t.Columns {
		if !slices.Contains(shown, i) && c.Title != "" {
			hidden = append(hidden, c.Title)
		}
	}
	if len(hidden) > 0 {
		s.Put(0, Plain, "not shown: "+strings.Join(hidden, ", ")+" (-o wide)")
	}
}

func (s *Screen) cell(b *strings.Builder, c Cell, wide int, column Column) {
	text := c.Text
	switch {
	case Cells(text) <= wide:
	case column.Middle != "":
		text = shorten(text, wide, column.Middle)
	default:
		text, _ = Cut(text, max(wide-1, 1))
		text += "~"
	}
	fill := strings.Repeat(" ", max(wide-Cells(text), 0))
	text = s.paint(c.Look, text)
	if column.Right {
		text, fill = fill, text
	}
	b.WriteString(text + fill)
}

// shorten takes the middle out of a name: the beginning says what it is and the
// end tells it from others.
func shorten(name string, width int, gap string) string {
	runes := []rune(name)
	for keep := min(width, len(runes)) - 1; keep > 0; keep-- {
		head, tail := string(runes[:(keep+1)/2]), string(runes[len(runes)-keep/2:])
		if Cells(head)+utf8.RuneCountInString(gap)+Cells(tail) <= width {
			return head + gap + tail
		}
	}
	return gap
}

// fit is how wide each column is, and which are shown.
func (t Table) fit(width int) (wide, shown []int) {
	wide = make([]int, len(t.Columns))
	for i, c := range t.Columns {
		wide[i] = max(Cells(c.Title), c.Width)
		for _, row := range t.Rows {
			if i < len(row) {
				wide[i] = max(wide[i], Cells(row[i].Text))
			}
		}
		shown = append(shown, i)
	}
	over := func(fair bool) int {
		sum := -2 - width + 1 // the last column of a terminal stays free
		for _, i := range shown {
			most := wide[i]
			if fair {
				most = min(most, cmp.Or(t.Columns[i].Fair, fairColumn))
			}
			sum += 2 + most
		}
		return sum
	}
	for over(true) > 0 {
		least := -1
		for at, i := range shown {
			if k := t.Columns[i].Keep; k > 0 && (least < 0 || k < t.Columns[shown[least]].Keep) {
				least = at
			}
		}
		if least < 0 {
			break
		}
		shown = slices.Delete(shown, least, least+1)
	}
	for over(false) > 0 {
		widest := slices.MaxFunc(shown, func(a, b int) int { return wide[a] - wide[b] })
		if wide[widest] <= leastColumn {
			break
		}
		wide[widest]--
	}
	return wide, shown
}
