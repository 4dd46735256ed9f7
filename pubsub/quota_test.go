package pubsub

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
)

func TestBadPacketsOfAPublisherDoNotFillTheLog(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	srv := rawListen(t, root)
	sub, s := subscriber(t, root)
	c := srv.accept("hello Sample", update("k", sorted(1)), "complete Sample")
	const bad = 3000
	for i := range bad {
		c.say(update(fmt.Sprint("key", i%7), fmt.Sprintf(`{"Count":"text %d"}`, i)))
	}
	c.say(update("k", sorted(2)))
	eventually(t, "what is good after them", has(sub, "k", 2))
	if n := len(s.logs.AllEntries()); n > maxLogged+5 {
		t.Errorf("%d lines in the log", n)
	}
	if st := s.Stats()[0]; st.Refused != bad {
		t.Errorf("%d of %d bad packets are counted", st.Refused, bad)
	}
}

func TestAPublisherThatComesAndGoesDoesNotFillTheLog(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	srv := rawListen(t, root)
	_, s := subscriber(t, root)
	for range 40 {
		c := srv.accept("hello Sample", "complete Sample")
		c.conn.Close()
	}
	if n := len(s.logs.AllEntries()); n > maxLogged+5 {
		t.Errorf("%d lines in the log", n)
	}
}

func TestWhatIsLeftOutOfTheLogIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, hook := logtest.NewNullLogger()
		q := newQuota()
		say := func(times int) {
			for range times {
				if log, ok := q.take(log); ok {
					log.Error("bad")
				}
			}
		}
		expect := func(lines int, leftOut any) {
			t.Helper()
			all := hook.AllEntries()
			if len(all) != lines {
				t.Fatalf("%d lines, want %d", len(all), lines)
			}
			if got := all[lines-1].Data["left_out"]; got != leftOut {
				t.Errorf("left out are %v, want %v", got, leftOut)
			}
		}
		say(maxLogged)
		expect(maxLogged, nil)
		say(1000)
		expect(maxLogged+1, nil)
		if last := hook.LastEntry(); last.Level != logrus.WarnLevel {
			t.Errorf("it says %s", last.Message)
		}
		time.Sleep(logEvery)
		say(1)
		expect(maxLogged+2, 1000)
		time.Sleep(2 * maxLogged * logEvery)
		say(maxLogged)
		expect(2*maxLogged+2, nil)
	})
}
