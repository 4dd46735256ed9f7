package topicscmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/topicview"
	"github.com/zedkube/zedkube/test/cmdtest"
)

// runTopics runs zedkube topics in this process.
func runTopics(t *testing.T, args ...string) (out, said string, code int) {
	t.Helper()
	out, said, err := cmdtest.Run(t.Context(), device.NewRoot(&device.Options{}, NewTopicsCommand), args...)
	return out, said, terminal.ExitCode(err)
}

// asTable is -o table.
func asTable() *terminal.Outputs {
	var o terminal.Outputs
	_ = cmdtest.Output("table", o.Flag, o.Parse)
	return &o
}

func TestTopicsAreListedAndShown(t *testing.T) {
	root := cmdtest.TopicsDevice(t)
	rows := []struct {
		args []string
		code int
		out  []string // in this order
		said string
	}{
		{nil, 0, []string{"TOPIC", "KEYS", "SIZE", "AGE", "KIND", "baseosmgr/NodeDrainRequest", "odd/Topic", "zedkube/KubeConfig", "persistent", "zedkube/NodeDrainStatus", "28B"}, ""},
		{[]string{"zedkube/NodeDrainStatus"}, 0, []string{"zedkube/NodeDrainStatus/global, written ", "NONE (1)", "NOTREQUESTED (2)"}, ""},
		{[]string{"zedkube/NodeDrainStatus/global", "-o", "json"}, 0, []string{`"Status": "NOTREQUESTED (2)"`}, ""},
		{[]string{"zedkube/NodeDrainStatus/global", "-o", "jsonpath={.Status}"}, 0, []string{"NOTREQUESTED (2)"}, ""},
		{[]string{"zedkube/NodeDrainStatus", "-o", "yaml"}, 0, []string{"Key: global", "Status: NOTREQUESTED (2)"}, ""},
		{[]string{"edgenodeclusterstatus"}, 0, []string{"plant-7", "(redacted)"}, ""},
		{[]string{"NodeDrainRequest"}, 2, nil, "did you mean baseosmgr/NodeDrainRequest, zedagent/NodeDrainRequest?"},
		{[]string{"zedkube/Nothing"}, 2, nil, "there is no such topic"},
		{[]string{"zedkube/NodeDrainStatus/other"}, 2, nil, "there is no such topic"},
		{[]string{"../../etc/passwd"}, 2, nil, "there is no such topic"},
		{[]string{"odd/Topic"}, 2, nil, "bad?[31m: it is not JSON"},
		{[]string{"zedkube/NodeDrainStatus", "-o", "xml"}, 1, nil, "want table, wide, name, json"},
		{[]string{"a", "b"}, 1, nil, "usage"},
	}
	for _, r := range rows {
		out, said, code := runTopics(t, append([]string{"--root", root, "topics"}, r.args...)...)
		if code != r.code || !strings.Contains(said, r.said) || strings.Contains(out+said, "hush-hush") || strings.Contains(out+said, "\x1b") {
			t.Errorf("%v: exit code %d, %s%s", r.args, code, out, said)
		}
		at := 0
		for _, want := range r.out {
			i := strings.Index(out[at:], want)
			if i < 0 {
				t.Errorf("%v: %q is not in its place in\n%s", r.args, want, out)
				break
			}
			at += i
		}
	}
	if _, said, code := runTopics(t, "--root", t.TempDir(), "topics"); code != 2 || !strings.Contains(said, "no topic was found") {
		t.Errorf("a device without topics: %d, %s", code, said)
	}
}

func TestTopicsAreCompleted(t *testing.T) {
	got := topicNames(cmdtest.TopicsDevice(t))
	if len(got) != 10 || got[0] != "baseosmgr/NodeDrainRequest" || got[3] != "zedagent/NodeDrainRequest" || got[9] != "NodeDrainStatus" {
		t.Errorf("%q", got)
	}
}

func TestChangesAreALineForEachField(t *testing.T) {
	value := func(raw string) (v any) {
		if err := json.Unmarshal([]byte(raw), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	old := []topicview.Value{{Key: "a", Value: value(`{"S":"x","N":{"M":1}}`)}, {Key: "gone", Value: value(`1`)}, {Key: "bad", Why: "half"}}
	values := []topicview.Value{{Key: "a", Value: value(`{"S":"y","N":{"M":2,"L":null}}`)}, {Key: "new\x1b", Value: value(`{"B":true}`)}, {Key: "bad", Value: value(`2`)}, {Key: "worse", Why: "half"}}
	var lines bytes.Buffer
	for _, c := range changesOf("agent/Topic", old, values, time.Date(2026, 5, 3, 6, 41, 17, 0, time.UTC)) {
		lines.WriteString(c.line() + "\n")
	}
	want := "06:41:17Z agent/Topic/a N.L: came: null\n06:41:17Z agent/Topic/a N.M: 1 -> 2\n06:41:17Z agent/Topic/a S: x -> y\n" +
		"06:41:17Z agent/Topic/bad came: 2\n06:41:17Z agent/Topic/gone is gone\n06:41:17Z agent/Topic/new? came: {\"B\":true}\n"
	if diff := cmp.Diff(want, lines.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAWatchTellsOfTopicsThatChangeComeAndGo(t *testing.T) {
	root := cmdtest.TopicsDevice(t)
	var out, said cmdtest.Printed
	w := topicsWatch{selected: selectedTopics{root: root}, outputs: asTable(), out: terminal.Terminal{Writer: &out, Fd: -1}, said: &said}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.run(ctx) }()
	await := func(o *cmdtest.Printed, text string) {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); !strings.Contains(o.String(), text); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%q did not come; what did:\n%s", text, o.String())
			}
		}
	}
	await(&said, "watching 6 topics")
	cmdtest.LayFiles(t, root, map[string]string{"run/zedkube/NodeDrainStatus/global.json": `{"Status":9,"RequestedBy":1}`})
	await(&out, "zedkube/NodeDrainStatus/global Status: NOTREQUESTED (2) -> COMPLETE (9)\n")
	cmdtest.LayFiles(t, root, map[string]string{"run/nim/DeviceNetworkStatus/global.json": `{"Ports":[]}`})
	await(&out, `nim/DeviceNetworkStatus/global came: {"Ports":[]}`)
	if err := os.Remove(filepath.Join(root, "run/zedagent/NodeDrainRequest/global.json")); err != nil {
		t.Fatal(err)
	}
	await(&out, "zedagent/NodeDrainRequest/global is gone\n")
	cancel()
	if err := <-ended; terminal.ExitCode(err) != terminal.ExitUsage {
		t.Errorf("interrupted, it ends with %v", err)
	}
}

func TestAWatchOfWhatCannotBeWrittenEnds(t *testing.T) {
	root := cmdtest.TopicsDevice(t)
	w := topicsWatch{selected: selectedTopics{root: root}, outputs: asTable(), out: terminal.Terminal{Writer: closedPipe{}, Fd: -1}}
	changed := sync.OnceFunc(func() {
		cmdtest.LayFiles(t, root, map[string]string{"run/zedkube/NodeDrainStatus/global.json": `{"Status":9}`})
	})
	w.said = writes(func() { changed() })
	if err := w.run(t.Context()); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

// writes does something at each write.
type writes func()

func (w writes) Write(p []byte) (int, error) {
	w()
	return len(p), nil
}

type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
