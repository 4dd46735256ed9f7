// Package manual is what the documents for operators say, found by the name of a problem, of what
// blocks a drain, of a condition, a phase or an alert, and as one page. The documents are in the program.
package manual

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/zedkube/zedkube/docs"
)

// files are the documents, in the order in which the page shows them.
var files = []string{"runbook.md", "operations.md", "alerts.md", "files.md"}

// Entry is what a document says about one name.
type Entry struct {
	Name    string
	Kind    string // problem, alert, cause, phase, state, condition or chapter
	File    string
	Chapter string // the heading that it stands under, its own for a chapter
	Blocks  []Block
}

// Manual is all documents.
type Manual struct {
	pages   []document
	entries []Entry
}

type document struct {
	name   string
	blocks []Block
}

// Read reads the documents.
func Read() (*Manual, error) {
	m := &Manual{}
	for _, name := range files {
		content, err := docs.Files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		d := document{name, parse(string(content))}
		m.pages = append(m.pages, d)
		m.entries = append(m.entries, entriesOf(d)...)
	}
	return m, nil
}

// word matches a heading that is the name of something.
var word = regexp.MustCompile(`^[A-Z][a-z]*(?:[A-Z0-9][A-Za-z0-9]*)+$|^Leaving$|^Leaderless$|^Unreadable$`)

func entriesOf(d document) (found []Entry) {
	chapter := ""
	for i, b := range d.blocks {
		switch b.Kind {
		case Heading:
			if b.Level <= 2 {
				chapter = b.Text
			}
			e := Entry{Name: b.Text, Kind: "chapter", File: d.name, Chapter: chapter, Blocks: section(d.blocks[i:])}
			switch {
			case !word.MatchString(b.Text):
			case d.name == "alerts.md":
				e.Kind = "alert"
			case d.name == "runbook.md":
				e.Kind = "problem"
			}
			if b.Level > 1 {
				found = append(found, e)
			}
		case Table:
			found = append(found, rowsOf(b, d.name, chapter)...)
		case Paragraph, Code, List:
		}
	}
	return found
}

// section is what stands below a heading, the first of blocks, up to the next one that is no deeper.
func section(blocks []Block) []Block {
	for i, b := range blocks[1:] {
		if b.Kind == Heading && b.Level <= blocks[0].Level {
			return blocks[1 : i+1]
		}
	}
	return blocks[1:]
}

// kinds are the tables whose rows are entries, by the first cell of their header.
var kinds = map[string]string{"cause": "cause", "phase": "phase", "state": "state", "condition": "condition", "status": "forced state"}

// rowsOf are the entries that the rows of a table are. One row may be about several names, and several
// rows about one.
func rowsOf(t Block, file, chapter string) (found []Entry) {
	kind, is := kinds[strings.ToLower(t.Rows[0][0])]
	if !is {
		return nil
	}
	for _, row := range t.Rows[1:] {
		for _, name := range names(kind, row[0]) {
			found = append(found, Entry{Name: name, Kind: kind, File: file, Chapter: chapter, Blocks: []Block{{Kind: Table, Rows: [][]string{t.Rows[0], row}}}})
		}
	}
	return found
}

// names are what a row is about: of "`LabelsAsExpected` LabelsChanged" and "budget, slow" the first
// word, of "3 REQUESTED, 4 STARTING" both.
func names(kind, cell string) (all []string) {
	if kind == "cause" || kind == "condition" {
		cell, _, _ = strings.Cut(cell, ",")
		return []string{Plain(strings.Fields(cell)[0])}
	}
	for part := range strings.SplitSeq(Plain(cell), ", ") {
		all = append(all, strings.TrimLeft(part, "0123456789 "))
	}
	return all
}

// Find is what is said about a name, whatever its case: what has exactly that name, before chapters.
func (m *Manual) Find(name string) (found []Entry) {
	for _, e := range m.entries {
		if strings.EqualFold(e.Name, name) {
			found = append(found, e)
		}
	}
	slices.SortStableFunc(found, func(a, b Entry) int { return cmp.Compare(order(a.Kind), order(b.Kind)) })
	return found
}

// order is that in which entries of one name are shown.
func order(kind string) int {
	return slices.Index([]string{"problem", "alert", "cause", "condition", "phase", "state", "forced state", "chapter"}, kind)
}

// Names are the names of a kind, each once, in the order of the documents; of all kinds but
// chapters for "".
func (m *Manual) Names(kind string) (all []string) {
	for _, e := range m.entries {
		if (kind == e.Kind || kind == "" && e.Kind != "chapter") && !slices.Contains(all, e.Name) {
			all = append(all, e.Name)
		}
	}
	return all
}

// Kinds are the kinds of entries, in the order in which they are listed.
func Kinds() []string { return []string{"problem", "cause", "condition", "phase", "state", "alert"} }

// Like are names that somebody may have meant by another one, at most three.
func (m *Manual) Like(name string) (like []string) {
	name = strings.ToLower(name)
	for _, e := range m.entries {
		known := strings.ToLower(e.Name)
		if (distance(name, known) <= 2 || len(name) > 3 && strings.Contains(known, name)) && !slices.Contains(like, e.Name) && len(like) < 3 {
			like = append(like, e.Name)
		}
	}
	return like
}

// distance is how many letters have to be changed, added or left out to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
