package terminal

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// View is what a command shows at one moment: data for programs, a screen for people.
type View struct {
	Data   any
	Steady any           // Data without what changes by itself, such as ages; nil: Data is so
	Draw   func(*Screen) // nil for nothing
	Rows   []Row         // into a pipe a line is printed for each that changes
	Names  []string      // of what is listed, for -o name: with what it is, unless the list says so
	Events []Event       // of a Watch that prints events, those since the last View
	Ended  bool          // there is nothing more to watch
	Err    error         // what the command ends with, if it ends now
}

// Row is one line of what is watched, under a key that stays; "" for the only one.
type Row struct{ Key, Text string }

// Event is something that happened: a line for people, or a document, or what is written as it is.
type Event struct {
	Text string
	Data any
	Raw  []byte
}

// WatchEvery is how often files are read again. Ages change each second, so that nothing
// is gained by being notified of changes.
const WatchEvery = time.Second

// Watch is what a command looks at again and again.
type Watch struct {
	Look    func(context.Context) View
	Every   time.Duration
	Wake    <-chan struct{} // rings when there is something new before that; nil for never
	Events  bool            // where there is no screen, print the events of each View
	Cleared bool            // nothing stays of the screen at its end
	Scrolls bool            // Draw begins at Screen.From itself, and sets it to what there is
	Press   func(rune)      // what other keys do than those that scroll and quit; nil for nothing
}

// Show prints one look, or with --watch each of them until ctx is done or there is
// nothing more to watch.
func (o *Outputs) Show(ctx context.Context, t Terminal, every time.Duration, look func(context.Context) View) error {
	if o.Watch {
		return o.Follow(ctx, t, Watch{Look: look, Every: every})
	}
	v := look(ctx)
	return cmp.Or(o.Print(t, v), v.Err)
}

