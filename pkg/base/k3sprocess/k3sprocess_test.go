package k3sprocess

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// TestMain is k3s as well, under that name: it lives until it gets a signal.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "k3s" {
		time.Sleep(time.Hour)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// host is a device on which a supervisor has started k3s: real processes.
type host struct {
	*testing.T
	K3s
	dir string
}

func newHost(t *testing.T) *host {
	dir := t.TempDir()
	return &host{T: t, dir: dir, K3s: K3s{
		PID: filepath.Join(dir, "k3s.pid"), Proc: "/proc", Socket: filepath.Join(dir, "s.sock"), Marker: filepath.Join(dir, "kube/k3s-start"),
	}}
}

func (h *host) write(name, text string, mode os.FileMode) string {
	h.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		h.Fatal(err)
	}
	return path
}

// start runs a script of that name, which starts program with args and writes its
// process ID. It returns the channel that is closed when the script has seen it end.
func (h *host) start(script, program string, args ...string) <-chan struct{} {
	h.Helper()
	self, err := os.Executable()
	if err != nil {
		h.Fatal(err)
	}
	path := filepath.Join(h.dir, program)
	if err := os.Symlink(self, path); err != nil && !errors.Is(err, fs.ErrExist) {
		h.Fatal(err)
	}
	// The older supervisor: a shell that waits for it.
	text := fmt.Sprintf("#!/bin/sh\n%s %s &\necho $! > %s.part\nmv %s.part %s\nwait\n", path, strings.Join(args, " "), h.PID, h.PID, h.PID)
	cmd := exec.Command("/bin/sh", h.write(script, text, 0o755))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		h.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	h.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
	})
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		if pid, err := ReadPID(h.PID); err == nil && pid != cmd.Process.Pid {
			raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if strings.Contains(string(raw), program) { // it is no longer the shell's fork
				return ended
			}
		}
		if time.Since(begin) > time.Minute {
			h.Fatal("no process within a minute")
		}
	}
}

func (h *host) find() Process {
	h.Helper()
	p, err := h.Find()
	if err != nil || p.Start == 0 || p.Parent == 0 {
		h.Fatalf("k3s is %+v, %v", p, err)
	}
	return p
}

// refuses wants an error with these words, a process that lives on, and no marker.
func (h *host) refuses(found Process, words string) error {
	h.Helper()
	restarted := h.Restart(h.Context(), found)
	if restarted == nil || !strings.Contains(restarted.Error(), words) {
		h.Errorf("the error is %v", restarted)
	}
	if _, err := os.Stat(h.Marker); err == nil {
		h.Error("the marker was written although nothing was done")
	}
	pid, err := ReadPID(h.PID)
	if err != nil {
		return restarted
	}
	time.Sleep(20 * time.Millisecond)
	if err := syscall.Kill(pid, 0); err != nil {
		h.Errorf("process %d: %v", pid, err)
	}
	return restarted
}

// supervise answers connections to the socket, and returns what was said to it.
func (h *host) supervise(answer func(net.Conn)) <-chan string {
	h.Helper()
	l, err := net.Listen("unix", h.Socket)
	if err != nil {
		h.Fatal(err)
	}
	said, done := make(chan string, 9), make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			line, _ := bufio.NewReader(conn).ReadString('\n')
			said <- line
			answer(conn)
			_ = conn.Close()
		}
	}()
	h.Cleanup(func() { _ = l.Close(); <-done })
	return said
}

