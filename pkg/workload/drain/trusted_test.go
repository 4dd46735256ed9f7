package drain

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

func TestAFaultMarkerThatIsNoneIsReportedOnceAndHoldsNothingBack(t *testing.T) {
	for name, create := range map[string]func(path string) error{
		"of another user": func(p string) error { return errors.Join(os.WriteFile(p, nil, 0o600), os.Chown(p, 65534, 65534)) },
		"writable":        func(p string) error { return errors.Join(os.WriteFile(p, nil, 0o600), os.Chmod(p, 0o666)) },
		"a hard link":     func(p string) error { return errors.Join(os.WriteFile(p+".real", nil, 0o600), os.Link(p+".real", p)) },
		"a symlink": func(p string) error {
			return errors.Join(os.WriteFile(p+".real", nil, 0o600), os.Symlink(p+".real", p))
		},
		"a directory": func(p string) error { return os.Mkdir(p, 0o700) },
		"a fifo":      func(p string) error { return syscall.Mkfifo(p, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			if name == "of another user" && os.Geteuid() != 0 {
				t.Skip("needs root to give a file away")
			}
			story(t, 1, func(s *stage) {
				if err := create(s.marker); err != nil {
					t.Fatal(err)
				}
				defer s.run()()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(time.Hour)
				s.is(types.DrainComplete, deviceOp)
				lines := 0
				for _, e := range s.log.AllEntries() {
					if e.Message == "fault marker ignored" {
						lines++
					}
				}
				if lines != 1 {
					t.Errorf("reported %d times", lines)
				}
			})
		})
	}
}
