package packaging

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestTheScriptRegistersWithTheWatchdogWhenTheTouchFileIsThere(t *testing.T) {
	withEveryShell(t, func(t *testing.T, shell []string) {
		s := start(t, shell, "silent", nil)
		s.await("heard", "started", 1)
		time.Sleep(1500 * time.Millisecond)
		registered := filepath.Join(s.root, "run/watchdog/file/zedkube.touch")
		if _, err := os.Stat(registered); err == nil {
			t.Error("registered before the touch file was there")
		}
		if err := os.WriteFile(filepath.Join(s.root, "run/zedkube.touch"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		s.awaitFile("run/watchdog/file/zedkube.touch")
		s.signal(syscall.SIGTERM)
		s.ends()
	})
}

func TestAnAgentThatNeverTouchesIsRegisteredAllTheSame(t *testing.T) {
	withEveryShell(t, func(t *testing.T, shell []string) {
		s := start(t, shell, "silent", nil, `"$waited" -lt 60`, `"$waited" -lt 1`)
		s.await("log", "it is registered with the watchdog all the same", 1)
		s.awaitFile("run/watchdog/file/zedkube.touch")
		s.signal(syscall.SIGTERM)
		s.ends()
	})
}

func TestTheScriptPassesItsWordsOn(t *testing.T) {
	withEveryShell(t, func(t *testing.T, shell []string) {
		s := start(t, shell, "runs", []string{"--page=off", "a b"})
		s.await("heard", "started", 1)
		if want := " --root " + s.root + " run --page=off a b\n"; !strings.Contains(s.read("heard"), want) {
			t.Errorf("heard %q, want %q", s.read("heard"), want)
		}
		s.signal(syscall.SIGTERM)
		s.ends()
	})
}

func TestWhoEndsTheScriptEndsZedkubeFirst(t *testing.T) {
	withEveryShell(t, func(t *testing.T, shell []string) {
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
			s := start(t, shell, "runs", nil)
			s.await("heard", "started", 1)
			s.signal(sig)
			if code := s.ends(); code != 7 {
				t.Errorf("%v: exit code %d, want zedkube's, 7", sig, code)
			}
			if !strings.Contains(s.read("heard"), "got terminated") {
				t.Errorf("%v: heard %q", sig, s.read("heard"))
			}
			s.judgeLog("info")
		}
	})
}

func TestTheExitCodeIsZedkubesThoughItEndsWhileTheScriptIsTold(t *testing.T) {
	withEveryShell(t, func(t *testing.T, shell []string) {
		s := start(t, shell, "runs", nil, "code=$?\n", "code=$?; sleep 0.5\n") // it ends meanwhile
		s.await("heard", "started", 1)
		s.signal(syscall.SIGTERM)
		if code := s.ends(); code != 7 {
			t.Errorf("exit code %d, want zedkube's, 7", code)
		}
	})
}

func TestOtherSignalsArePassedOnAndItIsStartedAgain(t *testing.T) {
	withEveryShell(t, func(t *testing.T, shell []string) {
		s := start(t, shell, "runs", nil)
		s.await("heard", "started", 1)
		s.signal(syscall.SIGHUP)
		s.await("heard", "got hangup", 1)
		if strings.Contains(s.read("log"), "ended") {
			t.Error("the script takes a signal that zedkube has taken for its end")
		}
		s.signal(syscall.SIGQUIT)
		s.await("heard", "got quit", 1)
		s.await("heard", "started", 2)
		if !strings.Contains(s.read("log"), "zedkube ended with exit code 2") {
			t.Errorf("log %s", s.read("log"))
		}
		s.signal(syscall.SIGTERM)
		if code := s.ends(); code != 7 {
			t.Errorf("exit code %d", code)
		}
	})
}

func TestACrashIsFollowedByAnotherTryAndALongerPause(t *testing.T) {
	withEveryShell(t, func(t *testing.T, shell []string) {
		began := time.Now()
		s := start(t, shell, "crashes", nil, "longest=60", "longest=3")
		s.await("heard", "started", 4)
		if took := time.Since(began); took < 6*time.Second {
			t.Errorf("four tries after %s, want pauses of 1, 2 and 3 s", took)
		}
		for _, pause := range []string{"in 1 s", "in 2 s", "in 3 s"} {
			s.await("log", "it is started again "+pause, 1)
		}
		s.await("log", "in 3 s", 2)
		s.judgeLog("error")
		s.signal(syscall.SIGTERM)
		s.ends()
	})
}

func TestTheScriptEndsInAPauseToo(t *testing.T) {
	withEveryShell(t, func(t *testing.T, shell []string) {
		s := start(t, shell, "crashes", nil, "\npause=1\n", "\npause=3600\n")
		s.await("log", "in 3600 s", 1)
		s.signal(syscall.SIGTERM)
		if code := s.ends(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
}

func TestWhoHasRunLongIsStartedAgainSoon(t *testing.T) {
	withEveryShell(t, func(t *testing.T, shell []string) {
		s := start(t, shell, "lasts", nil, "settled=300", "settled=1")
		s.await("log", "exit code 4", 3)
		if strings.Contains(s.read("log"), "in 2 s") {
			t.Errorf("log %s", s.read("log"))
		}
		s.signal(syscall.SIGTERM)
		s.ends()
	})
}

func TestNoProgramIsSaidAndEnds(t *testing.T) {
	withEveryShell(t, func(t *testing.T, shell []string) {
		s := start(t, shell, "runs", nil, `$(dirname "$0")/zedkube`, "/nowhere/zedkube")
		if code := s.ends(); code != 127 {
			t.Errorf("exit code %d", code)
		}
		s.await("log", "no such program: /nowhere/zedkube", 1)
		s.judgeLog("error")
	})
}
