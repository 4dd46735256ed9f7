package screen

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// played shows one long step, one long event and a table on a view.
func played(live bool, width int) string {
	var out bytes.Buffer
	v := &View{out: &out, live: live, width: width, start: time.Now(), table: func() []string { return []string{strings.Repeat("t", 200)} }}
	v.Event("node-1", "kube-init", "joins: "+strings.Repeat("é", 100))
	v.Step(true, strings.Repeat("word ", 30), "(1.0 s)")
	v.End()
	return out.String()
}

func TestEveryLineFitsTheTerminal(t *testing.T) {
	escapes := regexp.MustCompile("\x1b\\[[0-9]*[A-Z]")
	for _, width := range []int{40, 80, 120} {
		for line := range strings.Lines(escapes.ReplaceAllString(played(true, width), "")) {
			line = strings.TrimSuffix(line, "\n")
			if n := len([]rune(line)); n >= width {
				t.Errorf("%d columns: a line of %d: %q", width, n, line)
			}
			if strings.HasSuffix(line, "wor") {
				t.Errorf("%d columns: a step is broken inside a word: %q", width, line)
			}
		}
	}
}

func TestWhereThereIsNoTerminalLinesArePlainAndWhole(t *testing.T) {
	out := played(false, 80)
	if strings.ContainsRune(out, '\x1b') {
		t.Errorf("escapes in %q", out)
	}
	for _, whole := range []string{strings.Repeat("é", 100), strings.Repeat("word ", 30) + "(1.0 s)", strings.Repeat("t", 200)} {
		if !strings.Contains(out, whole+"\n") {
			t.Errorf("%.20q is not there as one line", whole)
		}
	}
	if n := strings.Count(out, "\n"); n != 3 {
		t.Errorf("%d lines for three", n)
	}
}

func TestARecordingShowsTheSameAtTheSameTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := []string{"first"}
		story := func(v *View) {
			time.Sleep(1500 * time.Millisecond)
			v.Changed()
			v.Event("node-1", "zedkube", "speaks")
			time.Sleep(2 * time.Second)
			table = []string{"second"}
			v.Changed()
			v.Changed()
			v.Step(true, "all is well", " (3.5 s)")
		}
		var first, again bytes.Buffer
		r := &Recorder{}
		v := &View{out: &first, width: 80}
		v.Begin(func() []string { return table }, r)
		r.add(Moment{Page: "event: beat\n\n"})
		story(v)
		v.End()
		path := t.TempDir() + "/recording"
		if err := r.Save(path); err != nil {
			t.Fatal(err)
		}
		moments, err := Load(path)
		if err != nil || len(moments) != 5 {
			t.Fatalf("%d moments, %v", len(moments), err)
		}
		v = &View{out: &again, width: 80}
		pages := 0
		v.Play(t.Context(), moments, func() []string { return nil }, func(string) { pages++ })
		v.End()
		if first.String() != again.String() || pages != 1 {
			t.Errorf("first\n%sand again, with %d pages\n%s", &first, pages, &again)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		begin := time.Now()
		v.Play(ended, moments, func() []string { return nil }, nil)
		if took := time.Since(begin); took != 0 {
			t.Errorf("it went on for %s after it was to end", took)
		}
	})
}
