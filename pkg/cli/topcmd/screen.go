package topcmd

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
)

// topKeys says how to work it.
const topKeys = "c m n sort; " + terminal.Keys

type topLook struct {
	now   time.Time
	ascii bool
}

func (l topLook) table(t topTable) terminal.Table {
	name := terminal.Column{Title: strings.ToUpper(t.Of), Middle: l.gap(), Fair: 24}
	table := terminal.Table{Columns: []terminal.Column{name}, Sorted: true}
	columns := l.all(t)
	for _, c := range columns {
		table.Columns = append(table.Columns, c.Column)
	}
	for _, r := range t.Rows {
		look := terminal.Plain
		if r.Old {
			look = terminal.Yellow
		}
		row := []terminal.Cell{{Text: l.plain(terminal.Clean(r.Name)), Look: look}}
		for _, c := range columns {
			row = append(row, terminal.Cell{Text: c.text(r), Look: look})
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}

// all are the columns of a table, but for the name, which comes first.
func (l topLook) all(t topTable) []topColumn {
	columns := l.columns(t.Of)
	if !t.Cluster {
		return columns
	}
	node := topColumn{terminal.Column{Title: "NODE", Middle: l.gap(), Fair: 16, Keep: 8}, func(r topRow) string { return l.plain(terminal.Clean(r.Node)) }}
	return append([]topColumn{node}, columns...)
}

// sortable is a table with the words of --sort-by.
func (t topTable) sortable() terminal.Table {
	table := terminal.Table{Columns: []terminal.Column{{Title: strings.ToUpper(sortName)}}}
	for _, c := range (topLook{}).all(t) {
		table.Columns = append(table.Columns, c.Column)
	}
	return table
}

// gap stands for what is taken out of a long name.
func (l topLook) gap() string {
	if l.ascii {
		return "~"
	}
	return "…"
}

type topColumn struct {
	terminal.Column
	text func(r topRow) string
}

// columns are those that do not depend on where the rows are from.
func (l topLook) columns(of string) []topColumn {
	column := func(title string, width, keep int, text func(r topRow) string) topColumn {
		return topColumn{terminal.Column{Title: title, Width: width, Keep: keep, Right: true}, text}
	}
	bytes := func(title string, keep int, of func(r topRow) *uint64) topColumn {
		return column(title, 6, keep, func(r topRow) string { return terminal.BytesText(of(r)) })
	}
	cpu := column("CPU", 5, 9, func(r topRow) string { return terminal.CoresText(r.CPU) })
	cpus := column("", topSamples, 6, func(r topRow) string { return l.spark(r.CPUs, float64(r.Cores)*1e9) })
	memory := bytes("MEMORY", 8, func(r topRow) *uint64 { return r.Memory })
	memories := column("", topSamples, 5, func(r topRow) string { return l.spark(r.Memories, terminal.Number(r.Total)) })
	received := bytes("RX/s", 4, func(r topRow) *uint64 { return r.Received })
	sent := bytes("TX/s", 3, func(r topRow) *uint64 { return r.Sent })
	disk := bytes("DISK", 2, func(r topRow) *uint64 { return r.Disk })
	age := column("AGE", 7, 0, func(r topRow) string { return ageText(r, l.now) })
	switch of {
	case topNodes:
		cpuPart := column("CPU%", 4, 7, func(r topRow) string { return terminal.Percent(r.CPU, float64(r.Cores)*1e9) })
		memoryPart := column("MEM%", 4, 7, func(r topRow) string { return terminal.Percent(r.Memory, terminal.Number(r.Total)) })
		diskPart := column("DISK%", 5, 1, func(r topRow) string { return terminal.Percent(r.Disk, terminal.Number(r.DiskSize)) })
		return []topColumn{cpu, cpuPart, cpus, memory, memoryPart, memories, received, sent, diskPart, age}
	case topContainers:
		swap := bytes("SWAP", 1, func(r topRow) *uint64 { return r.Swap })
		read := bytes("READ/s", 4, func(r topRow) *uint64 { return r.Read })
		written := bytes("WRIT/s", 4, func(r topRow) *uint64 { return r.Written })
		usage := bytes("USAGE", 1, func(r topRow) *uint64 { return r.Usage })
		operations := column("OPS/s", 6, 1, func(r topRow) string { return countText(r.IOs) })
		return []topColumn{cpu, cpus, memory, memories, usage, swap, read, written, operations, disk, age}
	}
	return []topColumn{cpu, cpus, memory, memories, received, sent, disk, age}
}

// draw puts the table on a screen, from the row that the screen wants at the top.
func (t topTable) draw(s *terminal.Screen, o topOptions) {
	l := topLook{now: t.At, ascii: o.ascii}
	live := s.Height > 0
	what := strings.ToUpper(t.Of[:1]) + t.Of[1:]
	switch {
	case t.Edge && t.Of == topNodes:
		what = "Edge nodes"
	case t.Edge:
		what += " of edge nodes"
	case t.Cluster:
		what += " of all nodes"
	case t.Of != topNodes:
		what += " of " + cmp.Or(terminal.Clean(t.Node), "this node")
	}
	if s.Titled() {
		s.Put(0, terminal.Plain, l.plain(fmt.Sprintf("%s, by %s, %s", what, o.sort, terminal.Timestamp(t.At))))
	}
	problems := t.Problems
	const most = 6
	if live && len(problems) > most {
		problems = append(problems[:most-1:most-1], fmt.Sprintf("and %d more problems: zedkube top %s --once", len(problems)-most+1, t.Of))
	}
	for _, p := range problems {
		s.Put(2, terminal.Red, l.plain(terminal.Clean(p)))
	}
	if live && len(s.Lines) > s.Height/2 { // the table comes first
		s.Lines = s.Lines[:max(s.Height/2, 1)]
	}
	if len(t.Rows) == 0 && len(t.Problems) == 0 {
		s.Put(2, terminal.Plain, "there are none")
	}
	shown := len(t.Rows)
	if live {
		room := max(s.Height-len(s.Lines)-3, 1) // head, foot and the cursor's line
		s.From = max(min(s.From, len(t.Rows)-room), 0)
		shown = min(room, len(t.Rows)-s.From)
	}
	if len(t.Rows) > 0 {
		whole := *s
		whole.Lines = nil
		l.table(t).Draw(&whole)
		head := 0
		if s.Titled() {
			head = 1
		}
		first, last := head+s.From, head+s.From+shown
		s.Lines = slices.Concat(s.Lines, whole.Lines[:head], whole.Lines[first:last])
		if !live {
			s.Lines = append(s.Lines, whole.Lines[last:]...) // which columns have no room
		}
	}
	putFoot(s, t, o, shown)
}

func putFoot(s *terminal.Screen, t topTable, o topOptions, shown int) {
	var said []string
	if shown < len(t.Rows) {
		said = append(said, fmt.Sprintf("%d to %d of %d", s.From+1, s.From+shown, len(t.Rows)))
	}
	if t.Hidden > 0 && !o.all {
		said = append(said, fmt.Sprintf("%d of other namespaces: --all", t.Hidden))
	}
	if s.Height > 0 {
		s.Cut(terminal.Plain, strings.Join(append(said, topKeys), "; "))
	} else if len(said) > 0 && s.Titled() {
		s.Put(0, terminal.Plain, strings.Join(said, "; "))
	}
}

func countText(n *uint64) string {
	if n == nil {
		return terminal.Unknown
	}
	return strconv.FormatUint(*n, 10)
}

// plain leaves nothing in a text that the terminal cannot show.
func (l topLook) plain(text string) string {
	if !l.ascii {
		return text
	}
	return strings.Map(func(r rune) rune {
		if r > '~' {
			return '?'
		}
		return r
	}, text)
}

// ageText is how old a row is, with a mark where that is too old.
func ageText(r topRow, now time.Time) string {
	if r.At.IsZero() {
		return terminal.Unknown
	}
	d := now.Sub(r.At)
	text := ""
	switch past := d.Abs(); {
	case past < 100*time.Second:
		text = fmt.Sprintf("%ds", past/time.Second)
	case past < 100*time.Minute:
		text = fmt.Sprintf("%dm", past/time.Minute)
	case past < 100*time.Hour:
		text = fmt.Sprintf("%dh", past/time.Hour)
	case past < 1000*24*time.Hour:
		text = fmt.Sprintf("%dd", past/(24*time.Hour))
	default:
		text = ">999d"
	}
	if d <= -time.Second {
		text = "+" + text
	}
	if r.Old {
		text += "!"
	}
	return text
}

// The steps of a sparkline, from nothing to all.
const (
	sparkBlocks = "▁▂▃▄▅▆▇█"
	sparkDigits = "01234567"
)

// spark draws samples, the newest at the right: a part of whole, or where that
// is unknown of their largest.
func (l topLook) spark(samples []*uint64, whole float64) string {
	steps := []rune(sparkBlocks)
	if l.ascii {
		steps = []rune(sparkDigits)
	}
	samples = lastOf(samples)
	if whole <= 0 {
		for _, s := range samples {
			whole = max(whole, terminal.Number(s))
		}
	}
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", topSamples-len(samples)))
	for _, s := range samples {
		switch {
		case s == nil:
			b.WriteString(terminal.Unknown)
		case whole <= 0:
			b.WriteRune(steps[0])
		default:
			b.WriteRune(steps[int(min(terminal.Number(s)/whole, 1)*float64(len(steps)-1)+0.5)])
		}
	}
	return b.String()
}

// press does what a key says.
func (t *top) press(key rune) {
	by, known := map[rune]string{'c': sortCPU, 'm': sortMemory, 'n': sortName}[key]
	if known {
		t.options.sort = by
	}
}
