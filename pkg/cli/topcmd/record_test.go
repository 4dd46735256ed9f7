package topcmd

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

// The cluster's metrics may be long, and top looks at them all the time.
func TestAFileIsDecodedOnlyAfterItHasChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "global.json")
	r := topicRecord[types.KubeClusterMetrics]{path: path}
	write := func(text string, at time.Time) {
		t.Helper()
		part := path + ".part" // as pubsub writes: a new file takes the name
		if err := errors.Join(os.WriteFile(part, []byte(text), 0o600), os.Chtimes(part, at, at), os.Rename(part, path)); err != nil {
			t.Fatal(err)
		}
		r.look()
	}
	if r.look(); r.value != nil || !errors.Is(r.err, fs.ErrNotExist) {
		t.Errorf("without a file: %v, %v", r.value, r.err)
	}
	noon := time.Date(2026, 5, 3, 12, 0, 0, 0, time.UTC)
	write("{}", noon)
	first := r.value
	if first == nil || r.err != nil {
		t.Fatalf("%v, %v", first, r.err)
	}
	if r.look(); r.value != first {
		t.Error("a file that is as it was is decoded again")
	}
	write("{}", noon) // the same time and size, but another file
	second := r.value
	if second == nil || second == first {
		t.Error("another file is not read")
	}
	write("{", noon.Add(time.Second))
	if r.value != nil || r.err == nil {
		t.Errorf("a broken file: %v, %v", r.value, r.err)
	}
	write("{}", noon.Add(2*time.Second))
	if r.value == nil || r.err != nil {
		t.Errorf("after it: %v, %v", r.value, r.err)
	}
}
