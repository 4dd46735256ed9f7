package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cluster/k3sconfig"
	"github.com/zedkube/zedkube/pkg/cluster/membership"
	"github.com/zedkube/zedkube/pkg/operate/clusterobject"
	"github.com/zedkube/zedkube/pkg/operate/localserver"
	"github.com/zedkube/zedkube/types"
)

// examples are the lines of docs/operations.md that a comment there says are tested.
func examples(t *testing.T) []string {
	t.Helper()
	content, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(content), "<!-- a test runs these: cmd/zedkube/curl_test.go -->\n")
	block, _, _ := strings.Cut(rest, "\n\n")
	lines := strings.Split(block, "\n")
	if !found || len(lines) < 5 {
		t.Fatalf("docs/operations.md has no examples: %q", block)
	}
	return lines
}

// TestTheExamplesOfTheClusterAPIAreAnswered runs them with curl against the socket of an agent whose
// controller wants it in its cluster, and of one whose does not.
func TestTheExamplesOfTheClusterAPIAreAnswered(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl")
	}
	for state, del := range map[types.Membership]string{types.MembershipMember: "409", types.MembershipDoubtful: "202"} {
		log := logrus.New()
		log.SetOutput(io.Discard)
		p := device.Options{Root: t.TempDir()}.Paths()
		bus, components := wire(t.Context(), p, log, io.Discard)
		if err := bus.Open(); err != nil {
			t.Fatal(err)
		}
		own := components["membership"].(*membership.Component)
		if err := own.Membership.Publish(types.Global, types.ClusterMembership{State: state}); err != nil {
			t.Fatal(err)
		}
		if err := components["k3sconfig"].(*k3sconfig.Component).Status.Publish(types.Global, types.K3sVersionStatus{Running: "v1.34.2+k3s1"}); err != nil {
			t.Fatal(err) // without a version there has been no Kubernetes, and nothing is disabled
		}
		if err := components["clusterobject"].(*clusterobject.Component).Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		runUntilEnd(t, components["localserver"].(*localserver.Component))
		if err := eventually(func() string { _, err := os.Stat(p.Socket); return textOf(err) }); err != nil {
			t.Fatal(err)
		}
		lines := examples(t)
		vars := strings.Replace(strings.TrimSpace(lines[0]), "/run/zedkube/zedkube.sock", p.Socket, 1)
		for _, line := range lines[1:] {
			command, says, _ := strings.Cut(strings.TrimSpace(line), "  # ")
			want := strings.Fields(says)[0]
			leaves := strings.Contains(command, "DELETE") && !strings.Contains(command, "certs")
			if leaves {
				want = del
			}
			body := filepath.Join(t.TempDir(), "body")
			run := exec.CommandContext(t.Context(), "sh", "-c", vars+"; "+command+" -o "+body+" -w '%{http_code}'")
			out, err := run.CombinedOutput()
			content, _ := os.ReadFile(body)
			if err != nil || string(out) != want || len(content) == 0 {
				t.Errorf("%s, %s: %s %v, want %s: %s", state, command, out, err, want, content)
			}
			request := filepath.Join(p.Root, "run/zedkube-cli/ClusterLeaveRequest/global.json")
			if _, err := os.Stat(request); leaves && (err == nil) != (del == "202") {
				t.Errorf("%s: after DELETE the request is there: %v", state, err == nil)
			} else if strings.Contains(command, `"leave":false`) && err == nil { // the object has not seen the request yet
				t.Errorf("%s: after the withdrawal the request is there", state)
			}
			request = filepath.Join(p.Root, "run/zedkube-cli/WorkloadsRequest/global.json")
			if asked, _ := os.ReadFile(request); strings.Contains(command, "disableWorkloads") && !strings.Contains(string(asked), `"Disable":true,"Reason":"new switch"`) {
				t.Errorf("%s: after the patch the request is %s", state, asked)
			}
		}
	}
}
