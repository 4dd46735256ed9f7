package screen

import (
	"fmt"
	"html"
	"strings"
)

// Picture is the file that shows a recording where nothing can be run, seen from the root of the
// repository.
const Picture = "docs/screens/run.svg"

// What the picture looks like: a terminal of so many columns, each line so high.
const (
	columns    = 104
	wide       = 812 // of a line
	lineHeight = 19
	margin     = 16
	most       = 4 // lines of events that stand at the bottom
)

// How it goes on: a change stands for at least and at most so many seconds, whatever it took, and the
// last one for longer.
const (
	shortest = 0.25
	longest  = 1.6
	atEnd    = 6.0
)

// shown is a text that stands in the picture for a time.
type shown struct {
	from, to float64 // seconds; to is 0 for the end
	row      int
	class    string
	text     string
}

// SVG is a recording as a picture that moves by itself, without a script: the table of the nodes, the
// steps, and below them the newest events. Where motion is not wanted it shows the end.
func SVG(moments []Moment) []byte {
	var all []shown
	var table, events []int // of all, those that stand now
	end := func(list []int, at float64) {
		for _, i := range list {
			all[i].to = at
		}
	}
	put := func(s shown) int { all = append(all, s); return len(all) - 1 }
	rows := stepRows(moments)
	at, last, row := 0.0, 0.0, firstStepRow
	for _, m := range moments {
		if m.Page != "" {
			continue
		}
		at += min(max(m.At-last, shortest), longest)
		last = m.At
		switch {
		case m.Step != "":
			for i, line := range stepLines(m) {
				class := "s"
				if i == 0 {
					class = "ok"
				}
				put(shown{from: at, row: row, class: class, text: line})
				row++
			}
		case m.Text != "":
			end(events, at)
			texts := make([]string, 0, most)
			for _, i := range events {
				texts = append(texts, all[i].text)
			}
			texts = append(texts, strings.TrimSpace(fmt.Sprintf("%-7s %-9s %s", m.Who, m.Agent, m.Text)))
			events = nil
			for i, text := range texts[max(0, len(texts)-most):] {
				events = append(events, put(shown{from: at, row: firstStepRow + rows + 1 + i, class: "e", text: text}))
			}
		case m.Table != nil:
			end(table, at)
			table = nil
			for i, line := range m.Table {
				class := "t"
				if i == 0 {
					class = "h"
				}
				table = append(table, put(shown{from: at, row: 1 + i, class: class, text: line}))
			}
		}
	}
	return draw(all, firstStepRow+rows+1+most, at+atEnd)
}

// firstStepRow is below the prompt, the table of three nodes and an empty line.
const firstStepRow = 6

// stepRows is how many rows all steps take.
func stepRows(moments []Moment) (n int) {
	for _, m := range moments {
		if m.Step != "" {
			n += len(stepLines(m))
		}
	}
	return n
}

// stepLines is a step in lines that fit.
func stepLines(m Moment) []string {
	mark := "ok   "
	if m.Failed {
		mark = "FAIL "
	}
	return strings.Split(wrap(fmt.Sprintf("%6.1fs  %s %s%s", m.At, mark, m.Step, m.Detail), columns), "\n")
}

func draw(all []shown, rows int, whole float64) []byte {
	var style, body strings.Builder
	percent := func(at float64) float64 { return 100 * at / whole }
	for i, s := range all {
		// What stands at the end is what is seen without motion.
		still := 0
		if s.to == 0 {
			still = 1
		}
		fmt.Fprintf(&style, "#l%d{opacity:%d;animation:k%[1]d %.1[3]fs step-end infinite}", i, still, whole)
		fmt.Fprintf(&style, "@keyframes k%d{0%%{opacity:0}%.2f%%{opacity:1}", i, percent(s.from))
		if s.to > 0 {
			fmt.Fprintf(&style, "%.2f%%{opacity:0}", percent(s.to))
		}
		style.WriteString("}\n")
		text := []rune(s.text)
		if len(text) > columns {
			text = append(text[:columns-1], '…')
		}
		fmt.Fprintf(&body, "<text id=\"l%d\" class=\"%s\" x=\"%d\" y=\"%d\">%s</text>\n", i, s.class, margin, y(s.row), html.EscapeString(string(text)))
	}
	width, height := wide+2*margin, rows*lineHeight+2*margin
	return []byte(fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%d" role="img" aria-label="make run: three nodes form a cluster, and one of them drains before it reboots">
<style>
text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;white-space:pre;fill:#c9d1d9}
.h{fill:#8b949e}.ok{fill:#7ee787}.s{fill:#7ee787}.e{fill:#79c0ff}.p{fill:#f0f6fc;font-weight:bold}
%s@media (prefers-reduced-motion:reduce){text{animation:none!important}}
</style>
<rect width="100%%" height="100%%" rx="8" fill="#0d1117"/>
<text class="p" x="%d" y="%d">$ make run</text>
%s</svg>
`, width, height, style.String(), margin, y(0), body.String()))
}

func y(row int) int { return margin + 13 + row*lineHeight }
