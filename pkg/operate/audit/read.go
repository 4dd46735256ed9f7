package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/zedkube/zedkube/pkg/base/printable"
	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/types"
)

// What is read at most: someone may have put anything there.
const (
	maxFiles = 64      // the newest
	maxFile  = 8 << 20 // bytes of each
	maxLine  = 64 << 10
)

// Problems is what was not as it should be in the lines that were read.
type Problems struct {
	Torn int `json:"torn,omitempty"` // lines that are no operation: a power cut tears the last one
	Lost int `json:"lost,omitempty"` // lines that were never written, as the disk was full
}

// Read returns the operations of a directory in the order in which they began,
// each with the end that it had. A directory that is not there holds none. With
// an error come the operations that could be read anyway. It may be called
// while the agent writes.
func Read(dir string) ([]types.Operation, Problems, error) {
	var b book
	files, err := segments(dir)
	errs := []error{err}
	for _, f := range files[max(0, len(files)-maxFiles):] {
		content, err := readSegment(filepath.Join(dir, f.name))
		if errors.Is(err, os.ErrNotExist) { // the oldest one has gone meanwhile
			continue
		}
		errs = append(errs, err)
		b.read(content)
	}
	return b.operations, b.problems, errors.Join(errs...)
}

// readSegment reads what is in a file of lines, up to a bound.
func readSegment(path string) ([]byte, error) {
	f, _, err := safefile.OpenFile(path, os.O_RDONLY|safefile.NoFollow, 0)
	if err != nil {
		return nil, fmt.Errorf("open audit file: %w", err)
	}
	defer f.Close()
	content, err := safefile.Head(f, maxFile)
	if err != nil {
		return content, fmt.Errorf("read audit file %s: %w", path, err)
	}
	return content, nil
}

// book puts lines together.
type book struct {
	operations []types.Operation
	at         map[string]int // place of an operation, by ID
	problems   Problems
}

// read takes the lines of one file. Of an operation that has several the last
// one counts: each says all that was known.
func (b *book) read(content []byte) {
	if b.at == nil {
		b.at = map[string]int{}
	}
	for line := range bytes.Lines(content) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		o, lost, ok := parse(line)
		switch {
		case !ok:
			b.problems.Torn++
		case lost > 0:
			b.problems.Lost += lost
		default:
			b.note(o)
		}
	}
}

func (b *book) note(o types.Operation) {
	i, known := b.at[o.ID]
	if !known {
		b.at[o.ID] = len(b.operations)
		b.operations = append(b.operations, o)
		return
	}
	if o.Outcome != types.OperationBegun {
		b.operations[i] = o
	}
}

// parse reads one line: an operation, or how many lines were lost.
func parse(line []byte) (o types.Operation, lost int, ok bool) {
	var v struct {
		types.Operation
		Lost int `json:"lost"`
	}
	if len(line) > maxLine || json.Unmarshal(line, &v) != nil {
		return types.Operation{}, 0, false
	}
	if v.Lost > 0 {
		return types.Operation{}, v.Lost, true
	}
	return v.Operation, 0, v.ID != "" && v.Op != ""
}

// Remarks say what of the trail is missing, a sentence each: the rest is shown all the
// same. err is Read's.
func Remarks(p Problems, err error) (says []string) {
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			says = append(says, "A part of the trail cannot be read, and what it holds is not shown: "+printable.Escape(strings.TrimSpace(line)))
		}
	}
	if p.Torn > 0 {
		says = append(says, fmt.Sprintf("%d lines are invalid and left out; a power cut tears the last one.", p.Torn))
	}
	if p.Lost > 0 {
		says = append(says, fmt.Sprintf("%d lines were lost while they could not be written.", p.Lost))
	}
	return says
}
