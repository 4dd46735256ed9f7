package pubsub

import (
	"context"
	"errors"
	"net"
	"time"
)

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
			log.WithError(err).Info("publisher has gone, watching its directory")
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
