package pubsub

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

const (
	// requestTimeout is how long a new client may take to say what it wants.
	requestTimeout = 10 * time.Second
	// resendAfter is the pause after a large field could not be written, for
	// example to a full disk.
	resendAfter = 10 * time.Second
	// lastWords is how long a client may take at our end for what was changed before.
	lastWords = time.Second
	// maxUnread is how many large files one client may leave lying. It is above
	// what fits the buffer of a socket, so no file goes before its message.
	maxUnread = 1024
)

// run serves until ctx is done, then removes the socket.
func (s *store) run(ctx context.Context) {
	if s.listener == nil {
		return
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	stop := context.AfterFunc(ctx, func() {
		// Unlinked before it is closed: afterwards the name may be a successor's.
		os.Remove(s.topic.sock())
		s.listener.Close()
	})
	defer stop()
	for failing := false; ; {
		conn, err := s.listener.AcceptUnix()
		if err == nil {
			failing = false
			wg.Go(func() { s.serve(ctx, conn) })
			continue
		}
		if ctx.Err() != nil {
			return
		}
		if !failing {
			s.log.WithError(err).Error("cannot accept a subscriber, will try again")
		}
		failing = true
		pause(ctx, time.Second, nil)
	}
}

// serve talks to one client until it hangs up or ctx is done, when it is told the last changes.
func (s *store) serve(ctx context.Context, conn *net.UnixConn) {
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(lastWords, func() { conn.Close() }) })
	defer stop()
	defer conn.Close()
	if err := s.answerRequest(conn); err != nil {
		s.log.WithError(err).Debug("refused a subscriber")
		return
	}
	c := &client{conn: conn, wake: make(chan struct{}, 1), dirty: map[string]struct{}{}, sent: map[string][]byte{}}
	s.join(c)
	defer s.leave(c)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer conn.Close()
	wg.Go(func() {
		defer conn.Close()
		defer cancel()
		// Clients say nothing more; what ends this is that they hang up.
		_, _ = io.Copy(io.Discard, conn)
	})
	s.feed(own, c)
	if ctx.Err() != nil {
		_, _ = s.send(c)
	} else {
		// It hung up, so it no longer reads. When we end ourselves it may still
		// have messages before it that point to these files.
		removeAll(c.files)
	}
}

// answerRequest reads the request and answers it.
func (s *store) answerRequest(conn *net.UnixConn) error {
	if err := conn.SetReadDeadline(time.Now().Add(requestTimeout)); err != nil {
		return err
	}
	buf := make([]byte, requestBuffer)
	n, err := conn.Read(buf)
	if err != nil {
		return err
	}
	if n == len(buf) || string(buf[:n]) != string(requestPacket(s.topic.name)) {
		return errors.New("malformed request or request for another topic")
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	_, err = conn.Write(helloPacket(s.topic.name, s.topic.persistent))
	return err
}

// join makes every present value news for c.
func (s *store) join(c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.rows {
		c.dirty[key] = struct{}{}
	}
	if s.clients == nil {
		s.clients = map[*client]struct{}{}
	}
	s.clients[c] = struct{}{}
}

func (s *store) leave(c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, c)
}

// notReceived are the withdrawn keys that c may hold from an earlier connection.
// One that was in c's snapshot is its ordinary delete, which is to come.
func (s *store) notReceived(c *client) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.withdrawn.keys), func(key string) bool {
		_, sent := c.sent[key]
		return sent
	})
}

// feed sends the snapshot and then the differences until the connection fails.
func (s *store) feed(ctx context.Context, c *client) {
	for snapshot := true; ; {
		unsent, err := s.send(c)
		if err != nil {
			return
		}
		wait := time.Duration(0)
		if c.tidy(time.Now()); len(c.files) > 0 {
			wait = leftAfter
		}
		if unsent {
			wait = resendAfter // and complete waits too: the client would take the key for gone
		} else if snapshot {
			snapshot = false
			if s.finish(c) != nil {
				return
			}
		}
		if !pause(ctx, wait, c.wake) {
			return
		}
	}
}

// finish ends the snapshot. EVE's subscribers keep what a snapshot lacks, and
// dial every 10 s only: what was withdrawn while they could not hear it, by this
// run or one before, they are told now.
func (s *store) finish(c *client) error {
	if err := s.say(c, completePacket(s.topic.name)); err != nil {
		return err
	}
	for _, key := range s.notReceived(c) {
		if err := s.say(c, deletePacket(s.topic.name, key)); err != nil {
			return err
		}
		s.counts.messages.Add(1)
	}
	if s.restarted == 0 {
		return nil
	}
	return s.say(c, restartedPacket(s.topic.name, s.restarted))
}

