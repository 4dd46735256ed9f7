package health

import (
	"strings"
	"testing"
)

func TestOnlyWhatMayBeANodesNameIsPutIntoACommand(t *testing.T) {
	for name, want := range map[string]string{
		"node-1": "node-1", "a": "a", "n1.example": "n1.example", strings.Repeat("n", 253): strings.Repeat("n", 253),
		strings.Repeat("n", 254): "<node>", "": "<node>", "-n": "<node>", "n;reboot": "<node>", "n\n": "<node>", "Node": "<node>",
	} {
		if got := inCommand(name); got != want {
			t.Errorf("%q: %q", name, got)
		}
	}
}
