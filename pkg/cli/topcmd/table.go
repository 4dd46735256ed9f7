package topcmd

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
)

// topColumn is a column of a table.
type topColumn struct {
	title string
	width int
	keep  int // on a narrow terminal the least goes first
	text  func(r topRow) string
}

// topLook is how values are written.
type topLook struct {
	now   time.Time
	ascii bool
}

// columns are those of a table, but for the name, which comes first.
func (l topLook) columns(of string) []topColumn {
	cpu := topColumn{"CPU", 5, 9, func(r topRow) string { return terminal.CoresText(r.CPU) }}
	cpus := topColumn{"", topSamples, 6, func(r topRow) string { return l.spark(r.CPUs, float64(r.Cores)*1e9) }}
	memory := topColumn{"MEMORY", 6, 8, func(r topRow) string { return terminal.BytesText(r.Memory) }}
	memories := topColumn{"", topSamples, 5, func(r topRow) string { return l.spark(r.Memories, terminal.Number(r.Total)) }}
	received := topColumn{"RX/s", 6, 4, func(r topRow) string { return terminal.BytesText(r.Received) }}
	sent := topColumn{"TX/s", 6, 3, func(r topRow) string { return terminal.BytesText(r.Sent) }}
	disk := topColumn{"DISK", 6, 2, func(r topRow) string { return terminal.BytesText(r.Disk) }}
	age := topColumn{"AGE", 7, 10, func(r topRow) string { return ageText(r, l.now) }}
	switch of {
	case topNodes:
		cpuPart := topColumn{"CPU%", 4, 7, func(r topRow) string { return terminal.Percent(r.CPU, float64(r.Cores)*1e9) }}
		memoryPart := topColumn{"MEM%", 4, 7, func(r topRow) string { return terminal.Percent(r.Memory, terminal.Number(r.Total)) }}
		diskPart := topColumn{"DISK%", 5, 1, func(r topRow) string { return terminal.Percent(r.Disk, terminal.Number(r.DiskSize)) }}
		return []topColumn{cpu, cpuPart, cpus, memory, memoryPart, memories, received, sent, diskPart, age}
	case topContainers:
		swap := topColumn{"SWAP", 6, 1, func(r topRow) string { return terminal.BytesText(r.Swap) }}
		read := topColumn{"READ/s", 6, 4, func(r topRow) string { return terminal.BytesText(r.Read) }}
		written := topColumn{"WRIT/s", 6, 4, func(r topRow) string { return terminal.BytesText(r.Written) }}
		return []topColumn{cpu, cpus, memory, memories, swap, read, written, disk, age}
	}
	return []topColumn{cpu, cpus, memory, memories, received, sent, disk, age}
}

// leastName is as much as there is of a name before columns go.
const leastName = 24

// lines are the table's head and each of its rows, of at most width columns.
func (l topLook) lines(t topTable, width int) (head string, row func(i int) string) {
	longest := len(t.Of)
	names := make([]string, len(t.Rows))
	for i, r := range t.Rows {
		names[i] = l.plain(terminal.Clean(r.Name))
		longest = max(longest, terminal.Cells(names[i]))
	}
	columns := l.columns(t.Of)
	room := func() int {
		left := width
		for _, c := range columns {
			left -= 2 + c.width
		}
		return left
	}
	for len(columns) > 1 && room() < min(longest, leastName) {
		least := slices.IndexFunc(columns, func(c topColumn) bool {
			return !slices.ContainsFunc(columns, func(o topColumn) bool { return o.keep < c.keep })
		})
		columns = slices.Delete(columns, least, least+1)
	}
	name := max(min(longest, room()), 1)
	line := func(first string, text func(topColumn) string) string {
		var b strings.Builder
		b.WriteString(first + strings.Repeat(" ", max(name-terminal.Cells(first), 0)))
		for _, c := range columns {
			fmt.Fprintf(&b, "  %*s", c.width, text(c))
		}
		return strings.TrimRight(b.String(), " ")
	}
	head = line(l.shorten(strings.ToUpper(t.Of), name), func(c topColumn) string { return c.title })
	return head, func(i int) string {
		return line(l.shorten(names[i], name), func(c topColumn) string { return c.text(t.Rows[i]) })
	}
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

// shorten takes the middle out of a name: the beginning says what it is and the
// end tells it from others.
func (l topLook) shorten(name string, width int) string {
	if terminal.Cells(name) <= width {
		return name
	}
	gap := "…"
	if l.ascii {
		gap = "~"
	}
	runes := []rune(name)
	for keep := min(width, len(runes)) - 1; keep > 0; keep-- {
		head, tail := string(runes[:(keep+1)/2]), string(runes[len(runes)-keep/2:])
		if terminal.Cells(head)+terminal.Cells(tail) < width {
			return head + gap + tail
		}
	}
	return gap
}
