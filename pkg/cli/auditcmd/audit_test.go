package auditcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/audit"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

var auditNow = time.Date(2026, 5, 3, 12, 0, 0, 0, time.UTC)

// auditTrail is what a device did.
func auditTrail() []types.Operation {
	ago := func(d time.Duration) time.Time { return auditNow.Add(-d) }
	return []types.Operation{
		{ID: "a", At: ago(51 * time.Hour), Node: "n1", Component: "drain", Op: "cordon", Target: "node/n1", By: "UPDATE", Why: "base OS update", Outcome: "ok", Took: 41 * time.Millisecond},
		{ID: "b", At: ago(50 * time.Hour), Node: "n1", Component: "drain", Op: "evict", Target: "pod/eve-kube-app/cam-0", By: "UPDATE", Why: "base OS update", Outcome: "refused", Took: 9 * time.Millisecond, Error: "a budget \x1b[31mis in the way", Times: 34, Last: ago(49 * time.Hour)},
		{ID: "c", At: ago(49 * time.Hour), Node: "n1", Component: "drain", Op: "uncordon", Target: "node/n1", By: "drain", Why: "the device has rebooted", Outcome: "ok", Took: 1500 * time.Millisecond},
		{ID: "d", At: ago(time.Hour), Node: "n1", Component: "drain", Op: "request drain", Target: "node/n1", By: "OPERATOR", Why: "a disk is changed", Outcome: "ok"},
		{ID: "e", At: ago(time.Minute), Node: "n1", Component: "drain", Op: "cordon", Target: "node/n1", By: "OPERATOR", Why: "a disk is changed"},
		{ID: "f", At: auditNow.Add(time.Hour), Node: "n1", Component: "k3sconfig", Op: "write file", Target: "file//persist/x", By: "k3s.config.override", Outcome: "failed", Error: "no room"},
	}
}

// auditDevice is the root of a device with that trail.
func auditDevice(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, audit.DefaultDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, o := range auditTrail() {
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(raw, '\n'))
	}
	b.WriteString(`{"id":"g","op":"cor`)
	if err := os.WriteFile(filepath.Join(dir, "operations-00000001.jsonl"), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return root
}

// auditSays runs the command and returns what it prints.
func auditSays(ctx context.Context, root string, args ...string) (out, warnings string, err error) {
	var o, w bytes.Buffer
	c := device.NewRoot(&device.Options{}, NewAuditCommand)
	c.SetOut(&o)
	c.SetErr(&w)
	c.SetArgs(append([]string{"--root", root, "audit"}, args...))
	err = c.ExecuteContext(ctx)
	return o.String(), w.String(), err
}

func TestTheTrailAsPeopleSeeIt(t *testing.T) {
	want := []string{
		"AGE        OP             TARGET                  BY                   COMPONENT  OUTCOME       TOOK  WHY/ERROR",
		"2d         cordon         node/n1                 UPDATE               drain      ok            41ms  base OS update",
		"2d         evict          pod/eve-kube-app/cam-0  UPDATE               drain      refused x34    9ms  base OS update: a budget ?[31mis in the way",
		"2d         uncordon       node/n1                 drain                drain      ok            1.5s  the device has rebooted",
		"60m        request drain  node/n1                 OPERATOR             drain      ok               -  a disk is changed",
		"60s        cordon         node/n1                 OPERATOR             drain      begun            -  a disk is changed",
		"in 1h0m    write file     file//persist/x         k3s.config.override  k3sconfig  failed           -  no room",
	}
	got := terminal.Draw(cmdtest.Pipe, false, auditTable(auditTrail(), auditNow, false).Draw)
	for i := range got {
		got[i] = strings.Join(strings.Fields(got[i]), " ")
	}
	for i := range want {
		want[i] = strings.Join(strings.Fields(want[i]), " ")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if head := terminal.Draw(80, false, auditTable(auditTrail(), auditNow, false).Draw)[0]; !strings.Contains(head, "WHY/ERROR") || strings.Contains(head, "COMPONENT") {
		t.Errorf("at 80 columns it has %s", head)
	}
	for _, width := range []int{40, 80, 120} {
		for _, line := range terminal.Draw(width, false, auditTable(auditTrail(), auditNow, false).Draw) {
			if terminal.Cells(line) >= width && width > 60 {
				t.Errorf("%d columns: %q", width, line)
			}
		}
	}
}

func TestTheTrailAnswersQuestions(t *testing.T) {
	root := auditDevice(t)
	for args, want := range map[string]string{
		"":                                 "abcdef",
		"--op cordon,uncordon":             "ace",
		"--failed":                         "bf",
		"--target cam-0":                   "b",
		"--by OPERATOR":                    "de",
		"--component k3sconfig":            "f",
		"--op request":                     "d",
		"--until 2026-05-01":               "",
		"--since 2026-05-03 --op cordon":   "e",
		"--limit 2":                        "ef",
		"--limit 0 --by UPDATE,k3s --op x": "",
	} {
		out, _, err := auditSays(t.Context(), root, append(strings.Fields(args), "-o", "json")...)
		var got document
		if err != nil || json.Unmarshal([]byte(out), &got) != nil {
			t.Errorf("audit %s: %v\n%s", args, err, out)
			continue
		}
		ids := ""
		for _, o := range got.Items {
			ids += o.ID
		}
		if ids != want || got.Problems.Torn != 1 {
			t.Errorf("audit %s finds %q, not %q, and %+v", args, ids, want, got.Problems)
		}
	}
	if out, _, err := auditSays(t.Context(), root, "-o", "jsonpath={.operations[0].why}"); err != nil || out != "base OS update\n" {
		t.Errorf("jsonpath gives %q, %v", out, err)
	}
	out, warnings, err := auditSays(t.Context(), root, "--op", "cordon", "--limit", "1")
	if err != nil || !strings.Contains(warnings, "1 earlier operations") || !strings.Contains(warnings, "1 lines are invalid") || strings.Count(out, "\n") != 2 {
		t.Errorf("it prints %q and %q, %v", out, warnings, err)
	}
}

func TestACordonOfSomebodyElseIsToldAsWell(t *testing.T) {
	root := auditDevice(t)
	bus := pubsub.NewBus(root, device.Silent())
	topic := pubsub.NewPublication[types.KubeNodeConditions](bus, device.Self, pubsub.FilesOnly(), pubsub.Persistent())
	if err := bus.Open(); err != nil {
		t.Fatal(err)
	}
	says := "kubectl-cordon cordoned this node at 11:00"
	if err := topic.Publish(types.Global, types.KubeNodeConditions{Conditions: []types.NodeStateCondition{{Type: types.StateCordon, Status: types.ConditionFalse, Message: says}}}); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]bool{"--op cordon": true, "": true, "--op evict": false, "--by UPDATE": false} {
		if out, _, err := auditSays(t.Context(), root, strings.Fields(args)...); err != nil || strings.Contains(out, says) != want {
			t.Errorf("audit %s prints %s, %v", args, out, err)
		}
	}
}

