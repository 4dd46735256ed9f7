package pubsub

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fullDiskAlone is set in the process in which the tests of a full disk run.
const fullDiskAlone = "PUBSUB_FULL_DISK"

// fullDisk makes writes beyond the first 4 KiB of a file fail, in the whole
// process.
func fullDisk(t *testing.T) (free func()) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	var was syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was))
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 4096, Max: was.Max}))
	free = func() {
		must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was))
		signal.Reset(syscall.SIGXFSZ)
	}
	t.Cleanup(free)
	return free
}

func TestOnAFullDiskTheOldValueStaysInTableFileAndSocket(t *testing.T) {
	if os.Getenv(fullDiskAlone) == "" {
		t.Parallel()
		cmd := itself("-test.run=^" + t.Name() + "$")
		cmd.Env = append(os.Environ(), fullDiskAlone+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	for name, opts := range map[string][]Option{"plain": nil, "persistent": {Persistent()}} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			pub, _ := publisher(t, root, opts...)
			sub, _ := subscriber(t, root, opts...)
			must(t, pub.Publish("k", Sample{Count: 1}))
			eventually(t, "first value", func() bool { return has(sub, "k", 1)() && clients(pub) == 1 })
			free := fullDisk(t)
			big := Sample{Count: 2, Name: strings.Repeat("x", 8000)}
			if err := pub.Publish("k", big); !errors.Is(err, syscall.EFBIG) {
				t.Fatalf("Publish = %v, want the error of the disk", err)
			}
			data, err := os.ReadFile(filepath.Join(pub.store.topic.dir(), "k.json"))
			must(t, err)
			if !has(pub, "k", 1)() || !has(sub, "k", 1)() || string(data) != small("", 1) {
				t.Errorf("table %v, subscriber %v, file %.80s", pub.All(), sub.All(), data)
			}
			left, err := filepath.Glob(filepath.Join(pub.store.topic.dir(), "tmp*"))
			must(t, err)
			if len(left) > 0 {
				t.Errorf("the part that fitted was left: %v", left)
			}
			free()
			must(t, pub.Publish("k", big))
			eventually(t, "the value once there is room", has(sub, "k", 2))
		})
	}
}

func TestAfterAFailedWriteTheOldValueIsWrittenAgain(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	pub, _ := publisher(t, root)
	path := filepath.Join(runDir(root), "k.json")
	must(t, pub.Publish("k", Sample{Count: 1}))
	must(t, os.Remove(path))
	must(t, os.MkdirAll(filepath.Join(path, "x"), 0o700))
	if pub.Publish("k", Sample{Count: 2}) == nil {
		t.Fatal("a failed write is no error")
	}
	must(t, os.RemoveAll(path))
	must(t, pub.Publish("k", Sample{Count: 1}))
	data, err := os.ReadFile(path)
	if err != nil || string(data) != small("", 1) {
		t.Errorf("the file holds %q, %v", data, err)
	}
}

func TestAPersistentValueWhoseFileIsBadComesFromItsBackup(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "persist/status/agent/Sample")
	good, bad := small("b", 1), `{"Name":`
	for name, text := range map[string]string{
		"cut.json": bad, "cut.json.bak": good,
		"both.json": bad, "both.json.bak": bad,
		"fine.json": small("", 2), "fine.json.bak": good,
		"lost.json.bak": good,
	} {
		writeText(t, filepath.Join(dir, name), text)
	}
	pub, s := publisher(t, root, Persistent())
	want := map[string]Sample{"cut": {Name: "b", Count: 1}, "fine": {Count: 2}, "lost": {Name: "b", Count: 1}}
	if diff := cmp.Diff(want, pub.All()); diff != "" {
		t.Error(diff)
	}
	for name, text := range map[string]string{"cut.json": good, "lost.json": good, "both.json": bad, "fine.json": small("", 2)} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(data) != text {
			t.Errorf("%s holds %q, %v", name, data, err)
		}
	}
	if n := s.complaints(); n != 1 {
		t.Errorf("%d errors were logged, want 1 for the value that is lost", n)
	}
}

func TestAReferenceToAPipeIsRefusedAndNotWaitedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pubsub-file-pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	writer, err := os.OpenFile(pipe, os.O_RDWR, 0)
	must(t, err)
	defer writer.Close()
	answer := make(chan error, 1)
	go func() { _, err := takeLarge(dir, pipe); answer <- err }()
	select {
	case err := <-answer:
		if err == nil {
			t.Error("a pipe was taken for the file of a large field")
		}
	case <-time.After(time.Minute):
		_, err := writer.WriteString(strings.Repeat("x", maxLarge+1)) // lets it go
		t.Errorf("it waits for the writer of the pipe (%v)", err)
	}
	sub := filepath.Join(dir, "pubsub-file-dir")
	must(t, os.Mkdir(sub, 0o700))
	if _, err := takeLarge(dir, sub); err == nil {
		t.Error("a directory was taken for the file of a large field")
	}
	if _, err := os.Stat(sub); err != nil {
		t.Errorf("the directory was removed: %v", err)
	}
}

func TestAListenerThatFailsIsReportedOnce(t *testing.T) {
	t.Parallel()
	pub, s := publisher(t, t.TempDir())
	must(t, pub.store.listener.Close())
	eventually(t, "a report", func() bool { return s.complaints() == 1 })
	never(t, "a second report", func() bool { return s.complaints() > 1 })
}

