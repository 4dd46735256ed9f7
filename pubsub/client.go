package pubsub

import (
	"bytes"
	"context"
	"maps"
	"net"
	"os"
	"slices"
	"time"
)

// client is one connection. It is told nothing twice and only the newest
// value, so a client that does not read costs a goroutine and no memory.
type client struct {
	conn  *net.UnixConn
	wake  chan struct{}
	dirty map[string]struct{} // guarded by store.mu
	sent  map[string][]byte   // what the client holds
	files []string            // large files that it may not have read
	mute  bool                // a large field cannot be written and was reported
}

// send brings c up to date, deletes first. unsent means that some value could
// not be handed over now; the error is that of the connection.
func (s *store) send(c *client) (unsent bool, err error) {
	deletes, updates := s.news(c)
	for _, key := range deletes {
		if _, err := c.conn.Write(deletePacket(s.topic.name, key)); err != nil {
			return false, err
		}
		delete(c.sent, key)
	}
	for _, key := range slices.Sorted(maps.Keys(updates)) {
		value, err := c.split(s.topic.largeDir(), updates[key])
		if err != nil {
			if !c.mute {
				s.log.WithError(err).WithField("key", key).Error("cannot send a value, will try again")
			}
			c.mute, unsent = true, true
			s.again(c, key)
			continue
		}
		if _, err := c.conn.Write(updatePacket(s.topic.name, key, value)); err != nil {
			return false, err
		}
		c.sent[key] = updates[key]
	}
	c.mute = c.mute && unsent
	return unsent, nil
}

// news takes what c has not been told yet.
func (s *store) news(c *client) (deletes []string, updates map[string][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	updates = map[string][]byte{}
	for key := range c.dirty {
		value, is := s.rows[key]
		sent, was := c.sent[key]
		switch {
		case is && !(was && bytes.Equal(sent, value)):
			updates[key] = value
		case !is && was:
			deletes = append(deletes, key)
		}
	}
	clear(c.dirty)
	slices.Sort(deletes)
	return deletes, updates
}

// again keeps key dirty without waking anybody.
func (s *store) again(c *client, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.dirty[key] = struct{}{}
}

// split moves the large fields of value to files for c, all or none, and
// remembers them until c has read them.
func (c *client) split(dir string, value []byte) ([]byte, error) {
	c.files = slices.DeleteFunc(c.files, func(f string) bool {
		_, err := os.Lstat(f)
		return err != nil
	})
	var fresh []string
	value, err := splitLarge(value, func(field string, content []byte) (string, error) {
		path, err := saveLarge(dir, field, content)
		if err == nil {
			fresh = append(fresh, path)
		}
		return path, err
	})
	if err != nil {
		removeAll(fresh)
		return nil, err
	}
	c.files = append(c.files, fresh...)
	if n := len(c.files) - maxUnread; n > 0 {
		removeAll(c.files[:n])
		c.files = slices.Delete(c.files, 0, n)
	}
	return value, nil
}

func removeAll(files []string) {
	for _, f := range files {
		os.Remove(f)
	}
}

// pause waits for d, or for ever when d is 0, or until bell rings; it reports
// false when ctx is done.
func pause(ctx context.Context, d time.Duration, bell <-chan struct{}) bool {
	var after <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		after = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-bell:
	case <-after:
	}
	return true
}
