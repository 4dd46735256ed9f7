package pubsub

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/base/safefile"
)

const (
	largePrefix = "pubsub-large-" // of a field where it stands inline
	filePrefix  = "pubsub-file-"  // of its reference in a socket message, and of the file
	// maxLarge is the size that EVE allows for the file of one field.
	maxLarge = 1<<20 - 1
	// largeAge is how long a file nobody took is kept at the start of a
	// publisher: its last reader may still have the message before it.
	largeAge = time.Hour
)

// splitLarge replaces every large field of a JSON value by the path that save
// returns for the content of its file (docs/wire.md, "Large fields"). field is
// the name without prefix. value is known to be JSON: large fields are not looked
// at once more.
func splitLarge(value []byte, save func(field string, content []byte) (string, error)) ([]byte, error) {
	return rewrite(value, largePrefix, func(m map[string]any, name, field string) error {
		content, err := alone(name, m[name])
		if err != nil {
			return err
		}
		path, err := save(field, content)
		if err != nil {
			return fmt.Errorf("write large field %s: %w", field, err)
		}
		quoted, err := json.Marshal(path)
		if err != nil {
			return err
		}
		m[filePrefix+field] = string(quoted)
		return nil
	})
}

// joinLarge puts large fields back inline. take returns the content of a file
// and removes it; nil means there is none, and then the field is absent.
func joinLarge(value []byte, take func(path string) ([]byte, error)) ([]byte, error) {
	return rewrite(value, filePrefix, func(m map[string]any, name, field string) error {
		quoted, _ := m[name].(string)
		var path string
		if err := json.Unmarshal([]byte(quoted), &path); err != nil {
			return fmt.Errorf("large field %s: its reference is not a quoted path", field)
		}
		content, err := take(path)
		if err != nil || content == nil {
			return err
		}
		var inner map[string]any
		if err := decodeNumbers(content, &inner); err != nil {
			return fmt.Errorf("decode file of large field %s: %w", field, err)
		}
		if v, ok := inner[largePrefix+field]; ok {
			m[largePrefix+field] = v
		}
		return nil
	})
}

// rewrite calls f for every field whose name begins with prefix, at any depth,
// and removes the field. A value without such a field is returned as it is.
func rewrite(value []byte, prefix string, f func(m map[string]any, name, field string) error) ([]byte, error) {
	if !bytes.Contains(value, []byte(`"`+prefix)) {
		return value, nil
	}
	tree, err := unfold(value, prefix)
	if err != nil {
		return nil, err
	}
	if err := visit(tree, prefix, f); err != nil {
		return nil, err
	}
	return json.Marshal(tree)
}

// unfold decodes a value as far as a field with the prefix can be in it: a large
// field itself, and what holds none, stay as they are. There may be megabytes.
func unfold(value []byte, prefix string) (any, error) {
	var tree any
	if !bytes.HasPrefix(bytes.TrimLeft(value, " \t\r\n"), []byte("{")) {
		err := decodeNumbers(value, &tree)
		return tree, err
	}
	var fields map[string]json.RawMessage
	cut := false
	if prefix == largePrefix { // it is our own
		fields, cut = members(value)
	}
	if !cut {
		if err := decodeNumbers(value, &fields); err != nil {
			return nil, err
		}
	}
	top := map[string]any{}
	for name, raw := range fields {
		is := strings.HasPrefix(name, prefix)
		if is && prefix == largePrefix || !is && !bytes.Contains(raw, []byte(`"`+prefix)) {
			top[name] = raw
			continue
		}
		var field any
		if err := decodeNumbers(raw, &field); err != nil {
			return nil, err
		}
		top[name] = field
	}
	return top, nil
}

// members cuts a JSON object into its members, whose values stay as they stand
// there. It is for what encoding/json has made or read already: that goes over
// each byte several times, and there may be megabytes. What it cannot cut is
// left to encoding/json, which says why.
func members(object []byte) (values map[string]json.RawMessage, ok bool) {
	values = map[string]json.RawMessage{}
	rest := bytes.TrimSpace(object)
	for len(rest) > 0 && (rest[0] == '{' || rest[0] == ',') {
		rest = rest[1:]
		colon := outside(rest, ":")
		if colon < 0 {
			return nil, false
		}
		name, value := "", rest[colon+1:]
		end := outside(value, ",}")
		if end < 0 || json.Unmarshal(rest[:colon], &name) != nil {
			return nil, false
		}
		values[name], rest = bytes.TrimSpace(value[:end]), value[end:]
	}
	return values, string(rest) == "}"
}

