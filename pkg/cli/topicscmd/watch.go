package topicscmd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
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
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
		case <-notify.Errors: // an overflow: what was missed is looked for
		case <-notify.Events:
			w.gather(ctx, notify)
		}
		w.watchDirs(notify)
		if err := w.tell(time.Now().UTC()); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
}

// gather takes what comes with the first event.
func (w *topicsWatch) gather(ctx context.Context, notify *fsnotify.Watcher) {
	end := time.NewTimer(gather)
	defer end.Stop()
	for {
		select {
		case <-notify.Events:
		case <-end.C:
			return
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

// tell prints what differs from the last time.
func (w *topicsWatch) tell(now time.Time) error {
	next := w.read()
	names := maps.Clone(next)
	maps.Copy(names, w.last)
	var lines bytes.Buffer
	for _, topic := range slices.Sorted(maps.Keys(names)) {
		for _, c := range changesOf(topic, w.last[topic], next[topic], now) {
			if err := w.line(&lines, c); err != nil {
				return err
			}
		}
	}
	w.last = next
	_, err := w.out.Write(lines.Bytes())
	return err
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

func (w *topicsWatch) line(to io.Writer, c topicChange) error {
	if !w.outputs.People() {
		return w.outputs.Encode(to, c, "")
	}
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
	_, err := fmt.Fprintf(to, "%s %s/%s %s\n", c.At.Format("15:04:05Z"), terminal.Clean(c.Topic), terminal.Clean(c.Key), text)
	return err
}

func fieldName(path string) string {
	if path == "" {
		return ""
	}
	return terminal.Clean(path) + ": "
}
