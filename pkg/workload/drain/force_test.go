package drain

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pkg/base/forcefile"
	"github.com/zedkube/zedkube/types"
)

func TestAForced9EndsTheDrainAndKeepsTheCordon(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.Block(appZero, true)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(10 * time.Second)
		s.write(s.force, `{"Status":9}`)
		time.Sleep(time.Second)
		s.is(types.DrainComplete, deviceOp)
		s.cordoned(true, true)
		if _, err := os.Lstat(s.force); err == nil {
			t.Error("the force file was not used up")
		}
		evictions := len(s.kube.Calls("evict"))
		time.Sleep(time.Hour)
		s.is(types.DrainComplete, deviceOp)
		if n := len(s.kube.Calls("evict")); n != evictions {
			t.Errorf("%d evictions after the end", n-evictions)
		}
	})
}

func TestAForced1DisablesDrainsWhileTheFileExists(t *testing.T) {
	story(t, 1, func(s *stage) {
		defer s.run()()
		s.write(s.force, `{"Status":1,"RequestedBy":1}`)
		time.Sleep(time.Second)
		s.is(types.DrainNotSupported, nobody)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Minute)
		s.is(types.DrainNotSupported, deviceOp)
		if n := s.acts(); n != 0 {
			t.Errorf("%d calls", n)
		}
		s.remove(s.force)
		time.Sleep(10 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestAForced9EndsTheDrainOfARequestNotHeardOfAgain(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.interrupted()
		r, _ := s.zedagent.Get(types.Global)
		_ = s.zedagent.Unpublish(types.Global)
		s.zedagent.notReceived.Store(true)
		s.write(s.force, `{"Status":9}`)
		defer s.run()()
		time.Sleep(time.Second)
		s.is(types.DrainComplete, deviceOp)
		_ = s.zedagent.Publish(types.Global, r)
		time.Sleep(time.Minute)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestAForced9WaitsForARequestNotHeardOfYet(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.zedagent.notReceived.Store(true)
		s.run()() // the first start of the boot removes what is there
		s.write(s.force, `{"Status":9}`)
		defer s.run()()
		time.Sleep(61 * time.Second) // between two looks
		s.zedagent.notReceived.Store(false)
		s.kube.Block(appZero, true)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(5 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestAForced9InPlaceOfA1EndsTheDrainThatWasAskedFor(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.Block(appZero, true)
		defer s.run()()
		s.write(s.force, `{"Status":1}`)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Minute)
		s.write(s.force, `{"Status":9}`)
		time.Sleep(3 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		if _, err := os.Lstat(s.force); err == nil {
			t.Error("the force file was not used up")
		}
	})
}

func TestTheFaultMarkerHoldsCompleteBack(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.write(s.marker, "")
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Hour)
		s.is(types.DrainRetrying, deviceOp)
		s.remove(s.marker)
		time.Sleep(2 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestForceFilesThatAreNoneAreReportedOnceAndIgnored(t *testing.T) {
	for name, create := range map[string]func(path string) error{
		"half-written": func(p string) error { return os.WriteFile(p, []byte(`{"Status":`), 0o600) },
		"no status":    func(p string) error { return os.WriteFile(p, []byte(`{}`), 0o600) },
		"out of range": func(p string) error { return os.WriteFile(p, []byte(`{"Status":10}`), 0o600) },
		"too long":     func(p string) error { return os.WriteFile(p, make([]byte, 10000), 0o600) },
		"writable": func(p string) error {
			return errors.Join(os.WriteFile(p, []byte(`{"Status":1}`), 0o600), os.Chmod(p, 0o602))
		},
		"of the group": func(p string) error {
			return errors.Join(os.WriteFile(p, []byte(`{"Status":1}`), 0o600), os.Chmod(p, 0o620))
		},
		"hard link": func(p string) error {
			return errors.Join(os.WriteFile(p+".real", []byte(`{"Status":1}`), 0o600), os.Link(p+".real", p))
		},
		"directory": func(p string) error { return os.Mkdir(p, 0o700) },
		"symlink": func(p string) error {
			if err := os.WriteFile(p+".real", []byte(`{"Status":1}`), 0o600); err != nil {
				return err
			}
			return os.Symlink(p+".real", p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				defer s.run()()
				if err := create(s.force); err != nil {
					t.Fatal(err)
				}
				s.files.Ring()
				time.Sleep(time.Minute)
				s.is(types.DrainNotRequested, nobody)
				var lines []string
				for _, e := range s.log.AllEntries() {
					if strings.Contains(e.Message, "force file") {
						lines = append(lines, e.Message)
					}
				}
				if d := cmp.Diff([]string{"NodeDrainStatus force file ignored"}, lines); d != "" {
					t.Error(d)
				}
			})
		})
	}
}

func TestAForceFileOfAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to give a file away")
	}
	path := filepath.Join(t.TempDir(), "force")
	if err := errors.Join(os.WriteFile(path, []byte(`{"Status":9}`), 0o600), os.Chown(path, 12345, 12345)); err != nil {
		t.Fatal(err)
	}
	if v, err := forcefile.Read(path); err == nil {
		t.Errorf("got %v", v)
	}
}
