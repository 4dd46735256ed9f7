package pubsub

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// small is the JSON of a Sample on disk.
func small(name string, count int) string {
	return fmt.Sprintf(`{"Name":%q,"Count":%d,"List":null,"pubsub-large-Items":null,"Parts":null}`, name, count)
}

func TestFilesHoldStructOrderAndBelongToTheOwnerAlone(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	pub, _ := publisher(t, root)
	must(t, pub.Publish("k", Sample{Name: "n", Count: 9007199254740993, Items: []string{"i"}}))
	data, err := os.ReadFile(filepath.Join(runDir(root), "k.json"))
	must(t, err)
	want := `{"Name":"n","Count":9007199254740993,"List":null,"pubsub-large-Items":["i"],"Parts":null}`
	if string(data) != want {
		t.Errorf("file holds %s, want %s", data, want)
	}
	for path, mode := range map[string]os.FileMode{
		runDir(root):                          os.ModeDir | 0o700,
		filepath.Join(root, "run/agent"):      os.ModeDir | 0o700,
		filepath.Join(runDir(root), "k.json"): 0o600,
		sockPath(root):                        os.ModeSocket | 0o600,
	} {
		info, err := os.Stat(path)
		must(t, err)
		if info.Mode() != mode {
			t.Errorf("%s has mode %v, want %v", path, info.Mode(), mode)
		}
	}
}

func TestAnUnchangedValueWritesAndRingsNothing(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	pub, _ := publisher(t, root)
	bell := make(chan struct{}, 1)
	pub.Notify(bell)
	must(t, pub.Publish("k", Sample{Count: 1}))
	if !rings(bell) {
		t.Error("a new value does not ring")
	}
	before, err := os.Stat(filepath.Join(runDir(root), "k.json"))
	must(t, err)
	must(t, pub.Publish("k", Sample{Count: 1}))
	after, err := os.Stat(filepath.Join(runDir(root), "k.json"))
	must(t, err)
	if rings(bell) || !os.SameFile(before, after) {
		t.Error("an unchanged value rang or was written again")
	}
	must(t, pub.Unpublish("k"))
	if !rings(bell) {
		t.Error("a removed value does not ring")
	}
	must(t, pub.Unpublish("k"))
	if rings(bell) {
		t.Error("removing nothing rings")
	}
}

func TestARestartedPublisherHasItsValuesAndLeavesBadFilesAlone(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := runDir(root)
	writeText(t, filepath.Join(dir, "good.json"), small("g", 7))
	writeText(t, filepath.Join(dir, "half.json"), `{"Name":"h`)
	writeText(t, filepath.Join(dir, "empty.json"), "")
	writeText(t, filepath.Join(dir, "null.json"), "null")
	writeText(t, filepath.Join(dir, "type.json"), `{"Count":"seven"}`)
	writeText(t, filepath.Join(dir, "big.json"), small(strings.Repeat("x", 60000), 1))
	writeText(t, filepath.Join(dir, "tmp12345"), "left by a dead writer")
	writeText(t, filepath.Join(dir, "other.txt"), "not ours")
	pub, s := publisher(t, root)
	want := map[string]Sample{"good": {Name: "g", Count: 7}}
	if diff := cmp.Diff(want, pub.All()); diff != "" {
		t.Error(diff)
	}
	if n := s.complaints(); n != 5 {
		t.Errorf("%d bad files were reported, want 5", n)
	}
	for _, name := range []string{"half.json", "type.json", "big.json", "other.txt"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "tmp12345")); !os.IsNotExist(err) {
		t.Error("the temporary file of a dead writer is still there")
	}
	must(t, pub.Unpublish("half"))
	if _, err := os.Stat(filepath.Join(dir, "half.json")); !os.IsNotExist(err) {
		t.Error("a withdrawn key still has its bad file")
	}
}

func TestKeysThatAreNoFileNameAreRefused(t *testing.T) {
	t.Parallel()
	pub, _ := publisher(t, t.TempDir())
	for _, key := range []string{"", "a/b", "../up", "zero\x00", "a.json", strings.Repeat("k", 251)} {
		if err := pub.Publish(key, Sample{}); err == nil || !strings.Contains(err.Error(), "agent/Sample") {
			t.Errorf("key %q: %v, want an error that names the topic", key, err)
		}
		if err := pub.Unpublish(key); err == nil {
			t.Errorf("key %q was unpublished", key)
		}
	}
	for _, key := range []string{strings.Repeat("k", 250), "with space", "..", "ü"} {
		must(t, pub.Publish(key, Sample{}))
	}
}

