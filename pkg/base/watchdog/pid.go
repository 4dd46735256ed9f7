package watchdog

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/sirupsen/logrus"
	"github.com/zedkube/zedkube/pkg/base/safefile"
)

// WritePID writes our process id to path and returns what removes it again.
// Whatever stands there is overwritten: after a crash it is stale, and its
// number may belong to any other process by now. What goes wrong is only
// logged, since nothing depends on the file.
func WritePID(log logrus.FieldLogger, path string) (remove func()) {
	log = log.WithField("file", path)
	own := os.Getpid()
	if old, ok := readPID(path); ok && old != own {
		if err := syscall.Kill(old, 0); err == nil || errors.Is(err, syscall.EPERM) {
			log.WithField("pid_found", old).Warn("pid file names another live process; it is taken over")
		} else {
			log.WithField("pid_found", old).Info("pid file of a process that is gone; it is taken over")
		}
	}
	if err := os.WriteFile(path, []byte(strconv.Itoa(own)+"\n"), 0o644); err != nil { //nolint:gosec // it is for others to read
		log.WithError(err).Error("cannot write pid file")
	}
	return func() {
		if pid, ok := readPID(path); !ok || pid != own {
			return // somebody else's by now
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			log.WithError(err).Error("cannot remove pid file")
		}
	}
}

func readPID(path string) (int, bool) {
	raw, err := safefile.Read(path, safefile.Small)
	if err != nil {
		return 0, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	return pid, err == nil && pid > 0
}
