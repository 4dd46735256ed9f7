package player

import (
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

// start runs the program, so that it ends with the device even when we die.
func (d *Device) start() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	cmd := exec.Command(d.Program[0], append(d.Program[1:len(d.Program):len(d.Program)], "--root", d.Root)...)
	cmd.Stdout, cmd.Stderr = d.Log, d.Log
	// A group of its own: Ctrl-C in our terminal is ours to act on.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start zedkube: %w", err)
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait()
	}()
	d.program, d.exited = cmd, exited
	return nil
}

// stop ends the program as a shutdown does: politely, then by force.
func (d *Device) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.program == nil {
		return
	}
	_ = d.program.Process.Signal(syscall.SIGTERM)
	select {
	case <-d.exited:
	case <-time.After(10 * time.Second):
		_ = d.program.Process.Kill()
		<-d.exited
	}
	d.program = nil
}

// KillProgram ends the program without warning.
func (d *Device) KillProgram() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.program != nil {
		_ = d.program.Process.Kill()
		<-d.exited
		d.program = nil
	}
}

// StopProgram ends the program politely while the rest of the device goes on.
func (d *Device) StopProgram() { d.stop() }

// StartProgram starts the program again.
func (d *Device) StartProgram() error { return d.start() }

// PID is the process id of the program; 0 while it does not run.
func (d *Device) PID() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.program == nil {
		return 0
	}
	return d.program.Process.Pid
}
