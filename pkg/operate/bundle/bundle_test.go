package bundle

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/pkg/operate/topicview"
)

func TestNoSecretLeavesTheDevice(t *testing.T) {
	answer := func(form Form, text string) Source {
		return Source{Name: fmt.Sprintf("answer-%d", form), Form: form, Get: func(context.Context) ([]byte, error) { return []byte(text), nil }}
	}
	root, m := packed(t, Bundle{Root: planted(t), Version: "1.4.0", Node: "press-line-2", Extras: []Source{
		answer(Text, "the token is "+secrets["plain token"]), answer(JSON, `{"password":"`+secrets["VNC password"]+`"}`),
		{Name: "failed", Get: func(context.Context) ([]byte, error) { return nil, errors.New("token: " + secrets["kubeconfig token"]) }},
	}})
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		for what, secret := range secrets {
			for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), strings.Trim(fmt.Sprintf("%q", secret), `"`)} {
				if bytes.Contains(raw, []byte(form)) {
					t.Errorf("%s: the %s is in it:\n%s", path, what, raw)
				}
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for _, e := range m.Files {
		if strings.Contains(e.Path, "vault") || strings.Contains(e.Path, "certs") || strings.Contains(e.Path, "app.") {
			t.Errorf("%s is packed", e.Path)
		}
	}
	if len(m.Files) < 21 {
		t.Errorf("only %d files: %+v", len(m.Files), m)
	}
}

func TestAnUnpackedBundleReadsAsTheDeviceDid(t *testing.T) {
	device := planted(t)
	root, _ := packed(t, Bundle{Root: device})
	before, after := overview.Read(device, made), overview.Read(root, time.Now())
	if !after.Copied || !after.ReadAt.Equal(made) || after.Node.Name != "press-line-2" || !after.Cluster.Wanted || after.Cluster.Membership.State != "member" {
		t.Errorf("%+v", after)
	}
	ignored := cmpopts.IgnoreFields(overview.Overview{}, "Copied", "Problems", "Agent", "API", "Disks", "Unreadable")
	if diff := cmp.Diff(before, after, ignored); diff != "" {
		t.Errorf("(-device +bundle):\n%s", diff)
	}
	values, err := topicview.Read(root, topicview.Topic{Agent: "zedagent", Name: "EdgeNodeClusterConfig"}, "global")
	if err != nil || values[0].Why != "" || !values[0].Written.Equal(made.Add(-time.Minute)) {
		t.Errorf("%+v, %v", values, err)
	}
}

