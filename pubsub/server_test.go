package pubsub

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// counter is a topic without large fields.
type counter struct{ N int }

func TestAClientGetsHelloSnapshotCompleteAndThenDifferences(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		opts  []Option
		hello string
	}{{nil, "hello counter false"}, {[]Option{Persistent()}, "hello counter true"}} {
		root := t.TempDir()
		s := newSide(root)
		pub := NewPublication[counter](s.Bus, "agent", tc.opts...)
		s.start(t)
		must(t, pub.Publish("b", counter{2}))
		must(t, pub.Publish("a", counter{1}))
		conn, err := dial(filepath.Join(root, "run/agent/counter.sock"))
		must(t, err)
		defer conn.Close()
		c := rawClient{t, conn}
		c.say("request counter")
		c.expect(tc.hello, "update counter "+b64("a")+" "+b64(`{"N":1}`), "update counter "+b64("b")+" "+b64(`{"N":2}`), "complete counter")
		must(t, pub.Publish("a", counter{1}))
		c.silent()
		must(t, pub.Publish("a", counter{3}))
		c.expect("update counter " + b64("a") + " " + b64(`{"N":3}`))
		must(t, pub.Unpublish("b"))
		c.expect("delete counter " + b64("b"))
		must(t, pub.Unpublish("b"))
		c.silent()
	}
}

func TestEveryClientGetsItsOwnSnapshotAndAllDifferences(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	pub, _ := publisher(t, root)
	must(t, pub.Publish("k", Sample{Count: 1}))
	first, _ := subscriber(t, root)
	eventually(t, "the first has the snapshot", has(first, "k", 1))
	must(t, pub.Publish("k", Sample{Count: 2}))
	second, _ := subscriber(t, root)
	for _, sub := range []*Subscription[Sample]{first, second} {
		eventually(t, "each has the newest value", has(sub, "k", 2))
	}
}

// EVE's subscribers dial every 10 s and keep what a snapshot lacks: a key that
// was withdrawn while they could not hear it stays there permanently.
func TestASubscriberThatComesLaterIsToldWhatWasWithdrawn(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, key := range []string{"gone", "back", "stays"} {
		writeText(t, filepath.Join(root, "run/agent/counter", key+".json"), `{"N":1}`) // as a former run left them
	}
	s := newSide(root)
	pub := NewPublication[counter](s.Bus, "agent")
	s.start(t)
	must(t, pub.Unpublish("gone"))
	must(t, pub.Unpublish("back"))
	must(t, pub.Unpublish("never was there"))
	must(t, pub.Publish("back", counter{2}))
	for range 2 { // each that connects
		conn, err := dial(filepath.Join(root, "run/agent/counter.sock"))
		must(t, err)
		defer conn.Close()
		c := rawClient{t, conn}
		c.say("request counter")
		c.expect("hello counter false", "update counter "+b64("back")+" "+b64(`{"N":2}`), "update counter "+b64("stays")+" "+b64(`{"N":1}`),
			"complete counter", "delete counter "+b64("gone"))
		c.silent()
	}
}

func TestWithdrawnKeysAreRememberedWithinABound(t *testing.T) {
	t.Parallel()
	s := newSide(t.TempDir())
	pub := NewPublication[counter](s.Bus, "agent")
	must(t, s.Open())
	defer pub.store.close()
	for i := range maxWithdrawn + 2 {
		key := fmt.Sprint(i)
		must(t, pub.Publish(key, counter{i}))
		must(t, pub.Unpublish(key))
	}
	if w := pub.store.withdrawn.keys; len(w) != maxWithdrawn || w[0] != "2" {
		t.Errorf("%d keys, from %q on", len(w), w[0])
	}
}

func TestARequestForAnotherTopicIsHungUpOn(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	publisher(t, root)
	for _, request := range []string{"request Other", "request", "hello Sample", "request Sample ", strings.Repeat("x", 300)} {
		c := rawDial(t, root)
		c.say(request)
		must(t, c.conn.SetReadDeadline(time.Now().Add(time.Minute)))
		if n, err := c.conn.Read(make([]byte, 100)); n != 0 || err == nil || os.IsTimeout(err) {
			t.Errorf("%q was answered with %d bytes and %v", request, n, err)
		}
	}
}

