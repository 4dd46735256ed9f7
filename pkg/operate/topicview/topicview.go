// Package topicview shows what lies in the directories of pubsub, of any agent,
// to people: enums by their names, large fields in their place, secrets masked.
// It reads files only, and needs neither the agents nor the types of their topics.
package topicview

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Where topics lie below the root (docs/wire.md, "Names").
const (
	plainDir      = "run"
	persistentDir = "persist/status"
	largeDir      = "persist/pubsub-large"
)

const fileSuffix = ".json"

// Topic is one topic of one agent on a device.
type Topic struct {
	Agent      string // with a scope behind it, where it has one: agent/scope
	Name       string
	Persistent bool `json:",omitzero"`
	Keys       int
	Bytes      int64     // of all values
	Written    time.Time `json:",omitzero"` // when the newest value was; zero without one
	Socket     bool      // it has one
}

// String is agent/topic.
func (t Topic) String() string { return t.Agent + "/" + t.Name }

func (t Topic) dir() string {
	if t.Persistent {
		return path.Join(persistentDir, t.Agent, t.Name)
	}
	return path.Join(plainDir, t.Agent, t.Name)
}

// ErrNone is returned where there is no such topic.
var ErrNone = errors.New("there is no such topic")

// name is how topics are called: as Go types are. Directories of others below
// /run are mostly not.
var name = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

// List finds all topics below root, by agent and name. What cannot be read is
// in the error, beside what can.
func List(root string) ([]Topic, error) {
	r, err := openRoot(root)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	l := lister{fsys: r.FS(), found: map[string]*Topic{}}
	for _, dir := range []string{plainDir, persistentDir} {
		l.dir, l.persistent = dir, dir == persistentDir
		for _, agent := range l.entries(dir) {
			if agent.IsDir() {
				l.agent(agent.Name(), true)
			}
		}
	}
	return l.topics(), errors.Join(l.errs...)
}

type lister struct {
	fsys       fs.FS
	dir        string
	persistent bool
	found      map[string]*Topic // by directory
	errs       []error
}

// entries of a directory; one that is not there has none. Links are not
// followed: they are no directories.
func (l *lister) entries(dir string) []fs.DirEntry {
	entries, err := fs.ReadDir(l.fsys, dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		l.errs = append(l.errs, err)
	}
	return entries
}

// agent looks for topics of an agent, and one level deeper for those with a scope.
func (l *lister) agent(agent string, scopes bool) {
	entries := l.entries(path.Join(l.dir, agent))
	for _, e := range entries {
		topic, sock := strings.CutSuffix(e.Name(), ".sock")
		switch {
		case sock && !e.IsDir() && name.MatchString(topic):
			l.topic(agent, topic).Socket = true
		case e.IsDir() && name.MatchString(topic) && l.values(agent, topic):
		case e.IsDir() && scopes:
			l.agent(path.Join(agent, e.Name()), false)
		}
	}
}

// values counts the values of a directory; false for one that is no topic's.
func (l *lister) values(agent, topic string) bool {
	entries := l.entries(path.Join(l.dir, agent, topic))
	if slices.ContainsFunc(entries, fs.DirEntry.IsDir) {
		return false
	}
	var files []fs.DirEntry
	for _, e := range entries {
		if key(e.Name()) != "" {
			files = append(files, e)
		}
	}
	if len(files) == 0 && len(entries) > 0 && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == "restarted" }) {
		return false // someone else's files
	}
	t := l.topic(agent, topic)
	for _, e := range files {
		info, err := e.Info()
		if err != nil {
			continue // gone meanwhile
		}
		t.Keys++
		t.Bytes += info.Size()
		if at := info.ModTime().UTC(); at.After(t.Written) {
			t.Written = at
		}
	}
	return true
}

// topic is the row of a topic. The socket of a persistent one lies below run.
func (l *lister) topic(agent, topic string) *Topic {
	t := Topic{Agent: agent, Name: topic, Persistent: l.persistent}
	if l.found[t.dir()] == nil {
		l.found[t.dir()] = &t
	}
	return l.found[t.dir()]
}

func (l *lister) topics() []Topic {
	topics := make([]Topic, 0, len(l.found))
	for dir, t := range l.found {
		kept := *t
		kept.Persistent = true
		if of := l.found[kept.dir()]; !t.Persistent && t.Keys == 0 && of != nil {
			of.Socket = of.Socket || t.Socket
			delete(l.found, dir) // what lies below run is the socket of a persistent one
		}
	}
	for _, t := range l.found {
		topics = append(topics, *t)
	}
	slices.SortFunc(topics, func(a, b Topic) int {
		return cmp.Or(strings.Compare(a.Agent, b.Agent), strings.Compare(a.Name+a.dir(), b.Name+b.dir()))
	})
	return topics
}

// key is the key of a file, all before the first ".json"; "" for other files.
func key(file string) string {
	k, _, is := strings.Cut(file, fileSuffix)
	if !is || !strings.HasSuffix(file, fileSuffix) {
		return ""
	}
	return k
}

// openRoot opens the directory that paths of a device are below of.
func openRoot(root string) (*os.Root, error) {
	if root == "" {
		root = "/"
	}
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", root, err)
	}
	return r, nil
}
