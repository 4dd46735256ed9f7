// Package topicscmd is zedkube topics.
package topicscmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/topicview"
	"github.com/zedkube/zedkube/pubsub"
)

// NewTopicsCommand shows any topic of any agent.
func NewTopicsCommand(o *device.Options) *cobra.Command {
	var out terminal.Outputs
	c := &cobra.Command{
		Use:   "topics [AGENT/TOPIC[/KEY]] [--watch]",
		Short: "Show the topics that the agents of this device publish",
		Long: "Show the topics that the agents of this device publish: without an argument all topics, with one the values of that topic.\n" +
			"TOPIC alone is enough where only one agent has it. Enumerations are shown by name, secrets are masked,\n" +
			"and of other agents' topics only the fields that zedkube knows are shown.\n" +
			"With --watch it prints a line for each field that changes, in all topics or in that one.\n" +
			"It reads files below <root>/run and <root>/persist only.\n\n" + topicsExitCodes,
		Args:              terminal.Words(0, 1),
		ValidArgsFunction: terminal.CompleteArgs(func(context.Context) []string { return topicNames(o.Root) }),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := selectTopics(o.Paths(), terminal.Named("topic", strings.Join(args, "")))
			t := terminal.Of(c.OutOrStdout())
			switch {
			case err != nil:
				return err
			case out.Watch:
				w := topicsWatch{selected: s, outputs: &out, out: t, said: c.ErrOrStderr()}
				return w.run(c.Context())
			case s.topic == nil:
				return out.Show(c.Context(), t, time.Second, func(context.Context) terminal.View { return s.listAt(&out, device.Now(o.Root)) })
			}
			return s.showValues(t, &out, c.ErrOrStderr())
		},
	}
	terminal.List[topicview.Topic](&out, c, "topic", topicsTable())
	c.Flags().BoolVarP(&out.Watch, "watch", "w", false, "print a line, or with -o a document, for each field that changes")
	return c
}

const topicsExitCodes = `Exit codes:
  0   shown
  1   wrong usage, interrupted, or the output could not be written
  2   there is no such topic or key, or a value cannot be read
  99  unknown command`

type selectedTopics struct {
	root  string
	topic *topicview.Topic // nil for all
	key   string           // "" for all
}

// selectTopics finds the topic that an argument names; none for "".
func selectTopics(p device.Paths, arg string) (selectedTopics, error) {
	s := selectedTopics{root: p.Root}
	if arg == "" {
		return s, nil
	}
	topics, listed := topicview.List(p.Root)
	var same []string
	for _, t := range topics {
		rest, is := strings.CutPrefix(arg+"/", t.String()+"/")
		if is && strings.Count(rest, "/") <= 1 {
			s.topic, s.key = &t, strings.TrimSuffix(rest, "/")
			return s, nil
		}
		if strings.EqualFold(t.Name, arg[strings.LastIndex(arg, "/")+1:]) {
			same = append(same, terminal.Clean(t.String()))
			s.topic = &t
		}
	}
	switch {
	case len(same) == 1 && !strings.Contains(arg, "/"):
		return s, nil
	case len(same) > 0:
		return s, terminal.ExitWith(terminal.ExitNotPublished, fmt.Errorf("%s: %w; did you mean %s?", terminal.Clean(arg), topicview.ErrNone, strings.Join(same, ", ")))
	}
	return s, terminal.ExitWith(terminal.ExitNotPublished, errors.Join(fmt.Errorf("%s: %w; zedkube topics lists them", terminal.Clean(arg), topicview.ErrNone), listed))
}

func topicNames(root string) []string {
	topics, _ := topicview.List(root) // what cannot be read is not offered
	agents := map[string]int{}
	for _, t := range topics {
		agents[t.Name]++
	}
	var names []string
	for _, t := range topics {
		names = append(names, terminal.Clean(t.String()))
		if agents[t.Name] == 1 { // which is enough of it
			names = append(names, terminal.Clean(t.Name))
		}
	}
	return names
}

func topicsTable() terminal.Table {
	return terminal.Table{Columns: []terminal.Column{{Title: "TOPIC"}, {Title: "KEYS", Keep: 2, Right: true}, {Title: "SIZE", Keep: 3, Right: true}, {Title: "AGE", Keep: 4, Right: true}, {Title: "KIND", Keep: 1}}}
}

