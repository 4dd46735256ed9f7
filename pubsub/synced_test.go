package pubsub

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestAFileThatWasNeverReadableKeepsTheTableFromBeingSynced(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]func(t *testing.T, path string){
		"until it is whole": func(t *testing.T, path string) {
			must(t, writeFile(filepath.Dir(path), "k.json", []byte(small("", 1)), false))
		},
		"until it is gone": func(t *testing.T, path string) { must(t, os.Remove(path)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			path := filepath.Join(runDir(root), "k.json")
			writeText(t, path, `{"Name":"ha`)
			sub, s := subscriber(t, root)
			bell := make(chan struct{}, 1)
			sub.Notify(bell)
			never(t, "synced with a row unknown", sub.Synced)
			after(t, path)
			eventually(t, "synced", sub.Synced)
			eventually(t, "the bell rings", func() bool { return rings(bell) })
			if n := s.complaints(); n != 1 {
				t.Errorf("%d reports, want 1", n)
			}
		})
	}
}

func TestABadFileThatHasALastGoodValueIsNoDoubt(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	writeText(t, filepath.Join(runDir(root), "k.json"), "{")
	s := newSide(root)
	sub := NewSubscription[Sample](s.Bus, "agent")
	sub.update("k", []byte(small("", 1))) // of a socket before its snapshot was whole
	must(t, s.Open())
	if !sub.Synced() {
		t.Error("not synced")
	}
	if !has(sub, "k", 1)() || s.complaints() != 1 {
		t.Errorf("rows %v, %d reports", sub.All(), s.complaints())
	}
}

func TestASnapshotWithAValueThatCannotBeReadIsSyncedOnlyOnceThatIsKnown(t *testing.T) {
	t.Parallel()
	for name, packet := range map[string]string{
		"a good value": update("k", sorted(1)),
		"a delete":     "delete Sample " + b64("k"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			srv := rawListen(t, root)
			sub, _ := subscriber(t, root)
			c := srv.accept("hello Sample", update("k", `{"Count":"one"}`), "complete Sample", update("mark", sorted(1)))
			eventually(t, "the mark", has(sub, "mark", 1))
			if sub.Synced() {
				t.Error("synced with a row unknown")
			}
			c.say(packet)
			eventually(t, "synced", sub.Synced)
		})
	}
}

func TestASnapshotWithAPacketThatMayBeAboutAnyKeyIsNotSynced(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	srv := rawListen(t, root)
	sub, _ := subscriber(t, root)
	c := srv.accept("hello Sample", "rubbish", "complete Sample", update("mark", sorted(1)))
	eventually(t, "the mark", has(sub, "mark", 1))
	if sub.Synced() {
		t.Error("synced although any row may be unknown")
	}
	must(t, c.conn.Close())
	srv.accept("hello Sample", "complete Sample")
	eventually(t, "synced by the next snapshot", sub.Synced)
}

// EVE's publishers send first and write the file then.
func TestADirectoryBehindALostSocketIsNoStepBack(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	path := filepath.Join(runDir(root), "k.json")
	gone := filepath.Join(runDir(root), "gone.json")
	writeText(t, path, small("", 1))
	writeText(t, gone, small("", 1))
	srv := rawListen(t, root)
	sub := settling(t, root)
	c := srv.accept("hello Sample", update("k", sorted(1)), update("gone", sorted(1)), "complete Sample")
	eventually(t, "synced", sub.Synced)
	c.say(update("k", sorted(2)))
	c.say(update("fresh", sorted(2)))
	c.say("delete Sample " + b64("gone"))
	now := func() bool { return has(sub, "k", 2)() && has(sub, "fresh", 2)() && len(sub.All()) == 2 }
	eventually(t, "the socket's word", now)
	srv.close()
	must(t, c.conn.Close())
	writeText(t, filepath.Join(runDir(root), "tmp123"), "") // an event brings no earlier look
	neverWithin(t, sub.settle/4, "the directory overrules the socket", func() bool { return !now() })
	writeText(t, path, small("", 2))
	writeText(t, filepath.Join(runDir(root), "fresh.json"), small("", 2))
	must(t, os.Remove(gone))
	neverWithin(t, sub.settle, "a step back", func() bool { return !now() })
	writeText(t, path, small("", 3))
	eventually(t, "the directory is followed", has(sub, "k", 3))
}

func TestAFileReplacedBySomethingElseIsNoWithdrawal(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	path := filepath.Join(runDir(root), "k.json")
	writeText(t, path, small("", 1))
	sub, s := subscriber(t, root)
	eventually(t, "first value", has(sub, "k", 1))
	must(t, os.Remove(path))
	must(t, os.Symlink("/dev/null", path))
	never(t, "withdrawn", func() bool { return len(sub.All()) == 0 })
	if n := s.complaints(); n != 1 {
		t.Errorf("%d reports, want 1", n)
	}
}

func TestAPublisherThatCannotBeFollowedIsReportedOnce(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	srv := rawListen(t, root)
	_, s := subscriber(t, root)
	for range 3 {
		must(t, srv.accept("bonjour Sample").conn.Close())
	}
	srv.accept("hello Sample", "complete Sample")
	if n := said(s, "the publisher's socket cannot be followed"); n != 1 {
		t.Errorf("%d reports, want 1", n)
	}
}

func TestAPublisherThatHangsUpAtOnceIsNotDialledInATightLoop(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	srv := rawListen(t, root)
	subscriber(t, root)
	calls := 0
	for ; ; calls++ {
		within := time.Second
		if calls < 2 { // it may have to wait for the processor
			within = time.Minute
		}
		if calls <= 2 {
			must(t, srv.l.SetDeadline(time.Now().Add(within)))
		}
		conn, err := srv.l.AcceptUnix()
		if err != nil {
			break
		}
		must(t, conn.Close())
	}
	if calls < 2 || calls > 8 {
		t.Errorf("dialled %d times, all but two in a second", calls)
	}
}

func TestADirectoryThatCannotBeReadIsReportedOnce(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	writeText(t, runDir(root), "a file where a directory should be")
	sub, s := subscriber(t, root)
	for range 3 {
		sub.bell <- struct{}{}
		sub.bell <- struct{}{} // taken once the first was handled
	}
	if sub.Synced() {
		t.Error("synced although nothing could be read")
	}
	if n := said(s, "cannot read the publisher's directory"); n != 1 {
		t.Errorf("%d reports, want 1", n)
	}
}

// said counts how often message was logged.
func said(s *side, message string) (n int) {
	for _, e := range s.logs.AllEntries() {
		if e.Message == message {
			n++
		}
	}
	return n
}
