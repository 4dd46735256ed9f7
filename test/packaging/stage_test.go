package packaging

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const script = "../../.package/start.sh"

// playedAs is the environment variable that makes this program play zedkube.
const playedAs = "ZEDKUBE_PLAYED"

func TestMain(m *testing.M) {
	if os.Getenv(playedAs) == "" {
		os.Exit(m.Run())
	}
	os.Exit(play(os.Getenv(playedAs)))
}

// play is zedkube, played: it writes what happens to it into the file heard,
// beside its root's run directory.
func play(part string) int {
	root := os.Args[2]
	heard, err := os.OpenFile(filepath.Join(root, "heard"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 99
	}
	signals := make(chan os.Signal, 9)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	fmt.Fprintln(heard, "started", os.Getpid(), strings.Join(os.Args[1:], " "))
	switch part {
	case "crashes":
		return 3
	case "lasts":
		time.Sleep(1500 * time.Millisecond)
		return 4
	}
	if part != "silent" {
		if err := os.WriteFile(filepath.Join(root, "run/zedkube.touch"), nil, 0o600); err != nil {
			return 99
		}
	}
	for s := range signals {
		fmt.Fprintln(heard, "got", s)
		if s == syscall.SIGTERM {
			return 7
		}
		if s == syscall.SIGQUIT {
			return 2
		}
	}
	return 0
}

// started is a start script that runs.
type started struct {
	*testing.T
	root string
	cmd  *exec.Cmd
	log  string // file
	done chan error
}

// shells are those of the machine that the script may meet: EVE's is busybox's.
func shells() [][]string {
	all := [][]string{{"sh"}}
	for _, s := range [][]string{{"busybox", "ash"}, {"bash", "--posix"}} {
		if _, err := exec.LookPath(s[0]); err == nil {
			all = append(all, s)
		}
	}
	return all
}

// withEveryShell runs a story with each of them.
func withEveryShell(t *testing.T, story func(t *testing.T, shell []string)) {
	t.Helper()
	for _, shell := range shells() {
		t.Run(shell[0], func(t *testing.T) {
			t.Parallel()
			story(t, shell)
		})
	}
}

// start runs the script with zedkube played; edit may change the script first.
func start(t *testing.T, shell []string, part string, args []string, edit ...string) *started {
	t.Helper()
	root := t.TempDir()
	text, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "zedkube-start.sh")
	own, err := os.Executable()
	if err == nil {
		err = errors.Join(os.Mkdir(filepath.Join(root, "run"), 0o755), os.Symlink(own, filepath.Join(root, "zedkube")),
			os.WriteFile(file, []byte(strings.NewReplacer(edit...).Replace(string(text))), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &started{T: t, root: root, log: filepath.Join(root, "log"), done: make(chan error, 1)}
	log, err := os.Create(s.log)
	if err != nil {
		t.Fatal(err)
	}
	s.cmd = exec.Command(shell[0], append(append(shell[1:], file), args...)...)
	s.cmd.Env = append(os.Environ(), "ZEDKUBE_ROOT="+root, playedAs+"="+part)
	s.cmd.Stderr = log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := heedful(s.cmd.Start); err != nil {
		t.Fatal(err)
	}
	go func() { s.done <- s.cmd.Wait() }()
	t.Cleanup(func() {
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		_ = log.Close()
	})
	return s
}

// heedful starts something that heeds signals, whatever this test was started
// with: nohup makes it deaf to one, and what it starts as well. No shell can trap
// what it was made deaf to.
func heedful(start func() error) error {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGHUP, syscall.SIGINT)
	defer signal.Stop(heard)
	return start()
}

func (s *started) read(name string) string {
	content, _ := os.ReadFile(filepath.Join(s.root, name))
	return string(content)
}

// await waits until a file holds something that many times.
func (s *started) await(name, what string, times int) {
	s.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if strings.Count(s.read(name), what) >= times {
			return
		}
		if time.Now().After(end) {
			s.Fatalf("%q is not %d times in %s:\n%s\nlog:\n%s", what, times, name, s.read(name), s.read("log"))
		}
	}
}

// awaitFile waits until a file is there.
func (s *started) awaitFile(name string) {
	s.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(s.root, name)); err == nil {
			return
		}
		if time.Now().After(end) {
			s.Fatalf("%s is never there; log:\n%s", name, s.read("log"))
		}
	}
}

func (s *started) signal(sig syscall.Signal) {
	s.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.Fatal(err)
	}
}

// ends waits for the script's end and says with which exit code.
func (s *started) ends() int {
	s.Helper()
	select {
	case <-s.done:
		return s.cmd.ProcessState.ExitCode()
	case <-time.After(time.Minute):
		s.Fatalf("it does not end; log:\n%s", s.read("log"))
		return 0
	}
}

// judgeLog says whether each line is one that newlogd understands
// (docs/wire.md, "Log lines").
func (s *started) judgeLog(level string) {
	s.Helper()
	for line := range strings.Lines(s.read("log")) {
		var entry struct {
			Level, Msg, Source string
			PID                int
			Time               time.Time
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			s.Errorf("line %q: %v", line, err)
			continue
		}
		if entry.Level != level || entry.Msg == "" || entry.Source != "zedkube-start" || entry.PID != s.cmd.Process.Pid || time.Since(entry.Time) > time.Hour {
			s.Errorf("line %q", line)
		}
	}
}