// untilRead returns when the other side has read all that was written.
func untilRead(c net.Conn) {
	raw, err := c.(*net.UnixConn).SyscallConn()
	for left := 1; err == nil && left > 0; time.Sleep(time.Millisecond) {
		err = raw.Control(func(fd uintptr) { left, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
	}
}

func say(text string) func(net.Conn) {
	return func(c net.Conn) { _, _ = c.Write([]byte(text)) }
}

func TestK3sEndsByASignalAfterTheMarkerIsThere(t *testing.T) {
	h := newHost(t)
	ended := h.start("cluster-init.sh", "k3s", "server", "--config", "x")
	if err := h.Restart(t.Context(), h.find()); err != nil {
		t.Fatal(err)
	}
	<-ended
	if _, err := os.Stat(h.Marker); err != nil {
		t.Errorf("the marker: %v", err)
	}
	if _, err := h.Find(); err == nil {
		t.Error("k3s is found although it has ended")
	}
	if h.Runs() {
		t.Error("it runs although it has ended")
	}
}

func TestNothingIsDoneToAnotherProcess(t *testing.T) {
	t.Run("another program has the process ID", func(t *testing.T) {
		h := newHost(t)
		h.start("cluster-init.sh", "k3s", "server")
		found := h.find()
		cmd := exec.Command("/bin/sleep", "infinity")
		cmd.Env = []string{"SECRET=x"}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		h.write("k3s.pid", strconv.Itoa(cmd.Process.Pid), 0o644)
		if _, err := h.Find(); err == nil || !strings.Contains(err.Error(), "is not k3s server") || strings.Contains(err.Error(), "infinity") {
			t.Errorf("the error is %v", err)
		}
		found.PID = cmd.Process.Pid
		if err := h.refuses(found, "is not k3s server"); !errors.Is(err, ErrNothingDone) {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("it is an agent of k3s", func(t *testing.T) {
		h := newHost(t)
		h.start("cluster-init.sh", "k3s", "agent")
		if _, err := h.Find(); err == nil {
			t.Error("it counts as a server")
		}
		if !h.Runs() {
			t.Error("it does not run")
		}
	})
	t.Run("nothing would start it again", func(t *testing.T) {
		h := newHost(t)
		h.start("other.sh", "k3s", "server")
		if _, err := h.Find(); err == nil || !strings.Contains(err.Error(), "nothing would start k3s again") {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("the process ID was given to a later k3s", func(t *testing.T) {
		h := newHost(t)
		h.start("cluster-init.sh", "k3s", "server")
		before := h.find()
		before.Start--
		if err := h.refuses(before, "another one than before"); !errors.Is(err, ErrNothingDone) {
			t.Errorf("the error is %v", err)
		}
		if err := h.terminate(Process{PID: 1 << 21}); err == nil || !strings.Contains(err.Error(), "open process") {
			t.Errorf("of no process the error is %v", err)
		}
		if _, err := os.Stat(h.Marker); err == nil {
			t.Error("the marker was written")
		}
		h.find()
	})
	for name, text := range map[string]string{"no number": "secret", "a path": "../1", "a sign": "-1", "nothing": "", "too high": "99999999", "init": "1", "too long": strings.Repeat("1", 100)} {
		t.Run("the file has "+name, func(t *testing.T) {
			h := newHost(t)
			h.write("k3s.pid", text, 0o644)
			if p, err := h.Find(); err == nil || strings.Contains(err.Error(), "secret") {
				t.Errorf("it is %+v, %v", p, err)
			}
		})
	}
	t.Run("there is no file", func(t *testing.T) {
		h := newHost(t)
		if _, err := h.Find(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the error is %v", err)
		}
		_ = h.refuses(Process{}, "no such file")
	})
}

func TestTheSupervisorIsAskedFirst(t *testing.T) {
	h := newHost(t)
	h.start("cluster-init.sh", "k3s", "server")
	said := h.supervise(say("hooks run\nOK restarting\n"))
	h.mustStay(h.Restart(t.Context(), h.find()), said)
	h.mustStay(h.Restart(t.Context(), Process{}), said)
}

// mustStay wants that the supervisor was asked, and that nothing else was done.
func (h *host) mustStay(err error, said <-chan string) {
	h.Helper()
	if line := <-said; err != nil || line != "restart\n" {
		h.Errorf("it was told %q, and the error is %v", line, err)
	}
	h.find()
	if _, err := os.Stat(h.Marker); err == nil {
		h.Error("the marker was written")
	}
}

func TestASupervisorThatListensIsNotOverruled(t *testing.T) {
	for name, row := range map[string]struct {
		answer func(net.Conn)
		words  string
		done   bool // k3s may restart all the same
	}{
		"it refuses":           {say("ERR busy\n"), `nothing was done: the supervisor answers "ERR busy"`, false},
		"the last line counts": {say("OK wait\nERR no\n"), `nothing was done: the supervisor answers "ERR no"`, false},
		"it says nothing":      {say("\n"), "the supervisor does not answer", true},
		"it ends":              {func(net.Conn) {}, "the supervisor does not answer", true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.start("cluster-init.sh", "k3s", "server")
			h.supervise(row.answer)
			if err := h.refuses(h.find(), row.words); errors.Is(err, ErrNothingDone) == row.done {
				t.Errorf("the error is %v", err)
			}
		})
	}
	t.Run("its socket is left over", func(t *testing.T) {
		h := newHost(t)
		ended := h.start("cluster-init.sh", "k3s", "server")
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: h.Socket})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		_ = l.Close()
		if err := h.Restart(t.Context(), h.find()); err != nil {
			t.Fatal(err)
		}
		<-ended
		_, _ = os.Remove(h.PID), os.Remove(h.Marker)
		if p, err := h.Find(); err != nil || p != (Process{}) {
			t.Errorf("it is %+v, %v", p, err)
		}
		if err := h.refuses(Process{}, "connection refused"); !errors.Is(err, ErrNothingDone) {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("it refuses, and the process is not known", func(t *testing.T) {
		h := newHost(t)
		h.supervise(say("ERR no such \x1b[31mcommand\n"))
		if p, err := h.Find(); err != nil || p != (Process{}) {
			t.Errorf("it is %+v, %v", p, err)
		}
		_ = h.refuses(Process{}, `the supervisor answers "ERR no such \x1b[31mcommand"`)
	})
	t.Run("it leaves the connection open after its answer", func(t *testing.T) {
		h := newHost(t)
		h.start("cluster-init.sh", "k3s", "server")
		hung := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		said := h.supervise(func(c net.Conn) { say("OK restarting\n")(c); untilRead(c); cancel(); <-hung })
		h.Cleanup(func() { close(hung) })
		h.mustStay(h.Restart(ctx, h.find()), said)
	})
	t.Run("it refuses, and the file is gone by then", func(t *testing.T) {
		h := newHost(t)
		h.start("cluster-init.sh", "k3s", "server")
		found := h.find()
		h.supervise(func(c net.Conn) { _ = os.Remove(h.PID); say("ERR busy\n")(c) })
		h.PID += ".gone"
		h.Proc = h.dir // nothing can be seen of the process either
		if err := h.Restart(t.Context(), found); err == nil {
			t.Error("k3s is said to have restarted")
		}
	})
	t.Run("it talks for ever", func(t *testing.T) {
		h := newHost(t)
		h.supervise(func(c net.Conn) {
			for {
				if _, err := c.Write([]byte(strings.Repeat("OK ", 1000))); err != nil {
					return
				}
			}
		})
		if err := h.Restart(t.Context(), Process{}); err != nil {
			t.Error(err)
		}
	})
}

func TestASupervisorThatHangsIsAskedNoLongerThanTheCallLasts(t *testing.T) {
	h := newHost(t)
	hung := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h.supervise(func(net.Conn) { cancel(); <-hung })
	h.Cleanup(func() { close(hung) })
	if err := h.Restart(ctx, Process{}); err == nil || errors.Is(err, ErrNothingDone) {
		t.Errorf("the error is %v", err)
	}
}
