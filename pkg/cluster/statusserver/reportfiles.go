package statusserver

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zedkube/zedkube/pkg/base/safefile"
)

const (
	maxTopicFile = 1 << 20 // the longest file of a topic that is read
	maxDirNames  = 10000   // the most files of a topic that are looked at
	logLines     = 10
	maxTail      = 16 << 10 // where ten lines are longer, their end counts
)

var errNoFile = errors.New("no file")

// readTopic reads the first file of a topic, by name, that begins with id, from
// the first directory that has one.
func readTopic(dirs []string, agent, topic, id string) ([]byte, error) {
	for _, dir := range dirs {
		dir = filepath.Join(dir, agent, topic)
		name, err := firstName(dir, id)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return safefile.Read(filepath.Join(dir, name), maxTopicFile)
	}
	return nil, errNoFile
}

// firstName is the first file in dir of those that begin with id: the rest may
// be a generation or a number.
func firstName(dir, id string) (string, error) {
	names, err := safefile.Names(dir, maxDirNames)
	if err != nil {
		return "", err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return !strings.HasPrefix(name, id) || !strings.HasSuffix(name, ".json")
	})
	if len(names) == 0 {
		return "", os.ErrNotExist
	}
	return slices.Min(names), nil
}

// tail is the last lines of the file at path, of at most maxTail bytes, however
// long the file is.
func tail(path string, lines int) ([]string, error) {
	f, fi, err := safefile.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	from := max(0, fi.Size()-maxTail)
	data, err := io.ReadAll(io.NewSectionReader(f, from, maxTail))
	if err != nil {
		return nil, err
	}
	text := strings.TrimSuffix(strings.ToValidUTF8(string(data), "?"), "\n")
	if from > 0 { // the first word has lost its beginning, by which a secret is known
		i := strings.IndexAny(text, " \t\n")
		text = text[i+1:]
		if i < 0 {
			text = ""
		}
	}
	all := strings.Split(text, "\n")
	return all[max(0, len(all)-lines):], nil
}