func TestAuditRefusesWhatItDoesNotKnow(t *testing.T) {
	root := auditDevice(t)
	for args, want := range map[string]int{
		"--since yesterday": terminal.ExitUsage, "--until 25:00": terminal.ExitUsage, "--limit -1": terminal.ExitUsage, "-o xml": terminal.ExitUsage, "cordon": terminal.ExitUsage, "-o jsonpath={": terminal.ExitUsage,
	} {
		if _, _, err := auditSays(t.Context(), root, strings.Fields(args)...); terminal.ExitCode(err) != want {
			t.Errorf("audit %s: exit code %d, %v", args, terminal.ExitCode(err), err)
		}
	}
	if _, _, err := auditSays(t.Context(), t.TempDir(), "-o", "json"); terminal.ExitCode(err) != terminal.ExitNotPublished {
		t.Errorf("nothing was recorded: exit code %d, %v", terminal.ExitCode(err), err)
	}
	if out, _, err := auditSays(t.Context(), root, "--op", "explode"); err != nil || out != "No operation matches, of 6 operations.\n" {
		t.Errorf("it prints %q, %v", out, err)
	}
}

func TestTheTrailIsFollowed(t *testing.T) {
	root := auditDevice(t)
	ctx, cancel := context.WithCancel(t.Context())
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	var warnings bytes.Buffer
	go func() {
		c := device.NewRoot(&device.Options{}, NewAuditCommand)
		c.SetOut(out)
		c.SetErr(&warnings)
		c.SetArgs([]string{"--root", root, "audit", "--watch", "--op", "evict"})
		err := c.ExecuteContext(ctx)
		_ = out.Close()
		done <- err
	}()
	read := make(chan string, 100)
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for {
			n, err := in.Read(buf)
			if err != nil {
				return
			}
			read <- string(buf[:n])
		}
	}()
	next := func(want string) {
		t.Helper()
		select {
		case got := <-read:
			if !strings.Contains(got, want) {
				t.Errorf("it prints %q, not %s", got, want)
			}
		case <-time.After(4 * 5 * time.Second):
			t.Fatalf("%s is not printed", want)
		}
	}
	next("evict pod/eve-kube-app/cam-0  by UPDATE (drain)  refused x34")
	record := device.CommandRecord(device.Options{Root: root}.Paths())
	end := record.Begin(types.Operation{Op: "evict", Target: "pod/b", Component: "drain", By: "OPERATOR"})
	next("evict pod/b  by OPERATOR (drain)  begun")
	end(types.OperationFailed, errors.New("no such pod"))
	next("evict pod/b  by OPERATOR (drain)  failed  no such pod")
	cancel()
	if err := <-done; terminal.ExitCode(err) != terminal.ExitUsage || strings.Count(warnings.String(), "1 lines are invalid") != 1 {
		t.Errorf("it ends with %v and has said %q", err, warnings.String())
	}
	_ = in.Close()
	for range read {
	}
}
