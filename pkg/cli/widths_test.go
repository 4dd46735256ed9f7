package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/audit"
	"github.com/zedkube/zedkube/pkg/operate/bundle"
	"github.com/zedkube/zedkube/pkg/operate/localserver"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

const sampleApp = "5d1f3a52-0c5f-4a8e-9a3b-7a1e0b9c4d2e"

// drawn are the commands whose lines depend on how wide the terminal is, by the name of their files.
var drawn = map[string]string{
	"status": "status", "drain-status": "drain status", "apps": "apps", "apps-one": "apps " + sampleApp[:8],
	"nodes": "nodes", "nodes-one": "nodes node-2", "cluster": "cluster", "k3s-certs": "k3s certs", "k3s-status": "k3s status", "k3s-plan": "k3s plan v1.35.1+k3s1",
	"workloads-status": "workloads status", "audit": "audit", "doctor": "doctor --only agent,watchdog,configuration,address,node,lease,members,cordon,drain-lock,etcd,versions,files,conditions", "topics": "topics", "topics-one": "topics NodeDrainProgress",
	"top": "top --once --ascii", "leave-plan": "leave plan", "volumes": "volumes",
	"join-plan": "join plan", "kubeconfig-list": "kubeconfig list", "events": "events", "explain": "explain DrainNever", "export": "export", "page": "page",
}

// asAPI are those of them that ask the API server, which answers; for all others there is none.
var asAPI = []string{"events", "kubeconfig-list"}

// flat are those that print lines as they are, or draw what only a cluster that lives has: the
// tests of their packages have their screens, and cmd/zedkube/testdata/golden what they print.
var flat = strings.Fields(`apps-detach cluster-status-probe completion drain-cancel drain-keep-cordon drain-plan drain-request drain-unlock edge join-wait k3s-certs-reset k3s-hold k3s-release
	k3s-retry k3s-rollback k3s-snapshot k3s-stage kubeconfig kubeconfig-agent kubeconfig-revoke leave logs nodes-forget nodes-remove pubkubeclusterupdatestatus
	run support-bundle uncordon version vmidetach workloads-disable workloads-enable`)

// TestEveryScreenAt80And120Columns holds what people see in terminals of two widths, of a device
// that was copied at a known moment: go test ./pkg/cli -run 80And120 -update writes it.
func TestEveryScreenAt80And120Columns(t *testing.T) {
	t.Setenv("TERM", "dumb") // no colour
	files, err := filepath.Abs("testdata/widths")
	if err != nil {
		t.Fatal(err)
	}
	const root = "device" // so that no line is as long as a directory of this machine
	api := answeringAPI(t)
	for name, words := range drawn {
		for _, width := range []int{80, 120} {
			t.Run(fmt.Sprint(name, "-", width), func(t *testing.T) {
				dir := t.TempDir()
				copiedDevice(t, filepath.Join(dir, root))
				t.Chdir(dir)
				kubeconfig := "/no/k3s.yaml"
				if slices.Contains(asAPI, name) {
					kubeconfig = api
				}
				said := onTerminal(t, uint16(width), append([]string{"--root", root, "--kubeconfig", kubeconfig}, strings.Fields(words)...))
				said = strings.ReplaceAll(said, dir, "/ROOT")
				if name == "join-plan" { // which is made now, also of a copy
					said = regexp.MustCompile(`(made at +)\S+ \S+`).ReplaceAllString(said, "${1}TIME")
				}
				if name == "topics" { // the sizes are those of samples, which grow
					said = regexp.MustCompile(` [0-9.]+(B|Ki)`).ReplaceAllStringFunc(said, func(size string) string { return regexp.MustCompile("[0-9]").ReplaceAllString(size, "9") })
				}
				cmdtest.Same(t, filepath.Join(files, fmt.Sprintf("%s-%d.txt", name, width)), said)
				drawing, _, _ := strings.Cut(said, "\nzedkube: ")
				for line := range strings.Lines(drawing) {
					if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width && name != "topics-one" && !strings.HasPrefix(strings.TrimSpace(line), `"`) { // which is JSON
						t.Errorf("a line of %d columns: %s", n, line)
					}
				}
			})
		}
	}
}

// TestEveryCommandHasItsWidths lets no command be forgotten.
func TestEveryCommandHasItsWidths(t *testing.T) {
	var missing func(c *cobra.Command)
	missing = func(c *cobra.Command) {
		if c.Deprecated != "" {
			return // the command that it is now has them
		}
		name := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" "), " ", "-"))
		group := c.HasSubCommands() && c.RunE == nil || c.HasSubCommands() && drawn[name] == "" && !slices.Contains(flat, name)
		if _, is := drawn[name]; !is && !slices.Contains(flat, name) && !group && name != "help" {
			t.Errorf("zedkube %s is neither among those that are drawn nor among those that are not", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			missing(sub)
		}
	}
	missing(New("devel", nil))
	files, err := filepath.Glob("testdata/widths/*.txt")
	if err != nil || len(files) != 2*len(drawn) {
		t.Errorf("%d files of %d screens at two widths, %v", len(files), len(drawn), err)
	}
}

