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

func TestAProgramThatEndedByItselfStartsAgain(t *testing.T) {
	defer goleak.VerifyNone(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "zedkube")
	// The first one kills itself, the next one does not.
	if err := os.WriteFile(path, []byte(`test -e "$0.again" && exec sleep 1000; touch "$0.again"; kill -9 $$`), 0o600); err != nil {
		t.Fatal(err)
	}
	d := &Device{Root: t.TempDir(), Program: []string{"/bin/sh", path}, Log: os.Stderr}
	if again, err := d.StartEnded(); again || err != nil {
		t.Errorf("a device that is off started its program: %v, %v", again, err)
	}
	if err := d.StartProgram(); err != nil {
		t.Fatal(err)
	}
	defer d.StopProgram()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		again, err := d.StartEnded()
		if err != nil || time.Now().After(end) {
			t.Fatalf("a program that has killed itself was not started: %v", err)
		}
		if again {
			break
		}
	}
	if again, err := d.StartEnded(); again || err != nil {
		t.Errorf("a program that runs was started again: %v, %v", again, err)
	}
	d.KillProgram()
	if again, err := d.StartEnded(); again || err != nil {
		t.Errorf("a program that was told to end was started again: %v, %v", again, err)
	}
	for end := time.Now().Add(time.Minute); len(d.Ended()) == 0 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) { // it is told a moment later
	}
	if ended := d.Ended(); len(ended) != 1 || ended[0] != "signal: killed" {
		t.Errorf("it ended so: %q", ended)
	}
}
