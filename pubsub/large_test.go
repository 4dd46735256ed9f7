package pubsub

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func largeFiles(t *testing.T, root string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(largePath(root))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestLargeFieldsTravelByFileAndArriveInline(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	pub, _ := publisher(t, root)
	sub, _ := subscriber(t, root)
	eventually(t, "connected", func() bool { return clients(pub) == 1 })
	want := Sample{
		Name:  "n",
		Count: 9007199254740993,
		Items: []string{strings.Repeat("long", 50000)},
		Parts: []Part{{ID: "1", Blob: []byte(strings.Repeat("b", 40000))}, {ID: "2"}},
	}
	must(t, pub.Publish("k", want))
	eventually(t, "the value arrives", func() bool { v, _ := sub.Get("k"); return v.Name == "n" })
	got, _ := sub.Get("k")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	eventually(t, "the files are read and removed", func() bool { return len(largeFiles(t, root)) == 0 })
	if _, err := os.Stat(runDir(root) + "/k.json"); err != nil {
		t.Error(err)
	}
}

func TestAReferenceIsAQuotedPathToAOneKeyObject(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	pub, _ := publisher(t, root)
	must(t, pub.Publish("k", Sample{Items: []string{"i"}}))
	c := rawDial(t, root)
	c.say("request Sample")
	c.expect("hello Sample false")
	p, err := decodePacket("Sample", []byte(c.hear()))
	must(t, err)
	var m map[string]any
	must(t, json.Unmarshal(p.value, &m))
	if _, inline := m["pubsub-large-Items"]; inline {
		t.Error("the large field stands in the message")
	}
	var path string
	must(t, json.Unmarshal([]byte(m["pubsub-file-Items"].(string)), &path))
	if !strings.HasPrefix(path, largePath(root)+"/pubsub-file-Items") {
		t.Errorf("reference is %s", path)
	}
	data, err := os.ReadFile(path)
	must(t, err)
	if string(data) != `{"pubsub-large-Items":["i"]}` {
		t.Errorf("file holds %s", data)
	}
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode() != 0o600 {
		t.Errorf("file has mode %v", info.Mode())
	}
	c.expect("complete Sample")
	must(t, c.conn.Close())
	eventually(t, "files the client did not take are removed", func() bool { return len(largeFiles(t, root)) == 0 })
}

func TestFilesOfAClientThatTakesNoneAreBounded(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	c := &client{conn: &net.UnixConn{}}
	for range maxUnread + 10 {
		_, err := c.split(largePath(root), []byte(`{"pubsub-large-Items":["i"]}`))
		must(t, err)
	}
	if n := len(largeFiles(t, root)); n != maxUnread {
		t.Errorf("%d files, want %d", n, maxUnread)
	}
	removeAll(c.files[:maxUnread-1])
	c.tidy(time.Now())
	if len(c.files) != 1 {
		t.Errorf("%d files are remembered after all but one were taken, want 1", len(c.files))
	}
}

func TestAReferenceIsTakenOnlyFromTheTopicsOwnDirectory(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := largePath(root)
	good := filepath.Join(dir, "pubsub-file-Items1")
	empty := filepath.Join(dir, "pubsub-file-Items2")
	broken := filepath.Join(dir, "pubsub-file-Items3")
	secret := filepath.Join(root, "persist/secret")
	link := filepath.Join(dir, "pubsub-file-link")
	writeText(t, good, `{"pubsub-large-Items":["i"]}`)
	writeText(t, empty, "")
	writeText(t, broken, `{"pubsub-large-Items":`)
	writeText(t, secret, `{"pubsub-large-Items":["secret"]}`)
	must(t, os.Symlink(secret, link))
	ref := func(path string) string {
		quoted, err := json.Marshal(path)
		must(t, err)
		value, err := json.Marshal(map[string]any{"Count": 1, "pubsub-file-Items": string(quoted)})
		must(t, err)
		return string(value)
	}
	take := func(path string) ([]byte, error) { return takeLarge(dir, path) }
	for path, want := range map[string]string{
		good:                       `{"Count":1,"pubsub-large-Items":["i"]}`,
		empty:                      `{"Count":1}`,
		dir + "/pubsub-file-Items": `{"Count":1}`,
	} {
		got, err := joinLarge([]byte(ref(path)), take)
		must(t, err)
		if string(got) != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	for _, path := range []string{secret, link, broken, dir + "/../../../secret", dir + "/sub/pubsub-file-x", "/etc/passwd", "relative", ""} {
		if got, err := joinLarge([]byte(ref(path)), take); err == nil {
			t.Errorf("%s: got %s, want a refusal", path, got)
		}
	}
	for _, value := range []string{`{"pubsub-file-X":"no quotes"}`, `{"pubsub-file-X":7}`, `{"pubsub-file-X":`} {
		if _, err := joinLarge([]byte(value), take); err == nil {
			t.Errorf("%s was accepted", value)
		}
	}
	if _, err := os.Stat(secret); err != nil {
		t.Error("a file outside of the directory was removed")
	}
	for _, path := range []string{good, empty} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s was not removed after it was read", path)
		}
	}
}

