package overview

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/zedkube/zedkube/pkg/base/safefile"
)

const (
	// maxFile bounds what is read of a file. A topic's value has at most 64 KiB
	// and large fields, at most three, of less than 1 MiB each.
	maxFile = 4 << 20
	// maxObjects bounds how much a file may become in memory: no agent writes
	// a hundredth of that.
	maxObjects = 100_000
	// maxKeys bounds the files of a topic, and maxRead the bytes of all.
	maxKeys = 1024
	maxRead = 64 << 20
)

// ReadFile reads the JSON of a topic's value, and when it was written. What is
// no regular file, too large, half written or of another shape is an error.
func ReadFile[T any](path string) (v T, written time.Time, err error) {
	raw, written, err := content(path)
	if err != nil {
		return v, written, err
	}
	if bytes.Count(raw, []byte("{")) > maxObjects || bytes.Count(raw, []byte(",")) > 5*maxObjects {
		return v, time.Time{}, fmt.Errorf("%s is larger than any agent writes", path)
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		var none T // not a part of it
		return none, time.Time{}, fmt.Errorf("%s cannot be read: %w", path, err)
	}
	return v, written, nil
}

// content is the bytes of a file that could be a topic's value.
func content(path string) ([]byte, time.Time, error) {
	f, info, err := safefile.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, time.Time{}, err
	}
	defer f.Close()
	raw, err := safefile.All(f, maxFile)
	switch {
	case err != nil:
		return nil, time.Time{}, err
	case bytes.Equal(bytes.TrimSpace(raw), []byte("null")):
		return nil, time.Time{}, fmt.Errorf("%s is empty", path)
	}
	return raw, info.ModTime(), nil
}

// missing reports that a file is simply not there.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// UTC is a time that JSON can hold: a file may claim any.
func UTC(t time.Time) time.Time {
	t = t.UTC()
	if t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}