func TestASubscriptionTakesTheBackupOfAPersistentFileThatIsBadOrLost(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "persist/status/agent/Sample")
	good := small("b", 1)
	for name, text := range map[string]string{
		"cut.json": `{"Name":`, "cut.json.bak": good,
		"empty.json": "", "empty.json.bak": good,
		"typed.json": `{"Count":"x"}`, "typed.json.bak": good,
		"fine.json": small("", 2), "fine.json.bak": good,
		"lost.json.bak": good,
	} {
		writeText(t, filepath.Join(dir, name), text)
	}
	sub, s := subscriber(t, root, Persistent())
	b := Sample{Name: "b", Count: 1}
	want := map[string]Sample{"cut": b, "empty": b, "typed": b, "fine": {Count: 2}, "lost": b}
	eventually(t, "synced", sub.Synced)
	if diff := cmp.Diff(want, sub.All()); diff != "" {
		t.Error(diff)
	}
	if n := s.complaints(); n != 3 {
		t.Errorf("%d errors, want one for each bad file", n)
	}
	must(t, writeFile(dir, "cut.json", []byte(small("", 3)), false))
	eventually(t, "the file once it is good", has(sub, "cut", 3))
	writeText(t, filepath.Join(dir, "cut.json"), "{")
	never(t, "a bad file brings back a backup older than the last good value", func() bool { return !has(sub, "cut", 3)() })
	must(t, os.Remove(filepath.Join(dir, "lost.json.bak")))
	eventually(t, "a withdrawal", func() bool { _, ok := sub.Get("lost"); return !ok })
}

func TestAWriteThatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	pub, _ := publisher(t, root)
	sub, _ := subscriber(t, root)
	must(t, pub.Publish("k", Sample{Count: 1}))
	eventually(t, "first value", has(sub, "k", 1))
	// A directory in the place of the file cannot be replaced by rename.
	must(t, os.Remove(filepath.Join(runDir(root), "k.json")))
	must(t, os.MkdirAll(filepath.Join(runDir(root), "k.json", "x"), 0o700))
	first, second := pub.Publish("k", Sample{Count: 2}), pub.Publish("k", Sample{Count: 2})
	if first == nil || second == nil {
		t.Fatal("a failed write is no error")
	}
	if first.Error() != second.Error() {
		t.Errorf("the same failure reads %q and then %q, which is logged twice", first, second)
	}
	if !has(pub, "k", 1)() || !has(sub, "k", 1)() {
		t.Error("a failed write changed the value")
	}
	must(t, os.RemoveAll(filepath.Join(runDir(root), "k.json")))
	must(t, pub.Publish("k", Sample{Count: 2}))
	eventually(t, "value after the failure", has(sub, "k", 2))
}

// Whoever may write a topic's directory may put another value in the place of
// ours, the cluster's token among them.
func TestDirectoriesThatOthersMayWriteAreTightened(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := runDir(root)
	must(t, os.MkdirAll(dir, 0o700))
	for _, d := range []string{dir, filepath.Dir(dir)} {
		must(t, os.Chmod(d, 0o777))
	}
	publisher(t, root)
	for d, want := range map[string]os.FileMode{dir: 0o700, filepath.Dir(dir): 0o755} {
		if info, err := os.Stat(d); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v", d, info.Mode(), err)
		}
	}
}

func TestDirectoriesOfAPersistentTopicAreTightened(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	at := func(dir string) string { return filepath.Join(root, dir) }
	all := []string{"persist/status/agent/Sample", "persist/pubsub-large/agent/Sample", "run/agent"}
	for _, dir := range all {
		must(t, os.MkdirAll(at(dir), 0o700))
	}
	for _, dir := range append(all, "persist/status/agent", "persist/pubsub-large/agent") {
		must(t, os.Chmod(at(dir), 0o777))
	}
	s := newSide(root)
	NewPublication[Sample](s.Bus, "agent", Persistent())
	s.start(t)
	for dir, want := range map[string]os.FileMode{
		"persist/status/agent": 0o755, "persist/status/agent/Sample": 0o700,
		"persist/pubsub-large/agent": 0o755, "persist/pubsub-large/agent/Sample": 0o755, "run/agent": 0o755,
	} {
		if info, err := os.Stat(at(dir)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v", dir, info.Mode(), err)
		}
	}
}

func TestADirectoryOfLargeFieldsIsNotMadeWithoutNeed(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	publisher(t, root)
	if _, err := os.Stat(filepath.Join(root, "persist")); err == nil {
		t.Error("there is a persist")
	}
}

func TestADirectoryOfAnotherUserIsRefused(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	for _, dir := range []string{"run/agent/Sample", "persist/status/agent", "persist/pubsub-large/agent"} {
		root := t.TempDir()
		dir = filepath.Join(root, dir)
		must(t, os.MkdirAll(dir, 0o700))
		must(t, os.Chown(dir, 65534, 65534))
		s := newSide(root)
		opts := []Option{Persistent()}
		if strings.Contains(dir, "/run/") {
			opts = nil
		}
		NewPublication[Sample](s.Bus, "agent", opts...)
		if err := s.Open(); err == nil || !strings.Contains(err.Error(), "belongs to user 65534") {
			t.Errorf("%s: opened: %v", dir, err)
		}
	}
}

func TestAFifoInThePlaceOfTheRestartCounterHoldsNothingUp(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	must(t, os.MkdirAll(runDir(root), 0o700))
	must(t, syscall.Mkfifo(filepath.Join(runDir(root), "restarted"), 0o600))
	pub, _ := publisher(t, root)
	must(t, pub.Publish("k", Sample{Count: 1}))
}
