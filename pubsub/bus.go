package pubsub

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sirupsen/logrus"
)

// Bus holds the publications and subscriptions of one agent.
type Bus struct {
	root    string
	log     logrus.FieldLogger
	watcher watcher
	pubs    []member
	subs    []member
	quotas  map[string]*quota // of lines in the log, by the agent that causes them
}

// member is a publication or a subscription, whatever its type of row.
type member interface {
	open() error
	run(ctx context.Context)
	stats() Stats
}

// NewBus returns a bus below root: "" is the real file system, anything else
// prefixes /run and /persist, so that several nodes live on one machine.
func NewBus(root string, log logrus.FieldLogger) *Bus {
	// The paths of large fields are read by other processes, so they must not
	// depend on the working directory.
	if abs, err := filepath.Abs(root); err == nil && root != "" {
		root = abs
	}
	if root == "" {
		root = "/"
	}
	b := &Bus{root: root, log: log, quotas: map[string]*quota{}}
	b.watcher.log = log
	return b
}

// quota is what bounds the lines that an agent causes, in all its topics.
func (b *Bus) quota(agent string) *quota {
	if b.quotas[agent] == nil {
		b.quotas[agent] = newQuota()
	}
	return b.quotas[agent]
}

// Open makes the directories, binds the sockets, loads what was published
// before and reads the subscribed directories once. It opens everything it
// can and returns the errors of the rest, joined; publishing on a publication
// that did not open is an error until Run has opened it.
func (b *Bus) Open() error {
	var errs []error
	// Publications first: others wait for our sockets, we wait for nobody.
	for _, m := range b.pubs {
		errs = append(errs, m.open())
	}
	for _, m := range b.subs {
		errs = append(errs, m.open())
	}
	return errors.Join(errs...)
}

// Run serves and subscribes until ctx is done. It returns when all its
// goroutines have ended and the sockets are gone; the files stay. It is
// called once, after Open.
func (b *Bus) Run(ctx context.Context) {
	b.watcher.open()
	var wg sync.WaitGroup
	wg.Go(func() { b.watcher.run(ctx) })
	for _, m := range b.pubs {
		wg.Go(func() { m.run(ctx) })
	}
	for _, m := range b.subs {
		wg.Go(func() { m.run(ctx) })
	}
	wg.Wait()
}

// Stats is what became of one topic since the bus was made.
type Stats struct {
	Topic      string // agent/Topic
	Subscribed bool   // we read it; otherwise we publish it
	Clients    int    // of a publication: subscribers that are connected now
	Sent       uint64 // of a publication: changes sent to its subscribers, or that would have been if there were any
	Messages   uint64 // updates and deletes: sent to subscribers, or received from the publisher
	Refused    uint64 // Publish and Unpublish calls that failed, or bad values that were reported
	Dropped    uint64 // of a publication: subscribers hung up on, for they accepted no packet for five minutes
}

// counts are the counters behind Stats.
type counts struct{ sent, messages, refused, dropped atomic.Uint64 }

func (c *counts) stats(topic string, subscribed bool, clients int) Stats {
	return Stats{
		Topic: topic, Subscribed: subscribed, Clients: clients,
		Sent: c.sent.Load(), Messages: c.messages.Load(), Refused: c.refused.Load(), Dropped: c.dropped.Load(),
	}
}

// Stats returns one entry per publication and then one per subscription, each
// in the order in which they were added.
func (b *Bus) Stats() []Stats {
	var all []Stats
	for _, m := range b.pubs {
		all = append(all, m.stats())
	}
	for _, m := range b.subs {
		all = append(all, m.stats())
	}
	return all
}

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
// publishes the same topic alone. A subscription with it looks for no socket.
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

// withdrawn is the file of the keys that were withdrawn in this boot. Nobody else reads it.
func (t topic) withdrawn() string {
	return filepath.Join(t.root, "run", t.agent, t.name+".withdrawn")
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
