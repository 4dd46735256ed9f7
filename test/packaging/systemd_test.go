package packaging

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/zedkube/zedkube/test/agent"
)

// systemdHost is systemd of this machine as the first process of a host of its
// own, in namespaces.
type systemdHost struct {
	*testing.T
	init *exec.Cmd
	log  string // file
	down chan struct{}
}

// startSystemd starts it with the program and the units, by their names.
func startSystemd(t *testing.T, program string, units map[string]string) *systemdHost {
	t.Helper()
	needRoot(t)
	for _, name := range []string{"systemctl", "busybox"} {
		need(t, name)
	}
	dir := t.TempDir()
	h := &systemdHost{T: t, log: filepath.Join(dir, "log"), down: make(chan struct{})}
	root := filepath.Join(dir, "root")
	for _, d := range []string{root, root + ".units", root + ".programs"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range units {
		if err := os.WriteFile(filepath.Join(root+".units", name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, from := range map[string]string{"zedkube": program, "sh": "sh", "mkdir": "mkdir", "cat": "cat", "systemctl": "systemctl", "busybox": "busybox"} {
		path, err := exec.LookPath(from)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("install", "-m", "755", path, filepath.Join(root+".programs", name)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	log, err := os.Create(h.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	group := controlGroup(t)
	h.init = exec.Command("sh", "testdata/systemd.sh", root)
	h.init.Stdout, h.init.Stderr, h.init.Env = log, log, []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	h.init.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		UseCgroupFD: true, CgroupFD: int(group.Fd()), Setsid: true,
	}
	if err := h.init.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { defer close(h.down); _ = h.init.Wait() }()
	t.Cleanup(func() {
		_ = h.init.Process.Kill() // and with it each process there
		<-h.down
	})
	return h
}

// controlGroup makes one for systemd, which sees no others, and removes it with
// what systemd has made in it.
func controlGroup(t *testing.T) *os.File {
	t.Helper()
	// A mount of its own: those of the machine may be of version 1. It is at no path, or another test could take it for one of these.
	top := detachedCgroup2(t)
	dir, err := os.MkdirTemp(fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), top.Fd()), "packaging-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		out, err := exec.Command("find", dir, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";").CombinedOutput()
		if err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	group, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = group.Close() })
	return group
}

// detachedCgroup2 is the top of the control groups of version 2.
func detachedCgroup2(t *testing.T) *os.File {
	t.Helper()
	kind, err := unix.Fsopen("cgroup2", unix.FSOPEN_CLOEXEC)
	if err != nil {
		t.Fatal("open the control groups: ", err)
	}
	defer unix.Close(kind)
	if err := unix.FsconfigCreate(kind); err != nil {
		t.Fatal("open the control groups: ", err)
	}
	fd, err := unix.Fsmount(kind, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		t.Fatal("mount the control groups: ", err)
	}
	top := os.NewFile(uintptr(fd), "cgroup2")
	t.Cleanup(func() { _ = top.Close() })
	return top
}

// run runs a command in the shell of the host.
func (h *systemdHost) run(words string) (string, error) {
	out, err := exec.Command("nsenter", "--target", strconv.Itoa(h.init.Process.Pid),
		"--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "/bin/sh", "-c", "PATH=/bin; "+words).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// until waits until missing says nothing. Emptier machines take seconds.
func (h *systemdHost) until(missing func() string) {
	h.Helper()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		why := missing()
		if why == "" {
			return
		}
		select {
		case <-h.down:
		default:
			if time.Now().Before(end) {
				continue
			}
		}
		log, err := os.ReadFile(h.log)
		unit, failed := h.run("systemctl status --no-pager zedkube; cat /run/zedkube.log")
		h.Fatalf("%s; %v\nsystemd: %s\nits unit: %s", why, errors.Join(err, failed), log, unit)
	}
}

// serves waits until zedkube runs as the main process of its unit, as another one
// than last, and says which.
func (h *systemdHost) serves(last string) (pid string) {
	h.Helper()
	h.until(func() string {
		state, err := h.run("systemctl show -P ActiveState zedkube && systemctl show -P MainPID zedkube")
		if err != nil {
			return fmt.Sprintf("systemctl show: %v: %s", err, state)
		}
		active, main, _ := strings.Cut(state, "\n")
		if pid = main; active != "active" || pid == last {
			return fmt.Sprintf("the unit is %s, its process %s", active, pid)
		}
		if touched, err := h.run("cat /run/zedkube.touch"); err != nil {
			return touched
		}
		if status, _ := h.run("zedkube status -o 'jsonpath={.Agent.PID} {.Agent.Runs}'"); status != pid+" true" {
			return fmt.Sprintf("zedkube status says %q of process %s", status, pid)
		}
		return ""
	})
	return pid
}

// logged is the unit with its log in a file: no journal runs there.
func logged(unit string) string {
	return strings.Replace(unit, "[Service]\n", "[Service]\nStandardOutput=append:/run/zedkube.log\nStandardError=inherit\n", 1)
}

// TestTheUnitUnderSystemd starts the program by its unit, crashes it and stops it.
func TestTheUnitUnderSystemd(t *testing.T) {
	t.Parallel()
	unit, err := os.ReadFile(systemd)
	if err != nil {
		t.Fatal(err)
	}
	unitServes(t, agent.Build(t), string(unit))
}

// unitServes is the story of that test, also told of a release.
func unitServes(t *testing.T, program, unit string) {
	t.Helper()
	h := startSystemd(t, program, map[string]string{"zedkube.service": logged(unit)})
	first := h.serves("0")

	t.Log("it crashes, and is started again")
	if out, err := h.run("kill -KILL " + first); err != nil {
		t.Fatal(err, out)
	}
	h.serves(first)

	t.Log("it is stopped, and ends cleanly")
	if out, err := h.run("systemctl stop zedkube"); err != nil {
		t.Fatal(err, out)
	}
	if state, _ := h.run("systemctl show -P ActiveState zedkube; systemctl show -P Result zedkube; cat /run/zedkube.pid"); !strings.HasPrefix(state, "inactive\nsuccess\ncat: ") {
		t.Errorf("after its end: %s", state)
	}

	t.Log("it is started again")
	if out, err := h.run("systemctl start zedkube"); err != nil {
		t.Fatal(err, out)
	}
	h.serves("0")
}

// probes are what a process under the unit may and what it may not. None changes
// what the host shares with this machine, the clock for one, should it succeed.
var probes = []struct {
	words string
	may   bool
}{
	{"busybox true >/run/probe", true},
	{"busybox true >/persist/probe", true},
	{"busybox true >/tmp/probe", true},
	{"busybox chmod 666 /tmp/of-another", true},                 // an operator's
	{"busybox true >>/sys/devices/virtual/net/lo/mtu", true},    // drivers are bound below there
	{"busybox ip link set lo up", true},                         // ports of devices that are passed through
	{"busybox grep -q container=other /proc/1/environ", true},   // who has asked
	{"kill -0 1", true},                                         // k3s, which is root's
	{"busybox grep -q - /proc/sys/kernel/random/boot_id", true}, // whether the device has rebooted
	{"busybox true >/etc/probe", false},
	{"busybox true >/usr/probe", false},
	{"busybox true >/var/lib/probe", false},
	{"busybox true >>/sys/bus/platform/uevent", false},
	{"busybox chown 1 /run/probe", false},
	{"busybox mknod /run/device c 1 1", false},
	{"busybox mount -t tmpfs tmpfs /tmp", false},
	{"busybox unshare -n busybox true", false},
	{"busybox chroot / busybox true", false},
	{"busybox hostname other", false},
	{"busybox renice -n -5 $$", false},
	{"busybox ping -c 1 127.0.0.1", false},
	{"busybox test \"$(umask)\" = 0077", true},
	{"busybox test \"$(ulimit -c)\" = 0", true},
}

func TestTheUnitAllowsWhatZedkubeNeedsAndNoMore(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(systemd)
	if err != nil {
		t.Fatal(err)
	}
	script, want := "", []string{}
	for i, p := range probes {
		script += fmt.Sprintf("if %s; then echo probe %d true; else echo probe %d false; fi\n", p.words, i, i)
		want = append(want, fmt.Sprintf("%s: %v", p.words, p.may))
	}
	unit := logged(strings.NewReplacer("/usr/bin/zedkube run $ZEDKUBE_ARGS", "/bin/sh /persist/probe.sh", "Type=exec", "Type=oneshot", "Restart=always", "Restart=no").Replace(string(content)))
	h := startSystemd(t, "true", map[string]string{"zedkube.service": unit, "probe.sh": script})
	h.until(func() string {
		if out, err := h.run("mkdir -p /persist && cat /etc/systemd/system/probe.sh >/persist/probe.sh && : >/tmp/of-another && busybox chown 7 /tmp/of-another && systemctl start zedkube"); err != nil {
			return fmt.Sprint(err, out)
		}
		return ""
	})
	log, err := h.run("cat /run/zedkube.log")
	if err != nil {
		t.Fatal(err, log)
	}
	got := make([]string, len(probes))
	for line := range strings.Lines(log) {
		var i int
		var may bool
		if n, _ := fmt.Sscanf(line, "probe %d %t", &i, &may); n == 2 && i < len(got) {
			got[i] = fmt.Sprintf("%s: %v", probes[i].words, may)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +:\n%s\n%s", diff, log)
	}
}

// mostExposure is how exposed the unit may be, in tenths, as systemd judges.
const mostExposure = 30

func TestSystemdJudgesTheUnitToBeProtected(t *testing.T) {
	need(t, "systemd-analyze")
	judge := func(file string) (string, error) {
		out, err := exec.Command("systemd-analyze", "security", "--no-pager", "--offline=true", "--threshold="+strconv.Itoa(mostExposure), file).CombinedOutput()
		lines := slices.DeleteFunc(strings.Split(string(out), "\n"), func(l string) bool { return strings.HasPrefix(l, "✓") })
		return strings.Join(lines, "\n"), err
	}
	if out, err := judge(systemd); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	bare := filepath.Join(t.TempDir(), "bare.service")
	if err := os.WriteFile(bare, []byte("[Service]\nExecStart=/bin/true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := judge(bare); err == nil {
		t.Errorf("a unit without any protection is judged to be good: %s", out)
	}
}
