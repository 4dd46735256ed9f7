package topicview

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/zedkube/zedkube/pkg/base/redact"
	"github.com/zedkube/zedkube/pkg/base/safefile"
)

// maxFile bounds what is read of one value, as pubsub does: large fields stand
// inline there.
const maxFile = 16 << 20

// Value is what lies under one key.
type Value struct {
	Key     string
	Written time.Time
	Bytes   int64
	Value   any    // of encoding/json, masked, enums named; nil where Why says why
	Why     string `json:",omitzero"` // why it cannot be shown; "" where it can

	info fs.FileInfo // of the file that was read; nil where there was none
}

// Read reads the values of one topic, or the one under a key, by key. The
// topic is Agent and Name of t, wherever it lies. Those of old whose files are
// the same are not read again. It returns an error that wraps ErrNone where
// nothing is there.
func Read(root string, t Topic, only string, old ...Value) ([]Value, error) {
	r, err := openRoot(root)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if !plainName(t.Agent) || !plainName(t.Name) || strings.Contains(t.Name, "/") {
		return nil, fmt.Errorf("topic %q: %w", t, ErrNone)
	}
	found := false
	var values []Value
	for _, t.Persistent = range []bool{false, true} {
		entries, err := fs.ReadDir(r.FS(), t.dir())
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, fmt.Errorf("topic %s: %w", t, err)
		}
		found = true
		for _, e := range entries {
			if k := key(e.Name()); k != "" && (only == "" || k == only) {
				values = append(values, read(r, t, k, e, old))
			}
		}
	}
	if !found {
		return nil, fmt.Errorf("topic %s: %w", t, ErrNone)
	}
	// One that is gone meanwhile is none.
	values = slices.DeleteFunc(values, func(v Value) bool { return v.Value == nil && v.Why == "" })
	slices.SortFunc(values, func(a, b Value) int { return strings.Compare(a.Key, b.Key) })
	if only != "" && len(values) == 0 {
		return nil, fmt.Errorf("key %q of topic %s: %w", only, t, ErrNone)
	}
	return values, nil
}

// plainName refuses what would lead out of the directories of topics.
func plainName(name string) bool { return fs.ValidPath(name) && name != "." }

func read(r *os.Root, t Topic, key string, e fs.DirEntry, old []Value) Value {
	v := Value{Key: key}
	for _, o := range old {
		if info, err := e.Info(); o.Key == key && o.info != nil && err == nil && os.SameFile(info, o.info) && info.ModTime().Equal(o.info.ModTime()) {
			return o
		}
	}
	raw, info, err := content(r, path.Join(t.dir(), e.Name()))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return v
	case err != nil:
		v.Why = err.Error()
		return v
	}
	v.info, v.Written, v.Bytes = info, info.ModTime().UTC(), info.Size()
	var tree any
	if err := decode(raw, &tree); err != nil {
		v.Why = "it is not JSON: " + err.Error()
		return v
	}
	tree = follow(tree, func(file string) (any, error) { return large(r, t, file) })
	if tree == nil {
		v.Why = "it is empty"
		return v
	}
	if tree = Allowed(t.Agent, t.Name, tree); tree == nil {
		tree = notShown // only the file itself has it
	}
	v.Value = readable(new(redact.Redactor).Value(Named(t.Name, tree)))
	return v
}

// content reads a regular file. Links are not followed, and nothing waits for
// the writer of a pipe.
func content(r *os.Root, file string) (raw []byte, info fs.FileInfo, err error) {
	for range 3 { // a publisher may put a new file in its place meanwhile
		if raw, info, err = once(r, file); !errors.Is(err, safefile.ErrNotRegular) {
			break
		}
	}
	return raw, info, err
}

func once(r *os.Root, file string) ([]byte, fs.FileInfo, error) {
	f, info, err := Open(r, file)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	raw, err := safefile.All(f, maxFile)
	return raw, info, err
}

// Open opens a regular file below r: no link, though an os.Root follows those that
// stay inside, and no pipe.
func Open(r *os.Root, file string) (*os.File, fs.FileInfo, error) {
	there, err := r.Lstat(file)
	if err != nil {
		return nil, nil, err
	}
	if !there.Mode().IsRegular() {
		return nil, nil, safefile.ErrNotRegular
	}
	f, err := r.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(there, info) {
		err = safefile.ErrNotRegular
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// readable shows bytes that stand for a secret as what they say.
func readable(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = readable(x)
		}
	case []any:
		for i, x := range v {
			v[i] = readable(x)
		}
	case string:
		return strings.ReplaceAll(v, redact.HiddenBytes, redact.Hidden)
	}
	return v
}

// decode reads one JSON value and keeps numbers as they are written.
func decode(raw []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("data after the end of the value, at byte %d", d.InputOffset())
	}
	return nil
}

const (
	largePrefix = "pubsub-large-"
	filePrefix  = "pubsub-file-"
)

// follow puts large fields in their place, under their bare names (docs/wire.md,
// "Large fields").
func follow(v any, file func(string) (any, error)) any {
	switch v := v.(type) {
	case []any:
		for i, x := range v {
			v[i] = follow(x, file)
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, x := range v {
			field, inline := strings.CutPrefix(name, largePrefix)
			if inline {
				out[field] = follow(x, file)
			} else if field, is := strings.CutPrefix(name, filePrefix); is {
				out[field] = referred(field, x, file)
			} else {
				out[name] = follow(x, file)
			}
		}
		return out
	}
	return v
}

// referred is the large field that a reference names, or what is wrong with it.
func referred(field string, ref any, file func(string) (any, error)) any {
	quoted, _ := ref.(string)
	var name string
	if err := json.Unmarshal([]byte(quoted), &name); err != nil {
		return "(its reference is not a quoted path)"
	}
	tree, err := file(name)
	if err != nil {
		return "(" + err.Error() + ")"
	}
	inner, _ := tree.(map[string]any)
	return inner[largePrefix+field]
}

// large reads the file of a large field, which only lies right in the directory
// of its topic. It is left where it is: it is for the subscriber.
func large(r *os.Root, t Topic, file string) (tree any, err error) {
	dir, base := path.Split(path.Clean(file))
	if !strings.HasSuffix(dir, "/"+path.Join(largeDir, t.Agent, t.Name)+"/") || !strings.HasPrefix(base, filePrefix) {
		return nil, errors.New("its file is not in the expected place")
	}
	raw, _, err := content(r, path.Join(largeDir, t.Agent, t.Name, base))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("its file no longer exists")
	}
	if err == nil {
		err = decode(raw, &tree)
	}
	return tree, err
}
