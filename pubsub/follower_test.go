package pubsub

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestASocketThatComesAfterALongTimeIsDialledAtOnce(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	must(t, os.MkdirAll(runDir(root), 0o700))
	subscriber(t, root)
	time.Sleep(6800 * time.Millisecond) // without an event the next attempt is due in 6 s
	begin := time.Now()
	srv := rawListen(t, root)
	srv.accept("hello Sample", "complete Sample")
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it was dialled after %v", took)
	}
}

func TestWithoutEventsADirectoryIsReadFromTimeToTime(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := newSide(root)
	sub := NewSubscription[Sample](s.Bus, "agent")
	sub.rescan = 100 * time.Millisecond
	s.watcher.interests = nil // nobody is told
	s.start(t)
	writeText(t, filepath.Join(runDir(root), "k.json"), small("", 1))
	eventually(t, "the file is read", has(sub, "k", 1))
	writeText(t, filepath.Join(runDir(root), "k.json"), small("", 2))
	eventually(t, "the file is read again", has(sub, "k", 2))
	must(t, os.Remove(filepath.Join(runDir(root), "k.json")))
	eventually(t, "and missed", func() bool { return len(sub.All()) == 0 })
}

// ours is what a component does that knows all that should be published.
func ours(pub Writer[Sample], should map[string]Sample) error {
	var errs []error
	for key, v := range should {
		errs = append(errs, pub.Publish(key, v))
	}
	for key := range pub.All() {
		if _, is := should[key]; !is {
			errs = append(errs, pub.Unpublish(key))
		}
	}
	return errors.Join(errs...)
}

func TestKeysOfAFormerRunStayUntilTheirComponentSpeaksAndGoThen(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]Option{"plain": nil, "persistent": {Persistent()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			before := map[string]Sample{"ghost": {Count: 1}, "same": {Count: 2}, "new": {Count: 3}}
			pub, former := publisher(t, root, opts...)
			must(t, ours(pub, before))
			must(t, ours(pub, before))
			sub, _ := subscriber(t, root, opts...)
			eventually(t, "the former run's values", func() bool { return cmp.Equal(before, sub.All()) })
			former.stop()

			pub, _ = publisher(t, root, opts...)
			if diff := cmp.Diff(before, pub.All()); diff != "" {
				t.Error(diff)
			}
			eventually(t, "the subscriber is back", func() bool { return clients(pub) == 1 })
			if diff := cmp.Diff(before, sub.All()); diff != "" {
				t.Error("before the component spoke:", diff)
			}
			after := map[string]Sample{"same": {Count: 2}, "new": {Count: 4}}
			must(t, ours(pub, after))
			eventually(t, "the ghost goes", func() bool { return cmp.Equal(after, sub.All()) })
			left, err := filepath.Glob(filepath.Join(pub.store.topic.dir(), "ghost*"))
			must(t, err)
			if len(left) > 0 {
				t.Errorf("the ghost left %v", left)
			}
		})
	}
}

func TestADirectoryIsNotWatchedWhileItsSocketIsFollowed(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	pub, p := publisher(t, root)
	sub, s := subscriber(t, root)
	watched := func() bool { return slices.Contains(s.watcher.fs.WatchList(), runDir(root)) }
	eventually(t, "the socket is followed", func() bool { return clients(pub) == 1 && sub.Synced() })
	eventually(t, "the watch ends", func() bool { return !watched() })
	p.stop()
	eventually(t, "the directory is watched again", watched)
	writeText(t, filepath.Join(runDir(root), "k.json"), small("", 1))
	eventually(t, "and read", has(sub, "k", 1))
}
