package topicscmd

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/topicview"
)

const (
	// gather is how long further changes are waited for: an agent writes several
	// files at a time.
	gather = 50 * time.Millisecond
	// lookAgain is for changes that nobody told, as in directories beyond the
	// kernel's limit of those that are watched.
	lookAgain = 10 * time.Second
)

// topicsWatch prints what changes in topics.
type topicsWatch struct {
	selected selectedTopics
	outputs  *terminal.Outputs
	out      terminal.Terminal
	said     io.Writer

	last map[string][]topicview.Value // by topic
}

// topicChange is one line of what changes, as data.
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
	noun := "topics"
	if len(w.last) == 1 {
		noun = "topic"
	}
	fmt.Fprintf(w.said, "watching %d %s\n", len(w.last), noun)
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
			select {
			case wake <- struct{}{}:
			default:
			}
		case <-ctx.Done():
			return
		}
	}
}

// watchDirs watches the directories that there are, of topics and around them.
// One that cannot be watched is looked at now and then.
func (w *topicsWatch) watchDirs(notify *fsnotify.Watcher) {
	in := func(dir string) string { return filepath.Join(topRoot(w.selected.root), dir) }
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

// topRoot is the directory that paths of a device are below of.
func topRoot(root string) string {
	if root == "" {
		return "/"
	}
	return root
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
