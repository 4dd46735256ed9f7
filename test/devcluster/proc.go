//go:build linux

package devcluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// reaperScript outlives us. It reads the process group of the cluster from a
// pipe that only we can write, then waits for the pipe's end, which comes when
// we stop the cluster and also when we die of anything. Then it kills the
// group and removes the directory and the control groups. It holds the marker of
// the address block until then. The waits are bounded: where nobody collects
// dead processes, they stay in their group for ever. The first process of a real
// node is in the group, and gone only when all that ran there is.
const reaperScript = `
trap '' HUP INT TERM
read -r group
while read -r ignored; do :; done
n=0
while [ -n "$group" ] && kill -KILL "-$group" 2>/dev/null && [ "$n" -lt 200 ]; do
	n=$((n + 1))
	sleep 0.02
done
rm -rf -- "$1"
shift
for cgroup in "$@"; do
	n=0
	while find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null; [ -d "$cgroup" ] && [ "$n" -lt 100 ]; do
		n=$((n + 1))
		sleep 0.02
	done
done
`

// crew is the processes of one cluster: one process group that ends with us.
type crew struct {
	dir    string
	env    []string
	failed func(error) // told of a process that ends unasked

	pipe   *os.File // its end is the reaper's signal
	reaper *exec.Cmd
	starts chan func()
	quit   chan struct{} // closed by stop

	mu    sync.Mutex
	group int // 0 until the first process runs
	over  bool
	ended sync.WaitGroup
}

// process is one running program of the crew.
type process struct {
	name   string
	in     place       // nil is our own
	apart  bool        // it ends with its place: our group and our thread are not known there
	failed func(error) // told when it ends unasked
	cmd    *exec.Cmd
	done   chan struct{} // closed after it ended
	asked  bool          // guarded by crew.mu
	err    error         // how it ended; set before done is closed
	output string        // path of its log
}

// place is somewhere a program can run that is not here.
type place interface {
	// enter calls do on a thread that is there.
	enter(do func() error) error
}

// newCrew starts the reaper, which from now on answers for dir and the control
// groups, whether they are there already or not, and holds the marker, if there
// is one. It must be stopped.
func newCrew(dir string, cgroups []string, marker *os.File, failed func(error)) (*crew, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make the pipe of the reaper: %w", err)
	}
	defer read.Close()
	reaper := exec.Command("/bin/sh", "-c", reaperScript, "devcluster-reaper", dir)
	reaper.Args = append(reaper.Args, cgroups...)
	reaper.Dir = "/"
	reaper.Stdin = read
	if marker != nil {
		reaper.ExtraFiles = []*os.File{marker}
	}
	reaper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := reaper.Start(); err != nil {
		write.Close()
		return nil, fmt.Errorf("start the reaper: %w", err)
	}
	c := &crew{dir: dir, failed: failed, pipe: write, reaper: reaper, starts: make(chan func()), quit: make(chan struct{})}
	// Nothing but what a program needs, and a home that goes away with us.
	c.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir}
	c.ended.Go(c.starter)
	return c, nil
}

// starter starts every process from one thread that lives as long as the crew:
// the kernel kills a child with Pdeathsig when the thread that made it ends. A
// thread that goes where other mounts are must have a working directory of its own.
func (c *crew) starter() {
	runtime.LockOSThread()
	_ = unix.Unshare(unix.CLONE_FS) // needs no right; if it fails, so does the going
	for start := range c.starts {
		start()
	}
}

// start runs a program with its output in <name>.log.
func (c *crew) start(name, path string, args ...string) (*process, error) {
	p := &process{name: name, failed: c.failed}
	if err := c.launch(p, path, args...); err != nil {
		return nil, err
	}
	return p, nil
}

// launch runs p, of which name, in, apart and failed are set.
func (c *crew) launch(p *process, path string, args ...string) error {
	p.done, p.output = make(chan struct{}), filepath.Join(c.dir, p.name+".log")
	output, err := os.OpenFile(p.output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", p.name, err)
	}
	defer output.Close()
	p.cmd = exec.Command(path, args...)
	p.cmd.Env, p.cmd.Dir = c.env, c.dir
	p.cmd.Stdout, p.cmd.Stderr = output, output

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return fmt.Errorf("start %s: the cluster is stopped", p.name)
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: c.group, Pdeathsig: syscall.SIGKILL}
	if p.apart {
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	run := p.cmd.Start
	if p.in != nil {
		run = func() error { return p.in.enter(p.cmd.Start) }
	}
	started := make(chan error)
	c.starts <- func() { started <- run() }
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	c.ended.Go(func() { c.wait(p) })
	if c.group == 0 {
		c.group = p.cmd.Process.Pid
		if _, err := fmt.Fprintln(c.pipe, c.group); err != nil {
			return fmt.Errorf("tell the reaper: %w", err)
		}
	}
	return nil
}

func (c *crew) wait(p *process) {
	p.err = p.cmd.Wait()
	c.mu.Lock()
	asked := p.asked || c.over
	c.mu.Unlock()
	close(p.done)
	if !asked {
		p.failed(fmt.Errorf("%s ended: %v; the end of its log:\n%s", p.name, p.err, tail(p.output))) //nolint:errorlint // nil where it ended of itself
	}
}

// expect says that a process will end.
func (c *crew) expect(p *process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.asked = true
}

// kill ends one process as a crash would and returns when it is gone.
func (c *crew) kill(p *process) {
	c.expect(p)
	_ = p.cmd.Process.Kill() // only fails when it is gone
	<-p.done
}

// pause waits so long; false says that the crew is stopped.
func (c *crew) pause(d time.Duration) bool {
	select {
	case <-c.quit:
		return false
	case <-time.After(d):
		return true
	}
}

// stop ends the crew, the reaper too, and thereby removes the directory. It
// may be called again.
func (c *crew) stop() error {
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return nil
	}
	c.over = true
	c.mu.Unlock()
	close(c.starts)
	close(c.quit)
	err := errors.Join(c.pipe.Close(), c.reaper.Wait())
	c.ended.Wait()
	if err != nil {
		return fmt.Errorf("stop the cluster: %w", err)
	}
	return nil
}
