package draincmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/types"
)

// watcher shows a record until its drain has ended.
type watcher struct {
	read    func() drainRecord
	out     terminal.Terminal
	outputs *terminal.Outputs
	last    string // the last line, where a line is printed per change
}

// run returns nil when the drain is complete, an error with exit code 3 when
// it has failed or was taken back.
func (w *watcher) run(ctx context.Context) error {
	tick := time.NewTicker(terminal.WatchEvery)
	defer tick.Stop()
	live := w.out.Live && w.outputs.People()
	if live {
		fmt.Fprint(w.out, "\x1b[?1049h\x1b[?25l") // a screen of our own, no cursor
	}
	r, err := w.watch(ctx, tick.C, live)
	if live {
		fmt.Fprint(w.out, "\x1b[?25h\x1b[?1049l")
		err = errors.Join(err, w.draw(r, false)) // and what it showed last stays
	}
	return err
}

func (w *watcher) watch(ctx context.Context, tick <-chan time.Time, live bool) (drainRecord, error) {
	ran := false // a drain was seen under way
	for {
		r := w.read()
		var err error
		switch {
		case live:
			err = w.draw(r, true)
		default:
			err = w.line(r)
		}
		if err != nil {
			return r, fmt.Errorf("write: %w", err)
		}
		if over, err := r.ending(); over {
			return r, err
		}
		if ran = ran || r.underWay(); ran && r.idle() {
			return r, terminal.ExitWith(terminal.ExitDrainFailed, errors.New("the drain was given up: "+terminal.Clean(r.Progress.Reason)))
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return r, terminal.ExitWith(terminal.ExitUsage, errors.New("interrupted, the drain has not ended"))
		}
	}
}

// draw shows the record on a terminal; in place it is cut to the height.
func (w *watcher) draw(r drainRecord, inPlace bool) error {
	width, height := w.out.Size()
	lines := drainLines(r, width, w.out.Colour)
	if !inPlace {
		_, err := fmt.Fprintln(w.out, strings.Join(lines, "\n"))
		return err
	}
	if len(lines) > height-1 {
		hidden := len(lines) - (height - 2)
		lines = append(lines[:height-2:height-2], fmt.Sprintf("... %d more lines: zedkube drain status", hidden))
	}
	var b strings.Builder
	b.WriteString("\x1b[H")
	for _, line := range lines {
		b.WriteString(line + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	_, err := fmt.Fprint(w.out, b.String())
	return err
}

// line prints one line where something has changed.
func (w *watcher) line(r drainRecord) error {
	text := summary(r)
	if text == w.last {
		return nil
	}
	w.last = text
	if !w.outputs.People() {
		return w.outputs.Encode(w.out, r, "")
	}
	_, err := fmt.Fprintln(w.out, r.ReadAt.Format("2006-01-02 15:04:05Z"), text)
	return err
}

// summary is the record in a line, without what changes by itself.
func summary(r drainRecord) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if !r.Agent.Runs {
		add("THE AGENT DOES NOT RUN")
	}
	for _, problem := range r.Problems {
		add("%s", terminal.Clean(problem))
	}
	p := r.Progress
	switch {
	case p == nil && r.Status == nil:
		add("no record of a drain")
	case p == nil:
		add("%s", terminal.Clean(r.Status.Status.String()))
	default:
		_, text := PhaseText(*p)
		add("%s", text)
		if p.Reason != "" {
			add("%s", terminal.Clean(p.Reason))
		}
		if p.Pods != (types.DrainPods{}) {
			add("pods %s", PodsText(p.Pods))
		}
		if n := len(p.Blockers) + max(p.BlockersOmitted, 0); n > 0 {
			add("%d pods in the way", n)
		}
		if n := len(p.Volumes) + max(p.VolumesOmitted, 0); n > 0 {
			add("%d volumes in the way", n)
		}
	}
	return strings.Join(parts, "; ")
}
