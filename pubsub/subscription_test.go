package pubsub

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func update(key, json string) string { return "update Sample " + b64(key) + " " + b64(json) }

// sorted is a Sample as EVE sends it: keys in alphabetical order, nulls.
func sorted(count int) string {
	return fmt.Sprintf(`{"Count":%d,"List":null,"Name":"","Parts":null,"Unknown":{"x":1}}`, count)
}

func TestADirectoryIsReadAtOpenAndFollowedWhileThereIsNoSocket(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	writeText(t, filepath.Join(runDir(root), "k.json"), small("", 1))
	s := newSide(root)
	sub := NewSubscription[Sample](s.Bus, "agent")
	if sub.Synced() {
		t.Error("synced before anything was read")
	}
	must(t, s.Open())
	if !sub.Synced() || !has(sub, "k", 1)() {
		t.Error("the directory was not read at Open")
	}
	s.start(t)
	bell := make(chan struct{}, 1)
	sub.Notify(bell)
	must(t, writeFile(runDir(root), "k.json", []byte(small("", 2)), false))
	eventually(t, "a renamed file is seen", has(sub, "k", 2))
	if !rings(bell) {
		t.Error("a changed file does not ring")
	}
	must(t, os.Remove(filepath.Join(runDir(root), "k.json")))
	eventually(t, "a removed file is a withdrawal", func() bool { return len(sub.All()) == 0 })
}

func TestADirectoryThatComesLaterIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	sub, _ := subscriber(t, root)
	psub, _ := subscriber(t, root, Persistent())
	if sub.Synced() || psub.Synced() {
		t.Error("synced although there is nothing to read")
	}
	begin := time.Now()
	writeText(t, filepath.Join(runDir(root), "k.json"), small("", 1))
	writeText(t, filepath.Join(root, "persist/status/agent/Sample/k.json"), small("", 2))
	eventually(t, "the file is seen", has(sub, "k", 1))
	eventually(t, "the persistent file is seen", has(psub, "k", 2))
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestAHalfWrittenFileIsNotAWithdrawal(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	path := filepath.Join(runDir(root), "k.json")
	writeText(t, path, small("", 1))
	sub, s := subscriber(t, root)
	for _, text := range []string{"", `{"Name":`, `{"Count":"two"}`, "null", small("", 3) + "}"} {
		before := s.complaints()
		writeText(t, path, text)
		eventually(t, "reported: "+text, func() bool { return s.complaints() > before })
		if !has(sub, "k", 1)() {
			t.Fatalf("%q changed the last good value", text)
		}
	}
	writeText(t, path, small("", 2))
	eventually(t, "the whole file is taken", has(sub, "k", 2))
}

func TestADirectoryThatVanishesAsAWholeWithdrawsNothing(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for i := range 50 {
		writeText(t, filepath.Join(runDir(root), fmt.Sprintf("k%d.json", i)), small("", i))
	}
	sub, _ := subscriber(t, root)
	eventually(t, "the directory is read", sub.Synced)
	for i := range 10 { // slowly at first, so that a half empty directory is seen
		must(t, os.Remove(filepath.Join(runDir(root), fmt.Sprintf("k%d.json", i))))
		time.Sleep(20 * time.Millisecond)
	}
	must(t, os.RemoveAll(filepath.Join(root, "run")))
	never(t, "a value goes with its directory", func() bool { return len(sub.All()) != 50 })
}

func TestTheSocketTakesOverFromTheDirectoryWithoutAFalseStep(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	writeText(t, filepath.Join(runDir(root), "stays.json"), small("", 1))
	writeText(t, filepath.Join(runDir(root), "old.json"), small("", 1))
	sub, s := subscriber(t, root)
	eventually(t, "the directory is read", func() bool { return len(sub.All()) == 2 })
	bell := make(chan struct{}, 1)
	sub.Notify(bell)
	srv := rawListen(t, root)
	begin := time.Now()
	c := srv.accept("hello Sample false", update("stays", sorted(1)))
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("the socket was found after %v", took)
	}
	never(t, "a row goes before the snapshot is complete", func() bool { return len(sub.All()) != 2 || rings(bell) })
	c.say("complete Sample")
	eventually(t, "what is not in the snapshot goes", func() bool { return len(sub.All()) == 1 })
	must(t, os.Remove(filepath.Join(runDir(root), "stays.json")))
	c.say(update("live", sorted(5)))
	eventually(t, "an update is taken", has(sub, "live", 5))
	c.say("delete Sample " + b64("stays"))
	c.say("restarted Sample 1")
	eventually(t, "a delete is taken", func() bool { return len(sub.All()) == 1 })
	if s.complaints() != 0 {
		t.Error(s.logs.LastEntry().String())
	}
}

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
	c := srv.accept("hello Sample", update("k", sorted(1)), "complete Sample")
	eventually(t, "synced", sub.Synced)
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
		update("k", "null"),
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
	if took := time.Since(begin); took > 2*time.Second {
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

func TestALostSocketKeepsTheValuesAndTheDirectoryIsFollowedUntilItIsBack(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	pub, p := publisher(t, root)
	sub, _ := subscriber(t, root)
	must(t, pub.Publish("a", Sample{Count: 1}))
	must(t, pub.Publish("b", Sample{Count: 1}))
	eventually(t, "both values", func() bool { return len(sub.All()) == 2 && clients(pub) == 1 })
	bell := make(chan struct{}, 1)
	sub.Notify(bell)
	p.stop()
	never(t, "a stopped publisher changes something", func() bool { return len(sub.All()) != 2 || rings(bell) })
	must(t, writeFile(runDir(root), "a.json", []byte(small("", 2)), false))
	eventually(t, "the directory is followed", has(sub, "a", 2))

	pub, _ = publisher(t, root)
	eventually(t, "the socket is found again", func() bool { return clients(pub) == 1 })
	must(t, pub.Publish("a", Sample{Count: 3}))
	eventually(t, "the socket is followed again", has(sub, "a", 3))
	must(t, pub.Unpublish("b"))
	eventually(t, "and its withdrawals", func() bool { return len(sub.All()) == 1 })
}

func TestAPublisherThatIsSilentOrSpeaksSomethingElseDoesNotHideTheDirectory(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	srv := rawListen(t, root)
	sub, _ := subscriber(t, root)
	srv.accept("bonjour Sample")
	time.Sleep(100 * time.Millisecond) // now it waits for an answer, and nobody accepts any more
	writeText(t, filepath.Join(runDir(root), "k.json"), small("", 1))
	eventually(t, "the directory is read", has(sub, "k", 1))
}

func TestWithoutInotifyADirectoryIsStillRead(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	writeText(t, filepath.Join(runDir(root), "k.json"), small("", 1))
	s := newSide(root)
	sub := NewSubscription[Sample](s.Bus, "agent")
	must(t, s.Open())
	s.watcher.watch(runDir(root)) // not open: does nothing
	if !has(sub, "k", 1)() {
		t.Error("not read")
	}
}