// outside is where the first of stops stands in JSON, outside of all strings
// and brackets; -1 for nowhere.
func outside(text []byte, stops string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case depth == 0 && strings.IndexByte(stops, c) >= 0:
			return i
		case c == '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
	}
	return -1
}

// alone is the JSON of an object with this one member.
func alone(name string, value any) ([]byte, error) {
	raw, is := value.(json.RawMessage)
	if !is {
		return json.Marshal(map[string]any{name: value})
	}
	quoted, err := json.Marshal(name)
	if err != nil {
		return nil, err
	}
	return slices.Concat([]byte("{"), quoted, []byte(":"), raw, []byte("}")), nil
}

func visit(node any, prefix string, f func(m map[string]any, name, field string) error) error {
	switch node := node.(type) {
	case []any:
		for _, v := range node {
			if err := visit(v, prefix, f); err != nil {
				return err
			}
		}
	case map[string]any:
		var found []string
		for name, v := range node {
			if strings.HasPrefix(name, prefix) {
				found = append(found, name)
			} else if err := visit(v, prefix, f); err != nil {
				return err
			}
		}
		for _, name := range found {
			if err := f(node, name, strings.TrimPrefix(name, prefix)); err != nil {
				return err
			}
			delete(node, name)
		}
	}
	return nil
}

// decodeNumbers decodes exactly one JSON value and keeps integers beyond 2^53.
func decodeNumbers(value []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	if err := d.Decode(to); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("at byte %d: %w", len(value), err)
		}
		return located(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("at byte %d: data after the end of the JSON value", d.InputOffset())
	}
	return nil
}

// saveLarge writes the file of a large field and returns its path.
func saveLarge(dir, field string, content []byte) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // its files are of mode 0600
		return "", err
	}
	f, err := os.CreateTemp(dir, filePrefix+field+"*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// takeLarge reads the file of a large field and removes it. Only files that a
// publisher of this topic may have written are touched: the path came from
// another process. A missing or empty file is nil.
func takeLarge(dir, path string) ([]byte, error) {
	if filepath.Dir(path) != dir || filepath.Clean(path) != path || !strings.HasPrefix(filepath.Base(path), filePrefix) {
		return nil, fmt.Errorf("large field: its file is not in %s", dir)
	}
	// Neither a link nor a pipe is followed or waited for.
	f, _, err := safefile.OpenFile(path, os.O_RDONLY|safefile.NoFollow, 0)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open large field: %w", err)
	}
	defer f.Close()
	defer os.Remove(path)
	content, err := safefile.All(f, maxLarge)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read large field: %w", err)
	case len(content) == 0:
		return nil, nil
	}
	return content, nil
}

// sweepLarge removes files that an earlier publisher wrote and nobody took.
func sweepLarge(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasPrefix(e.Name(), filePrefix) && time.Since(info.ModTime()) > largeAge {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// What a value may have, in bytes of JSON. A publisher cuts its lists to it by
// Fit: a value that is larger is refused as a whole.
const (
	// MaxMessage bounds what travels by message. That is one packet of less than
	// 65535 bytes, in base64, which leaves 49 KB of JSON; a kilobyte of it is for
	// the names of the fields and the references to the parts that travel by file
	// (docs/wire.md, "Large fields").
	MaxMessage = 48_000
	// MaxLarge bounds a part that travels by file, of less than 1 MiB.
	MaxLarge = 1_040_000
)

// Fit returns as many first entries of list as fit into limit bytes of JSON, and
// the size of those; size tells that of one. One that is larger than largest keeps
// none out that comes after it.
func Fit[T any](list []T, limit, largest int, size func(i int) int) (kept []T, total int) {
	kept = list
	for i, entry := range list {
		n := size(i)
		whole := len(kept) == len(list)
		switch {
		case n > largest:
			if whole {
				kept = slices.Clone(list[:i])
			}
			continue
		case total+n > limit && whole:
			return list[:i:i], total
		case total+n > limit:
			return kept, total
		case !whole:
			kept = append(kept, entry)
		}
		total += n
	}
	return kept, total
}

// FitLarge is Fit for a list that travels by file as a part of its own; it returns
// how many entries are left out.
func FitLarge[T any](list []T) (kept []T, omitted int) {
	kept, _ = Fit(list, MaxLarge, MaxLarge, func(i int) int { return EntrySize(list[i]) })
	return kept, len(list) - len(kept)
}

// EntrySize is how many bytes an entry takes in a list in JSON. One without a form
// in JSON, as its time is out of range, is larger than any may be.
func EntrySize(entry any) int {
	data, err := json.Marshal(entry)
	if err != nil {
		return math.MaxInt
	}
	return len(data) + 1 // the comma
}
