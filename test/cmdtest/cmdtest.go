// Package cmdtest is what the tests of several commands share: a device in
// trouble, its files, a terminal, and the files that hold what people see.
package cmdtest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// Update makes tests write the files that they compare with.
var Update = flag.Bool("update", false, "write the files that these tests compare with")

// Now is when the screens of these tests are drawn.
var Now = time.Date(2026, 11, 20, 14, 3, 12, 0, time.UTC)

// Ago is a time before Now.
func Ago(d time.Duration) time.Time { return Now.Add(-d) }

// Run runs a command of the program in this process. said is what it prints to
// stderr, and its error as a last line.
func Run(ctx context.Context, program *cobra.Command, args ...string) (out, said string, err error) {
	var stdout, stderr bytes.Buffer
	program.SetArgs(args)
	program.SetOut(&stdout)
	program.SetErr(&stderr)
	if err = program.ExecuteContext(ctx); err != nil {
		stderr.WriteString(err.Error() + "\n")
	}
	return stdout.String(), stderr.String(), err
}

// Output gives the flag -o to what has it, by its own functions.
func Output(form string, flag func(*cobra.Command) *cobra.Command, parse func() error) error {
	c := &cobra.Command{}
	flag(c)
	return errors.Join(c.Flags().Set("output", form), parse())
}

// Pipe is a width at which lines stay whole.
const Pipe = 10000

// Same compares what people see with a file.
func Same(t *testing.T, file, got string) {
	t.Helper()
	if *Update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s: want -, got +\n%s", file, d)
	}
}

// SameView is Same for what status, nodes and apps print of Troubled: no line is
// too long for a terminal, unless it goes into a pipe, and none obeys a name.
func SameView(t *testing.T, name, got string) {
	t.Helper()
	Same(t, filepath.Join("testdata/views", name+".txt"), got)
	for line := range strings.Lines(got) {
		plain := strings.NewReplacer("\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "", "\x1b[1m", "", "\x1b[0m", "").Replace(strings.TrimRight(line, "\n"))
		if n := utf8.RuneCountInString(plain); !strings.Contains(name, "pipe") && name != "status-json" && n > 79 {
			t.Errorf("%s: a line of %d columns: %s", name, n, plain)
		}
		if strings.ContainsAny(plain, "\x1b\u202e") {
			t.Errorf("%s: what a name says reaches the terminal: %q", name, plain)
		}
	}
}

// Lay writes one file.
func Lay(t testing.TB, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// LayFiles makes files below a root, in one step each as a publisher does.
func LayFiles(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		file := filepath.Join(root, name)
		part := filepath.Join(filepath.Dir(file), "tmp1")
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(part, []byte(content), 0o600), os.Rename(part, file)); err != nil {
			t.Fatal(err)
		}
	}
}

// TopicsDevice is a device with six topics, one of them with a value that is no JSON.
func TopicsDevice(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	LayFiles(t, root, map[string]string{
		"run/zedkube/NodeDrainStatus/global.json":       `{"Status":2,"RequestedBy":1}`,
		"run/zedkube/EdgeNodeClusterStatus/global.json": `{"ClusterName":"plant-7","EncryptedClusterToken":"hush-hush"}`,
		"run/zedagent/NodeDrainRequest/global.json":     `{"RequestedBy":2}`,
		"run/baseosmgr/NodeDrainRequest/global.json":    `{"RequestedBy":3}`,
		"run/odd/Topic/bad\x1b[31m.json":                `{"A":`,
		"persist/status/zedkube/KubeConfig/global.json": `{"K3sVersion":""}`,
	})
	return root
}

// SilentDevice is TopicsDevice without an agent, with a secret.
func SilentDevice(t *testing.T) (root string) {
	t.Helper()
	root = TopicsDevice(t)
	LayFiles(t, root, map[string]string{
		"run/zedagent/EdgeNodeInfo/global.json":     `{"DeviceName":"Node_2","DeviceID":"6ba7b810-9dad-41d1-80b4-00c04fd430c8"}`,
		"run/zedkube/NodeDrainProgress/global.json": `{"Phase":"Emptying","Reason":"1 pod is left, with password=hush-hush","Pods":{"Total":2,"Evicted":1}}`,
		"run/eve-hv-type":                           "k\n",
	})
	return root
}
