package console

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// look copies what is true now.
func (c *Component) look() facts {
	f := facts{now: time.Now(), synced: c.Configs.Synced()} // before All, see pubsub.Source
	f.configs, f.apps, f.rows = c.Configs.All(), c.Apps.All(), c.Status.All()
	c.recall(f)
	f.asked = c.asked
	f.file = c.see(f.now)
	if f.file.port == served || f.file.kind == valid && f.file.config.VMIName != c.rewrittenFor {
		c.rewrittenFor, c.rewrites = "", 0
	}
	f.rewrittenFor, f.rewrites, f.failed = c.rewrittenFor, c.rewrites, c.failed
	f.older = c.seeOld(f.now)
	_, err := os.Stat(c.KubeInit)
	f.kubeInit = !errors.Is(err, fs.ErrNotExist)
	return f
}

// recall notes who asks, and since when.
func (c *Component) recall(f facts) {
	asked := map[string]time.Time{}
	for key := range f.configs {
		if f.asks(key) {
			asked[key] = f.now
			if at, ok := c.asked[key]; ok {
				asked[key] = at
			}
		}
	}
	c.asked = asked
}

// see looks at the console file, and at the port and the process that it names.
func (c *Component) see(now time.Time) fileNow {
	is, err := read(c.File)
	if err != nil {
		is.kind = barred
	}
	c.file = c.file.next(is.id, now)
	s := fileNow{kind: is.kind, since: c.file.since}
	if err != nil {
		s.trouble = err.Error()
	}
	if s.kind != valid {
		return s
	}
	config, ok := parse(is.text)
	if !ok {
		s.kind = broken
		return s
	}
	s.config, s.port = config, portUse(c.Proc, config.VNCPort)
	if config.CallerPID > 0 {
		s.ownerLives = edgeviewLives(c.Proc, config.CallerPID)
	}
	switch {
	case s.port != silent:
		c.file.silentSince = time.Time{}
	case c.file.silentSince.IsZero():
		c.file.silentSince = now
	}
	s.silentSince = c.file.silentSince
	return s
}

func (c *Component) seeOld(now time.Time) oldFile {
	is, err := read(c.OldFile)
	if err != nil {
		is.kind = barred // the console does not depend on it
	}
	c.older = c.older.next(is.id, now)
	return oldFile{kind: is.kind, text: is.text, since: c.older.since}
}

// next is what is remembered after another look.
func (m memory) next(id identity, now time.Time) memory {
	if m.looked && m.id == id {
		return m
	}
	return memory{looked: true, id: id, since: now}
}
