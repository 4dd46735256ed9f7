//go:build linux

package metrics

import (
	"flag"
	"regexp"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/golden"
	"github.com/zedkube/zedkube/test/rig"
)

var update = flag.Bool("update", false, "write the golden outputs of zedkube top anew")

// measured are the values of a table, and what stands for each. That of a value
// which nobody knows stays -, but where this machine's kernel or chance decides it.
var measured = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`(?m)^restless-.*\n`), ""}, // it is there, or it starts anew
	{regexp.MustCompile(` +[▁-█]+`), ""},
	{regexp.MustCompile(`  \d+m\b`), "  CPU"},
	{regexp.MustCompile(`  \d+(\.\d+)?([KMGT]i|B)\b`), "  SIZE"},
	{regexp.MustCompile(`  \d+s!?`), "  SPAN"},
	{regexp.MustCompile(`(?m)^(\S+/app +CPU +SIZE +SIZE)( +\S+){4}`), "$1  SWAP  READ  WRITE  OPS"},
	{regexp.MustCompile(`(?m)^(node-\d +CPU +\S+ +SIZE +\S+)( +\S+){3}`), "$1  RX  TX  DISK"}, // a rate needs two looks, and other nodes do not tell them
}

// goldenIs compares what "zedkube top" prints on the first device with the
// golden output of that name, as soon as it is so.
func (s *stage) goldenIs(t *testing.T, name string, args ...string) {
	t.Helper()
	took := rig.Within(t, time.Minute, func() string {
		out, err := s.Fleet.Members[0].Command(append([]string{"top"}, args...)...)
		if err != nil {
			return err.Error()
		}
		text := string(out)
		for _, m := range measured {
			text = m.what.ReplaceAllString(text, m.by)
		}
		text = golden.Steady(text)
		if *update {
			err = golden.Write(name, text)
		} else {
			err = golden.Check(name, text)
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
	t.Logf("%s is as its golden output after %s", name, took)
}
