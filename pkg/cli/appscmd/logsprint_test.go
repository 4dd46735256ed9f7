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
	write := logWriter(&o, &b)
	for _, line := range []string{"cam-0/main 2026-11-20T14:03:12.5Z up and running\n", "cam-0/main [continued] rest [continues]\n", "odd\n"} {
		if err := write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	want := []loggedLine{
		{At: time.Date(2026, 11, 20, 14, 3, 12, 500e6, time.UTC), Pod: "cam-0", Container: "main", Text: "up and running"},
		{Pod: "cam-0", Container: "main", Text: "rest", Continued: true, Continues: true},
		{Pod: "odd"},
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
