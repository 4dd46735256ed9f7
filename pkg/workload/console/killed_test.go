//go:build soak && failpoints

package console

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zedkube/zedkube/test/agent"
	"github.com/zedkube/zedkube/test/seeds"
)

const victim = "CONSOLE_KILLED_IN" // names the root of a device on which a process kills itself

// The effects on the older place, as the kill points name them.
const (
	writesOld  = "console/write /run/zedkube/vmiVNC.run"
	removesOld = "console/remove /run/zedkube/vmiVNC.run"
)

// begin starts the agent of a device on which a machine runs whose console may be wanted.
func (n *node) begin(wanted bool) {
	n.must(os.MkdirAll(filepath.Dir(n.old), 0o755))
	n.runs(first, own)
	n.serve(own.VNCPort, true)
	n.wants(first, wanted)
	n.start()
	n.later(oldGap + period)
}

func TestSoakTheOlderPlaceIsWholeWhereverTheAgentDies(t *testing.T) {
	if root := os.Getenv(victim); root != "" {
		tellIn(t, root, func(n *node) {
			n.begin(true)
			n.wants(first, false)
			n.later(period)
		})
		return
	}
	text := app{vmi: own.VMIName, port: own.VNCPort}.oldText()
	for range seeds.Each(t, 3) {
		for point, left := range map[string]string{writesOld + "/before": "", writesOld + "/after": text, removesOld + "/before": text, removesOld + "/after": ""} {
			t.Run(point, func(t *testing.T) {
				root := t.TempDir()
				agent.DiesAt(t, "TestSoakTheOlderPlaceIsWholeWhereverTheAgentDies", point, victim+"="+root)
				seeds.Killed(t, point)
				tellIn(t, root, func(n *node) {
					n.saysInOld("after the kill", left)
					wanted := strings.HasPrefix(point, writesOld)
					n.begin(wanted)
					n.saysInOld("started again", map[bool]string{true: text}[wanted])
					n.wants(first, true)
					n.later(oldGap + period)
					n.saysInOld("wanted", text)
					n.wants(first, false)
					n.later(0)
					holds(t, n.old, "")
					holds(t, n.file, "")
				})
			})
		}
	}
}

// saysInOld wants the file in the older place to say that, "" for no file.
func (n *node) saysInOld(when, want string) {
	n.Helper()
	if raw, _ := os.ReadFile(n.old); string(raw) != want {
		n.Errorf("%s it says %q, want %q", when, raw, want)
	}
}
