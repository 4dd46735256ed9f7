package pubsub

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
)

// byCount holds back what differs little.
func byCount(last, now Sample) time.Duration {
	switch {
	case now.Count == last.Count:
		return -1
	case now.Count-last.Count < 10:
		return time.Minute
	}
	return 0
}

func TestSubscribersAreToldWhenItIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := t.TempDir()
		s := newSide(root)
		pub := NewPacedPublication(s.Bus, "agent", byCount, FilesOnly())
		must(t, s.Open())
		expect := func(want uint64, when string) {
			t.Helper()
			synctest.Wait()
			if got := s.Stats()[0].Sent; got != want {
				t.Errorf("%s: told %d times, want %d", when, got, want)
			}
		}
		must(t, pub.Publish("k", Sample{Count: 1}))
		expect(1, "the first value")
		time.Sleep(10 * time.Second)
		for i := range 8 {
			must(t, pub.Publish("k", Sample{Count: int64(2 + i)}))
		}
		expect(1, "small changes")
		if data, err := os.ReadFile(filepath.Join(runDir(root), "k.json")); err != nil || string(data) != small("", 9) {
			t.Errorf("the file holds %s, %v", data, err)
		}
		time.Sleep(49 * time.Second)
		expect(1, "within the minute")
		time.Sleep(2 * time.Second)
		expect(2, "a minute after the first")
		must(t, pub.Publish("k", Sample{Count: 30}))
		expect(3, "a large change")
		must(t, pub.Publish("k", Sample{Count: 31}))
		must(t, pub.Publish("k", Sample{Count: 30}))
		must(t, pub.Publish("k", Sample{Count: 30, Name: "another"}))
		time.Sleep(time.Hour)
		expect(3, "what nobody is to be told of")
		must(t, pub.Publish("k", Sample{Count: 31}))
		expect(4, "a small change after an hour")
		must(t, pub.Publish("k", Sample{Count: 32}))
		must(t, pub.Unpublish("k"))
		expect(5, "withdrawn")
		time.Sleep(time.Hour)
		expect(5, "what was held back of it")
		must(t, pub.Publish("k", Sample{Count: 32}))
		expect(6, "published again")
	})
}

func TestWhatIsHeldBackIsToldToWhoComesAndWithTheNext(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := newSide(root)
	pub := NewPacedPublication(s.Bus, "agent", byCount)
	s.start(t)
	must(t, pub.Publish("k", Sample{Count: 1}))
	early, reader := subscriber(t, root)
	eventually(t, "the first value", has(early, "k", 1))
	eventually(t, "it comes over the socket: the file has the newest", func() bool {
		return slices.ContainsFunc(reader.logs.AllEntries(), func(e *logrus.Entry) bool { return strings.Contains(e.Message, "following the publisher's socket") })
	})
	must(t, pub.Publish("k", Sample{Count: 2}))
	late, _ := subscriber(t, root)
	eventually(t, "who connects has the newest", has(late, "k", 2))
	if !has(early, "k", 1)() {
		t.Error("a small change was told at once")
	}
	must(t, pub.Publish("k", Sample{Count: 20}))
	eventually(t, "a large change", has(early, "k", 20))
	must(t, pub.Publish("k", Sample{Count: 21, Name: "held back"}))
	must(t, pub.Publish("other", Sample{Count: 1}))
	eventually(t, "another key", has(early, "other", 1))
	if !has(early, "k", 20)() {
		t.Error("what was held back of one key was told with another")
	}
}

func TestWhoWasSentWhatWasHeldBackIsToldThatItNoLongerHolds(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := newSide(root)
	pub := NewPacedPublication(s.Bus, "agent", func(last, now counter) time.Duration {
		if now == last {
			return -1
		}
		return time.Hour
	})
	s.start(t)
	update := func(n int) string {
		return fmt.Sprintf("update counter %s %s", b64("k"), b64(fmt.Sprintf(`{"N":%d}`, n)))
	}
	must(t, pub.Publish("k", counter{1}))
	early := fresh(t, root, "hello counter false", update(1), "complete counter")
	must(t, pub.Publish("k", counter{2}))
	late := fresh(t, root, "hello counter false", update(2), "complete counter")
	must(t, pub.Publish("k", counter{1}))
	late.expect(update(1))
	late.silent()
	early.silent()
}
