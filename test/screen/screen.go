// Package screen shows the story of the demo in a terminal, records what it
// shows, and plays such a recording.
package screen

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// shownEvents is how many of the last events stand below the live table.
const shownEvents = 12

// View shows the story: on a terminal a table of the nodes that is redrawn in
// place with the last events below it; elsewhere one plain line an event.
type View struct {
	mu     sync.Mutex
	out    io.Writer
	live   bool
	width  int
	start  time.Time
	table  func() []string
	record *Recorder // or nil
	events []string
	drawn  int // lines of the last drawing
}

// New is a view on a file, which may be a terminal.
func New(out *os.File) *View {
	v := &View{out: out, start: time.Now(), live: term.IsTerminal(int(out.Fd())), table: func() []string { return nil }}
	v.width = 100
	if w, _, err := term.GetSize(int(out.Fd())); err == nil && w > 20 {
		v.width = w
	}
	return v
}

// Live says whether this is a terminal.
func (v *View) Live() bool { return v.live }

// Begin sets the clock to zero. The table is asked for its lines from now on;
// what is shown goes to the recorder, if there is one.
func (v *View) Begin(table func() []string, record *Recorder) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.start, v.events, v.table, v.record = time.Now(), nil, table, record
	record.begin()
}

// Event tells one thing that happened.
func (v *View) Event(who, agent, text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.record.add(Moment{Who: who, Agent: agent, Text: text})
	line := fmt.Sprintf("%6.1fs  %-7s %-10s %s", time.Since(v.start).Seconds(), who, agent, text)
	if !v.live {
		fmt.Fprintln(v.out, line)
		return
	}
	v.events = append(v.events, line)
	v.draw()
}

// Step tells the outcome of one step of the story; it stays on the screen.
func (v *View) Step(ok bool, name, detail string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.record.add(Moment{Step: name, Detail: detail, Failed: !ok})
	mark := "ok  "
	if !ok {
		mark = "FAIL"
	}
	v.clear()
	line := fmt.Sprintf("%6.1fs  %s  %s%s", time.Since(v.start).Seconds(), mark, name, detail)
	if v.live {
		line = wrap(line, v.width)
	}
	fmt.Fprintln(v.out, line)
	if v.live {
		v.draw()
	}
}

// Lines prints text that stays, below everything.
func (v *View) Lines(text ...string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clear()
	fmt.Fprintln(v.out, strings.Join(text, "\n"))
}

// Changed redraws the table.
func (v *View) Changed() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.record != nil {
		v.record.add(Moment{Table: v.table()})
	}
	if v.live {
		v.draw()
	}
}

// End leaves the last drawing where it is, once.
func (v *View) End() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.live {
		v.draw()
	} else {
		fmt.Fprintln(v.out, strings.Join(v.table(), "\n"))
	}
	v.live, v.drawn = false, 0
}

func (v *View) draw() {
	v.clear()
	lines := append([]string{""}, v.table()...)
	lines = append(lines, "")
	lines = append(lines, v.events[max(0, len(v.events)-shownEvents):]...)
	for _, line := range lines {
		// A line that wraps would make clear miscount.
		if runes := []rune(line); len(runes) > v.width-1 {
			line = string(runes[:v.width-2]) + "…"
		}
		fmt.Fprintln(v.out, line)
	}
	v.drawn = len(lines)
}

// wrap breaks a step's line between words, under the beginning of its text.
func wrap(line string, width int) string {
	const indent = 15
	var out strings.Builder
	for len(line) >= width {
		at := strings.LastIndexByte(line[:width], ' ')
		if at <= indent {
			break
		}
		out.WriteString(line[:at] + "\n")
		line = strings.Repeat(" ", indent) + line[at+1:]
	}
	return out.String() + line
}

// clear takes the last drawing off the terminal.
func (v *View) clear() {
	if v.drawn > 0 {
		fmt.Fprintf(v.out, "\x1b[%dA\x1b[J", v.drawn)
		v.drawn = 0
	}
}