func TestAnEmptyValueIsRefused(t *testing.T) {
	t.Parallel()
	type list []string
	s := newSide(t.TempDir())
	pub := NewPublication[list](s.Bus, "agent")
	s.start(t)
	if err := pub.Publish("k", nil); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("Publish = %v, want a refusal", err)
	}
}

func TestAValueThatCannotBeSentIsRefusedAndTheOldOneStays(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	pub, _ := publisher(t, root)
	old := Sample{Count: 1}
	must(t, pub.Publish("k", old))
	for name, v := range map[string]Sample{
		"packet":     {Name: strings.Repeat("x", 50000)},
		"large file": {Items: []string{strings.Repeat("x", 1<<20)}},
	} {
		err := pub.Publish("k", v)
		if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "agent/Sample key k") {
			t.Errorf("%s: Publish = %v", name, err)
		}
	}
	if got, _ := pub.Get("k"); got.Count != 1 || got.Name != "" {
		t.Error("the old value is gone")
	}
	data, err := os.ReadFile(filepath.Join(runDir(root), "k.json"))
	must(t, err)
	if string(data) != small("", 1) {
		t.Errorf("the file holds %.100s", data)
	}
	must(t, pub.Publish("k", Sample{Items: []string{strings.Repeat("x", 1<<20-100)}}))
}

func TestAPersistentTopicLivesBelowPersistWithABackupAndASocketInRun(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	pub, s := publisher(t, root, Persistent())
	dir := filepath.Join(root, "persist/status/agent/Sample")
	must(t, pub.Publish("k", Sample{Count: 1}))
	if _, err := os.Stat(filepath.Join(dir, "k.json.bak")); !os.IsNotExist(err) {
		t.Error("a first value has a backup")
	}
	must(t, pub.Publish("k", Sample{Count: 2}))
	backup, err := os.ReadFile(filepath.Join(dir, "k.json.bak"))
	must(t, err)
	if string(backup) != small("", 1) {
		t.Errorf("the backup holds %s", backup)
	}
	if _, err := os.Lstat(sockPath(root)); err != nil {
		t.Error(err)
	}
	s.stop()
	must(t, os.Remove(filepath.Join(dir, "k.json")))
	pub, _ = publisher(t, root, Persistent())
	if got, _ := pub.Get("k"); got.Count != 1 {
		t.Errorf("restored %+v, want the backup", got)
	}
	must(t, pub.Unpublish("k"))
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("a withdrawn key left %v", entries)
	}
}

func TestTableFileAndSocketEndWithTheSameValue(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]Option{"plain": nil, "persistent": {Persistent()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			pub, _ := publisher(t, root, opts...)
			sub, _ := subscriber(t, root, opts...)
			other, _ := subscriber(t, root, opts...)
			eventually(t, "both are there", func() bool { return clients(pub) == 2 })
			// Only the end of a burst can differ, so there are many.
			for burst := range 40 {
				together(t, pub, int64(burst))
				v, _ := pub.Get("k")
				data, err := os.ReadFile(filepath.Join(pub.store.topic.dir(), "k.json"))
				must(t, err)
				if string(data) != small("", int(v.Count)) {
					t.Fatalf("table has %d, file has %s", v.Count, data)
				}
				for _, s := range []*Subscription[Sample]{sub, other} {
					eventually(t, "the subscribers have the same", has(s, "k", v.Count))
				}
			}
		})
	}
}

// together publishes one key from many goroutines at once.
func together(t *testing.T, pub *Publication[Sample], burst int64) {
	t.Helper()
	start := make(chan struct{})
	var wg sync.WaitGroup
	for w := range int64(16) {
		wg.Go(func() {
			<-start
			for i := range int64(3) {
				if i == 1 && w%4 == 0 {
					if err := pub.Unpublish("k"); err != nil {
						t.Error(err)
					}
				}
				if err := pub.Publish("k", Sample{Count: burst*1000 + w*10 + i}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	close(start)
	wg.Wait()
}
