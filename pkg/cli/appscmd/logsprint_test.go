package appscmd

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/test/cmdtest"
)

func TestLinesBecomeDocuments(t *testing.T) {
	var b bytes.Buffer
	var o terminal.Outputs
	if err := cmdtest.Output("json", o.Flag, o.Parse); err != nil {
		t.Fatal(err)
	}
	for _, line := range []loggedLine{
		{Pod: "cam-0", Container: "main", Text: "2026-11-20T14:03:12.5Z up and running"},
		{Pod: "cam-0", Container: "main", Text: "2026-11-20T14:03:12.5Z rest", Continued: true, Continues: true},
		{Pod: "cam-0", Container: "main", Text: "odd"},
	} {
		if err := line.write(&b, &o, true, true); err != nil {
			t.Fatal(err)
		}
	}
	want := []loggedLine{
		{At: time.Date(2026, 11, 20, 14, 3, 12, 500e6, time.UTC), Pod: "cam-0", Container: "main", Text: "up and running"},
		{Pod: "cam-0", Container: "main", Text: "2026-11-20T14:03:12.5Z rest", Continued: true, Continues: true},
		{Pod: "cam-0", Container: "main", Text: "odd"},
	}
	var got []loggedLine
	for line := range strings.Lines(b.String()) {
		var l loggedLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		got = append(got, l)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}
