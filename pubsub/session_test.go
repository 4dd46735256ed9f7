package pubsub

import (
	"strings"
	"testing"
	"time"
)

func TestHelloMayHaveTwoOrThreeFields(t *testing.T) {
	t.Parallel()
	for _, hello := range []string{"hello Sample", "hello Sample false", "hello Sample true"} {
		root := t.TempDir()
		srv := rawListen(t, root)
		sub, _ := subscriber(t, root)
		srv.accept(hello, update("k", sorted(1)), "complete Sample")
		eventually(t, "after "+hello, has(sub, "k", 1))
		eventually(t, "synced", sub.Synced)
	}
}

func TestAnEmptySnapshotIsSyncedAndRings(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	srv := rawListen(t, root)
	sub, _ := subscriber(t, root)
	bell := make(chan struct{}, 1)
	sub.Notify(bell)
	c := srv.accept("hello Sample false")
	if sub.Synced() {
		t.Error("synced before complete")
	}
	c.say("complete Sample")
	eventually(t, "synced", sub.Synced)
	eventually(t, "the bell rings", func() bool { return rings(bell) })
}

func TestARepeatedValueDoesNotRing(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	srv := rawListen(t, root)
	sub, _ := subscriber(t, root)
	c := srv.accept("hello Sample", update("k", sorted(1)), "complete Sample", update("mark", sorted(1)))
	eventually(t, "the mark, and with it the end of the ring for the snapshot", has(sub, "mark", 1))
	bell := make(chan struct{}, 1)
	sub.Notify(bell)
	c.say(update("k", sorted(1)))
	c.say(update("k", small("", 1)))
	c.say("delete Sample " + b64("nothing"))
	never(t, "a duplicate rings", func() bool { return rings(bell) })
}

func TestMalformedPacketsLeaveTheLastGoodValueAndAreReportedOnce(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	srv := rawListen(t, root)
	sub, s := subscriber(t, root)
	c := srv.accept("hello Sample", update("k", sorted(1)), "complete Sample")
	eventually(t, "first value", has(sub, "k", 1))
	for i, packet := range []string{
		update("k", `{"Count":"text"}`),
		update("k", `{"Count":`),
		"update Sample " + b64("k") + " !!!",
		"update Sample " + b64("k"),
		"update Sample " + b64("k") + " " + b64(sorted(2)) + " more",
		"update Other " + b64("k") + " " + b64(sorted(2)),
		"delete Sample",
		"rubbish",
		"update Sample " + b64("k") + " " + strings.Repeat("A", packetBuffer),
	} {
		for range 3 {
			c.say(packet)
		}
		c.say(update("mark", sorted(i)))
		eventually(t, "the mark after it", has(sub, "mark", int64(i)))
		if !has(sub, "k", 1)() {
			t.Fatalf("packet %.60q changed the last good value", packet)
		}
		if n := s.complaints(); n != i+1 {
			t.Fatalf("after packet %.60q there are %d reports, want %d", packet, n, i+1)
		}
	}
	for _, e := range s.logs.AllEntries() {
		if e.Level <= 2 && e.Data["topic"] != "agent/Sample" {
			t.Errorf("a report does not name the topic: %v", e.Data)
		}
	}
	c.say(update("k", sorted(2)))
	eventually(t, "the next good value is taken", has(sub, "k", 2))
}

func TestWhatWasWithdrawnWhileDisconnectedGoesAfterTheReconnect(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	srv := rawListen(t, root)
	sub, _ := subscriber(t, root)
	c := srv.accept("hello Sample", update("a", sorted(1)), update("b", sorted(1)), "complete Sample")
	eventually(t, "first snapshot", func() bool { return len(sub.All()) == 2 })
	must(t, c.conn.Close())
	begin := time.Now()
	c = srv.accept("hello Sample", update("b", sorted(1)))
	if took := time.Since(begin); took > maxRetry/2 {
		t.Errorf("reconnected after %v", took)
	}
	if len(sub.All()) != 2 {
		t.Error("a lost socket withdrew a value")
	}
	c.say("complete Sample")
	eventually(t, "the sweep", func() bool { _, ok := sub.Get("a"); return !ok && has(sub, "b", 1)() })
}

func TestASnapshotThatCannotBeReadInFullSweepsNothingItMayHaveHeld(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	srv := rawListen(t, root)
	sub, _ := subscriber(t, root)
	c := srv.accept("hello Sample", update("a", sorted(1)), update("b", sorted(1)), "complete Sample")
	eventually(t, "first snapshot", func() bool { return len(sub.All()) == 2 })

	must(t, c.conn.Close())
	tooLong := "update Sample " + b64("a") + " " + strings.Repeat("A", packetBuffer)
	c = srv.accept("hello Sample", tooLong, "complete Sample", update("c", sorted(1)))
	eventually(t, "the key of the packet that was cut is known", func() bool { _, ok := sub.Get("b"); return !ok && has(sub, "c", 1)() })
	if !has(sub, "a", 1)() {
		t.Error("a packet too long to read withdrew the last good value")
	}

	must(t, c.conn.Close())
	c = srv.accept("hello Sample", "rubbish", "complete Sample", update("d", sorted(1)))
	eventually(t, "after rubbish", has(sub, "d", 1))
	if len(sub.All()) != 3 {
		t.Errorf("rows %v, want a, c and d", sub.All())
	}
}

// EVE's subscribers look at the words that they need and ignore further ones.
func TestSurplusWordsAreIgnored(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	srv := rawListen(t, root)
	sub, s := subscriber(t, root)
	c := srv.accept("hello Sample true 2", update("a", sorted(1)), update("b", sorted(1)), "complete Sample 2 keys", "restarted Sample 1 more", "restarted Sample")
	eventually(t, "the snapshot is complete", sub.Synced)
	c.say("delete Sample " + b64("a") + " because")
	eventually(t, "the key is gone", func() bool { _, is := sub.Get("a"); return !is })
	if !has(sub, "b", 1)() || s.complaints() != 0 {
		t.Errorf("rows %v, reports %v", sub.All(), reports(s))
	}
}
