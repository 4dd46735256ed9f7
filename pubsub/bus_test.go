package pubsub

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if root := os.Getenv(crashRoot); root != "" {
		fmt.Fprintln(os.Stderr, crashing(root, os.Stdout))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// Sample is the topic of these tests; one field is handed over by file.
type Sample struct {
	Name  string
	Count int64
	List  []string
	Items []string `json:"pubsub-large-Items"`
	Parts []Part
}

// Part is a nested object with a large field.
type Part struct {
	ID   string
	Blob []byte `json:"pubsub-large-Blob"`
}

// side is one process at a bus.
type side struct {
	*Bus
	logs *logtest.Hook
	stop func()
}

func newSide(root string) *side {
	log, hook := logtest.NewNullLogger()
	log.SetLevel(logrus.DebugLevel)
	return &side{Bus: NewBus(root, log), logs: hook, stop: func() {}}
}

// start opens and runs the bus until the test ends or stop is called.
func (s *side) start(t *testing.T) {
	t.Helper()
	if err := s.Open(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	s.stop = func() { cancel(); <-done }
	t.Cleanup(s.stop)
}

// complaints counts what was logged as an error.
func (s *side) complaints() (n int) {
	for _, e := range s.logs.AllEntries() {
		if e.Level <= logrus.ErrorLevel {
			n++
		}
	}
	return n
}

func publisher(t *testing.T, root string, opts ...Option) (*Publication[Sample], *side) {
	t.Helper()
	s := newSide(root)
	p := NewPublication[Sample](s.Bus, "agent", opts...)
	s.start(t)
	return p, s
}

func subscriber(t *testing.T, root string, opts ...Option) (*Subscription[Sample], *side) {
	t.Helper()
	s := newSide(root)
	sub := NewSubscription[Sample](s.Bus, "agent", opts...)
	s.start(t)
	return sub, s
}

// settling is subscriber with a settle that outlasts what a test does meanwhile on a busy machine.
func settling(t *testing.T, root string) *Subscription[Sample] {
	t.Helper()
	s := newSide(root)
	sub := NewSubscription[Sample](s.Bus, "agent")
	sub.settle = 4 * time.Second
	s.start(t)
	return sub
}

func clients(p *Publication[Sample]) int {
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	return len(p.store.clients)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("did not happen: %s", what)
		}
	}
}

// never checks for a while that something does not happen.
func never(t *testing.T, what string, happened func() bool) {
	t.Helper()
	neverWithin(t, 1500*time.Millisecond, what, happened)
}

func neverWithin(t *testing.T, within time.Duration, what string, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if happened() {
			t.Fatalf("happened: %s", what)
		}
	}
}

func has(sub Reader[Sample], key string, count int64) func() bool {
	return func() bool { v, ok := sub.Get(key); return ok && v.Count == count }
}

func rings(bell <-chan struct{}) bool {
	select {
	case <-bell:
		return true
	default:
		return false
	}
}

func TestOpenReportsEveryFailureAndOpensTheRest(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	writeText(t, filepath.Join(root, "run/broken"), "a file where a directory should be")
	s := newSide(root)
	bad := NewPublication[Sample](s.Bus, "broken")
	good := NewPublication[Part](s.Bus, "agent")
	unnamed := NewPublication[*Sample](s.Bus, "agent")
	err := s.Open()
	if err == nil || !strings.Contains(err.Error(), "broken/Sample") || !strings.Contains(err.Error(), "no valid name") {
		t.Errorf("Open = %v, want both failures", err)
	}
	if err := bad.Publish("k", Sample{}); err == nil {
		t.Error("published on a topic that did not open")
	}
	if err := unnamed.Unpublish("k"); err == nil {
		t.Error("unpublished on a topic that did not open")
	}
	must(t, good.Publish("k", Part{}))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.Run(ctx)
}

func TestARootOfAnyLengthWorks(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), strings.Repeat("deep/", 30))
	pub, _ := publisher(t, root)
	sub, _ := subscriber(t, root)
	must(t, pub.Publish("k", Sample{Count: 1}))
	eventually(t, "the value arrives by socket", func() bool {
		return has(sub, "k", 1)() && clients(pub) == 1
	})
}

func TestRunEndsWithoutSocketsAndLeavesTheFiles(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	pub, p := publisher(t, root)
	_, s := subscriber(t, root)
	must(t, pub.Publish("k", Sample{}))
	p.stop()
	s.stop()
	if _, err := os.Lstat(sockPath(root)); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(runDir(root), "k.json")); err != nil {
		t.Error(err)
	}
}
