package cli

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
)

func TestWrongUsageOfPlans(t *testing.T) {
	for _, args := range [][]string{
		{"join", "plan", "--server", "node-1"},
		{"join", "plan", "--address", "0.0.0.0"},
		{"join", "plan", "--address", "10.0.0.1/24"},
		{"join", "plan", "--candidate", "10.0.0.1\x1b[2J"},
		{"join", "plan", "--candidate", "10.0.0.1", "--server", "10.0.0.2"},
		{"join", "plan", "--cluster", "plant-7"},
		{"join", "plan", "-o", "xml"},
		{"join", "plan", "-o", "jsonpath={"},
		{"join", "plan", "now"},
		{"leave", "plan", "-o", "table=1"},
		{"leave", "plan", "now"},
	} {
		c := New("devel", nil)
		c.SetArgs(append(args, "--root", t.TempDir()))
		c.SetOut(io.Discard)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := c.ExecuteContext(ctx)
		cancel()
		if terminal.ExitCode(err) != terminal.ExitUsage || strings.ContainsRune(err.Error(), 0x1b) {
			t.Errorf("%q: %v", args, err)
		}
	}
}