func (s selectedTopics) listAt(out *terminal.Outputs, now time.Time) terminal.View {
	topics, err := topicview.List(s.root)
	switch {
	case err != nil:
		err = terminal.ExitWith(terminal.ExitNotPublished, err)
	case len(topics) == 0:
		err = terminal.ExitWith(terminal.ExitNotPublished, errors.New("no topic was found below run and persist/status"))
	}
	view := topicsTable()
	topics = terminal.Selected(out, topics)
	var names []string
	for _, t := range topics {
		names = append(names, t.String())
		kind, age, size := "plain", "", uint64(max(t.Bytes, 0))
		if t.Persistent {
			kind = "persistent"
		}
		if !t.Written.IsZero() {
			age = terminal.Span(now.Sub(t.Written))
		}
		view.Rows = append(view.Rows, []terminal.Cell{{Text: terminal.Clean(t.String())}, {Text: fmt.Sprint(t.Keys)}, {Text: terminal.BytesText(&size)}, {Text: age}, {Text: kind}})
	}
	if topics == nil {
		topics = []topicview.Topic{}
	}
	return terminal.View{Data: topics, Names: names, Draw: view.Draw, Err: err}
}

func (s selectedTopics) showValues(t terminal.Terminal, out *terminal.Outputs, said io.Writer) error {
	values, err := topicview.Read(s.root, *s.topic, s.key)
	if err != nil {
		return terminal.ExitWith(terminal.ExitNotPublished, errors.New(terminal.Clean(err.Error())))
	}
	for _, v := range values {
		if v.Why != "" {
			fmt.Fprintf(said, "%s/%s: %s\n", terminal.Clean(s.topic.String()), terminal.Clean(v.Key), terminal.Clean(v.Why))
			err = terminal.ExitWith(terminal.ExitNotPublished, errors.New("not every value can be read"))
		}
	}
	if !out.People() {
		var data any = values
		if s.key != "" {
			data = values[0].Value
		}
		return errors.Join(out.Encode(t, data, "  "), err)
	}
	for _, v := range values {
		if v.Why != "" {
			continue
		}
		if _, werr := fmt.Fprintf(t, "%s/%s, written %s\n", terminal.Clean(s.topic.String()), terminal.Clean(v.Key), terminal.Stamp(v.Written, device.Now(s.root))); werr != nil {
			return fmt.Errorf("write: %w", werr)
		}
		if werr := terminal.WriteJSON(t, v.Value, "  "); werr != nil {
			return fmt.Errorf("write: %w", werr)
		}
	}
	return err
}

// fieldText is a value of JSON for people: text without its quotes.
func fieldText(raw string) string {
	var s string
	if json.Unmarshal([]byte(raw), &s) == nil && s != "" {
		raw = s
	}
	return terminal.Clean(raw)
}

const (
	// gather is how long further changes are waited for: an agent writes several
	// files at a time.
	gather = 50 * time.Millisecond
	// lookAgain is for changes that nobody told, as in directories beyond the
	// kernel's limit of those that are watched.
	lookAgain = 10 * time.Second
)

type topicsWatch struct {
	selected selectedTopics
	outputs  *terminal.Outputs
	out      terminal.Terminal
	said     io.Writer

	last map[string][]topicview.Value // by topic
}

type topicChange struct {
	At    time.Time
	Topic string
	Key   string
	Event string // changed, came, gone
	topicview.Change
}

// run ends with ctx, which is no failure.
func (w *topicsWatch) run(ctx context.Context) error {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	defer notify.Close()
	w.watchDirs(notify)
	w.last = w.read()
	fmt.Fprintf(w.said, "watching %s\n", phrase.Counted(len(w.last), "topic"))
	wake := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	waiting.Go(func() { gatherEvents(ctx, notify, wake) })
	look := func(context.Context) terminal.View {
		w.watchDirs(notify)
		return terminal.View{Events: w.changes(time.Now().UTC())}
	}
	return w.outputs.Follow(ctx, w.out, terminal.Watch{Look: look, Every: lookAgain, Wake: wake, Events: true})
}

