package membercmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
)

func TestK3sIsHeldByAFileThatSaysWhyAndWho(t *testing.T) {
	persist := t.TempDir()
	path := filepath.Join(persist, "zedkube", "k3s-hold")
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for _, reason := range []string{"harvest\nuntil May", "", "frost"} { // each in the place of the one before
		if _, err := holdK3s(path, reason, now); err != nil {
			t.Fatal(err)
		}
		raw, err := safefile.Read(path, 4<<10)
		want := strings.TrimPrefix(strings.ReplaceAll(reason, "\n", " ")+"; since 2026-11-23T12:00:00Z, by uid ", "; ")
		if err != nil || !strings.HasPrefix(string(raw), want) || strings.Count(string(raw), "\n") != 1 {
			t.Errorf("%q, %v, want %q", raw, err, want)
		}
	}
	if names, err := safefile.Names(filepath.Dir(path), 9); err != nil || len(names) != 1 {
		t.Errorf("beside it: %q, %v", names, err)
	}
	for _, want := range []string{"no longer held", "not held"} {
		if said, err := endK3sHold(path, "", now); err != nil || !strings.Contains(said, want) {
			t.Errorf("%q, %v", said, err)
		}
		if _, err := os.Lstat(path); err == nil {
			t.Error("it is still there")
		}
	}
}

func TestAHoldThatWouldBeLostIsNotWritten(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "persist")
	if said, err := holdK3s(filepath.Join(gone, "zedkube", "k3s-hold"), "x", time.Now()); terminal.ExitCode(err) != terminal.ExitNotPublished || said != "" {
		t.Errorf("%q, %v", said, err)
	}
	if _, err := os.Lstat(gone); err == nil {
		t.Error("it was made")
	}
}

func TestAHoldReplacesALinkAndNotWhatItPointsTo(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "k3s-hold"), filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte("keep"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, path); err != nil {
		t.Fatal(err)
	}
	if _, err := holdK3s(path, "x", time.Now()); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(other); err != nil || string(raw) != "keep" {
		t.Errorf("%q, %v", raw, err)
	}
}
