package auditcmd

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/audit"
	"github.com/zedkube/zedkube/pkg/operate/page"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func TestThePageIsToldTheNewestFirst(t *testing.T) {
	root := auditDevice(t)
	a := &page.Trails{Dir: filepath.Join(root, audit.DefaultDir)}
	for query, want := range map[string]string{"": "fedcba", "op=cordon": "ea", "failed=true": "fb", "failed=false": "fedcba", "since=2026-05-03": "fed", "by=OPERATOR&target=node": "ed"} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			found, err := a.Answer(values)
			ids := ""
			for _, o := range found.Operations {
				ids += o.ID
			}
			if err != nil || ids != want || len(found.Remarks) != 1 || !strings.Contains(found.Remarks[0], "1 lines are invalid") {
				t.Errorf("%q finds %q, not %q, and remarks %q, %v", query, ids, want, found.Remarks, err)
			}
		}
	}
	if _, err := a.Answer(url.Values{"since": {"yesterday"}}); !errors.Is(err, page.ErrQuery) {
		t.Errorf("of yesterday it says %v", err)
	}
}

func TestWhatCannotBeReadOfTheTrailHidesNothingElse(t *testing.T) {
	root := auditDevice(t)
	bad := filepath.Join(root, audit.DefaultDir, "operations-00000002.jsonl")
	if err := os.Mkdir(bad, 0o700); err != nil {
		t.Fatal(err)
	}
	a := &page.Trails{Dir: filepath.Dir(bad)}
	for range 2 {
		if trail, err := a.Answer(nil); err != nil || len(trail.Operations) != 6 || len(trail.Remarks) != 2 || !strings.Contains(trail.Remarks[0], bad) {
			t.Errorf("the page is told of %d operations and %q, %v", len(trail.Operations), trail.Remarks, err)
		}
	}
	out, warnings, err := auditSays(t.Context(), root, "--op", "request")
	if terminal.ExitCode(err) != terminal.ExitNotPublished || !strings.Contains(out, "a disk is changed") || strings.Count(warnings, bad) != 1 || strings.Contains(err.Error(), bad) {
		t.Errorf("it prints %q and %q, %v", out, warnings, err)
	}
	out, _, err = auditSays(t.Context(), root, "-o", "jsonpath={.remarks[0]}")
	if terminal.ExitCode(err) != terminal.ExitNotPublished || !strings.Contains(out, bad) {
		t.Errorf("programs get %q, %v", out, err)
	}
	if err := os.Remove(bad); err != nil {
		t.Fatal(err)
	}
	if trail, err := a.Answer(nil); err != nil || len(trail.Operations) != 6 || len(trail.Remarks) != 1 {
		t.Errorf("afterwards the page is told of %d operations and %q, %v", len(trail.Operations), trail.Remarks, err)
	}
	if _, err := (&page.Trails{Dir: filepath.Join(a.Dir, "operations-00000001.jsonl")}).Answer(nil); err == nil {
		t.Error("of a trail that is none at all there is no error")
	}
}

func TestWhatACommandDoesIsOnRecord(t *testing.T) {
	root := t.TempDir()
	bus := pubsub.NewBus(root, device.Silent())
	info := pubsub.NewPublication[types.EdgeNodeInfo](bus, "zedagent", pubsub.FilesOnly())
	if err := bus.Open(); err != nil {
		t.Fatal(err)
	}
	if err := info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "n1"}); err != nil {
		t.Fatal(err)
	}
	p := device.Options{Root: root}.Paths()
	ctx := types.Because(types.ActAs(t.Context(), "command"), "OPERATOR", "zedkube drain unlock n2")
	types.Did(ctx, device.CommandRecord(p), "free drain lock", "drain-lock/n2", nil)
	all, _, err := audit.Read(p.Audit)
	if err != nil || len(all) != 1 || all[0].Node != "n1" || all[0].Component != "command" || all[0].By != "OPERATOR" || all[0].Why != "zedkube drain unlock n2" {
		t.Errorf("%+v, %v", all, err)
	}
}
