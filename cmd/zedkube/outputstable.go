package main

import (
	"slices"
	"strings"
)

// table is what people are shown of a list: columns aligned, cut to the width.
type table struct {
	columns []column
	rows    [][]cell // one cell per column; texts have to be clean
}

// column is one column of a table.
type column struct {
	title string
	keep  int  // where the width is short the one with the smallest goes first; 0 never goes
	right bool // aligned at the right, for numbers
}

// cell is one value; "" is shown as nothing known.
type cell struct {
	text string
	look style
}

// What remains of a text that does not fit, in columns: a column goes before the
// others are cut below fairColumn, and none is cut below leastColumn.
const (
	fairColumn  = 20
	leastColumn = 8
)

// lines are the head and the rows, of at most width columns.
func (t table) lines(width int, colour bool) []string {
	wide, shown := t.fit(width)
	s := screen{width: width, colour: colour}
	head := make([]cell, len(t.columns))
	for i, c := range t.columns {
		head[i] = cell{text: c.title, look: bold}
	}
	for _, row := range append([][]cell{head}, t.rows...) {
		var b strings.Builder
		gap := ""
		for _, i := range shown {
			if i >= len(row) {
				continue
			}
			b.WriteString(gap)
			gap = "  "
			s.cell(&b, row[i], wide[i], t.columns[i].right)
		}
		s.lines = append(s.lines, strings.TrimRight(b.String(), " "))
	}
	return s.lines
}

// cell writes one cell, filled up to its width.
func (s *screen) cell(b *strings.Builder, c cell, wide int, right bool) {
	text := c.text
	if text == "" {
		text, c.look = unknown, plain
	}
	if cells(text) > wide {
		text, _ = cut(text, max(wide-1, 1))
		text += "~"
	}
	fill := strings.Repeat(" ", max(wide-cells(text), 0))
	if s.colour && c.look != plain {
		text = "\x1b[" + string(c.look) + "m" + text + "\x1b[0m"
	}
	if right {
		text, fill = fill, text
	}
	b.WriteString(text + fill)
}

// fit is how wide each column is, and which are shown.
func (t table) fit(width int) (wide, shown []int) {
	wide = make([]int, len(t.columns))
	for i, c := range t.columns {
		wide[i] = cells(c.title)
		for _, row := range t.rows {
			if i < len(row) {
				wide[i] = max(wide[i], cells(row[i].text))
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
			if k := t.columns[i].keep; k > 0 && (least < 0 || k < t.columns[shown[least]].keep) {
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
