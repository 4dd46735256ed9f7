package pubsub

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func TestATopicThatCouldNotBeOpenedIsOpenedWhenItCan(t *testing.T) {
	root := t.TempDir()
	obstacle := filepath.Join(root, "run/agent")
	writeText(t, obstacle, "a file where a directory should be")
	synctest.Test(t, func(t *testing.T) {
		s := newSide(root)
		pub := NewPublication[Sample](s.Bus, "agent", FilesOnly())
		if err := s.Open(); err == nil || errors.Is(err, ErrInUse) {
			t.Errorf("Open = %v, want a failure that is not another owner", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); pub.run(ctx) }()
		must(t, os.Remove(obstacle))
		time.Sleep(reopenAfter + time.Second)
		synctest.Wait()
		must(t, pub.Publish("k", Sample{Count: 1}))
		cancel()
		<-done
	})
}
