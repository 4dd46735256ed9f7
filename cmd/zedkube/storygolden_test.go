package main

import (
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zedkube/zedkube/test/golden"
)

// atRest is until what a golden file is made of changes no more.
const atRest = 4 * time.Second

// goldenIs is golden NAME [WORDS...]: what the last command said is in
// testdata/golden, but for times, ages, addresses and names that chance made; or
// what zedkube says when it is called with these words, as soon as it does. go test
// ./cmd/zedkube -run Stories -update writes it anew.
func goldenIs(_ *story, ts *testscript.TestScript, args []string) error {
	name, words := args[0], args[1:]
	switch {
	case *update:
		if len(words) > 0 {
			time.Sleep(atRest)
			_ = ts.Exec("zedkube", words...) // how it ends is in what it says
		}
		return golden.Write(name, steady(ts))
	case len(words) == 0:
		return golden.Check(name, steady(ts))
	}
	return eventually(func() string {
		_ = ts.Exec("zedkube", words...)
		if err := golden.Check(name, steady(ts)); err != nil {
			return err.Error()
		}
		return ""
	})
}

// steady is what the last command said, without what changes.
func steady(ts *testscript.TestScript) string {
	text := ts.ReadFile("stdout")
	if said := ts.ReadFile("stderr"); said != "" {
		text += "stderr:\n" + said
	}
	return golden.Steady(strings.ReplaceAll(text, ts.Getenv("WORK"), "WORK"))
}
