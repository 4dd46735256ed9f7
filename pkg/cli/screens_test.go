package cli

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/cli/appscmd"
	"github.com/zedkube/zedkube/pkg/cli/nodescmd"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/bundle"
	"github.com/zedkube/zedkube/pkg/operate/overview"
)

// TestTheDocumentOnScreensHasEveryValue lets no screen, part of status or column of its tables be
// without a row that says where the value is from and how it shows that it is old.
func TestTheDocumentOnScreensHasEveryValue(t *testing.T) {
	raw, err := os.ReadFile("../../docs/screens.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for _, field := range reflect.VisibleFields(reflect.TypeFor[overview.Overview]()) {
		if !strings.Contains(text, "`"+field.Name+"`") {
			t.Errorf("part %s of status is not there", field.Name)
		}
	}
	for name, words := range drawn {
		command := strings.Join(strings.Fields(words)[:strings.Count(strings.TrimSuffix(name, "-one"), "-")+1], " ")
		if !strings.Contains(text, "`zedkube "+command+"`") {
			t.Errorf("zedkube %s is not there", command)
		}
	}
	columns := func(section string, table terminal.Table) {
		_, text, _ := strings.Cut(text, "## `zedkube "+section+"`")
		text, _, _ = strings.Cut(text, "\n## ")
		for _, c := range table.Columns {
			if !strings.Contains(strings.NewReplacer("|", ",", " ", "").Replace(text), ","+c.Title+",") {
				t.Errorf("column %s of %s is not there", c.Title, section)
			}
		}
	}
	columns("apps", appscmd.AppsTable(overview.Overview{}, true))
	columns("nodes", nodescmd.NodesTable(overview.Nodes{}, time.Now()))
}

func TestWhatADeadAgentPublishedIsNotDrawnAsPresent(t *testing.T) {
	root := filepath.Join(t.TempDir(), "device")
	copiedDevice(t, root)
	if err := os.Remove(filepath.Join(root, bundle.ManifestFile)); err != nil { // of a device, then
		t.Fatal(err)
	}
	for _, words := range []string{"status", "drain status", "apps", "nodes", "cluster", "k3s certs", "k3s status", "workloads status", "top --once --ascii"} {
		out, said, _ := runCommand(t, append([]string{"--root", root, "--kubeconfig", "/no/k3s.yaml"}, strings.Fields(words)...)...)
		if !strings.Contains(strings.ToLower(out+said), "not running") {
			t.Errorf("zedkube %s does not say that the agent is not running:\n%s%s", words, out, said)
		}
	}
}