// gatherEvents rings once for all that comes with an event, until ctx is done. Of an
// overflow, what was missed is looked for.
func gatherEvents(ctx context.Context, notify *fsnotify.Watcher, wake chan<- struct{}) {
	var ends <-chan time.Time
	for {
		select {
		case <-notify.Events:
			if ends == nil {
				ends = time.After(gather)
			}
		case <-notify.Errors:
			ends = time.After(0)
		case <-ends:
			ends = nil
			pubsub.Ring(wake)
		case <-ctx.Done():
			return
		}
	}
}

// watchDirs watches the directories that there are, of topics and around them.
// One that cannot be watched is looked at now and then.
func (w *topicsWatch) watchDirs(notify *fsnotify.Watcher) {
	in := func(dir string) string { return filepath.Join(cmp.Or(w.selected.root, "/"), dir) }
	dirs := map[string]bool{in("run"): true, in("persist/status"): true}
	for _, t := range w.topics() {
		for _, base := range []string{"run", "persist/status"} {
			dirs[in(filepath.Join(base, t.Agent))] = true
			dirs[in(filepath.Join(base, t.Agent, t.Name))] = true
		}
	}
	for _, watched := range notify.WatchList() {
		delete(dirs, watched)
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		_ = notify.Add(dir)
	}
}

func (w *topicsWatch) topics() []topicview.Topic {
	if t := w.selected.topic; t != nil {
		return []topicview.Topic{*t}
	}
	topics, _ := topicview.List(w.selected.root) // what cannot be read does not change
	return topics
}

// read reads what has changed since the last time.
func (w *topicsWatch) read() map[string][]topicview.Value {
	all := map[string][]topicview.Value{}
	for _, t := range w.topics() {
		name := t.String()
		values, err := topicview.Read(w.selected.root, t, w.selected.key, w.last[name]...)
		if err != nil {
			values = nil // gone, with its values
		}
		all[name] = values
	}
	return all
}

// changes are what differs from the last time.
func (w *topicsWatch) changes(now time.Time) (events []terminal.Event) {
	next := w.read()
	names := maps.Clone(next)
	maps.Copy(names, w.last)
	for _, topic := range slices.Sorted(maps.Keys(names)) {
		for _, c := range changesOf(topic, w.last[topic], next[topic], now) {
			events = append(events, terminal.Event{Text: c.line(), Data: c})
		}
	}
	w.last = next
	return events
}

// changesOf compares the values of a topic by their keys. One that cannot be
// read has not changed: it may be half written.
func changesOf(topic string, old, values []topicview.Value, now time.Time) []topicChange {
	byKey := func(values []topicview.Value) map[string]topicview.Value {
		m := make(map[string]topicview.Value, len(values))
		for _, v := range values {
			m[v.Key] = v
		}
		return m
	}
	before, after := byKey(old), byKey(values)
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	var changes []topicChange
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		was, had := before[key]
		is, has := after[key]
		if has && is.Why != "" {
			continue
		}
		event := "changed"
		if !had || was.Why != "" {
			event = "came"
		} else if !has {
			event = "gone"
		}
		fields, omitted := topicview.Differences(was.Value, is.Value)
		for _, f := range fields {
			changes = append(changes, topicChange{now, topic, key, event, f})
		}
		if omitted > 0 {
			changes = append(changes, topicChange{now, topic, key, event, topicview.Change{New: fmt.Sprintf("%q", fmt.Sprintf("%d more fields", omitted))}})
		}
	}
	return changes
}

func (c topicChange) line() string {
	text := ""
	switch {
	case c.Event == "gone":
		text = "is gone"
	case c.Event == "came":
		text = "came: " + fieldText(c.New)
	case c.Old == "":
		text = fieldName(c.Path) + "came: " + fieldText(c.New)
	case c.New == "":
		text = fieldName(c.Path) + "is gone, was " + fieldText(c.Old)
	default:
		text = fieldName(c.Path) + fieldText(c.Old) + " -> " + fieldText(c.New)
	}
	return fmt.Sprintf("%s %s/%s %s", c.At.Format("15:04:05Z"), terminal.Clean(c.Topic), terminal.Clean(c.Key), text)
}

func fieldName(path string) string {
	if path == "" {
		return ""
	}
	return terminal.Clean(path) + ": "
}
