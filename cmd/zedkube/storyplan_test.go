package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// harmless EVICTIONS COMMAND...: runs zedkube with these words and looks at the
// API server's audit log: it may write nothing but so many evictions, which
// "pods" has to show to have been dry runs. The agents must not run meanwhile,
// because they write too.
func harmless(s *story, ts *testscript.TestScript, args []string) error {
	want, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	began := time.Now()
	if err := ts.Exec("zedkube", args[1:]...); err != nil {
		return err
	}
	reads, evictions := 0, 0
	err = eventually(func() string { // the log is behind the answers
		calls, err := s.fleet.Cluster.Calls()
		if err != nil {
			return err.Error()
		}
		reads, evictions = 0, 0
		for _, call := range calls {
			switch {
			case call.At.Before(began): // an agent's, whose line in the log may have come since
			case !strings.HasPrefix(call.UserAgent, "zedkube/"):
			case call.Verb == "get" || call.Verb == "list" || call.Verb == "watch":
				reads++
			case call.Verb == "create" && call.Resource == "pods" && call.Subresource == "eviction":
				evictions++
			default:
				ts.Fatalf("it has written: %+v", call)
			}
		}
		if evictions < want || reads == 0 {
			return fmt.Sprintf("%d evictions and %d reads are in the audit log", evictions, reads)
		}
		return ""
	})
	if err == nil && evictions > want {
		err = fmt.Errorf("%d evictions were tried, not %d", evictions, want)
	}
	return err
}
