package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/zedkube/zedkube/pkg/base/failpoint"
	"github.com/zedkube/zedkube/pkg/base/safefile"
)

const maxWaiting = 256 // lines that are kept while they cannot be written

const maxFull = 4 // full files that wait for a step

var segmentName = regexp.MustCompile(`^operations-([0-9]{8})\.jsonl$`)

// lostLine says how many lines there was never room for.
type lostLine struct {
	At   time.Time `json:"at"`
	Lost int       `json:"lost"`
}

// store appends lines to files. Its zero value is ready.
type store struct {
	file    *os.File   // the newest, nil before the first line
	full    []*os.File // former ones, to be put on the disk and closed
	size    int64      // of file, as far as it is known
	torn    bool       // its last line may lack its end
	waiting [][]byte   // lines that could not be written, oldest first
	lost    int        // of them, for lack of room
}

func (s *store) add(v any) {
	line, err := json.Marshal(v)
	if err != nil { // of plain fields: a time in the year 10000
		s.lost++
		return
	}
	if len(s.waiting) >= maxWaiting {
		s.waiting = s.waiting[1:]
		s.lost++
	}
	s.waiting = append(s.waiting, append(line, '\n'))
}

// flush writes what waits, and before it how much was lost.
func (s *store) flush(dir string, most int64) error {
	if s.lost > 0 {
		line, err := json.Marshal(lostLine{At: time.Now().UTC(), Lost: s.lost})
		if err != nil {
			return fmt.Errorf("count lost operations: %w", err)
		}
		if err := s.write(dir, most, append(line, '\n')); err != nil {
			return err
		}
		s.lost = 0
	}
	for len(s.waiting) > 0 {
		if err := s.write(dir, most, s.waiting[0]); err != nil {
			return err
		}
		s.waiting = s.waiting[1:]
	}
	s.waiting = nil
	return nil
}

// write appends one line. What was half written is ended by the next one.
func (s *store) write(dir string, most int64, line []byte) error {
	if s.file != nil && s.size >= most {
		s.retire()
	}
	if s.file == nil {
		if err := s.open(dir, most); err != nil {
			return err
		}
	}
	if s.torn {
		line = append([]byte{'\n'}, line...)
	}
	n := 0
	err := failpoint.Do("append to", s.file.Name(), func() (err error) { n, err = s.file.Write(line); return err })
	s.size += int64(n)
	if n > 0 {
		s.torn = n < len(line)
	}
	if err != nil {
		return fmt.Errorf("write audit file: %w", err)
	}
	return nil
}

// open goes on with the newest file, or begins one where that is full.
func (s *store) open(dir string, most int64) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make audit directory: %w", err)
	}
	files, err := segments(dir)
	if err != nil {
		return err
	}
	n := 1
	if len(files) > 0 {
		n = files[len(files)-1].n
	}
	for {
		full, err := s.openSegment(filepath.Join(dir, fmt.Sprintf("operations-%08d.jsonl", n)), most)
		if err != nil {
			return fmt.Errorf("open audit file: %w", err)
		}
		if !full {
			return nil
		}
		n++
	}
}

func (s *store) openSegment(path string, most int64) (full bool, err error) {
	f, info, err := safefile.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|safefile.NoFollow, 0o600)
	if err != nil {
		return false, err
	}
	if info.Size() >= most {
		_ = f.Close()
		return true, nil
	}
	last := make([]byte, 1)
	s.torn = false
	if info.Size() > 0 {
		_, err := f.ReadAt(last, info.Size()-1)
		s.torn = err != nil || last[0] != '\n'
	}
	s.file, s.size = f, info.Size()
	return false, nil
}

// retire leaves a full file to the next step, which puts it on the disk. Where
// nobody steps the kernel does that.
func (s *store) retire() {
	if len(s.full) >= maxFull {
		s.close()
		return
	}
	s.full = append(s.full, s.file)
	s.file = nil
}

// unsynced are the files to put on the disk, and those of them to close then.
func (s *store) unsynced() (all, full []*os.File) {
	full, s.full = s.full, nil
	if s.file == nil {
		return full, full
	}
	return append(slices.Clone(full), s.file), full
}

func (s *store) close() {
	if s.file != nil {
		_ = s.file.Close()
	}
	s.file = nil
}

// lookAfter lets go of a file that someone has removed or replaced, and learns
// how much others have written to it.
func (s *store) lookAfter() {
	if s.file == nil {
		return
	}
	is, err := s.file.Stat()
	there, gone := os.Lstat(s.file.Name())
	if err != nil || gone != nil || !os.SameFile(is, there) {
		s.close()
		return
	}
	s.size = is.Size()
}

// segments lists the files of a directory, oldest first; none where there is no
// such directory.
func segments(dir string) ([]segment, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list audit files: %w", err)
	}
	var files []segment
	for _, e := range entries {
		if m := segmentName.FindStringSubmatch(e.Name()); m != nil {
			n, err := strconv.Atoi(m[1])
			if err == nil {
				files = append(files, segment{e.Name(), n})
			}
		}
	}
	slices.SortFunc(files, func(a, b segment) int { return a.n - b.n })
	return files, nil
}
