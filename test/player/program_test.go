package player

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The kernel kills the program with the thread that started it, not with the
// process; Go ends a thread with the goroutine that locked it.
func TestProgramOutlivesTheThreadThatAskedForIt(t *testing.T) {
	defer goleak.VerifyNone(t)
	path := filepath.Join(t.TempDir(), "zedkube")
	if err := os.WriteFile(path, []byte("exec sleep 1000"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := &Device{Root: t.TempDir(), Program: []string{"/bin/sh", path}, Log: os.Stderr}
	started := make(chan error)
	runtime.LockOSThread() // so that it is another thread
	defer runtime.UnlockOSThread()
	go func() {
		runtime.LockOSThread() // and never unlocks it
		started <- d.StartProgram()
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	defer d.StopProgram()
	time.Sleep(500 * time.Millisecond)
	if ended := d.Ended(); len(ended) != 0 {
		t.Errorf("the program ended: %q", ended)
	}
}
