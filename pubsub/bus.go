package pubsub

import (
	"context"
	"errors"
	"path/filepath"
	"sync"

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
