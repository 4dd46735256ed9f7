package pubsub

import (
	"os"
	"path/filepath"
	"testing"
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
