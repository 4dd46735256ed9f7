package pubsub

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// clientPatience is how long a client may accept no packet: EVE's agents may
	// block for minutes, and their watchdog gives them five.
	clientPatience = 5 * time.Minute
	// leftAfter is how long a client that has read everything may take to open
	// the large files that were sent to it.
	leftAfter = 5 * time.Minute
)

// client is one connection. It is told nothing twice and only the newest
// value, so a client that does not read costs a goroutine and no memory.
type client struct {
	conn  *net.UnixConn
	wake  chan struct{}
	files []handed // large files that it may not have read
	mute  bool     // a large field cannot be written and was reported

	// guarded by store.mu
	dirty   map[string]struct{}
	sent    map[string][]byte // what the client holds
	sending map[string][]byte // what it is being sent
}

// handed is the file of a large field that was made for one client.
type handed struct {
	path string
	at   time.Time
}

// say sends one packet. A client that accepts none for too long is dropped,
// which is an error like that of one that hung up.
func (s *store) say(c *client, packet []byte) error {
	if err := c.conn.SetWriteDeadline(time.Now().Add(s.patience)); err != nil {
		return err
	}
	_, err := c.conn.Write(packet)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.counts.dropped.Add(1)
		s.log.WithError(err).Warn("a subscriber has accepted nothing for too long, disconnecting it")
	}
	return err
}

// send brings c up to date, deletes first. unsent means that some value could
// not be handed over now; the error is that of the connection.
func (s *store) send(c *client) (unsent bool, err error) {
	deletes, updates := s.pendingChanges(c)
	for _, key := range deletes {
		if err := s.say(c, deletePacket(s.topic.name, key)); err != nil {
			return false, err
		}
		s.counts.messages.Add(1)
		s.holds(c, key, nil)
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
		if err := s.say(c, updatePacket(s.topic.name, key, value)); err != nil {
			return false, err
		}
		s.counts.messages.Add(1)
		s.holds(c, key, updates[key])
	}
	c.mute = c.mute && unsent
	return unsent, nil
}

// pendingChanges takes what c has not been told yet.
func (s *store) pendingChanges(c *client) (deletes []string, updates map[string][]byte) {
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
	c.sending = maps.Clone(updates)
	slices.Sort(deletes)
	return deletes, updates
}

// holds notes that c was sent a value, nil for that it was withdrawn.
func (s *store) holds(c *client, key string, value []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(c.sending, key)
	if delete(c.sent, key); value != nil {
		c.sent[key] = value
	}
}

// again keeps key dirty without waking anyone.
func (s *store) again(c *client, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(c.sending, key)
	c.dirty[key] = struct{}{}
}

// split moves the large fields of value to files for c, all or none, and
// remembers them until c has read them.
func (c *client) split(dir string, value []byte) ([]byte, error) {
	var fresh []handed
	value, err := splitLarge(value, func(field string, content []byte) (string, error) {
		path, err := saveLarge(dir, field, content)
		if err == nil {
			fresh = append(fresh, handed{path, time.Now()})
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

// tidy forgets the files that c has taken, and takes away those that it has
// left lying although it has read their messages.
func (c *client) tidy(now time.Time) {
	read := len(c.files) > 0 && c.hasReadAll()
	c.files = slices.DeleteFunc(c.files, func(f handed) bool {
		if read && now.Sub(f.at) > leftAfter {
			os.Remove(f.path)
			return true
		}
		_, err := os.Lstat(f.path)
		return err != nil
	})
}

// hasReadAll reports whether no packet waits in the socket.
func (c *client) hasReadAll() bool {
	raw, err := c.conn.SyscallConn()
	if err != nil {
		return false
	}
	waiting, failed := 0, error(nil)
	err = raw.Control(func(fd uintptr) { waiting, failed = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
	return err == nil && failed == nil && waiting == 0
}

func removeAll(files []handed) {
	for _, f := range files {
		os.Remove(f.path)
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
