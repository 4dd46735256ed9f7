package terminal

import (
	"slices"
	"strings"
)

// Table is what people are shown of a list: columns aligned, cut to the width.
type Table struct {
	Columns []Column
	Rows    [][]Cell // one cell per column; texts have to be clean
}

// Column is one column of a table.
type Column struct {
	Title string
	Keep  int  // where the width is short the one with the smallest goes first; 0 never goes
	Right bool // aligned at the right, for numbers
}

// Cell is one value; "" is shown as nothing known.
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

// Lines are the head and the rows, of at most width columns.
func (t Table) Lines(width int, colour bool) []string {
	wide, shown := t.fit(width)
	s := Screen{Width: width, Colour: colour}
	head := make([]Cell, len(t.Columns))
	for i, c := range t.Columns {
		head[i] = Cell{Text: c.Title, Look: Bold}
	}
	for _, row := range append([][]Cell{head}, t.Rows...) {
		var b strings.Builder
		gap := ""
		for _, i := range shown {
			if i >= len(row) {
				continue
			}
			b.WriteString(gap)
			gap = "  "
			s.cell(&b, row[i], wide[i], t.Columns[i].Right)
		}
		s.Lines = append(s.Lines, strings.TrimRight(b.String(), " "))
	}
	return s.Lines
}

// cell writes one cell, filled up to its width.
func (s *Screen) cell(b *strings.Builder, c Cell, wide int, right bool) {
	text := c.Text
	if text == "" {
		text, c.Look = Unknown, Plain
	}
	if Cells(text) > wide {
		text, _ = Cut(text, max(wide-1, 1))
		text += "~"
	}
	fill := strings.Repeat(" ", max(wide-Cells(text), 0))
	if s.Colour && c.Look != Plain {
		text = "\x1b[" + string(c.Look) + "m" + text + "\x1b[0m"
	}
	if right {
		text, fill = fill, text
	}
	b.WriteString(text + fill)
}

// fit is how wide each column is, and which are shown.
func (t Table) fit(width int) (wide, shown []int) {
	wide = make([]int, len(t.Columns))
	for i, c := range t.Columns {
		wide[i] = Cells(c.Title)
		for _, row := range t.Rows {
			if i < len(row) {
				wide[i] = max(wide[i], Cells(row[i].Text))
			}
		}
		shown = append(shown, i)
	}
	over := func(most int) int {
		sum := -2 - width + 1 // the last column of a terminal stays free
		for _, i := range shown {
			sum += 2 + min(wide[i], most)
		}
		return sum
	}
	for over(fairColumn) > 0 {
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
	for over(wholeLines) > 0 {
		widest := slices.MaxFunc(shown, func(a, b int) int { return wide[a] - wide[b] })
		if wide[widest] <= leastColumn {
			break
		}
		wide[widest]--
	}
	return wide, shown
}
