package pubsub

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/zedkube/zedkube/pkg/base/safefile"
)

// maxWithdrawn bounds how many withdrawn keys are remembered for subscribers
// that connect later. Keys are names of things on one device, UUIDs mostly.
const maxWithdrawn = 4096

// withdrawn are the keys of a topic that were withdrawn in this boot, the oldest first: EVE's
// subscribers keep what a snapshot lacks, and one that could not hear a withdrawal may connect
// only after the publisher was started again. So the keys are in a file as well, a line of JSON each.
type withdrawn struct {
	path  string // "" for none: nobody connects
	lines int    // in the file
	keys  []string
}

// load takes what a former run noted, but for keys that have a value.
func (w *withdrawn) load(path string, has func(key string) bool) error {
	*w = withdrawn{path: path}
	content, err := safefile.Read(path, maxFile)
	if os.IsNotExist(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read withdrawn keys: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		var key string
		if json.Unmarshal([]byte(line), &key) == nil && key != "" && !has(key) {
			w.add(key)
		}
	}
	return w.rewrite() // also without the line that a process that died left half written
}

// note writes down that key is about to be withdrawn.
func (w *withdrawn) note(key string) error {
	if w.path == "" {
		return nil
	}
	if w.lines >= 2*maxWithdrawn {
		if err := w.rewrite(); err != nil {
			return err
		}
	}
	f, _, err := safefile.OpenFile(w.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("note withdrawn key: %w", err)
	}
	_, err = f.WriteString(asLine(key))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("note withdrawn key: %w", err)
	}
	w.lines++
	return nil
}

// rewrite leaves in the file what is still to be told.
func (w *withdrawn) rewrite() error {
	var text strings.Builder
	for _, key := range w.keys {
		text.WriteString(asLine(key))
	}
	part := w.path + ".part"
	err := os.WriteFile(part, []byte(text.String()), 0o600)
	if err == nil {
		err = os.Rename(part, w.path)
	}
	if err != nil {
		os.Remove(part)
		return fmt.Errorf("note withdrawn keys: %w", err)
	}
	w.lines = len(w.keys)
	return nil
}

func asLine(key string) string {
	line, _ := json.Marshal(key) // a string always has JSON
	return string(line) + "\n"
}

// add adds a key in memory, as the newest.
func (w *withdrawn) add(key string) {
	w.remove(key)
	if w.keys = append(w.keys, key); len(w.keys) > maxWithdrawn {
		w.keys = slices.Delete(w.keys, 0, 1)
	}
}

// remove is for a key that has a value again.
func (w *withdrawn) remove(key string) {
	w.keys = slices.DeleteFunc(w.keys, func(k string) bool { return k == key })
}
