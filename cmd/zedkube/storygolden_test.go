package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zedkube/zedkube/pkg/cli"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/test/golden"
)

// atRest is until what a golden file is made of no longer changes.
const atRest = 4 * time.Second

// goldenIs is golden NAME [WORDS...]: what the last command said is in
// testdata/golden, but for times, ages, addresses and names that chance made; or
// what zedkube says when it is called with these words, as soon as it does. go test
// ./cmd/zedkube -run Stories -update rewrites it.
func goldenIs(s *story, ts *testscript.TestScript, args []string) error {
	name, words := args[0], args[1:]
	said := func() string {
		if len(words) > 0 {
			return steady(ts, inProcess(s.ctx, words))
		}
		return steady(ts, spoken(ts.ReadFile("stdout"), ts.ReadFile("stderr")))
	}
	switch {
	case *cmdtest.Update:
		if len(words) > 0 {
			time.Sleep(atRest)
		}
		return golden.Write(name, said())
	case len(words) == 0:
		return golden.Check(name, said())
	}
	return eventually(func() string {
		if err := golden.Check(name, said()); err != nil {
			return err.Error()
		}
		return ""
	})
}

// inProcess is what zedkube says to these words. A process of its own for each
// would take a second to start with the race detector.
func inProcess(ctx context.Context, words []string) string {
	var out, said bytes.Buffer
	c := cli.New("devel", nil)
	c.SetArgs(words)
	c.SetOut(&out)
	c.SetErr(&said)
	if err := c.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(&said, "zedkube:", terminal.Complaint(err)) // as main does
	}
	return spoken(out.String(), said.String())
}

// spoken is what is printed to stdout and to stderr.
func spoken(out, said string) string {
	if said != "" {
		out += "stderr:\n" + said
	}
	return out
}

// steady is what was said, without what changes.
func steady(ts *testscript.TestScript, text string) string {
	return golden.Steady(strings.ReplaceAll(text, ts.Getenv("WORK"), "WORK"))
}
