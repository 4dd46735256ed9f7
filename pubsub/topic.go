package pubsub

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/sirupsen/logrus"
)

const (
	fileSuffix   = ".json"
	backupSuffix = ".bak"
	maxFileName  = 255 // bytes, of the kernel
)

// Option changes how a topic is kept.
type Option func(*topic)

// Persistent keeps the values of the topic below /persist, where they survive
// a reboot. Both ends have to agree on it.
func Persistent() Option { return func(t *topic) { t.persistent = true } }

// SocketOnly makes a subscription use the socket alone, for one that has to
// prove that the socket works.
func SocketOnly() Option { return func(t *topic) { t.socketOnly = true } }

// FilesOnly makes a publication without a socket, for a command that ends
// before anyone could connect. It leaves the socket of an agent that
// publishes the same topic alone.
func FilesOnly() Option { return func(t *topic) { t.filesOnly = true } }

// topic is the name of a publication and, from that, all its places
// (docs/wire.md, "Names").
type topic struct {
	root       string
	agent      string
	name       string
	persistent bool
	socketOnly bool
	filesOnly  bool
}

func newTopic[T any](b *Bus, agent string, opts []Option) topic {
	t := topic{root: b.root, agent: agent, name: reflect.TypeFor[T]().Name()}
	for _, o := range opts {
		o(&t)
	}
	return t
}

func (t topic) String() string { return t.agent + "/" + t.name }

// dir is where the values are, one file per key.
func (t topic) dir() string {
	if t.persistent {
		return filepath.Join(t.root, "persist/status", t.agent, t.name)
	}
	return filepath.Join(t.root, "run", t.agent, t.name)
}

// sock is the socket, below /run for persistent topics as well.
func (t topic) sock() string {
	return filepath.Join(t.root, "run", t.agent, t.name+".sock")
}

// largeDir is where large fields are handed over.
func (t topic) largeDir() string {
	return filepath.Join(t.root, "persist/pubsub-large", t.agent, t.name)
}

func (t topic) logger(log logrus.FieldLogger) logrus.FieldLogger {
	return log.WithField("topic", t.String())
}

// check refuses names that would not be one component of a path.
func (t topic) check() error {
	for _, s := range []string{t.agent, t.name} {
		if s == "" || s == "." || s == ".." || strings.ContainsAny(s, "/ \x00") {
			return fmt.Errorf("open topic %q of agent %q: the type or the agent has no valid name", t.name, t.agent)
		}
	}
	return nil
}

// fileName is the file of a key in dir; it fails on keys that have no file.
func (t topic) fileName(key string) (string, error) {
	name := key + fileSuffix
	longest := name
	if t.persistent {
		longest += backupSuffix
	}
	switch {
	case key == "":
		return "", errors.New("the key is empty")
	case strings.ContainsAny(key, "/\x00"):
		return "", errors.New("the key contains a slash or a zero byte")
	case strings.Contains(key, fileSuffix):
		// Readers take the part before the first ".json" for the key.
		return "", errors.New("the key contains " + fileSuffix)
	case len(longest) > maxFileName:
		return "", fmt.Errorf("the key has %d bytes, too many for a file name", len(key))
	}
	return name, nil
}

// fileKey is the key of a file in dir; ok is false for other files.
func fileKey(name string) (key string, ok bool) {
	key, _, ok = strings.Cut(name, fileSuffix)
	return key, ok && key != "" && strings.HasSuffix(name, fileSuffix)
}
