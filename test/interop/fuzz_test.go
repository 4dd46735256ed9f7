package interop

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/zedkube/zedkube/pubsub"
)

// The fuzzed input is split into packets at this byte, which no good one has.
const cut = "\xff"

// packets are those of a fuzzed input. Empty ones read like the end of the
// connection and have their own test.
func packets(input []byte) []string {
	all := strings.Split(string(input), cut)
	all = slices.DeleteFunc(all, func(p string) bool { return p == "" })
	return all[:min(len(all), 20)]
}

// tells reports whether a packet is, by the book, about key; the others may
// not change it.
func tells(packet, key string) bool {
	w := words(packet)
	if len(w) < 3 || w[0] != "update" && w[0] != "delete" {
		return false
	}
	// Base64 may be spelled in more than one way: line breaks, padding bits.
	got, err := decodeB64(w[2])
	return err == nil && got == key
}

// FuzzRawPublisher says arbitrary packets to our subscription, in the middle
// of a snapshot and after it: the connection lives on, the next good packet is
// taken, what was good and not spoken of stays, and no file outside of the
// topic's directory goes.
func FuzzRawPublisher(f *testing.F) {
	root := shortRoot(f)
	foreign := filepath.Join(root, "persist/secret")
	write(f, foreign, `{"pubsub-large-Blob":"c2VjcmV0"}`)
	l := listen(f, root)
	f.Cleanup(l.close)
	bus, hook := newBus(root)
	sub := pubsub.NewSubscription[Probe](bus, "peer")
	start(f, bus)
	c := l.accept()
	f.Cleanup(c.close)
	good := "update Probe " + b64("good") + " " + b64(`{"Count":7,"Name":"stays"}`)
	c.say("hello Probe false", good)
	rounds := int64(0)
	f.Fuzz(func(t *testing.T, input []byte) {
		c := c.with(t)
		rounds++
		if rounds == 15 {
			c.say("complete Probe")
		}
		spoken := false
		for _, p := range packets(input) {
			spoken = spoken || tells(p, "good")
			c.say(p)
		}
		c.say(fmt.Sprintf("update Probe %s %s", b64("mark"), b64(fmt.Sprintf(`{"Count":%d}`, rounds))))
		eventually(t, "the mark after it", holds(sub, "mark", rounds))
		v, ok := sub.Get("good")
		if !spoken && (!ok || v.Count != 7 || v.Name != "stays") {
			t.Errorf("the last good value became %+v, %v", v, ok)
		}
		if spoken {
			c.say("delete Probe "+b64("good"), good)
			eventually(t, "the good value again", holds(sub, "good", 7))
		}
		if _, err := os.Stat(foreign); err != nil {
			t.Error(err)
		}
		hook.Reset()
	})
}

// FuzzRawSubscriber asks our publication for arbitrary things: only the one
// good request is answered, and whoever asked well before still gets the news.
func FuzzRawSubscriber(f *testing.F) {
	root := shortRoot(f)
	pub := publication(f, root)
	must(f, pub.Publish("good", Probe{Count: 7}))
	faithful := connect(f, root)
	f.Cleanup(faithful.close)
	faithful.say("request Probe")
	faithful.expect("hello Probe false")
	faithful.hear()
	faithful.expect("complete Probe")
	rounds := int64(0)
	f.Fuzz(func(t *testing.T, input []byte) {
		requests := packets(input)
		if len(requests) == 0 {
			return
		}
		c := connect(t, root)
		defer c.close()
		c.say(requests[0])
		answer := c.hear()
		if wants := requests[0] == "request Probe"; wants != (answer == "hello Probe false") || !wants && answer != "" {
			t.Errorf("%q was answered with %q", requests[0], answer)
		}
		for _, r := range requests[1:] {
			_ = syscall.Sendto(c.fd, []byte(r), syscall.MSG_NOSIGNAL|syscall.MSG_DONTWAIT, nil) // it may be closed by now
		}
		rounds++
		must(t, pub.Publish("mark", Probe{Count: rounds}))
		update := words(faithful.with(t).hear())
		if value, _ := decodeB64(update[len(update)-1]); !strings.Contains(value, fmt.Sprintf(`"Count":%d,`, rounds)) {
			t.Errorf("the faithful subscriber got %s for round %d", value, rounds)
		}
	})
}

// FuzzFiles puts arbitrary files where our publisher and subscriber read:
// nothing else is lost, and what is published afterwards is whole.
func FuzzFiles(f *testing.F) {
	f.Fuzz(func(t *testing.T, name string, content []byte) {
		root := shortRoot(t)
		good := filepath.Join(dirPath(root), "good.json")
		write(t, good, `{"Count":7}`)
		if name == "good.json" || name == "" || strings.ContainsAny(name, "/\x00") || len(name) > 255 || name == "." || name == ".." {
			return
		}
		must(t, os.WriteFile(filepath.Join(dirPath(root), name), content, 0o600))
		bus, _ := newBus(root)
		pub := pubsub.NewPublication[Probe](bus, "peer")
		sub := pubsub.NewSubscription[Probe](bus, "peer")
		must(t, bus.Open())
		if v, _ := pub.Get("good"); v.Count != 7 {
			t.Errorf("the publication has %+v", pub.All())
		}
		if !holds(sub, "good", 7)() {
			t.Errorf("the subscription has %+v", sub.All())
		}
		must(t, pub.Publish("good", Probe{Count: 8}))
		after, err := os.ReadFile(good)
		if err != nil || !bytes.HasPrefix(after, []byte(`{"Name":"","Count":8,`)) {
			t.Errorf("the file holds %q, %v", after, err)
		}
		closeBus(bus)
	})
}
