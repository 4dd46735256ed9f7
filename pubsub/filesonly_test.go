package pubsub

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestAPublicationOfFilesOnlyHasNoSocketAndReachesASubscriber(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	sub, _ := subscriber(t, root)
	pub, _ := publisher(t, root, FilesOnly())
	must(t, pub.Publish("k", Sample{Count: 1}))
	eventually(t, "the value arrives through the directory", has(sub, "k", 1))
	if _, err := os.Stat(sockPath(root)); !os.IsNotExist(err) {
		t.Errorf("there is a socket: %v", err)
	}
}

// Nobody listens for a command's topic, and to look for a socket wakes the agent.
func TestASubscriptionOfFilesOnlyLooksForNoSocket(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	sub, _ := subscriber(t, root, FilesOnly())
	pub, _ := publisher(t, root) // with one
	must(t, pub.Publish("k", Sample{Count: 1}))
	eventually(t, "the value arrives through the directory", has(sub, "k", 1))
	must(t, pub.Publish("k", Sample{Count: 2}))
	eventually(t, "so does the next", has(sub, "k", 2))
	must(t, pub.Unpublish("k"))
	eventually(t, "and its end", func() bool { _, there := sub.Get("k"); return !there })
	if n := clients(pub); n != 0 {
		t.Errorf("%d subscribers are connected", n)
	}
}

func TestAPublicationOfFilesOnlyLeavesTheOwnersSocketAlone(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	owner, _ := publisher(t, root)
	files := newSide(root)
	pub := NewPublication[Sample](files.Bus, "agent", FilesOnly())
	must(t, files.Open())
	must(t, pub.Publish("other", Sample{Count: 2}))
	must(t, owner.Publish("k", Sample{Count: 1}))
	sub, _ := subscriber(t, root)
	eventually(t, "the owner's socket still serves", has(sub, "k", 1))
	if _, err := os.Stat(filepath.Join(runDir(root), "other.json")); err != nil {
		t.Error(err)
	}
}

func TestToOpenATopicOfFilesLeavesTheWritingOfOthersAlone(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	open := func() *Publication[Sample] {
		s := newSide(root)
		pub := NewPublication[Sample](s.Bus, "agent", FilesOnly())
		must(t, s.Open())
		return pub
	}
	pub := open()
	dead, written := filepath.Join(runDir(root), "tmp1"), filepath.Join(runDir(root), "tmp2")
	for path, age := range map[string]time.Duration{dead: 2 * writtenWithin, written: 0} {
		must(t, os.WriteFile(path, nil, 0o600))
		must(t, os.Chtimes(path, time.Time{}, time.Now().Add(-age)))
	}
	open()
	if _, err := os.Stat(written); err != nil {
		t.Errorf("the file of another writer: %v", err)
	}
	if _, err := os.Stat(dead); !os.IsNotExist(err) {
		t.Errorf("what a dead writer left is still there: %v", err)
	}
	must(t, pub.Publish("k", Sample{Count: 1}))
}