// Print prints one view.
func (o *Outputs) Print(t Terminal, v View) error {
	if !o.People() && o.form != formName {
		return o.Encode(t, v.Data, "  ")
	}
	s := o.screen(t)
	switch {
	case o.form == formName:
		for _, name := range v.Names {
			if o.list.object != "" {
				name = o.list.object + "/" + name
			}
			s.Lines = append(s.Lines, Clean(name))
		}
	case v.Draw != nil:
		s.whole(v.Draw)
	}
	for _, line := range s.Lines {
		if _, err := fmt.Fprintln(t, line); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}

// screen is one without an end that obeys the flags.
func (o *Outputs) screen(t Terminal) Screen {
	width, _ := t.Size()
	return Screen{Width: width, Colour: t.Colour, list: o.list, rooted: o.rooted}
}

// Follow prints each look; what changes while a write waits for its reader is seen by the
// next look. It ends when there is nothing more to watch, when somebody types q, and with
// exit code 1 when ctx does.
func (o *Outputs) Follow(ctx context.Context, t Terminal, w Watch) error {
	asked := ctx
	ctx, stop := WhileRead(ctx, t.Writer)
	defer stop()
	f := follower{Outputs: o, Watch: w, out: t}
	v := w.Look(ctx)
	live := t.Live && o.People() && (v.Draw != nil || !w.Events)
	if live {
		if t.Typed == nil && t.Fd >= 0 {
			keys := make(chan rune, 64)
			defer openKeyboard(func(key rune) {
				select {
				case keys <- key:
				default: // faster than it is drawn
				}
			})()
			f.out.Typed = keys
		}
		fmt.Fprint(t, "\x1b[?1049h\x1b[?25l") // a screen of our own, no cursor
	} else {
		f.out.Writer = Until(ctx, t.Writer)
	}
	v, err := f.run(ctx, v, live)
	switch {
	case (v.Ended || f.quit) && err == nil: // all was written
	case asked.Err() != nil:
		err = ErrInterrupted
		if ExitCode(v.Err) == ExitUsage {
			err = v.Err // which says what did not come about
		}
	case ctx.Err() != nil, errors.Is(err, syscall.EPIPE):
		err = errNoReader
	}
	if live {
		fmt.Fprint(t, "\x1b[?25h\x1b[?1049l")
		if (err == nil || asked.Err() != nil) && !w.Cleared {
			err = cmp.Or(o.Print(t, v), err) // what it showed last stays
		}
	}
	return cmp.Or(err, v.Err)
}

// follower is one watch and what it has printed.
type follower struct {
	*Outputs
	Watch
	out Terminal

	last  map[string]string // the rows that were printed, by key
	keys  []string          // in their order
	why   string            // why there were none
	print []byte            // the steady part of the document that was printed
	from  int               // the first line on the screen
	quit  bool              // somebody typed q
}

func (f *follower) run(ctx context.Context, v View, live bool) (View, error) {
	tick := time.NewTicker(f.Every)
	defer tick.Stop()
	resized := make(chan os.Signal, 1)
	if live && f.out.Fd >= 0 {
		signal.Notify(resized, syscall.SIGWINCH)
		defer signal.Stop(resized)
	}
	for ; ; v = f.Look(ctx) {
		for scrolls := true; scrolls; {
			if err := f.show(v, live); err != nil {
				return v, fmt.Errorf("write: %w", err)
			}
			if v.Ended {
				return v, nil
			}
			scrolls = false
			select {
			case <-tick.C:
			case <-f.Wake:
			case <-resized:
			case key := <-f.out.Typed:
				if f.quit = key == 'q' || key == 'Q'; f.quit {
					return v, nil
				}
				scrolls = f.press(key)
			case <-ctx.Done():
				return v, nil
			}
		}
	}
}

// press does what a key says, and reports that it only scrolls.
func (f *follower) press(key rune) (scrolls bool) {
	_, height := f.out.Size()
	if f.from, scrolls = scrolled(f.from, key, height); !scrolls && f.Press != nil {
		f.Press(key)
	}
	return scrolls
}

func (f *follower) show(v View, live bool) error {
	switch {
	case live:
		return f.draw(v)
	case f.Events:
		return f.events(v.Events)
	case f.People():
		return f.changes(v, time.Now())
	}
	return f.document(v)
}

// draw shows a view on a terminal, from the line to which it was scrolled.
func (f *follower) draw(v View) error {
	s := f.screen(f.out)
	s.Width, s.Height = f.out.Size()
	s.From = f.from
	if v.Draw != nil {
		s.whole(v.Draw)
	}
	lines := s.Lines
	if len(lines) == 0 && v.Err != nil {
		lines = []string{Clean(v.Err.Error())}
	}
	if room := s.Height - 2; f.Scrolls {
		f.from = s.From
	} else if f.from = max(min(f.from, len(lines)-room), 0); len(lines) > room+1 {
		foot := Screen{Width: s.Width}
		foot.Cut(Plain, fmt.Sprintf("lines %d to %d of %d; %s", f.from+1, f.from+room, len(lines), Keys))
		lines = append(slices.Clone(lines[f.from:f.from+room]), foot.Lines...)
	}
	var b strings.Builder
	b.WriteString("\x1b[H")
	for _, line := range lines {
		b.WriteString(line + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	_, err := fmt.Fprint(f.out, b.String())
	return err
}

// changes prints a line for each row that is new, has changed or is gone, and why there
// are none.
func (f *follower) changes(v View, now time.Time) error {
	var b strings.Builder
	say := func(words ...string) {
		line := Timestamp(now)
		for _, word := range words {
			if word != "" {
				line += " " + word
			}
		}
		b.WriteString(line + "\n")
	}
	next := make(map[string]string, len(v.Rows))
	var keys []string
	for _, r := range v.Rows {
		if _, twice := next[r.Key]; !twice {
			keys = append(keys, r.Key)
		}
		next[r.Key] = r.Text
		if was, had := f.last[r.Key]; !had || was != r.Text {
			say(r.Key, r.Text)
		}
	}
	for _, key := range f.keys {
		if _, still := next[key]; !still {
			say(key, "is gone")
		}
	}
	why := ""
	if len(v.Rows) == 0 && v.Err != nil {
		why = Clean(v.Err.Error())
	}
	if why != f.why && why != "" {
		say(why)
	}
	f.last, f.keys, f.why = next, keys, why
	_, err := fmt.Fprint(f.out, b.String())
	return err
}

func (f *follower) events(list []Event) error {
	var b bytes.Buffer
	for _, e := range list {
		if e.Raw != nil {
			b.Write(e.Raw)
		} else if f.People() {
			b.WriteString(e.Text + "\n")
		} else if err := f.Encode(&b, e.Data, ""); err != nil {
			return err
		}
	}
	_, err := f.out.Write(b.Bytes())
	return err
}

// document prints data whose steady part has changed.
func (f *follower) document(v View) error {
	steady := v.Steady
	if steady == nil {
		steady = v.Data
	}
	now, err := json.Marshal(steady)
	if err != nil {
		return err
	}
	if bytes.Equal(now, f.print) {
		return nil
	}
	f.print = now
	return f.Encode(f.out, v.Data, "")
}
