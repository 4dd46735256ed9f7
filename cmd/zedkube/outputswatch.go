package main

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
	*outputs
	out  terminal
	look func(context.Context) shown

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
	live := w.out.live && w.people()
	if live {
		fmt.Fprint(w.out, "\x1b[?1049h\x1b[?25l") // a screen of our own, no cursor
	}
	s, err := w.watch(ctx, tick.C, live)
	if live {
		fmt.Fprint(w.out, "\x1b[?25h\x1b[?1049l")
		if err == nil {
			err = w.outputs.print(w.out, s) // what it showed last stays
		}
	}
	if err == nil {
		err = s.err
	}
	return err
}

func (w *watching) watch(ctx context.Context, tick <-chan time.Time, live bool) (shown, error) {
	for {
		s := w.look(ctx)
		var err error
		switch {
		case live:
			err = w.draw(s)
		case w.people():
			err = w.tell(s, time.Now())
		default:
			err = w.document(s)
		}
		if err != nil {
			return s, fmt.Errorf("write: %w", err)
		}
		if s.ended {
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
func (w *watching) draw(s shown) error {
	width, height := w.out.size()
	lines := s.lines(width, w.out.colour)
	if len(lines) == 0 && s.err != nil {
		lines = []string{clean(s.err.Error())}
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
func (w *watching) tell(s shown, now time.Time) error {
	var b strings.Builder
	stamp := now.UTC().Format("2006-01-02 15:04:05Z")
	next := make(map[string]string, len(s.facts))
	var keys []string
	for _, f := range s.facts {
		if _, twice := next[f.key]; !twice {
			keys = append(keys, f.key)
		}
		next[f.key] = f.text
		if was, had := w.last[f.key]; !had || was != f.text {
			fmt.Fprintf(&b, "%s %s %s\n", stamp, f.key, f.text)
		}
	}
	for _, key := range w.keys {
		if _, still := next[key]; !still {
			fmt.Fprintf(&b, "%s %s is gone\n", stamp, key)
		}
	}
	why := ""
	if len(s.facts) == 0 && s.err != nil {
		why = clean(s.err.Error())
	}
	if why != w.why && why != "" {
		fmt.Fprintf(&b, "%s %s\n", stamp, why)
	}
	w.last, w.keys, w.why = next, keys, why
	_, err := fmt.Fprint(w.out, b.String())
	return err
}

// document prints data whose steady part has changed.
func (w *watching) document(s shown) error {
	steady := s.steady
	if steady == nil {
		steady = s.data
	}
	now, err := json.Marshal(steady)
	if err != nil {
		return err
	}
	if bytes.Equal(now, w.print) {
		return nil
	}
	w.print = now
	return w.encode(w.out, s.data, "")
}