func TestTheLongestPossiblePacketArrives(t *testing.T) {
	t.Parallel()
	s := newSide(t.TempDir())
	type text struct{ S string }
	pub := NewPublication[text](s.Bus, "agent")
	sub := NewSubscription[text](s.Bus, "agent")
	s.start(t)
	n := 49000
	for n < 50000 && pub.Publish("k", text{strings.Repeat("x", n+1)}) == nil {
		n++
	}
	eventually(t, "the longest value arrives by socket", func() bool {
		v, _ := sub.Get("k")
		return len(v.S) == n
	})
	if size := len(updatePacket("text", "k", []byte(`{"S":"`+strings.Repeat("x", n)+`"}`))); size < 65530 || size > 65534 {
		t.Errorf("the longest packet has %d bytes", size)
	}
}

func TestAClientThatNeverReadsDelaysNobodyAndMissesOnlyWhatWasReplaced(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	pub, _ := publisher(t, root)
	lazy := rawDial(t, root)
	lazy.say("request Sample")
	sub, _ := subscriber(t, root)
	const last = 600
	begin := time.Now()
	for i := range int64(last + 1) {
		must(t, pub.Publish("k", Sample{Name: strings.Repeat("x", 1000), Count: i}))
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("publishing took %v", took)
	}
	eventually(t, "the other subscriber has the last value", has(sub, "k", last))
	packets := 0
	for ; ; packets++ {
		p := lazy.hear()
		if !strings.HasPrefix(p, "update") {
			continue
		}
		value, err := base64.StdEncoding.DecodeString(strings.Fields(p)[3])
		must(t, err)
		if strings.Contains(string(value), fmt.Sprintf(`"Count":%d,`, last)) {
			break
		}
	}
	if packets > last/2 {
		t.Errorf("the lazy client got %d packets, so nothing was replaced", packets)
	}
}

func TestASocketInUseIsAnErrorAndAStaleOneIsReplaced(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	_, first := publisher(t, root)
	again := newSide(root)
	NewPublication[Sample](again.Bus, "agent")
	if err := again.Open(); err == nil || !errors.Is(err, ErrInUse) {
		t.Errorf("Open = %v, want: already in use", err)
	}
	if _, err := os.Lstat(sockPath(root)); err != nil {
		t.Errorf("the owner lost its socket: %v", err)
	}
	first.stop()
	l, err := listen(sockPath(root))
	must(t, err)
	must(t, l.Close()) // dies without unlinking
	if _, err := os.Lstat(sockPath(root)); err != nil {
		t.Fatal("no stale socket to begin with")
	}
	publisher(t, root)
}

func TestTheRestartCounterIsServedAfterTheSnapshot(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{"3": "restarted Sample 3", "rubbish": "restarted Sample 1"} {
		root := t.TempDir()
		writeText(t, filepath.Join(runDir(root), "restarted"), content)
		publisher(t, root)
		c := rawDial(t, root)
		c.say("request Sample")
		c.expect("hello Sample false", "complete Sample", want)
	}
}

func TestClientsThatComeInTheMiddleOfPublishingMissNothing(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	pub, _ := publisher(t, root)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 300 {
			key := fmt.Sprintf("k%d", i%7)
			if err := errors.Join(pub.Publish(key, Sample{Count: int64(i)}), pub.Unpublish(fmt.Sprintf("k%d", i%5))); err != nil {
				t.Error(err)
			}
		}
	}()
	var subs []*Subscription[Sample]
	for range 10 {
		sub, _ := subscriber(t, root)
		subs = append(subs, sub)
		time.Sleep(time.Millisecond)
	}
	<-done
	for _, sub := range subs {
		eventually(t, "each ends with what the publisher has", func() bool { return cmp.Equal(pub.All(), sub.All()) })
	}
}