func TestNothingButFilesOfThePlacesIsPacked(t *testing.T) {
	root := device(t, map[string]string{
		"run/zedkube/NodeDrainStatus/global.json": `{"Status":2}`,
		"run/zedkube/NodeDrainStatus/tmp17":       `half`,
		"persist/certs/key.json":                  `"away"`,
		"elsewhere/detach.log":                    "away",
	})
	topic := filepath.Join(root, "run/zedkube/NodeDrainStatus")
	outside := filepath.Join(t.TempDir(), "away.json")
	write(t, outside, `"away"`)
	if err := errors.Join(
		os.Symlink("../../../persist/certs/key.json", filepath.Join(topic, "inside.json")), os.Symlink(outside, filepath.Join(topic, "outside.json")),
		syscall.Mkfifo(filepath.Join(topic, "fifo.json"), 0o600), os.Symlink("../../persist/certs", filepath.Join(root, "run/zedkube/Certs")),
		os.Symlink("../elsewhere", filepath.Join(root, "persist/kubelog")), os.MkdirAll(filepath.Join(root, "run/.kube/k3s/k3s.yaml"), 0o700),
	); err != nil {
		t.Fatal(err)
	}
	_, m := packed(t, Bundle{Root: root})
	var got []string
	for _, e := range m.Files {
		got = append(got, e.Path)
	}
	if diff := cmp.Diff([]string{"run/zedkube/NodeDrainStatus/global.json"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, want := range []string{"run/zedkube/NodeDrainStatus/inside.json", "run/zedkube/NodeDrainStatus/outside.json", "run/zedkube/NodeDrainStatus/fifo.json", "persist/kubelog", "run/.kube/k3s/k3s.yaml"} {
		if !slices.ContainsFunc(m.LeftOut, func(l Lack) bool { return l.Path == want && l.Why != "" }) {
			t.Errorf("%s is not among what was left out: %+v", want, m.LeftOut)
		}
	}
}

func TestTheArchiveStaysWithinItsLimitAndSaysWhatItLacks(t *testing.T) {
	noise := func(n int) string {
		b := make([]byte, n/2)
		for i := range b {
			b[i] = byte(rand.Uint32())
		}
		return fmt.Sprintf(`"%x"`, b)
	}
	files := map[string]string{"run/zedkube/Topic/small.json": `{}`, "run/zedkube/Topic/huge.json": `"` + strings.Repeat("x", maxFile) + `"`}
	for i := range 8 {
		files[fmt.Sprintf("run/zedkube/Topic/noise%d.json", i)] = noise(256 << 10)
	}
	_, m := packed(t, Bundle{Root: device(t, files), Limit: reserve + 512<<10})
	lacks := 0
	for _, l := range m.LeftOut {
		if strings.HasPrefix(l.Path, "run/zedkube/Topic/") {
			lacks++
		}
	}
	if !slices.ContainsFunc(m.Files, func(e Entry) bool { return e.Path == "run/zedkube/Topic/small.json" }) || len(m.Files)+lacks != 10 || lacks < 2 || len(m.Files) < 3 {
		t.Errorf("%d files, %d left out: %+v", len(m.Files), lacks, m.LeftOut)
	}
}

func TestOnlyTheEndOfALogIsPackedFromTheBeginningOfALine(t *testing.T) {
	line := strings.Repeat("a line of the log ", 5) + "\n"
	root, m := packed(t, Bundle{Root: device(t, map[string]string{"persist/kubelog/detach.log": strings.Repeat(line, logTail/len(line)+100)})})
	raw, err := os.ReadFile(filepath.Join(root, "persist/kubelog/detach.log"))
	if err != nil || len(raw) > logTail || len(raw)%len(line) != 0 || m.Files[0].Cut == 0 {
		t.Errorf("%d bytes, %+v, %v", len(raw), m.Files, err)
	}
}

func TestFormerLogsOfUpgradeComponentArePacked(t *testing.T) {
	line := strings.Repeat("it applies ", 9) + "\n"
	files := map[string]string{"persist/kubelog/upgrade-component.log": line}
	name := func(i int) string {
		return fmt.Sprintf("persist/kubelog/upgrade-component-2026-05-0%dT06-41-17.000.log", i)
	}
	for i := 1; i <= 5; i++ {
		files[name(i)] = strings.Repeat(line, 2<<20/len(line))
	}
	root := device(t, files)
	for i := 1; i <= 5; i++ {
		at := time.Date(2026, 5, i, 6, 41, 17, 0, time.UTC)
		if err := os.Chtimes(filepath.Join(root, name(i)), at, at); err != nil {
			t.Fatal(err)
		}
	}
	_, m := packed(t, Bundle{Root: root})
	var got []string
	for _, f := range m.Files {
		got = append(got, f.Path)
		if f.Path != "persist/kubelog/upgrade-component.log" && f.Cut < 1<<20 {
			t.Errorf("too much of %+v", f)
		}
	}
	if want := []string{"persist/kubelog/upgrade-component.log", name(5), name(4), name(3)}; !slices.Equal(got, want) {
		t.Errorf("packed are %q", got)
	}
}

func TestOfTheDevicesLogTheNewestFilesArePacked(t *testing.T) {
	files := map[string]string{}
	for i := range 6 {
		files[fmt.Sprintf("persist/newlog/collect/dev.log.%d", i)] = "x\n"
	}
	root := device(t, files)
	for i := range 6 {
		at := made.Add(time.Duration(i) * -time.Hour)
		if err := os.Chtimes(filepath.Join(root, fmt.Sprintf("persist/newlog/collect/dev.log.%d", i)), at, at); err != nil {
			t.Fatal(err)
		}
	}
	_, m := packed(t, Bundle{Root: root})
	if len(m.Files) != maxLogs || m.Files[0].Path != "persist/newlog/collect/dev.log.0" {
		t.Errorf("%+v", m.Files)
	}
}

func TestABundleEndsWithItsContextAndItsWriter(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stop := Source{Name: "x", Get: func(context.Context) ([]byte, error) { cancel(); return nil, nil }}
	if _, err := (Bundle{Root: planted(t), Made: made, Limit: DefaultLimit, Extras: []Source{stop}}).Write(ctx, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	full := errors.New("no space left on device")
	if _, err := (Bundle{Root: planted(t), Made: made, Limit: DefaultLimit}).Write(t.Context(), refusing{full}); !errors.Is(err, full) {
		t.Errorf("a full disk: %v", err)
	}
	if _, err := (Bundle{Root: filepath.Join(t.TempDir(), "none"), Limit: DefaultLimit}).Write(t.Context(), io.Discard); err == nil {
		t.Error("a root that is not there is no error")
	}
}

type refusing struct{ err error }

func (r refusing) Write([]byte) (int, error) { return 0, r.err }

func TestOfOtherAgentsOnlyWhatIsKnownIsPacked(t *testing.T) {
	files := map[string]string{
		"run/zedmanager/AppInstanceStatus/a.json": `{"DisplayName":"label","State":3,"Note":"hush"}`,
		"run/downloader/Odd/k.json":               `{"Note":"hush"}`,
		"run/zedkube/Own/k.json":                  `{"Note":"own"}`,
	}
	root, m := packed(t, Bundle{Root: device(t, files)})
	if got := read(t, root, "run/zedmanager/AppInstanceStatus/a.json"); !strings.Contains(got, "label") || strings.Contains(got, "hush") {
		t.Errorf("packed: %s", got)
	}
	if got := read(t, root, "run/zedkube/Own/k.json"); !strings.Contains(got, "own") {
		t.Errorf("our own: %s", got)
	}
	if !slices.ContainsFunc(m.LeftOut, func(l Lack) bool {
		return l.Path == "run/downloader/Odd/k.json" && strings.Contains(l.Why, "--include-topic downloader/Odd")
	}) || len(m.Include) > 0 {
		t.Errorf("%+v", m)
	}
	root, m = packed(t, Bundle{Root: device(t, files), Include: []string{"downloader/Odd"}})
	if got := read(t, root, "run/downloader/Odd/k.json"); !strings.Contains(got, "hush") || !slices.Equal(m.Include, []string{"downloader/Odd"}) {
		t.Errorf("on request: %s, %+v", got, m)
	}
}

func read(t *testing.T, root, file string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Error(err)
	}
	return string(raw)
}
