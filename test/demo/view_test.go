package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"
)

// played shows one long step, one long event and a table on a view.
func played(live bool, width int) string {
	var out bytes.Buffer
	v := &view{out: &out, live: live, width: width, start: time.Now(), table: func() []string { return []string{strings.Repeat("t", 200)} }}
	v.event("node-1", "kube-init", "joins: "+strings.Repeat("é", 100))
	v.step(true, strings.Repeat("word ", 30), "(1.0 s)")
	v.end()
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
