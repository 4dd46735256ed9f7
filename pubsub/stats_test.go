package pubsub

import (
	"strings"
	"testing"
	"time"
)

func TestAClientThatAcceptsNothingForTooLongIsDroppedAndCounted(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := newSide(root)
	pub := NewPublication[Sample](s.Bus, "agent")
	pub.store.patience = 5 * time.Second
	s.start(t)
	stuck, slow := rawDial(t, root), rawDial(t, root)
	for _, c := range []rawClient{stuck, slow} {
		c.say("request Sample")
		c.expect("hello Sample false", "complete Sample")
	}
	sub, _ := subscriber(t, root)
	eventually(t, "three clients", func() bool { return clients(pub) == 3 })
	last := int64(0)
	heard := time.Now()
	for end := time.Now().Add(6 * time.Second); time.Now().Before(end) || s.Stats()[0].Dropped == 0; time.Sleep(5 * time.Millisecond) {
		last++
		must(t, pub.Publish("k", Sample{Name: strings.Repeat("x", 30000), Count: last}))
		if time.Since(heard) > 100*time.Millisecond {
			slow.hear() // one packet in a while is enough
			heard = time.Now()
		}
		if last > 5000 {
			t.Fatal("a client that reads nothing is not dropped")
		}
	}
	eventually(t, "the reader has the last value", has(sub, "k", last))
	st := s.Stats()[0]
	if st.Topic != "agent/Sample" || st.Clients != 2 || st.Dropped != 1 || st.Subscribed {
		t.Errorf("stats are %+v, want one client dropped, two kept", st)
	}
	if st.Messages < 3 || st.Messages > 3*uint64(last) {
		t.Errorf("%d messages for %d values", st.Messages, last)
	}
	if n := said(s, "a subscriber has accepted nothing for too long, disconnecting it"); n != 1 {
		t.Errorf("%d reports of the drop, want 1", n)
	}
}

func TestWhatIsRefusedIsCountedOnBothSides(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	pub, p := publisher(t, root)
	if pub.Publish("a/b", Sample{}) == nil || pub.Unpublish("") == nil {
		t.Fatal("bad keys were accepted")
	}
	must(t, pub.Publish("k", Sample{}))
	if st := p.Stats()[0]; st.Refused != 2 {
		t.Errorf("stats are %+v, want 2 refused", st)
	}
	p.stop()
	srv := rawListen(t, root)
	sub, s := subscriber(t, root)
	srv.accept("hello Sample", update("k", `{"Count":"x"}`), update("k", `{"Count":"x"}`), update("m", sorted(1)), "delete Sample "+b64("n"), "complete Sample")
	eventually(t, "the snapshot is read", has(sub, "m", 1))
	eventually(t, "counted", func() bool {
		return s.Stats()[0] == Stats{Topic: "agent/Sample", Subscribed: true, Messages: 4, Refused: 1}
	})
}
