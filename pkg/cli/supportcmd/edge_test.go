package supportcmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
)

func TestEdgeRunsTheProgramOfThatName(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		c := NewEdgeCommand(nil)
		c.SilenceErrors, c.SilenceUsage = true, true
		c.SetArgs(args)
		c.SetOut(&out)
		c.SetIn(strings.NewReader("yes\n"))
		err := c.ExecuteContext(t.Context())
		return out.String(), err
	}
	if _, err := run("status"); err == nil || !strings.Contains(err.Error(), "zedkube-edge, which runs KubeEdge, is not installed") {
		t.Errorf("without the program: %v", err)
	}
	script := "#!/bin/sh\nread answer\necho \"$answer: $*\"\nexit 3\n"
	if err := os.WriteFile(filepath.Join(dir, "zedkube-edge"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := run("set", "--yes", "ha=true")
	if out != "yes: set --yes ha=true\n" || terminal.ExitCode(err) != 3 || terminal.Complaint(err) != "" {
		t.Errorf("it says %q, exit code %d, %q", out, terminal.ExitCode(err), terminal.Complaint(err))
	}
}
