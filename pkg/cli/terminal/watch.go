package terminal

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// watching shows look after look.
type watching struct {
	*Outputs
	out  Terminal
	look func(context.Context) Shown

	last  map[string]string // the facts that were told, by key
	keys  []string          // in their order
	why   string            // why there were none
	print []byte            // the steady part of what was printed
}

// run ends with ctx, which is no failure, or when there is nothing more to
// watch.
func (w *watching) run(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	live := w.out.Live && w.People()
	if live {
		fmt.Fprint(w.out, "\x1b[?1049h\x1b[?25l") // a screen of our own, no cursor
	}
	s, err := w.watch(ctx, tick.C, live)
	if live {
		fmt.Fprint(w.out, "\x1b[?25h\x1b[?1049l")
		if err == nil {
			err = w.Outputs.Print(w.out, s) // what it showed last stays
		}
	}
	if err == nil {
		err = s.Err
	}
	return err
}

func (w *watching) watch(ctx context.Context, tick <-chan time.Time, live bool) (Shown, error) {
	for {
		s := w.look(ctx)
		var err error
		switch {
		case live:
			err = w.draw(s)
		case w.People():
			err = w.tell(s, time.Now())
		default:
			err = w.document(s)
		}
		if err != nil {
			return s, fmt.Errorf("write: %w", err)
		}
		if s.Ended {
			return s, nil
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return s, nil
		}
	}
}

// draw shows a look on a terminal, cut to its height.
func (w *watching) draw(s Shown) error {
	width, height := w.out.Size()
	lines := s.Lines(width, w.out.Colour)
	if len(lines) == 0 && s.Err != nil {
		lines = []string{Clean(s.Err.Error())}
	}
	if len(lines) > height-1 {
		hidden := len(lines) - (height - 2)
		lines = append(lines[:height-2:height-2], fmt.Sprintf("... %d more lines: without --watch", hidden))
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

// tell prints a line for each fact that is new, has changed or is gone, and why
// there are none.
func (w *watching) tell(s Shown, now time.Time) error {
	var b strings.Builder
	stamp := now.UTC().Format("2006-01-02 15:04:05Z")
	next := make(map[string]string, len(s.Facts))
	var keys []string
	for _, f := range s.Facts {
		if _, twice := next[f.Key]; !twice {
			keys = append(keys, f.Key)
		}
		next[f.Key] = f.Text
		if was, had := w.last[f.Key]; !had || was != f.Text {
			fmt.Fprintf(&b, "%s %s %s\n", stamp, f.Key, f.Text)
		}
	}
	for _, key := range w.keys {
		if _, still := next[key]; !still {
			fmt.Fprintf(&b, "%s %s is gone\n", stamp, key)
		}
	}
	why := ""
	if len(s.Facts) == 0 && s.Err != nil {
		why = Clean(s.Err.Error())
	}
	if why != w.why && why != "" {
		fmt.Fprintf(&b, "%s %s\n", stamp, why)
	}
	w.last, w.keys, w.why = next, keys, why
	_, err := fmt.Fprint(w.out, b.String())
	return err
}

// document prints data whose steady part has changed.
func (w *watching) document(s Shown) error {
	steady := s.Steady
	if steady == nil {
		steady = s.Data
	}
	now, err := json.Marshal(steady)
	if err != nil {
		return err
	}
	if bytes.Equal(now, w.print) {
		return nil
	}
	w.print = now
	return w.Encode(w.out, s.Data, "")
}

// WatchEvery is how often the record is read again. Ages change each second,
// so that nothing is gained by being told of changes.
const WatchEvery = time.Second
