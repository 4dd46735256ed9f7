//go:build linux

package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/zedkube/zedkube/types"
)

// smallDisk is a disk of that many kilobytes.
func smallDisk(t *testing.T, kilobytes int) string {
	t.Helper()
	dir := t.TempDir()
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dk", kilobytes))
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
		t.Skip("needs the right to mount")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestOnAFullDiskOperationsGoOnAndTheLastOnesAreKept(t *testing.T) {
	s := newStage(t)
	disk := smallDisk(t, 64)
	s.Record.Dir = filepath.Join(disk, "audit")
	s.does("cordon", "node/n1", nil)
	full := filepath.Join(disk, "other")
	if err := os.WriteFile(full, make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	const n = 1000
	for i := range n {
		s.does("evict", fmt.Sprintf("pod/%d", i), nil)
	}
	if got := len(s.log.AllEntries()); got != 1 {
		t.Errorf("%d lines were logged of it", got)
	}
	if err := os.Remove(full); err != nil {
		t.Fatal(err)
	}
	s.Record.Segment = 1 << 30
	_ = s.Step(t.Context())
	all, problems, err := Read(s.Record.Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d operations and %+v are left of %d", len(all), problems, n+1)
	last := all[len(all)-1]
	if all[0].Op != "cordon" || last.Target != fmt.Sprintf("pod/%d", n-1) || last.Outcome != types.OperationOK || problems.Torn > 1 {
		t.Errorf("the first is %+v, the last %+v, and %d torn", all[0], last, problems.Torn)
	}
	ends := 0
	for _, o := range all {
		if o.Outcome == types.OperationOK {
			ends++
		}
	}
	// Each operation has two lines; of those that were lost not every one was on
	// the disk before.
	if want := 2 * (n + 1); problems.Lost == 0 || 2*ends+problems.Lost > want+2*maxWaiting || len(all) < maxWaiting/2 {
		t.Errorf("%d have an end, %d lines were lost", ends, problems.Lost)
	}
	if s.log.LastEntry().Message != "operations are audited again" {
		t.Errorf("the last that was logged is %q", s.log.LastEntry().Message)
	}
}
