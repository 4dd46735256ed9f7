package cli

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/types"
)

// TestTheManualIsComplete holds the documents for operators against the program.
func TestTheManualIsComplete(t *testing.T) {
	manual := ""
	for _, name := range []string{"operations.md", "runbook.md", "commands.md"} {
		content, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		manual += string(content)
	}
	want := map[string]string{}
	for _, phase := range []types.DrainPhase{types.PhaseIdle, types.PhaseGates, types.PhaseEmptying, types.PhaseComplete, types.PhaseNoCordon, types.PhaseNotEmpty} {
		want["phase "+string(phase)] = "| " + string(phase) + " |"
	}
	for status := types.DrainUnknown; status <= types.DrainComplete; status++ {
		want["state "+status.String()] = "| " + strconv.Itoa(int(status)) + " " + status.String() + " |"
	}
	for _, m := range []types.Membership{types.MembershipNever, types.MembershipMember, types.MembershipDoubtful, types.MembershipLeaving, types.MembershipLeft} {
		want["membership "+string(m)] = "| " + string(m) + " |"
	}
	for _, cause := range []string{"budget", "finalizer", "kubelet", "pinned", "returns", "no-room", "immovable", "grace", "refused"} {
		want["cause "+cause] = "| " + cause
	}
	for _, reason := range []string{
		"NoClusterStatus", "BadClusterStatus", "NoJoinServer", "APIRefused", "APISilent", "APIUnreachable", "StatusRefused", "StatusSilent",
		"StatusOtherToken", "StatusOtherServer", "StatusOtherBearer", "StatusNoToken", "StatusRefusesTLS", "StatusDowngrade",
		"StatusUnreachable", "StatusRefuses", "StatusGarbage", "NotYet", "OldServer", "OtherCluster", "MayJoin",
	} {
		want["reason to wait "+reason] = reason
	}
	for _, problem := range []string{"AgentDead", "APISilent", "DrainNever", "LastReplica", "AppDown", "CertificateEnds", "DiskFull"} {
		want["problem "+problem] = problem
	}
	for _, c := range New("devel", nil).Commands() {
		if !c.IsAvailableCommand() || c.Name() == "help" || c.Name() == "completion" || c.Name() == "run" {
			continue
		}
		for _, sub := range append([]*cobra.Command{c}, c.Commands()...) {
			want["command "+sub.CommandPath()] = sub.CommandPath()
		}
	}
	for _, file := range (device.Options{}).Paths().ForceDrain {
		want["force file "+file] = "    " + file
	}
	for what, text := range want {
		if !strings.Contains(manual, text) {
			t.Errorf("the documents lack %s: %q", what, text)
		}
	}
}
