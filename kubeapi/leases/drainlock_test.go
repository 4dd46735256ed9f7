package leases

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestTheNoteOfALockFitsAndKeepsTheVolumesThatAreWorstOff(t *testing.T) {
	for _, test := range []struct{ volumes, long, kept int }{
		{0, 40, 0}, {1, 40, 1}, {5000, 40, 5000}, {20000, 40, 5200}, {9000, 250, 900}, {5000, 1, 5000},
	} {
		lock := types.DrainLock{Holder: "n1", BootID: strings.Repeat("b", 36), Since: time.Now(), Volumes: map[string]int{}}
		for i := range test.volumes {
			lock.Volumes[fmt.Sprintf("%0*d", test.long, i)] = i % 4
		}
		text, err := noteOf(lock)
		if err != nil || len(text) > 250_000 {
			t.Fatalf("%d letters, %v", len(text), err)
		}
		note, ok := readNote(text)
		if !ok || len(note.Volumes) < test.kept || len(note.Volumes)+note.Omitted != test.volumes {
			t.Errorf("of %d volumes %d are kept, %d left out, in %d letters", test.volumes, len(note.Volumes), note.Omitted, len(text))
		}
		best := -1
		for name, healthy := range note.Volumes {
			if healthy != lock.Volumes[name] {
				t.Fatalf("%s has %d, not %d", name, healthy, lock.Volumes[name])
			}
			best = max(best, healthy)
		}
		for name, healthy := range lock.Volumes {
			if _, kept := note.Volumes[name]; !kept && healthy < best {
				t.Fatalf("a volume with %d healthy replicas is left out, one with %d kept", healthy, best)
			}
		}
	}
}
