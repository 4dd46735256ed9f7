package watchdog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// wire is a topic whose values come back, unless it is cut.
type wire struct {
	pubsub.Table[types.WatchdogBeat]
	back pubsub.Table[types.WatchdogBeat]
	cut  atomic.Bool
	full atomic.Bool  // nothing can be published
	late atomic.Int64 // how long they take
}

func (w *wire) Publish(key string, v types.WatchdogBeat) error {
	if w.full.Load() {
		return fmt.Errorf("publish: %w", syscall.ENOSPC)
	}
	switch late := time.Duration(w.late.Load()); {
	case w.cut.Load():
	case late > 0:
		time.AfterFunc(late, func() { _ = w.back.Publish(key, v) })
	default:
		_ = w.back.Publish(key, v)
	}
	return w.Table.Publish(key, v)
}

type stage struct {
	t      *testing.T
	wire   wire
	pulses map[string]*loop.Pulse
	file   string
	log    *test.Hook
}

func story(t *testing.T, tell func(s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		logger, hook := test.NewNullLogger()
		s := &stage{t: t, file: filepath.Join(t.TempDir(), "zedkube.touch"), log: hook, pulses: map[string]*loop.Pulse{"drain": {}}}
		c := &Component{Log: logger, Beat: &s.wire, Echo: &s.wire.back, Pulses: s.pulses, TouchFile: s.file}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); c.Run(ctx) }()
		defer func() { cancel(); <-done }()
		tell(s)
	})
}

// age is how old the touch file is in the bubble's time.
func (s *stage) age() time.Duration {
	s.t.Helper()
	synctest.Wait()
	info, err := os.Stat(s.file)
	if err != nil {
		s.t.Fatal(err)
	}
	return time.Since(info.ModTime())
}

func (s *stage) errors() (lines []string) {
	for _, e := range s.log.AllEntries() {
		if e.Level == logrus.ErrorLevel {
			lines = append(lines, fmt.Sprint(e.Message, e.Data))
		}
	}
	return lines
}

// every runs step in a loop with a pulse of the name.
func (s *stage) every(ctx context.Context, name string, step loop.Step) {
	logger, _ := test.NewNullLogger()
	go loop.Run(ctx, logger, s.pulses[name], time.Second, step)
}

func TestTheFileIsTouchedAtOnceAndEveryTenSeconds(t *testing.T) {
	story(t, func(s *stage) {
		if age := s.age(); age > time.Millisecond {
			t.Errorf("first touch is %s old", age)
		}
		info, _ := os.Stat(s.file)
		if info.Mode().Perm()&0o444 != 0o444 {
			t.Errorf("mode %v", info.Mode())
		}
		touches, last := 0, info.ModTime()
		for range 600 {
			time.Sleep(time.Second)
			if age := s.age(); age > 11*time.Second {
				t.Fatalf("file is %s old", age)
			}
			info, _ := os.Stat(s.file)
			if !info.ModTime().Equal(last) {
				touches, last = touches+1, info.ModTime()
			}
		}
		if touches < 58 || touches > 60 {
			t.Errorf("%d touches in ten minutes", touches)
		}
	})
}

func TestABeatThatDoesNotComeBackStopsTheTouch(t *testing.T) {
	story(t, func(s *stage) {
		s.age() // the first beat has come back
		s.wire.cut.Store(true)
		time.Sleep(time.Hour)
		if age := s.age(); age < time.Hour-time.Minute {
			t.Errorf("file is only %s old", age)
		}
		if got := s.errors(); len(got) != 1 {
			t.Errorf("errors: %q", got)
		}
		s.wire.cut.Store(false)
		time.Sleep(period + time.Second)
		if age := s.age(); age > period+time.Second {
			t.Errorf("file is %s old", age)
		}
	})
}

