package pubsub

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fresh connects to the topic counter and expects what a new client gets.
func fresh(t *testing.T, root string, want ...string) rawClient {
	t.Helper()
	conn, err := dial(filepath.Join(root, "run/agent/counter.sock"))
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	c := rawClient{t, conn}
	c.say("request counter")
	c.expect(want...)
	return c
}

func TestASubscriberIsToldWhatAFormerRunWithdrew(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name     string
		opts     []Option
		withdraw func(t *testing.T, pub *Publication[counter], s *side)
	}{
		{"withdrawn", nil, func(t *testing.T, pub *Publication[counter], _ *side) { must(t, pub.Unpublish("gone")) }},
		{"of a persistent topic", []Option{Persistent()}, func(t *testing.T, pub *Publication[counter], _ *side) { must(t, pub.Unpublish("gone")) }},
		{"died right after the file was removed", nil, func(t *testing.T, pub *Publication[counter], s *side) {
			s.stop()
			must(t, pub.store.withdrawn.note("gone"))
			must(t, os.Remove(filepath.Join(pub.store.topic.dir(), "gone.json")))
		}},
		{"died before the file was removed, and removed by the next run", nil, func(t *testing.T, pub *Publication[counter], s *side) {
			s.stop()
			must(t, pub.store.withdrawn.note("gone"))
			s = newSide(s.root)
			next := NewPublication[counter](s.Bus, "agent")
			s.start(t)
			fresh(t, s.root, "hello counter false", "update counter "+b64("gone")+" "+b64(`{"N":1}`), "update counter "+b64("stays")+" "+b64(`{"N":1}`), "complete counter").silent()
			must(t, next.Unpublish("gone"))
			s.stop()
		}},
		{"a bad file", nil, func(t *testing.T, pub *Publication[counter], s *side) {
			s.stop()
			writeText(t, filepath.Join(pub.store.topic.dir(), "gone.json"), "{")
			s = newSide(s.root)
			next := NewPublication[counter](s.Bus, "agent")
			s.start(t)
			must(t, next.Unpublish("gone"))
			s.stop()
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			s := newSide(root)
			pub := NewPublication[counter](s.Bus, "agent", row.opts...)
			s.start(t)
			must(t, pub.Publish("gone", counter{1}))
			must(t, pub.Publish("stays", counter{1}))
			row.withdraw(t, pub, s)
			s.stop()
			hello := "hello counter " + strconv.FormatBool(pub.store.topic.persistent)
			for range 2 { // each run that follows
				s := newSide(root)
				NewPublication[counter](s.Bus, "agent", row.opts...)
				s.start(t)
				fresh(t, root, hello, "update counter "+b64("stays")+" "+b64(`{"N":1}`), "complete counter", "delete counter "+b64("gone")).silent()
				s.stop()
			}
			s = newSide(root)
			pub = NewPublication[counter](s.Bus, "agent", row.opts...)
			s.start(t)
			must(t, pub.Publish("gone", counter{2}))
			s.stop()
			s = newSide(root)
			NewPublication[counter](s.Bus, "agent", row.opts...)
			s.start(t)
			fresh(t, root, hello, "update counter "+b64("gone")+" "+b64(`{"N":2}`), "update counter "+b64("stays")+" "+b64(`{"N":1}`), "complete counter").silent()
		})
	}
}

func TestWhatIsWithdrawnRightBeforeTheEndIsHeard(t *testing.T) {
	t.Parallel()
	for range 50 {
		root := t.TempDir()
		s := newSide(root)
		pub := NewPublication[counter](s.Bus, "agent")
		s.start(t)
		must(t, pub.Publish("k", counter{1}))
		c := fresh(t, root, "hello counter false", "update counter "+b64("k")+" "+b64(`{"N":1}`), "complete counter")
		must(t, pub.Unpublish("k"))
		s.stop()
		c.expect("delete counter " + b64("k"))
	}
}

func TestTheFileOfWithdrawnKeysStaysSmallAndWhole(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	path := filepath.Join(root, "withdrawn")
	w := withdrawn{path: path}
	for range 3 {
		for i := range maxWithdrawn {
			key := strconv.Itoa(i)
			must(t, w.note(key))
			w.add(key)
		}
	}
	must(t, w.note("new\n\"line"))
	content, err := os.ReadFile(path)
	must(t, err)
	if n := strings.Count(string(content), "\n"); n > 2*maxWithdrawn {
		t.Errorf("the file has %d lines", n)
	}
	must(t, os.WriteFile(path, append(content, `"half`...), 0o600))
	var next withdrawn
	must(t, next.load(path, func(key string) bool { return key == "7" }))
	if n := len(next.keys); n != maxWithdrawn || slices.Contains(next.keys, "7") || next.keys[n-1] != "new\n\"line" {
		t.Errorf("%d keys, the last is %q", n, next.keys[n-1])
	}
	must(t, next.note("behind half a line"))
	must(t, next.load(path, func(string) bool { return false }))
	if n := len(next.keys); next.keys[n-1] != "behind half a line" {
		t.Errorf("the last key is %q", next.keys[n-1])
	}
}

func TestAKeyIsWithdrawnWhereThatCannotBeNoted(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := newSide(root)
	pub := NewPublication[counter](s.Bus, "agent")
	s.start(t)
	must(t, os.Mkdir(pub.store.topic.withdrawn(), 0o700))
	must(t, pub.Publish("k", counter{1}))
	c := fresh(t, root, "hello counter false", "update counter "+b64("k")+" "+b64(`{"N":1}`), "complete counter")
	must(t, pub.Unpublish("k"))
	c.expect("delete counter " + b64("k"))
}