func TestARefusedReferenceLeavesTheLastGoodValue(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	srv := rawListen(t, root)
	sub, s := subscriber(t, root)
	c := srv.accept("hello Sample", update("k", sorted(1)), "complete Sample")
	eventually(t, "first value", has(sub, "k", 1))
	c.say(update("k", `{"Count":2,"pubsub-file-Items":"\"/etc/passwd\""}`))
	c.say(update("k", `{"Count":2,"pubsub-file-Items":"\"/etc/shadow\""}`))
	c.say(update("mark", sorted(1)))
	eventually(t, "the mark after it", has(sub, "mark", 1))
	if !has(sub, "k", 1)() || s.complaints() != 1 {
		t.Errorf("value %v, %d reports", sub.All(), s.complaints())
	}
}

func TestAValueIsSentOnceItsLargeFileCanBeWritten(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	writeText(t, largePath(root), "in the way of the directory")
	pub, s := publisher(t, root)
	must(t, pub.Publish("k", Sample{Count: 1, Items: []string{"i"}}))
	c := rawDial(t, root)
	c.say("request Sample")
	c.expect("hello Sample false")
	c.silent() // neither the value nor a complete that would withdraw it
	must(t, os.Remove(largePath(root)))
	must(t, pub.Publish("other", Sample{}))
	for _, key := range []string{"k", "other"} {
		if p := c.hear(); !strings.HasPrefix(p, "update Sample "+b64(key)+" ") {
			t.Errorf("got %q", p)
		}
	}
	c.expect("complete Sample")
	if s.complaints() != 1 {
		t.Errorf("%d reports, want 1", s.complaints())
	}
}

func TestFilesLeftByAClientThatHasReadTheirMessagesGoAfterAWhile(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	l, err := listen(filepath.Join(root, "s.sock"))
	must(t, err)
	defer l.Close()
	reader, err := dial(filepath.Join(root, "s.sock"))
	must(t, err)
	defer reader.Close()
	conn, err := l.AcceptUnix()
	must(t, err)
	defer conn.Close()
	c := &client{conn: conn}
	value, err := c.split(largePath(root), []byte(`{"pubsub-large-Items":["i"]}`))
	must(t, err)
	_, err = conn.Write(updatePacket("Sample", "k", value))
	must(t, err)
	late := time.Now().Add(leftAfter + time.Second)
	if c.tidy(late); len(largeFiles(t, root)) != 1 {
		t.Error("the file went before its message was read")
	}
	_, err = reader.Read(make([]byte, packetBuffer))
	must(t, err)
	if c.tidy(late.Add(-2 * time.Second)); len(largeFiles(t, root)) != 1 {
		t.Error("the file went right after its message was read")
	}
	if c.tidy(late); len(largeFiles(t, root)) != 0 || len(c.files) != 0 {
		t.Error("a file that nobody takes stays")
	}
}