func TestABusyDeviceWhoseBeatsComeBackLateIsFed(t *testing.T) {
	for _, late := range []time.Duration{5 * time.Second, period, 12 * time.Second, 45 * time.Second} {
		story(t, func(s *stage) {
			s.age()
			s.wire.late.Store(int64(late))
			for range 60 {
				time.Sleep(10 * time.Second)
				if age := s.age(); age > late+2*period {
					t.Fatalf("late by %s: file is %s old", late, age)
				}
			}
			s.wire.cut.Store(true)
			time.Sleep(10 * time.Minute)
			if age := s.age(); age < 9*time.Minute {
				t.Errorf("late by %s, and then nothing comes back: file is only %s old", late, age)
			}
		})
	}
}

func TestAFullDiskDoesNotStopTheTouchADeadlockOnItDoes(t *testing.T) {
	story(t, func(s *stage) {
		s.age()
		s.wire.full.Store(true)
		for range 60 {
			time.Sleep(time.Minute)
			if age := s.age(); age > 25*time.Second {
				t.Fatalf("file is %s old", age)
			}
		}
		if got := s.errors(); len(got) != 1 || !strings.Contains(got[0], "no space left") {
			t.Errorf("errors: %q, want one that says why", got)
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		s.every(ctx, "drain", func(context.Context) error { <-ctx.Done(); return nil })
		time.Sleep(10 * time.Minute)
		if age := s.age(); age < 5*time.Minute {
			t.Errorf("file is only %s old with a loop that is stuck", age)
		}
	})
}

func TestAnOldEchoProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, _ := test.NewNullLogger()
		file := filepath.Join(t.TempDir(), "touch")
		w := &wire{}
		w.cut.Store(true)
		_ = w.Publish(types.Global, types.WatchdogBeat{Count: 7})
		_ = w.back.Publish(types.Global, types.WatchdogBeat{Count: 7})
		c := &Component{Log: logger, Beat: w, Echo: &w.back, TouchFile: file}
		for range 10 {
			_ = c.Step(t.Context())
			time.Sleep(time.Second)
		}
		if _, err := os.Stat(file); err == nil {
			t.Error("an echo of an earlier process fed the watchdog")
		}
	})
}

func TestADeadlockedLoopStopsTheTouch(t *testing.T) {
	story(t, func(s *stage) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		s.every(ctx, "drain", func(context.Context) error { <-ctx.Done(); return nil }) // deaf to its own deadline
		time.Sleep(10 * time.Minute)
		if age := s.age(); age < 5*time.Minute {
			t.Errorf("file is only %s old", age)
		}
		if got := s.errors(); len(got) != 1 || !strings.Contains(got[0], "drain") {
			t.Errorf("errors: %q, want one that names the loop", got)
		}
	})
}

func TestASlowAPINeverStopsTheTouch(t *testing.T) {
	story(t, func(s *stage) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		s.every(ctx, "drain", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }) // every call hangs until its deadline
		for range 60 {
			time.Sleep(time.Minute)
			if age := s.age(); age > 25*time.Second {
				t.Fatalf("file is %s old", age)
			}
		}
	})
}

func TestWithoutKubernetesTheFileIsFedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, _ := test.NewNullLogger()
		s := &stage{t: t, file: filepath.Join(t.TempDir(), "touch")}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); FeedOnly(ctx, logger, s.file) }()
		for range 100 {
			time.Sleep(7 * time.Second)
			if age := s.age(); age > period {
				t.Fatalf("file is %s old", age)
			}
		}
		cancel()
		<-done
	})
}

func TestTheBeatComesBackThroughARealSocket(t *testing.T) {
	defer goleak.VerifyNone(t)
	root := t.TempDir()
	logger, _ := test.NewNullLogger()
	bus := pubsub.NewBus(root, logger)
	beat := pubsub.NewPublication[types.WatchdogBeat](bus, "zedkube")
	echo := pubsub.NewSubscription[types.WatchdogBeat](bus, "zedkube", pubsub.SocketOnly())
	if err := bus.Open(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}, 2)
	c := &Component{Log: logger, Beat: beat, Echo: echo, TouchFile: filepath.Join(root, "touch")}
	go func() { bus.Run(ctx); done <- struct{}{} }()
	go func() { c.Run(ctx); done <- struct{}{} }()
	defer func() { cancel(); <-done; <-done }()
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(c.TouchFile); err == nil {
			return
		}
		if time.Since(start) > time.Minute {
			t.Fatal("never touched")
		}
	}
}