// onTerminal is what a command prints on a terminal of that width, and its error as main prints it.
func onTerminal(t *testing.T, width uint16, args []string) string {
	t.Helper()
	p := cmdtest.NewTerminal(t, width, 50)
	c := New("devel", nil)
	c.SetArgs(args)
	c.SetOut(p.Other)
	c.SetErr(p.Other)
	if err := c.ExecuteContext(t.Context()); err != nil {
		fmt.Fprintf(p.Other, "zedkube: %s\n", terminal.Complaint(err))
	}
	fmt.Fprint(p.Other, "END OF OUTPUT")
	p.Sees("END OF OUTPUT", 0)
	text, _, _ := strings.Cut(p.Text(), "END OF OUTPUT")
	return strings.ReplaceAll(text, "\r\n", "\n")
}

// copiedDevice is an unpacked support bundle of a device on which much goes on.
func copiedDevice(t *testing.T, root string) {
	t.Helper()
	put := func(file string, v any) {
		t.Helper()
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		cmdtest.Lay(t, filepath.Join(root, file), string(raw))
	}
	// Or it would be this machine's boot, which the digest of a leave's plan contains.
	cmdtest.Lay(t, filepath.Join(root, "proc/sys/kernel/random/boot_id"), "0d5f6a3e-5b1c-4a53-8f0e-2f6c9d0b7a11\n")
	samples, err := filepath.Glob("../../types/testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]string{"EdgeNodeInfo": "run/zedagent", "EdgeNodeClusterConfig": "run/zedagent", "AppInstanceConfig": "run/zedagent"}
	for _, topic := range strings.Fields("ClusterMembership ClusterObject ClusterPeers K3sCertificates KubeConfig KubeNodeConditions MountRecovery WorkloadsStatus") {
		of[topic] = "persist/status/zedkube"
	}
	for _, sample := range samples {
		raw, err := os.ReadFile(sample)
		if err != nil {
			t.Fatal(err)
		}
		topic, key := strings.TrimSuffix(filepath.Base(sample), ".json"), types.Global
		dir, known := of[topic]
		if !known {
			dir = "run/zedkube"
		}
		if topic == "AppInstanceConfig" || topic == "ENClusterAppStatus" {
			key = sampleApp
		}
		cmdtest.Lay(t, filepath.Join(root, dir, topic, key+".json"), string(raw))
	}
	put(bundle.ManifestFile, map[string]any{"made": cmdtest.Now})
	put("run/zedkube/NodeDrainProgress/global.json", cmdtest.Emptying())
	put(localserver.DefaultTokenFile, localserver.TokenFile{Address: "127.0.0.1:12347", Token: strings.Repeat("5c", 16)})
	put("run/zedkube/ENClusterAppStatus/"+sampleApp+".json", types.ENClusterAppStatus{AppUUID: uuid.MustParse(sampleApp), AppKubeStatus: types.AppKubeNotRunning})
	put("run/zedkube/AppRepairStatus/"+sampleApp+".json", types.AppRepairStatus{
		AppUUID: uuid.MustParse(sampleApp), Phase: types.RepairRefused, Act: "failover", Reason: "Its volume has no healthy replica on another Ready node.",
		Since: cmdtest.Ago(time.Hour), Node: "node-3", Lost: "node-3", Run: types.AppRun{Pod: "crane-0", Since: cmdtest.Ago(5 * time.Hour), Restarts: 3},
	})
	put(filepath.Join(bundle.Extras, "kubernetes/nodes.json"), cmdtest.TroubledNodes())
	cmdtest.Lay(t, filepath.Join(root, "run/zedkube.touch"), "")
	cmdtest.Lay(t, filepath.Join(root, "run/eve-hv-type"), "k\n")
	cmdtest.Lay(t, filepath.Join(root, types.PathForceDrain), "garbage")
	var trail strings.Builder
	for i, o := range []types.Operation{
		{Component: "drain", Op: "cordon", Target: "node/node-2", By: "UPDATE", Why: "base OS update", Outcome: "ok", Took: 41 * time.Millisecond},
		{Component: "drain", Op: "evict", Target: "pod/eve-kube-app/camera-inspection-line-3-9f27b-4q8zt2", By: "UPDATE", Why: "base OS update", Outcome: "refused", Error: "Cannot evict pod as it would violate the pod's disruption budget.", Times: 34},
	} {
		o.ID, o.Node, o.At = fmt.Sprint(i), "node-2", cmdtest.Ago(time.Hour/time.Duration(i+1))
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		trail.Write(append(raw, '\n'))
	}
	cmdtest.Lay(t, filepath.Join(root, audit.DefaultDir, "operations-00000001.jsonl"), trail.String())
	written := cmdtest.Ago(40 * time.Second)
	err = filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chmod(path, 0o700), os.Chtimes(path, written, written))
	})
	if err != nil {
		t.Fatal(err)
	}
}
