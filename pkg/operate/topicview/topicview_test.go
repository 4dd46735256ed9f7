package topicview

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// device makes a root of files; a name that ends in "/" is a directory.
func device(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		file := filepath.Join(root, name)
		dir := filepath.Dir(file)
		if strings.HasSuffix(name, "/") {
			dir = file
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if dir == file {
			continue
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestTopicsOfAllAgentsAreFound(t *testing.T) {
	root := device(t, map[string]string{
		"run/zedkube/NodeDrainStatus/global.json":               `{"Status":2}`,
		"run/zedkube/NodeDrainStatus/tmp123":                    `{`,
		"run/zedkube/NodeDrainStatus.sock":                      "",
		"run/zedkube/KubeConfig.sock":                           "",
		"run/zedkube/Empty/":                                    "",
		"run/zedagent/Restarted/restarted":                      "1",
		"run/zedmanager/appImg.obj/DownloaderConfig/a.json":     "{}",
		"run/zedmanager/appImg.obj/DownloaderConfig/b.json":     "{}",
		"run/edgeview/VncParams/vmiVNC.run":                     "{}",
		"run/containerd/io.containerd.runtime.v2.task/k8s.io/x": "",
		"run/zedkube.pid":                                       "1",
		"persist/status/zedkube/KubeConfig/global.json":         "{}",
		"persist/status/zedkube/KubeConfig/global.json.bak":     "{}",
		"persist/status/zedclient/OnboardingConfig/global.json": "{}",
		"persist/newlog/Other/global.json":                      "{}",
	})
	topics, err := List(root)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, topic := range topics {
		got = append(got, fmt.Sprintf("%s %d %v %v", topic, topic.Keys, topic.Persistent, topic.Socket))
	}
	want := []string{
		"zedagent/Restarted 0 false false",
		"zedclient/OnboardingConfig 1 true false",
		"zedkube/KubeConfig 1 true true",
		"zedkube/Empty 0 false false",
		"zedkube/NodeDrainStatus 1 false true",
		"zedmanager/appImg.obj/DownloaderConfig 2 false false",
	}
	if diff := cmp.Diff(want, got, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestADeviceWithoutTopicsHasNone(t *testing.T) {
	if topics, err := List(t.TempDir()); err != nil || len(topics) > 0 {
		t.Errorf("%v, %v", topics, err)
	}
	if _, err := List(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a root that is not there is no error")
	}
}

func TestValuesAreNamedAndMasked(t *testing.T) {
	rows := []struct{ topic, raw, want string }{
		{"NodeDrainStatus", `{"Status":9,"RequestedBy":3}`, `{"Status":"COMPLETE (9)","RequestedBy":"UPDATE (3)"}`},
		{"NodeDrainStatus", `{"status":77,"RequestedBy":-1}`, `{"status":"DrainStatus(77)","RequestedBy":-1}`},
		{"NodeDrainStatus", `{"Status":1.5,"RequestedBy":99999999999999999999}`, `{"Status":1.5,"RequestedBy":99999999999999999999}`},
		{"NodeDrainStatus", `{"Status":"nine","RequestedBy":null,"More":7}`, `{"Status":"nine","RequestedBy":null,"More":7}`},
		{"KubeNodeMetrics", `{"Every":60000000000,"pubsub-large-Pods":[]}`, `{"Every":"1m0s","Pods":[]}`},
		{"KubeClusterInfo", `{"Nodes":[{"Name":"a","Status":3}],"pubsub-large-AppVMIs":[{"Status":4}]}`, `{"Nodes":[{"Name":"a","Status":"NotReachable (3)"}],"AppVMIs":[{"Status":"Running (4)"}]}`},
		{"EdgeNodeClusterStatus", `{"ClusterIPPrefix":{"IP":"10.90.7.21","Mask":"////AA=="},"EncryptedClusterToken":"abc"}`, `{"ClusterIPPrefix":"10.90.7.21/24","EncryptedClusterToken":"(redacted)"}`},
		{"EdgeNodeClusterConfig", `{"ClusterType":2,"CipherToken":{"CipherBlockID":"5d0c","InitialValue":"AAEC","pubsub-large-CipherData":"c2VhbGVk"}}`, `{"ClusterType":"ReplicatedStorage (2)","CipherToken":{"CipherBlockID":"5d0c","InitialValue":"(redacted)","CipherData":"(redacted)"}}`},
		{"DomainConfig", `{"VncPasswd":"abc","State":3}`, `{"VncPasswd":"(redacted)","State":3}`},
		{"Anything", `[1,"a",null]`, `[1,"a",null]`},
	}
	for _, r := range rows {
		root := device(t, map[string]string{"run/zedkube/" + r.topic + "/global.json": r.raw})
		values, err := Read(root, Topic{Agent: "zedkube", Name: r.topic}, "")
		if err != nil || len(values) != 1 || values[0].Why != "" {
			t.Errorf("%s %s: %+v, %v", r.topic, r.raw, values, err)
			continue
		}
		if diff := cmp.Diff(parsed(t, r.want), values[0].Value); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", r.topic, r.raw, diff)
		}
	}
}

func TestALargeFieldIsFollowedOnlyToItsOwnDirectory(t *testing.T) {
	const dir = "persist/pubsub-large/zedkube/AppInstanceConfig/"
	files := map[string]string{
		dir + "pubsub-file-Notes1":    `{"pubsub-large-Notes":["a"]}`,
		dir + "pubsub-file-Broken2":   `{"pubsub-large-`,
		dir + "other":                 `{"pubsub-large-Other":"b"}`,
		"persist/vault/pubsub-file-x": `{"pubsub-large-Away":"b"}`,
	}
	refs := map[string]string{
		"Notes": "/" + dir + "pubsub-file-Notes1", "Broken": "/" + dir + "pubsub-file-Broken2", "Gone": "/" + dir + "pubsub-file-Gone3",
		"Other": "/" + dir + "other", "Away": "/" + dir + "../../../vault/pubsub-file-x",
	}
	value := map[string]any{"pubsub-file-Odd": "no path", "pubsub-file-Worse": 7}
	for field, file := range refs {
		value["pubsub-file-"+field] = fmt.Sprintf("%q", file)
	}
	raw, _ := json.Marshal(value)
	files["run/zedkube/AppInstanceConfig/a.json"] = string(raw)
	root := device(t, files)
	values, err := Read(root, Topic{Agent: "zedkube", Name: "AppInstanceConfig"}, "a")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"Notes": []any{"a"}, "Broken": "(unexpected EOF)", "Gone": "(its file no longer exists)", "Other": "(its file is not in the expected place)",
		"Away": "(its file is not in the expected place)", "Odd": "(its reference is not a quoted path)", "Worse": "(its reference is not a quoted path)",
	}
	if diff := cmp.Diff(any(want), values[0].Value); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(root, dir, "pubsub-file-Notes1")); err != nil {
		t.Errorf("the subscriber's file: %v", err)
	}
}

func TestWhatCannotBeReadIsSaidAndHoldsNothingUp(t *testing.T) {
	root := device(t, map[string]string{
		"run/a/Topic/good.json":   `{"A":1}`,
		"run/a/Topic/half.json":   `{"A":`,
		"run/a/Topic/twice.json":  `{} {}`,
		"run/a/Topic/empty.json":  "",
		"run/a/Topic/null.json":   "null",
		"run/a/Topic/deep.json":   strings.Repeat("[", 20000),
		"run/a/Topic/large.json":  `"` + strings.Repeat("x", maxFile) + `"`,
		"persist/secret/key.json": `"secret"`,
	})
	dir := filepath.Join(root, "run/a/Topic")
	if err := errors.Join(syscall.Mkfifo(filepath.Join(dir, "fifo.json"), 0o600), os.Symlink("../../../persist/secret/key.json", filepath.Join(dir, "link.json")),
		os.Symlink("/etc/passwd", filepath.Join(dir, "away.json"))); err != nil {
		t.Fatal(err)
	}
	values, err := Read(root, Topic{Agent: "a", Name: "Topic"}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		if (v.Why == "") != (v.Key == "good") || (v.Value != nil) != (v.Key == "good") {
			t.Errorf("%s: %v, %q", v.Key, v.Value, v.Why)
		}
	}
	if len(values) != 10 {
		t.Errorf("%d values", len(values))
	}
}

func TestNoNameLeadsOutOfTheTopics(t *testing.T) {
	root := device(t, map[string]string{"persist/secret/Topic/key.json": "{}", "run/a/": ""})
	for _, topic := range []Topic{{Agent: "../persist/secret", Name: "Topic"}, {Agent: "a", Name: "../../persist/secret/Topic"}, {Agent: "", Name: "Topic"}, {Agent: ".", Name: "."}} {
		if values, err := Read(root, topic, ""); !errors.Is(err, ErrNone) {
			t.Errorf("%+v: %v, %v", topic, values, err)
		}
	}
	if _, err := Read(root, Topic{Agent: "a", Name: "Topic"}, ""); !errors.Is(err, ErrNone) {
		t.Errorf("a topic that is not there: %v", err)
	}
}

func TestAFileThatIsTheSameIsNotReadAgain(t *testing.T) {
	root := device(t, map[string]string{"run/zedkube/Topic/k.json": `{"A":1}`})
	first, err := Read(root, Topic{Agent: "zedkube", Name: "Topic"}, "")
	if err != nil {
		t.Fatal(err)
	}
	first[0].Value = "kept"
	again, err := Read(root, Topic{Agent: "zedkube", Name: "Topic"}, "", first...)
	if err != nil || again[0].Value != "kept" {
		t.Errorf("%+v, %v", again, err)
	}
	next := filepath.Join(root, "run/zedkube/Topic/tmp1")
	if err := errors.Join(os.WriteFile(next, []byte(`{"A":2}`), 0o600), os.Chtimes(next, time.Time{}, first[0].Written), os.Rename(next, filepath.Join(root, "run/zedkube/Topic/k.json"))); err != nil {
		t.Fatal(err)
	}
	again, err = Read(root, Topic{Agent: "zedkube", Name: "Topic"}, "", first...)
	if diff := cmp.Diff(parsed(t, `{"A":2}`), again[0].Value); err != nil || diff != "" {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
}

func TestDifferencesNameTheField(t *testing.T) {
	rows := map[string]struct {
		old, value string
		want       []Change
	}{
		"nothing":                {`{"A":1}`, `{"A":1}`, nil},
		"a field":                {`{"A":1,"B":{"C":"x"}}`, `{"A":1,"B":{"C":"y"}}`, []Change{{"B.C", `"x"`, `"y"`}}},
		"a field that came":      {`{}`, `{"A":null}`, []Change{{"A", "", "null"}}},
		"a field that went":      {`{"A":[1]}`, `{}`, []Change{{"A", "[1]", ""}}},
		"a kind":                 {`{"A":[1]}`, `{"A":{"B":1}}`, []Change{{"A", "[1]", `{"B":1}`}}},
		"an entry by its name":   {`[{"Name":"a","S":1},{"Name":"b","S":1}]`, `[{"Name":"b","S":2}]`, []Change{{"[a]", `{"Name":"a","S":1}`, ""}, {"[b].S", "1", "2"}}},
		"an entry by its place":  {`{"L":[{"Name":"a","S":1},{"Name":"a","S":1}]}`, `{"L":[{"Name":"a","S":1},{"Name":"a","S":2},3]}`, []Change{{"L[1].S", "1", "2"}, {"L[2]", "", "3"}}},
		"the order does not say": {`[{"Name":"a"},{"Name":"b"}]`, `[{"Name":"b"},{"Name":"a"}]`, nil},
	}
	for name, r := range rows {
		got, omitted := Differences(parsed(t, r.old), parsed(t, r.value))
		if diff := cmp.Diff(r.want, got); diff != "" || omitted != 0 {
			t.Errorf("%s: %d omitted, (-want +got):\n%s", name, omitted, diff)
		}
	}
	if got, _ := Differences(nil, parsed(t, "7")); len(got) != 1 || got[0] != (Change{New: "7"}) {
		t.Errorf("a value that came: %v", got)
	}
	if got, _ := Differences(parsed(t, "7"), nil); len(got) != 1 || got[0] != (Change{Old: "7"}) {
		t.Errorf("a value that went: %v", got)
	}
	many := make([]any, 300)
	for i := range many {
		many[i] = i
	}
	if got, omitted := Differences([]any{}, many); len(got) != MaxChanges || omitted != 100 {
		t.Errorf("%d changes, %d omitted", len(got), omitted)
	}
}

func parsed(t *testing.T, raw string) (v any) {
	t.Helper()
	if err := decode([]byte(raw), &v); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return v
}
