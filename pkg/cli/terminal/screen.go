package terminal

import (
	"fmt"
	"strings"
)

// PutMore says how much of a list is not shown.
func PutMore(s *Screen, have, omitted int) {
	hidden := max(have-ShownItems, 0)
	if omitted > 0 && omitted < 1<<40 {
		hidden += omitted
	}
	if hidden > 0 {
		s.Put(2, Plain, fmt.Sprintf("and %d more", hidden))
	}
}

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

// Screen collects lines that fit a width. Texts have to be clean.
type Screen struct {
	Width  int
	Colour bool
	Lines  []string
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
	for i, line := range wrapped(text, max(s.Width-1-indent, 16)) {
		if i > 0 {
			head = strings.Repeat(" ", indent)
		}
		line = strings.TrimRight(head+line, " ")
		if s.Colour && look != Plain {
			line = "\x1b[" + string(look) + "m" + line + "\x1b[0m"
		}
		s.Lines = append(s.Lines, line)
	}
}

// Gap adds an empty line.
func (s *Screen) Gap() { s.Lines = append(s.Lines, "") }

// ShownItems bounds each list of the screen.
const ShownItems = 50

// Listed joins names, at most ShownItems of them.
func Listed(names []string) string {
	var b strings.Builder
	for i, name := range names {
		switch {
		case i == ShownItems:
			fmt.Fprintf(&b, ", and %d more", len(names)-i)
			return b.String()
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(Clean(name))
	}
	return b.String()
}

// PutWarnings are what holds nothing up and is to be known.
func PutWarnings(s *Screen, list []string) {
	for _, w := range list {
		s.Field("warning", Yellow, Clean(w))
	}
}
