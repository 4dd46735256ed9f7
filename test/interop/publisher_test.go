package interop

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestARawPublisherSaysTheseBytes(t *testing.T) {
	t.Parallel()
	for _, hello := range []string{"hello Probe", "hello Probe false", "hello Probe true"} {
		root := shortRoot(t)
		l := listen(t, root)
		defer l.close()
		sub := subscription(t, root)
		c := l.accept()
		defer c.close()
		// {"Count":9007199254740992,"List":null,"Name":"one","Unknown":{}}: sorted, rounded, with a null for an empty list
		c.say(hello,
			"update Probe Z2xvYmFs eyJDb3VudCI6OTAwNzE5OTI1NDc0MDk5MiwiTGlzdCI6bnVsbCwiTmFtZSI6Im9uZSIsIlVua25vd24iOnt9fQ==",
			"update Probe YQ== eyJDb3VudCI6MX0=",
			"complete Probe",
			"restarted Probe 1",
		)
		eventually(t, "the snapshot after "+hello, sub.Synced)
		want := map[string]Probe{"global": {Name: "one", Count: 9007199254740992}, "a": {Count: 1}}
		if diff := cmp.Diff(want, sub.All()); diff != "" {
			t.Error(diff)
		}
		c.say("delete Probe YQ==", "update Probe Yg== e30=", "restarted Probe 0")
		delete(want, "a")
		want["b"] = Probe{}
		eventually(t, "the changes", func() bool { return cmp.Equal(want, sub.All()) })
	}
}

func TestARawPublisherThatRepeatsEverythingRingsNothing(t *testing.T) {
	t.Parallel()
	root := shortRoot(t)
	l := listen(t, root)
	defer l.close()
	sub := subscription(t, root)
	c := l.accept()
	defer c.close()
	c.say("hello Probe false", "update Probe YQ== eyJDb3VudCI6MX0=", "update Probe Yg== eyJDb3VudCI6MX0=", "complete Probe")
	eventually(t, "synced", sub.Synced)
	bell := make(chan struct{}, 1)
	sub.Notify(bell)
	c.say("update Probe YQ== eyJDb3VudCI6M30=") // the bell of the snapshot may still ring until this is there
	eventually(t, "a change after the snapshot", holds(sub, "a", 3))
	<-bell
	for range 50 {
		c.say("update Probe YQ== eyJDb3VudCI6M30=", "update Probe Yg== eyJDb3VudCI6MX0=")
	}
	time.Sleep(300 * time.Millisecond)
	if len(bell) != 0 {
		t.Error("a repeated value rang")
	}
	c.say("update Probe Yg== eyJDb3VudCI6Mn0=")
	eventually(t, "a change", holds(sub, "b", 2))
}

func TestARawPublisherThatComesBackIsSweptAfterComplete(t *testing.T) {
	t.Parallel()
	root := shortRoot(t)
	l := listen(t, root)
	defer l.close()
	sub := subscription(t, root)
	c := l.accept()
	c.say("hello Probe", "update Probe YQ== eyJDb3VudCI6MX0=", "update Probe Yg== eyJDb3VudCI6MX0=", "complete Probe")
	eventually(t, "the first snapshot", func() bool { return len(sub.All()) == 2 })
	c.close()
	c = l.accept()
	c.say("hello Probe", "update Probe Yg== eyJDb3VudCI6Mn0=")
	eventually(t, "the first word of the second snapshot", holds(sub, "b", 2))
	if !holds(sub, "a", 1)() {
		t.Error("a lost connection withdrew a value")
	}
	c.say("") // reads like the end of the connection
	c.close()
	c = l.accept()
	defer c.close()
	if !holds(sub, "a", 1)() {
		t.Error("half a snapshot withdrew a value")
	}
	c.say("hello Probe", "update Probe Yg== eyJDb3VudCI6Mn0=", "complete Probe")
	eventually(t, "the sweep", func() bool { return len(sub.All()) == 1 })
}

func TestARawPublishersLargeFilesAreReadAndUnlinked(t *testing.T) {
	t.Parallel()
	root := shortRoot(t)
	l := listen(t, root)
	defer l.close()
	sub := subscription(t, root)
	c := l.accept()
	defer c.close()
	own := filepath.Join(largeDir(root), "pubsub-file-Text2187540731")
	foreign := filepath.Join(root, "persist/pubsub-large/other/Probe/pubsub-file-Text1")
	write(t, own, `{"pubsub-large-Text":"text"}`)
	write(t, foreign, `{"pubsub-large-Text":"not yours"}`)
	about := func(count, path string) string {
		quoted, err := json.Marshal(path)
		must(t, err)
		twice, err := json.Marshal(string(quoted))
		must(t, err)
		return "update Probe aw== " + b64(`{"Count":`+count+`,"Parts":[{"ID":"p","pubsub-file-Text":`+string(twice)+`}]}`)
	}
	c.say("hello Probe", about("1", own), "complete Probe")
	eventually(t, "the value", holds(sub, "k", 1))
	if v, _ := sub.Get("k"); len(v.Parts) != 1 || v.Parts[0].Text != "text" {
		t.Errorf("got %+v", v)
	}
	if _, err := os.Stat(own); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
	c.say(about("2", foreign), about("3", "/etc/hostname"), about("4", largeDir(root)+"/../../other/Probe/pubsub-file-Text1"),
		"update Probe bWFyaw== e30=")
	eventually(t, "the mark after them", func() bool { _, ok := sub.Get("mark"); return ok })
	if v, _ := sub.Get("k"); v.Count != 1 || v.Parts[0].Text != "text" {
		t.Errorf("a reference to elsewhere changed the value to %+v", v)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("a file of somebody else: %v", err)
	}
	c.say(about("5", own)) // gone by now: the field is absent
	eventually(t, "the value without its field", func() bool {
		v, _ := sub.Get("k")
		return v.Count == 5 && v.Parts[0].Text == ""
	})
}

func TestFilesOfARawPublisherWithoutASocketAreFollowed(t *testing.T) {
	t.Parallel()
	root := shortRoot(t)
	sub := subscription(t, root)
	path := filepath.Join(dirPath(root), "k.json")
	write(t, path, `{"Name":"n","Count":1,"List":null,"pubsub-large-Blob":"YmxvYg==","Parts":null}`)
	eventually(t, "the file", func() bool { v, _ := sub.Get("k"); return v.Count == 1 && string(v.Blob) == "blob" })
	write(t, path, `{"Count":2}`)
	eventually(t, "the file renamed over it", holds(sub, "k", 2))
	must(t, os.Remove(path))
	eventually(t, "its removal", func() bool { return len(sub.All()) == 0 })
}
