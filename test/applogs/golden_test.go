//go:build linux

package applogs

import (
	"flag"
	"testing"

	"github.com/zedkube/zedkube/test/golden"
	"github.com/zedkube/zedkube/test/player"
)

var update = flag.Bool("update", false, "write the golden outputs of zedkube logs anew")

// goldenIs compares what zedkube says on a device with the golden output of that
// name.
func goldenIs(t *testing.T, name string, m *player.Member, args ...string) {
	t.Helper()
	out, err := m.Command(args...)
	if err != nil {
		t.Error(err)
		return
	}
	text := golden.Steady(string(out))
	if *update {
		err = golden.Write(name, text)
	} else {
		err = golden.Check(name, text)
	}
	if err != nil {
		t.Error(err)
	}
}