func TestABeatThatOnlyReachesTheDirectoryProvesNothing(t *testing.T) {
	defer goleak.VerifyNone(t)
	root := t.TempDir()
	logger, _ := test.NewNullLogger()
	deaf, hearing := pubsub.NewBus(root, logger), pubsub.NewBus(root, logger)
	beat := pubsub.NewPublication[types.WatchdogBeat](deaf, "zedkube")
	echo := pubsub.NewSubscription[types.WatchdogBeat](hearing, "zedkube", pubsub.SocketOnly())
	// The first bus writes files, but nobody ever serves its socket.
	if err := errors.Join(deaf.Open(), hearing.Open()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	c := &Component{Log: logger, Beat: beat, Echo: echo, TouchFile: filepath.Join(root, "touch")}
	running.Go(func() { c.Run(ctx) })
	time.Sleep(200 * time.Millisecond) // the beat is in the directory
	running.Go(func() { hearing.Run(ctx) })
	time.Sleep(300 * time.Millisecond)
	cancel()
	running.Wait()
	closed, end := context.WithCancel(context.Background())
	end()
	deaf.Run(closed)
	if _, err := os.Stat(filepath.Join(root, "run/zedkube/WatchdogBeat/global.json")); err != nil {
		t.Error("the beat did not even reach the directory: ", err)
	}
	if _, err := os.Stat(c.TouchFile); err == nil {
		t.Error("touched")
	}
}

func TestThePIDFile(t *testing.T) {
	own := fmt.Sprintln(os.Getpid())
	for _, row := range []struct{ before, old, warns string }{
		{"missing", "", ""},
		{"stale", "4194305\n", ""},
		{"garbage", "x", ""},
		{"of a live process", "1\n", "pid file names another running process, replacing it"},
		{"our own", own, ""},
		{"a FIFO", "", ""},
		{"a link to nothing", "", ""},
	} {
		t.Run(row.before, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "zedkube.pid")
			if row.old != "" {
				if err := os.WriteFile(path, []byte(row.old), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			switch row.before {
			case "a FIFO":
				if err := syscall.Mkfifo(path, 0o600); err != nil {
					t.Fatal(err)
				}
			case "a link to nothing":
				if err := os.Symlink("nothing", path); err != nil {
					t.Fatal(err)
				}
			}
			logger, hook := test.NewNullLogger()
			remove := WritePID(logger, path)
			if info, err := os.Lstat(path); err != nil || info.Mode() != 0o644 {
				t.Fatalf("it is %v, %v", info, err)
			}
			if got, _ := os.ReadFile(path); string(got) != own {
				t.Errorf("file holds %q", got)
			}
			warned := ""
			for _, e := range hook.AllEntries() {
				if e.Level <= logrus.WarnLevel {
					warned = e.Message
				}
			}
			if warned != row.warns {
				t.Errorf("warned %q, want %q", warned, row.warns)
			}
			remove()
			if _, err := os.Stat(path); err == nil {
				t.Error("file is still there")
			}
			if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func TestAPIDFileThatSomebodyTookOverStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "zedkube.pid")
	logger, _ := test.NewNullLogger()
	remove := WritePID(logger, path)
	if err := os.WriteFile(path, []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	remove()
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

func TestAPIDFileThatCannotBeWrittenAtTheStartIsWrittenLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "zedkube.pid")
		full := path + ".new/full" // as on a full /run
		if err := errors.Join(os.WriteFile(path, []byte("4194305\n"), 0o600), os.MkdirAll(full, 0o700)); err != nil {
			t.Fatal(err)
		}
		logger, _ := test.NewNullLogger()
		remove := WritePID(logger, path)
		time.Sleep(time.Minute)
		if pid, ok := readPID(path); ok {
			t.Errorf("it names process %d", pid)
		}
		if err := os.Remove(full); err != nil {
			t.Fatal(err)
		}
		time.Sleep(period)
		synctest.Wait()
		if pid, _ := readPID(path); pid != os.Getpid() {
			t.Errorf("with room again it names process %d", pid)
		}
		remove()
		if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	})
}
