package pubsub

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/time/rate"

	"github.com/zedkube/zedkube/pkg/base/failpoint"
	"github.com/zedkube/zedkube/pkg/base/safefile"
)

const (
	tempPrefix = "tmp"
	// maxFile bounds what is read of one file: large fields stand inline there,
	// and each of those is below 1 MiB.
	maxFile = 16 << 20
)

// writeFile replaces dir/name in one step: a reader sees the old or the new
// value, never a part. durable makes it outlive a power cut; for files in
// /run, which is memory, an fsync would cost time and buy nothing.
func writeFile(dir, name string, data []byte, durable bool) error {
	if err := replaceFile(dir, name, data, durable); err != nil || !durable {
		return err
	}
	return syncDir(dir)
}

// replaceFile is writeFile without the sync of the directory, until which a
// power cut may bring the old file back.
func replaceFile(dir, name string, data []byte, durable bool) error {
	f, err := os.CreateTemp(dir, tempPrefix+"*") // mode 0600
	if errors.Is(err, os.ErrNotExist) {
		// Someone took the directory away.
		if err = os.MkdirAll(dir, 0o700); err == nil {
			f, err = os.CreateTemp(dir, tempPrefix+"*")
		}
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, reason(err))
	}
	_, err = f.Write(data)
	if err == nil && durable {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		to := filepath.Join(dir, name)
		err = failpoint.Do("publish", to, func() error { return os.Rename(f.Name(), to) })
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("write %s: %w", name, reason(err))
	}
	return nil
}

// reason is err without the name of the temporary file, which differs from try
// to try and would make the same failure look new each time.
func reason(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

// removeFile removes dir/name; that there is none is fine.
func removeFile(dir, name string, durable bool) error {
	path := filepath.Join(dir, name)
	if err := failpoint.Do("withdraw", path, func() error { return os.Remove(path) }); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return fmt.Errorf("remove %s: %w", name, err)
	}
	if durable {
		return syncDir(dir)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}

// readDir returns the values in dir by key. A file that cannot be read is in
// bad. The error is about the directory alone.
func readDir(dir string) (values map[string][]byte, bad map[string]error, err error) {
	return readFiles(dir, "")
}

// readFiles is readDir for the files whose name has suffix behind that of a value.
func readFiles(dir, suffix string) (values map[string][]byte, bad map[string]error, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	values, bad = map[string][]byte{}, map[string]error{}
	for _, e := range entries {
		name, has := strings.CutSuffix(e.Name(), suffix)
		key, ok := fileKey(name)
		if !has || !ok {
			continue
		}
		if !e.Type().IsRegular() {
			bad[key] = safefile.ErrNotRegular
			continue
		}
		data, err := safefile.Read(filepath.Join(dir, e.Name()), maxFile)
		switch {
		case errors.Is(err, os.ErrNotExist): // removed since the listing
		case err != nil:
			bad[key] = err
		default:
			values[key] = data
		}
	}
	return values, bad, nil
}

// writtenWithin is far longer than a living writer needs from its temporary file to the rename.
const writtenWithin = time.Minute

// sweepTemp removes what a writer left that died before its rename, but what is
// younger than that: its writer may be about to.
func sweepTemp(dir string, young time.Duration) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), tempPrefix) || strings.Contains(e.Name(), fileSuffix) || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); young == 0 || err == nil && time.Since(info.ModTime()) > young {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

const (
	// maxLogged is how many lines of the log one publisher may cause at once.
	maxLogged = 20
	// logEvery is how often it may cause one more.
	logEvery = time.Minute
)

// quota bounds what is logged because of one publisher, in all its topics.
type quota struct {
	mu          sync.Mutex
	limit       *rate.Limiter
	unpublished int // lines that were left out since the last one
}

func newQuota() *quota {
	return &quota{limit: rate.NewLimiter(rate.Every(logEvery), maxLogged)}
}

// take returns the logger for one more line, or false where there were too many.
// The first line that is left out is announced, and the next one that is not tells
// how many were.
func (q *quota) take(log logrus.FieldLogger) (logrus.FieldLogger, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.limit.Allow() {
		if q.unpublished++; q.unpublished == 1 {
			log.Warn("its publisher causes too many log lines: only one a minute is logged; zedkube_pubsub_refused_total counts invalid values")
		}
		return nil, false
	}
	if q.unpublished > 0 {
		log = log.WithField("left_out", q.unpublished)
		q.unpublished = 0
	}
	return log, true
}
