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
// Whatever stands there is replaced and not written to, since to open a FIFO
// would hang: after a crash it is stale, and its number may belong to any other
// process by now. What goes wrong is only
// logged, since nothing depends on the file.
func WritePID(log logrus.FieldLogger, path string) (remove func()) {
	log = log.WithField("file", path)
	own := os.Getpid()
	if old, ok := readPID(path); ok && old != own {
		if err := syscall.Kill(old, 0); err == nil || errors.Is(err, syscall.EPERM) {
			log.WithField("pid_found", old).Warn("pid file names another running process, replacing it")
		} else {
			log.WithField("pid_found", old).Info("stale pid file, replacing it")
		}
	}
	if err := replace(path, strconv.Itoa(own)+"\n"); err != nil {
		log.WithError(err).Error("cannot write pid file")
	}
	return func() {
		if pid, ok := readPID(path); !ok || pid != own {
			return // someone else's by now
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			log.WithError(err).Error("cannot remove pid file")
		}
	}
}

// replace puts a file that everybody may read in the place of what is at path.
func replace(path, content string) error {
	part := path + ".new"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		_ = os.Remove(part)
	}
	return err
}

func readPID(path string) (int, bool) {
	raw, err := safefile.Read(path, safefile.Small)
	if err != nil {
		return 0, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	return pid, err == nil && pid > 0
}
