package topicview

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
)

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