// A publisher that hangs is no better than one that is not there, and while
// we wait for it we do not follow its directory.
const (
	helloTimeout    = 3 * time.Second  // silence between request and hello
	snapshotTimeout = 10 * time.Second // silence between two packets until complete
)

// session is one connection to a publisher.
type session struct {
	*follower
	helloReceived bool
	done          bool            // the snapshot is complete
	doubt         bool            // a packet of the snapshot could not be assigned to a key
	seen          map[string]bool // keys of the snapshot
}

// follow takes what the socket brings until the publisher hangs up or ctx is done.
// connected tells whether anyone was there, whole whether the snapshot came.
// What was received stays: a lost socket is no withdrawal.
func (f *follower) follow(ctx context.Context) (connected, whole bool) {
	if f.topic.filesOnly {
		return false, false
	}
	conn, err := dial(f.topic.sock())
	if err != nil {
		return false, false
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	clear(f.missing) // the snapshot will tell
	s := &session{follower: f, seen: map[string]bool{}}
	err = s.receive(conn)
	switch {
	case ctx.Err() != nil:
	case s.done:
		if log, ok := f.quota.take(f.log); ok {
			log.WithError(err).Info("the publisher is gone, watching its directory")
		}
	default:
		f.report(f.topic.sock(), "the publisher's socket cannot be followed", err)
	}
	return true, s.done
}

// receive asks for the topic and handles packets until one cannot be obtained.
func (s *session) receive(conn *net.UnixConn) error {
	if _, err := conn.Write(requestPacket(s.topic.name)); err != nil {
		return err
	}
	buf := make([]byte, packetBuffer)
	for {
		if err := conn.SetReadDeadline(s.deadline()); err != nil {
			return err
		}
		n, err := conn.Read(buf)
		if err != nil {
			return err
		}
		if err := s.handle(buf[:n]); err != nil {
			return err
		}
	}
}

// deadline is until when the next packet has to come; the zero time is never.
func (s *session) deadline() time.Time {
	switch {
	case s.done:
		return time.Time{}
	case s.helloReceived:
		return time.Now().Add(snapshotTimeout)
	}
	return time.Now().Add(helloTimeout)
}

// handle takes in one packet. Only a publisher that does not speak the
// protocol is an error.
func (s *session) handle(b []byte) error {
	p, err := decodePacket(s.topic.name, b)
	if !s.helloReceived && (err != nil || p.verb != verbHello) {
		return errors.New("the publisher does not answer the handshake")
	}
	if p.key != "" && !s.done {
		s.seen[p.key] = true
	}
	if err != nil {
		s.doubt = s.doubt || p.key == ""
		s.refuse(p.key, err.Error(), err)
		return nil
	}
	switch p.verb {
	case verbHello:
		s.helloReceived = true
	case verbUpdate:
		s.counts.messages.Add(1)
		s.receiveValue(p.key, p.value)
	case verbDelete:
		s.counts.messages.Add(1)
		delete(s.seen, p.key)
		s.withdraw(p.key)
	case verbComplete:
		s.complete()
	}
	if s.done && !s.doubt {
		s.whole()
	}
	return nil
}

// receiveValue fetches the large fields of a value and stores it.
func (s *session) receiveValue(key string, value []byte) {
	value, err := joinLarge(value, func(path string) ([]byte, error) {
		return takeLarge(s.topic.largeDir(), path)
	})
	if err != nil {
		s.refuse(key, err.Error(), err)
		return
	}
	s.update(key, value)
}

// complete ends the snapshot: what was not in it has been withdrawn while
// nobody listened.
func (s *session) complete() {
	if s.done {
		return
	}
	s.done = true
	delete(s.reported, s.topic.sock())
	// Each publication is a file as well, and would wake us five times more.
	s.watcher.unwatch(s.topic.dir())
	for _, key := range s.known() {
		// A packet nobody could read may have been about any key.
		if !s.seen[key] && !s.doubt {
			s.withdraw(key)
		}
	}
	if log, ok := s.quota.take(s.log); ok {
		log.Info("following the publisher's socket")
	}
}
