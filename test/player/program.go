package player

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/zedkube/zedkube/test/agent"
)

// process is one run of the program.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
	told   bool // it was told to end; guarded by Device.mu
}

// start runs the program, so that it ends with the device even when we die.
func (d *Device) start() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.launch()
}

// launch is start with mu held.
func (d *Device) launch() error {
	args := slices.Clone(d.Args)
	if _, ok := d.Kube.(agentKube); ok {
		args = append(args, "--kubeconfig", filepath.Join(d.Root, agentKubeconfigFile))
	}
	cmd := d.command(args...)
	cmd.Stdout, cmd.Stderr = d.Log, d.Log
	p := &process{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel kills it when the thread that started it ends, as threads do
		// that others have locked: this one is its own until then.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait()
		close(p.exited)
		d.mu.Lock()
		defer d.mu.Unlock()
		if !p.told {
			d.ended = append(d.ended, cmd.ProcessState.String())
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start zedkube: %w", err)
	}
	d.program = p
	return nil
}

// command is the program with arguments, on this device.
func (d *Device) command(args ...string) *exec.Cmd {
	args = append(args, "--root", d.Root)
	cmd := exec.Command(d.Program[0], append(d.Program[1:len(d.Program):len(d.Program)], args...)...)
	// A group of its own: Ctrl-C in our terminal is ours to act on.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	cmd.Env = os.Environ()
	if os.Getenv(agent.Failpoints) == "" { // else whoever runs the test wants to know what all its devices pass
		cmd.Env = append(cmd.Env, agent.Failpoints+"="+d.Failpoints())
	}
	return cmd
}

// Command runs one of the program's commands on the device and returns what it
// prints.
func (d *Device) Command(args ...string) ([]byte, error) {
	runtime.LockOSThread() // as in launch
	defer runtime.UnlockOSThread()
	out, err := d.command(args...).CombinedOutput()
	if err != nil {
		return out, fmt.Errorf("zedkube %q: %w: %s", args, err, out)
	}
	return out, nil
}

// stop ends the program as a shutdown does: politely, then by force.
func (d *Device) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.program == nil {
		return
	}
	d.program.told = true
	_ = d.program.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-d.program.exited:
	case <-time.After(10 * time.Second):
		_ = d.program.cmd.Process.Kill()
		<-d.program.exited
	}
	d.program = nil
}

// KillProgram ends the program without warning.
func (d *Device) KillProgram() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kill()
}

// kill is KillProgram with mu held. It reports whether there was one to kill.
func (d *Device) kill() bool {
	if d.program == nil {
		return false
	}
	d.program.told = true
	_ = d.program.cmd.Process.Kill()
	<-d.program.exited
	d.program = nil
	return true
}

// RestartProgram ends the program without warning and starts it again at once.
// While the device is between two boots it does nothing and returns false.
func (d *Device) RestartProgram() (bool, error) {
	return d.RestartProgramAfter(func() error { return nil })
}

// RestartProgramAfter is RestartProgram that calls do while the program is off.
func (d *Device) RestartProgramAfter(do func() error) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.kill() {
		return false, nil
	}
	return true, errors.Join(do(), d.launch())
}

// StartEnded starts the program again if it has ended and nobody had told it to, as EVE's
// watchdog does. It reports whether it had.
func (d *Device) StartEnded() (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.program == nil {
		return false, nil
	}
	select {
	case <-d.program.exited:
		return true, d.launch()
	default:
		return false, nil
	}
}

// StopProgram ends the program politely while the rest of the device goes on.
func (d *Device) StopProgram() { d.stop() }

// StartProgram starts the program again.
func (d *Device) StartProgram() error { return d.start() }

// Ended tells how the program ended, each time that nobody had told it to.
func (d *Device) Ended() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.ended...)
}

// PID is the process id of the program; 0 while it does not run.
func (d *Device) PID() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.program == nil {
		return 0
	}
	return d.program.cmd.Process.Pid
}
