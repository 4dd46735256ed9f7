package packaging

import (
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

// openrcHost is a host in namespaces, whose services OpenRC of this machine starts.
type openrcHost struct {
	*testing.T
	init *exec.Cmd
	log  string // file
}

// startOpenRC starts it with the program and its service script.
func startOpenRC(t *testing.T, program, service string) *openrcHost {
	t.Helper()
	needRoot(t)
	need(t, "openrc-run")
	need(t, "busybox")
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{root + ".programs/zedkube": program, root + ".service": service}
	for _, name := range []string{"busybox", "openrc-run", "rc-service", "supervise-daemon"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Join(root+".programs", name)] = path
	}
	for to, from := range files {
		if out, err := exec.Command("install", "-D", "-m", "755", from, to).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	h := &openrcHost{T: t, log: filepath.Join(dir, "log")}
	log, err := os.Create(h.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	h.init = exec.Command("sh", "testdata/openrc.sh", root)
	h.init.Stdout, h.init.Stderr, h.init.Env = log, log, []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	h.init.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET, Setsid: true}
	if err := h.init.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = h.init.Process.Kill() // and with it each process there
		_ = h.init.Wait()
	})
	h.until(func() string {
		out, err := h.run("test -e /run/booted")
		if err != nil {
			return fmt.Sprintf("the host has not started: %v: %s", err, out)
		}
		return ""
	})
	return h
}

// run runs a command in the shell of the host.
func (h *openrcHost) run(words string) (string, error) {
	out, err := exec.Command("nsenter", "--target", strconv.Itoa(h.init.Process.Pid), "--mount", "--pid", "--net", "--root", "--wd",
		"/bin/busybox", "sh", "-c", "PATH=/bin:/sbin; "+words).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// service has OpenRC do that with zedkube. The services that it needs are the host's.
func (h *openrcHost) service(verb string) {
	h.Helper()
	if out, err := h.run("rc-service --nodeps zedkube " + verb); err != nil {
		h.Fatalf("rc-service zedkube %s: %v: %s", verb, err, out)
	}
}

// until waits until missing says nothing. Emptier machines take seconds.
func (h *openrcHost) until(missing func() string) {
	h.Helper()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		why := missing()
		if why == "" {
			return
		}
		if time.Now().After(end) {
			log, _ := os.ReadFile(h.log)
			own, _ := h.run("cat /var/log/zedkube.log")
			h.Fatalf("%s; %s\n%s", why, log, own)
		}
	}
}

// serves waits until zedkube runs as another process than last, and says which.
func (h *openrcHost) serves(last string) (pid string) {
	h.Helper()
	h.until(func() string {
		pid, _ = h.run("cat /run/zedkube.pid && test -f /run/zedkube.touch")
		if status, _ := h.run("zedkube status -o 'jsonpath={.Agent.PID} {.Agent.Runs}'"); pid == last || status != pid+" true" {
			return fmt.Sprintf("the pid file says %q, zedkube status %q", pid, status)
		}
		return ""
	})
	h.service("status")
	return pid
}

// TestTheServiceUnderOpenRC starts the program by its service script, crashes it and stops it.
func TestTheServiceUnderOpenRC(t *testing.T) {
	t.Parallel()
	serviceServes(t, agent.Build(t), openrc)
}

// serviceServes is the story of that test, also told of a release.
func serviceServes(t *testing.T, program, service string) {
	t.Helper()
	h := startOpenRC(t, program, service)
	h.service("start")
	first := h.serves("")

	t.Log("it crashes, and is started again")
	if out, err := h.run("kill -KILL " + first); err != nil {
		t.Fatal(err, out)
	}
	last := h.serves(first)
	h.service("healthcheck")

	t.Log("it is stopped, and ends cleanly")
	h.service("stop")
	if out, err := h.run("test -e /run/zedkube.pid || test -e /proc/" + last); err == nil {
		t.Errorf("zedkube is still there: %s", out)
	}
	if out, err := h.run("rc-service --nodeps zedkube status"); err == nil || !strings.Contains(out, "stopped") {
		t.Errorf("after its end: %v: %s", err, out)
	}

	t.Log("it is started again")
	h.service("start")
	h.serves(last)
}
