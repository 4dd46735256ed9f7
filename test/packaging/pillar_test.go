package packaging

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/agent"
)

// needRoot skips a test that makes namespaces, but not on a build machine.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("only root can make namespaces with mounts")
	}
	t.Skip("only root can make namespaces with mounts")
}

// pillarDevice is a device on which pillar starts zedkube by its script, in namespaces
// of its own, with busybox's shell.
type pillarDevice struct {
	*testing.T
	root string
	init *exec.Cmd
	down chan struct{}
}

// newPillar prepares it with a program and a start script.
func newPillar(t *testing.T, program, script string) *pillarDevice {
	t.Helper()
	needRoot(t)
	need(t, "busybox")
	p := &pillarDevice{T: t, root: t.TempDir()}
	for file, content := range map[string]string{"opt/zededa/bin/zedkube": program, "opt/zededa/bin/zedkube-start.sh": script, "bin/busybox": "busybox"} {
		from, err := exec.LookPath(content)
		if file = filepath.Join(p.root, file); err == nil {
			err = os.MkdirAll(filepath.Dir(file), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("install", "-m", "755", from, file).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	t.Cleanup(p.off)
	return p
}

// boot switches the device on; its log begins anew.
func (p *pillarDevice) boot(how string) {
	p.Helper()
	log, err := os.Create(filepath.Join(p.root, "log"))
	if err != nil {
		p.Fatal(err)
	}
	defer log.Close()
	p.init = exec.Command("sh", "testdata/pillar.sh", p.root, how)
	p.init.Stderr, p.init.Env = log, []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	p.init.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET, Setpgid: true}
	if err := p.init.Start(); err != nil {
		p.Fatal(err)
	}
	p.down = make(chan struct{})
	go func() { defer close(p.down); _ = p.init.Wait() }()
}

// off cuts the power: with its first process each one of the device ends.
func (p *pillarDevice) off() {
	if p.init != nil {
		_ = p.init.Process.Kill()
		<-p.down
	}
}

// path is that of a device's file as seen from here.
func (p *pillarDevice) path(name string) string {
	return filepath.Join("/proc", strconv.Itoa(p.init.Process.Pid), "root", name)
}

func (p *pillarDevice) read(name string) string {
	content, _ := os.ReadFile(p.path(name))
	return strings.TrimSpace(string(content))
}

// run runs a command in busybox's shell on the device.
func (p *pillarDevice) run(words string) string {
	p.Helper()
	out, err := exec.Command("nsenter", "--target", strconv.Itoa(p.init.Process.Pid), "--mount", "--pid", "--net", "--root", "--wd", "/bin/busybox", "sh", "-c", "PATH=/bin; "+words).CombinedOutput()
	if err != nil {
		p.Errorf("%s: %v: %s", words, err, out)
	}
	return strings.TrimSpace(string(out))
}

// until waits until missing says nothing. Emptier machines take seconds.
func (p *pillarDevice) until(missing func() string) {
	p.Helper()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		why := missing()
		if why == "" {
			return
		}
		if time.Now().After(end) {
			log, _ := os.ReadFile(filepath.Join(p.root, "log"))
			p.Fatalf("%s; log:\n%s", why, log)
		}
	}
}

// logged waits until the device's log holds something that many times.
func (p *pillarDevice) logged(what string, times int) {
	p.Helper()
	p.until(func() string {
		log, _ := os.ReadFile(filepath.Join(p.root, "log"))
		if n := strings.Count(string(log), what); n < times {
			return fmt.Sprintf("%q is %d times in the log, not %d times", what, n, times)
		}
		return ""
	})
}

// serves waits until an agent other than the last one runs as EVE wants it, and
// says which.
func (p *pillarDevice) serves(last string) (pid string) {
	p.Helper()
	p.until(func() string {
		switch pid = p.read("run/zedkube.pid"); {
		case pid == "" || pid == last:
			return fmt.Sprintf("the pid file says %q", pid)
		case p.read("run/zedkube/NodeDrainStatus/global.json") == "":
			return "no NodeDrainStatus is published"
		case time.Since(p.touched()) > 60*time.Second:
			return "the touch file is old"
		}
		if _, err := os.Stat(p.path("run/watchdog/file/zedkube.touch")); err != nil {
			return "it is not registered with the watchdog"
		}
		return ""
	})
	if got := p.run("readlink /proc/" + pid + "/exe"); got != "/opt/zededa/bin/zedkube" {
		p.Errorf("process %s is %q", pid, got)
	}
	if got := p.run("/opt/zededa/bin/zedkube status -o 'jsonpath={.Agent.PID} {.Agent.Runs}'"); got != pid+" true" {
		p.Errorf("zedkube status says %q of process %s", got, pid)
	}
	return pid
}

func (p *pillarDevice) touched() time.Time {
	info, err := os.Stat(p.path("run/zedkube.touch"))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// age sets the touch file's time back, as if so much time had passed.
func (p *pillarDevice) age(by time.Duration) {
	p.Helper()
	then := time.Now().Add(-by)
	if err := os.Chtimes(p.path("run/zedkube.touch"), then, then); err != nil {
		p.Error(err)
	}
}

// TestAnAgentUnderPillar is what happens to zedkube on a device, in the order of
// its time (docs/eve-image.md, "The start script").
func TestAnAgentUnderPillar(t *testing.T) {
	t.Parallel()
	underPillar(t, agent.Build(t), script)
}

// underPillar is the story of that test, also told of a release.
func underPillar(t *testing.T, program, script string) {
	t.Helper()
	p := newPillar(t, program, script)
	p.boot("alone")
	first := p.serves("")

	t.Log("it crashes, and is started again before the watchdog sees it")
	p.run("kill -KILL " + first)
	p.logged("zedkube ended with exit code 137", 1)
	second := p.serves(first)

	t.Log("it feeds the watchdog")
	p.age(200 * time.Second)
	p.serves("")

	t.Log("it hangs, and the watchdog reboots the device")
	p.run("kill -STOP " + second)
	p.age(301 * time.Second)
	<-p.down
	p.logged("watchdog: /run/zedkube.touch is 3", 1)

	t.Log("after the reboot it serves again, with what it had on /persist")
	p.boot("alone")
	last := p.serves("")

	t.Log("the script is told to end, and so does zedkube")
	p.run("kill -TERM $(cat /run/script.pid)")
	p.logged("zedkube was told to end, and ended with exit code 0", 1)
	p.until(func() string {
		if _, err := os.Stat(p.path("run/zedkube.pid")); !errors.Is(err, os.ErrNotExist) || p.run("ls /proc/"+last+" 2>/dev/null || true") != "" {
			return "zedkube is still there"
		}
		return ""
	})
}

func TestAnAgentThatIsRefusedUnderPillarTakesOverWhenTheOtherOneEnds(t *testing.T) {
	t.Parallel()
	p := newPillar(t, agent.Build(t), script)
	p.boot("beside")
	other := p.serves("")
	p.logged("another agent runs here", 2)
	p.logged("it is started again in 2 s", 1)
	if got := p.serves(""); got != other {
		t.Errorf("the agent that was refused has changed the pid file from %s to %s", other, got)
	}
	p.run("kill -TERM " + other)
	p.serves(other)
}
