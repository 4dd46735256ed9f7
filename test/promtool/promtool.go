// Package promtool runs Prometheus' own tool in tests.
package promtool

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Run runs it, and fails the test with what it prints if it fails. It may be missing on a workbench,
// and in CI only where Debian's mirror is out of reach.
func Run(t *testing.T, input string, args ...string) {
	t.Helper()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") == "true" && os.Getenv("NO_MIRROR") != "true" {
			t.Fatal("promtool is not installed: it is in Debian's package prometheus")
		}
		t.Skip("promtool is not installed: it is in Debian's package prometheus")
	}
	command := exec.CommandContext(t.Context(), tool, args...)
	command.Stdin = strings.NewReader(input)
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
