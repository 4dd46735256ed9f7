package interop

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zedkube/zedkube/pubsub"
)

func TestARawSubscriberReadsTheseBytes(t *testing.T) {
	t.Parallel()
	root := shortRoot(t)
	pub := publication(t, root)
	must(t, pub.Publish("global", Probe{Name: "one", Count: 9007199254740993}))
	c := connect(t, root)
	defer c.close()
	c.say("request Probe")
	// {"Count":9007199254740993,"List":null,"Name":"one","Parts":null,"pubsub-file-Blob":"\"…\""}
	c.expect("hello Probe false")
	first := words(c.hear())
	if len(first) != 4 || first[0] != "update" || first[1] != "Probe" || first[2] != "Z2xvYmFs" {
		t.Fatalf("got %q, want an update of global", first)
	}
	c.expect("complete Probe")
	c.silent()
	must(t, pub.Unpublish("global"))
	c.expect("delete Probe Z2xvYmFs")
}

// plain is a topic without large fields: its messages are the same each time.
type plain struct {
	Name  string
	Count int64
	List  []string
}

func TestTheBytesOfAWholeConversation(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		opts  []pubsub.Option
		dir   string
		hello string
	}{
		{nil, "run", "hello plain false"},
		{[]pubsub.Option{pubsub.Persistent()}, "persist/status", "hello plain true"},
	} {
		root := shortRoot(t)
		write(t, filepath.Join(root, tc.dir, "peer/plain/restarted"), "3")
		bus, _ := newBus(root)
		pub := pubsub.NewPublication[plain](bus, "peer", tc.opts...)
		start(t, bus)
		must(t, pub.Publish("b", plain{Name: "<two>", Count: -2, List: []string{}}))
		must(t, pub.Publish("a key", plain{Name: "ü"}))
		c := newSocket(t)
		defer c.close()
		connectTo(t, c, filepath.Join(root, "run/peer/plain.sock"))
		c.say("request plain")
		c.expect(
			tc.hello,
			"update plain YSBrZXk= eyJOYW1lIjoiw7wiLCJDb3VudCI6MCwiTGlzdCI6bnVsbH0=",
			"update plain Yg== eyJOYW1lIjoiXHUwMDNjdHdvXHUwMDNlIiwiQ291bnQiOi0yLCJMaXN0IjpbXX0=",
			"complete plain",
			"restarted plain 3",
		)
		must(t, pub.Publish("b", plain{Name: "<two>", Count: -2, List: []string{}}))
		c.silent()
		must(t, pub.Publish("b", plain{Count: 9007199254740993}))
		c.expect("update plain Yg== eyJOYW1lIjoiIiwiQ291bnQiOjkwMDcxOTkyNTQ3NDA5OTMsIkxpc3QiOm51bGx9")
		must(t, pub.Unpublish("a key"))
		c.expect("delete plain YSBrZXk=")
	}
}

func TestARawSubscriberFindsLargeFieldsInFiles(t *testing.T) {
	t.Parallel()
	root := shortRoot(t)
	pub := publication(t, root)
	must(t, pub.Publish("k", Probe{Blob: []byte("blob"), Parts: []Part{{ID: "p", Text: "text"}}}))
	var conns [2]socket
	taken := map[string]bool{}
	for i := range conns {
		conns[i] = connect(t, root)
		defer conns[i].close()
		conns[i].say("request Probe")
		conns[i].expect("hello Probe false")
		update := words(conns[i].hear())
		value, err := decodeB64(update[3])
		must(t, err)
		form := regexp.MustCompile(`^{"Count":0,"List":null,"Name":"","Parts":\[{"ID":"p","pubsub-file-Text":("\\".*\\"")}\],"pubsub-file-Blob":("\\".*\\"")}$`)
		found := form.FindStringSubmatch(value)
		if found == nil {
			t.Fatalf("the value is %s, want %s", value, form)
		}
		for j, want := range []struct{ prefix, content string }{
			{"pubsub-file-Text", `{"pubsub-large-Text":"text"}`},
			{"pubsub-file-Blob", `{"pubsub-large-Blob":"YmxvYg=="}`},
		} {
			path := unquoted(t, found[j+1])
			if !strings.HasPrefix(path, filepath.Join(largeDir(root), want.prefix)) || taken[path] {
				t.Errorf("the reference is %s, want a fresh one in %s", path, largeDir(root))
			}
			taken[path] = true
			content, err := os.ReadFile(path)
			if err != nil || string(content) != want.content {
				t.Errorf("%s holds %s, %v; want %s", path, content, err, want.content)
			}
			must(t, os.Remove(path))
		}
	}
	if left, _ := os.ReadDir(largeDir(root)); len(left) != 0 {
		t.Errorf("every client took its files and %v is left", left)
	}
	inline, err := os.ReadFile(filepath.Join(dirPath(root), "k.json"))
	must(t, err)
	if want := `{"Name":"","Count":0,"List":null,"pubsub-large-Blob":"YmxvYg==","Parts":[{"ID":"p","pubsub-large-Text":"text"}]}`; string(inline) != want {
		t.Errorf("the file holds %s, want %s", inline, want)
	}
}

// unquoted is the path in a reference: a JSON string in a JSON string.
func unquoted(t *testing.T, reference string) string {
	t.Helper()
	var outer, path string
	must(t, json.Unmarshal([]byte(reference), &outer))
	must(t, json.Unmarshal([]byte(outer), &path))
	return path
}

func TestARawRequestThatIsWrongEndsTheConnectionWithoutAWord(t *testing.T) {
	t.Parallel()
	root := shortRoot(t)
	publication(t, root)
	for _, request := range []string{
		"request Other", "request", "request  Probe", "request Probe ", "request Probe\n", "Request Probe", "request Probe x",
		"hello Probe", "\x00", strings.Repeat("r", 255), strings.Repeat("r", 256), strings.Repeat("r", 70000),
	} {
		c := connect(t, root)
		c.say(request)
		if got := c.hear(); got != "" {
			t.Errorf("%.30q was answered with %q", request, got)
		}
		c.close()
	}
	c := connect(t, root)
	defer c.close()
	c.say("request Probe")
	c.expect("hello Probe false", "complete Probe")
}
