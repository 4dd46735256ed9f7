package manual

import (
	"regexp"
	"strings"
)

// BlockKind is what a part of a document is.
type BlockKind int

// The parts that the documents are made of. They are our own: what is not among these forms does not
// stand in them.
const (
	Paragraph BlockKind = iota
	Heading
	Code
	List
	Table
)

// Block is one part of a document.
type Block struct {
	Kind  BlockKind
	Level int        // of a heading
	Text  string     // of a heading, a paragraph and code
	Items []string   // of a list
	Rows  [][]string // of a table, the first one its header
}

var (
	item    = regexp.MustCompile(`^(?:[-*]|\d+\.) +`)
	comment = regexp.MustCompile(`(?s)<!--.*?-->\n?`)
)

// parse is a document in parts.
func parse(text string) (blocks []Block) {
	lines := strings.Split(comment.ReplaceAllString(text, ""), "\n")
	for len(lines) > 0 {
		if strings.TrimSpace(lines[0]) == "" {
			lines = lines[1:]
			continue
		}
		n, b := block(lines)
		blocks = append(blocks, b)
		lines = lines[n:]
	}
	return blocks
}

// block is the part that lines begin with, and how many of them it has.
func block(lines []string) (int, Block) {
	switch first := lines[0]; {
	case strings.HasPrefix(first, "#"):
		text := strings.TrimLeft(first, "#")
		return 1, Block{Kind: Heading, Level: len(first) - len(text), Text: strings.TrimSpace(text)}
	case strings.HasPrefix(first, "    "):
		return code(lines)
	case strings.HasPrefix(first, "|"):
		n := while(lines, func(line string) bool { return strings.HasPrefix(line, "|") })
		return n, table(lines[:n])
	case item.MatchString(first):
		n := while(lines, func(line string) bool { return item.MatchString(line) || strings.HasPrefix(line, "  ") })
		return n, list(lines[:n])
	}
	n := while(lines, func(line string) bool {
		return line != "" && !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "#")
	})
	return n, Block{Kind: Paragraph, Text: strings.Join(lines[:n], " ")}
}

// while is how many lines are so, the first one in any case.
func while(lines []string, is func(string) bool) int {
	n := 1
	for n < len(lines) && is(lines[n]) {
		n++
	}
	return n
}

// code is indented by four; empty lines within belong to it.
func code(lines []string) (int, Block) {
	n := while(lines, func(line string) bool { return line == "" || strings.HasPrefix(line, "    ") })
	used := n
	for lines[n-1] == "" {
		n--
	}
	text := make([]string, n)
	for i, line := range lines[:n] {
		text[i] = strings.TrimPrefix(line, "    ")
	}
	return used, Block{Kind: Code, Text: strings.Join(text, "\n")}
}

func list(lines []string) Block {
	b := Block{Kind: List}
	for _, line := range lines {
		if mark := item.FindString(line); mark != "" {
			b.Items = append(b.Items, line[len(mark):])
		} else {
			b.Items[len(b.Items)-1] += " " + strings.TrimSpace(line)
		}
	}
	return b
}

func table(lines []string) Block {
	b := Block{Kind: Table}
	for i, line := range lines {
		if i == 1 { // the rule below the header
			continue
		}
		b.Rows = append(b.Rows, cells(line))
	}
	for i, row := range b.Rows {
		for len(row) < len(b.Rows[0]) {
			row = append(row, "")
		}
		b.Rows[i] = row[:len(b.Rows[0])]
	}
	return b
}

// cells are those of a row, in which a bar that is text has a backslash.
func cells(line string) (all []string) {
	line = strings.ReplaceAll(line, `\|`, "\x00")
	for cell := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), "|") {
		all = append(all, strings.ReplaceAll(strings.TrimSpace(cell), "\x00", "|"))
	}
	return all
}

var link = regexp.MustCompile(`\[([^\]]+)\]\(([^)]+)\)`)

// Plain is a text without its marks, for a terminal.
func Plain(text string) string {
	return strings.NewReplacer("`", "", "**", "", `\<`, "<", `\|`, "|").Replace(link.ReplaceAllString(text, "$1"))
}
