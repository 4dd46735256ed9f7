package statuscmd

import (
	"strings"
	"testing"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

func runDoctor(t *testing.T, args ...string) (out, said string, code int) {
	t.Helper()
	out, said, err := cmdtest.Run(t.Context(), device.NewRoot(&device.Options{}, NewDoctorCommand), args...)
	return out, said, terminal.ExitCode(err)
}

func TestDoctorSaysVerdictEvidenceAndRemedy(t *testing.T) {
	root := cmdtest.SilentDevice(t)
	out, said, code := runDoctor(t, "--root", root, "doctor")
	if code != terminal.ExitFound || !strings.Contains(said, "agent") {
		t.Errorf("exit code %d, %s", code, said)
	}
	for _, want := range []string{"fail    agent", "ok      hypervisor", "unknown api", "-> ", " unknown"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	out, said, code = runDoctor(t, "--root", root, "doctor", "--only", "hypervisor", "-o", "jsonpath={.items[*].Verdict}")
	if code != 0 || strings.TrimSpace(out) != "ok" {
		t.Errorf("exit code %d, %s%s", code, out, said)
	}
	if _, said, code := runDoctor(t, "--root", root, "doctor", "--only", "od\x1bd"); code != 1 || !strings.Contains(said, "od?d") {
		t.Errorf("exit code %d, %q", code, said)
	}
	lines := terminal.Draw(80, false, func(s *terminal.Screen) {
		putFindings(s, []types.Finding{{Rule: "a", Severity: types.SeverityWarn, Evidence: "x\x1b[2J\ny", Remedy: "z\a"}})
	})
	if strings.ContainsAny(strings.Join(lines, "\n"), "\x1b\a") {
		t.Errorf("%q", lines)
	}
}
