package pubsub

import (
	"fmt"
	"os"
	"path/filepath"
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
	if took := time.Since(begin); took > rescanEvery/2 {
		t.Errorf("it took %v", took)
	}
}

func TestALinkToNothingIsWaitedForLikeADirectoryThatIsNotThere(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	agent := filepath.Dir(runDir(root))
	must(t, os.MkdirAll(filepath.Dir(agent), 0o755))
	must(t, os.Symlink("nowhere", agent))
	s := newSide(root)
	sub := NewSubscription[Sample](s.Bus, "agent")
	s.start(t)
	watched := make(chan struct{})
	go func() { defer close(watched); s.watcher.watch(runDir(root)) }()
	select {
	case <-watched:
	case <-time.After(time.Minute):
		t.Fatal("it looks for the directory again and again")
	}
	must(t, os.Remove(agent))
	writeText(t, filepath.Join(runDir(root), "k.json"), small("", 1))
	eventually(t, "the file is seen", has(sub, "k", 1))
}

func TestAHalfWrittenFileIsNotAWithdrawal(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	path := filepath.Join(runDir(root), "k.json")
	writeText(t, path, small("", 1))
	sub, s := subscriber(t, root)
	for _, text := range []string{"", `{"Name":`, `{"Count":"two"}`, small("", 3) + "}"} {
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
	sub := settling(t, root)
	eventually(t, "the directory is read", sub.Synced)
	for i := range 10 { // slowly at first, so that a half empty directory is seen
		must(t, os.Remove(filepath.Join(runDir(root), fmt.Sprintf("k%d.json", i))))
		time.Sleep(20 * time.Millisecond)
	}
	must(t, os.RemoveAll(filepath.Join(root, "run")))
	neverWithin(t, sub.settle+500*time.Millisecond, "a value goes with its directory", func() bool { return len(sub.All()) != 50 })
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
	if took := time.Since(begin); took > maxRetry/2 {
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

func TestASubscriptionToTheSocketAloneIgnoresTheDirectory(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	writeText(t, filepath.Join(runDir(root), "k.json"), small("", 1))
	sub, _ := subscriber(t, root, SocketOnly())
	never(t, "the directory is read", func() bool { return sub.Synced() || len(sub.All()) > 0 })
	publisher(t, root) // it finds its value in the directory, and serves it
	eventually(t, "the socket is followed", has(sub, "k", 1))
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
