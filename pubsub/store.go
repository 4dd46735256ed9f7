package pubsub

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/zedkube/zedkube/pkg/base/safefile"
)

// store is a publication without its type: JSON by key, in memory, in files
// and towards the clients of the socket.
type store struct {
	topic    topic
	log      logrus.FieldLogger
	listener *net.UnixListener
	patience time.Duration // how long a client may accept nothing
	counts   counts

	// load, put and remove are called by one goroutine at a time. mu is held to
	// change rows and to look at them from elsewhere, never while a file is
	// written: a client that waited for it would be a file behind for each file.
	mu        sync.Mutex
	rows      map[string][]byte // as in the files
	withdrawn withdrawn         // its file is written without mu
	clients   map[*client]struct{}
	restarted int

	unsure map[string]bool // keys whose file may not be as in rows: it could not be written
}

// open makes the directories and binds the socket, before anything in the
// directory is touched: a living owner keeps its files.
func (s *store) open() error {
	if err := s.topic.check(); err != nil {
		return err
	}
	// Who may write the directory may replace values and the socket; who may
	// read the values' own learns their keys.
	for _, dir := range []string{filepath.Dir(s.topic.sock()), filepath.Dir(s.topic.dir()), s.topic.dir()} {
		most := os.FileMode(0o755)
		if dir == s.topic.dir() {
			most = 0o700
		}
		if err := errors.Join(os.MkdirAll(dir, 0o700), tighten(dir, most)); err != nil {
			return fmt.Errorf("open topic %s: %w", s.topic, err)
		}
	}
	for _, dir := range []string{filepath.Dir(s.topic.largeDir()), s.topic.largeDir()} {
		if err := tighten(dir, 0o755); err != nil && !errors.Is(err, fs.ErrNotExist) { // made when there is something for it
			return fmt.Errorf("open topic %s: %w", s.topic, err)
		}
	}
	if s.topic.filesOnly {
		return nil
	}
	l, err := listen(s.topic.sock())
	if err != nil {
		return fmt.Errorf("open topic %s: %w", s.topic, err)
	}
	s.listener = l
	return nil
}

// tighten takes from a directory the permissions beyond most. It refuses one of
// another user, who could give them back.
func tighten(dir string, most os.FileMode) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok && sys.Uid != 0 && int(sys.Uid) != os.Geteuid() {
		return fmt.Errorf("directory %s belongs to user %d, who could change what is in it", dir, sys.Uid)
	}
	if mode := info.Mode().Perm(); mode&^most != 0 {
		return os.Chmod(dir, mode&most)
	}
	return nil
}

// close gives the socket back; without it nothing is served.
func (s *store) close() {
	if s.listener == nil {
		return
	}
	os.Remove(s.topic.sock())
	s.listener.Close()
	s.listener = nil
}

// load takes what was published before for the present state and returns a
// copy. Files that valid refuses or that do not fit the socket are left alone
// and reported.
func (s *store) load(valid func([]byte) error) (map[string][]byte, error) {
	dir := s.topic.dir()
	young := time.Duration(0)
	if s.topic.filesOnly { // it may have several writers at a time
		young = writtenWithin
	}
	sweepTemp(dir, young)
	sweepLarge(s.topic.largeDir())
	check := func(key string, data []byte) error {
		if err := valid(data); err != nil {
			return err
		}
		return s.fits(key, data)
	}
	values, bad, err := readDir(dir)
	if err != nil {
		return nil, fmt.Errorf("load topic %s: %w", s.topic, err)
	}
	for key, data := range values {
		if err := check(key, data); err != nil {
			bad[key] = err
			delete(values, key)
		}
	}
	if s.topic.persistent {
		s.restore(values, bad, check)
	}
	for key, err := range bad {
		s.log.WithError(err).WithField("key", key).Error("a previously published value is invalid, skipping it")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows, s.unsure = values, map[string]bool{}
	if !s.topic.filesOnly {
		if err := s.withdrawn.load(s.topic.withdrawn(), func(key string) bool { return values[key] != nil }); err != nil {
			s.log.WithError(err).Warn("subscribers that connect later may keep withdrawn keys")
		}
	}
	s.restarted = readRestarted(dir)
	return maps.Clone(values), nil
}

// restore brings back the values whose file is lost or bad but whose backup is
// good. For what it cannot bring back, bad stays as it is.
func (s *store) restore(values map[string][]byte, bad map[string]error, check func(string, []byte) error) {
	backups, _, err := readFiles(s.topic.dir(), backupSuffix)
	if err != nil {
		s.log.WithError(err).Error("cannot read the backups")
	}
	for key, data := range backups {
		if _, is := values[key]; is || check(key, data) != nil {
			continue
		}
		log := s.log.WithField("key", key)
		if err := writeFile(s.topic.dir(), key+fileSuffix, data, true); err != nil {
			log.WithError(err).Error("cannot restore a value from its backup")
			continue
		}
		log.WithError(bad[key]).Warn("restored a value from its backup")
		values[key] = data
		delete(bad, key)
	}
}

// readRestarted reads the restart counter of a topic; content that is no
// number counts as 1, no file as 0.
func readRestarted(dir string) int {
	data, err := safefile.Read(filepath.Join(dir, verbRestarted), maxFile)
	if err != nil {
		return 0
	}
	if n, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
		return n
	}
	return 1
}

// put stores data under key, and tells the clients or leaves that for later;
// where it is there already nothing happens.
func (s *store) put(key string, data []byte, tell bool) (changed bool, err error) {
	name, err := s.topic.fileName(key)
	if err != nil {
		return false, err
	}
	old, had := s.rows[key]
	if had && bytes.Equal(old, data) && !s.unsure[key] {
		return false, nil
	}
	if bytes.Equal(data, []byte("null")) {
		return false, errors.New("the value is empty")
	}
	if err := s.fits(key, data); err != nil {
		return false, err
	}
	dir, durable := s.topic.dir(), s.topic.persistent
	if had && durable {
		// One sync of the directory, after both renames, does for both: in
		// whatever order they last, the value's file is whole.
		if err := replaceFile(dir, name+backupSuffix, old, true); err != nil {
			return false, err
		}
	}
	s.unsure[key] = true
	if err := writeFile(dir, name, data, durable); err != nil {
		return false, err
	}
	delete(s.unsure, key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows[key] = data
	s.withdrawn.remove(key)
	if tell {
		s.changed(key)
	}
	return true, nil
}

// remove removes key. The file goes even if its value was never loaded, so
// that a bad file does not outlive a withdrawal.
func (s *store) remove(key string) error {
	name, err := s.topic.fileName(key)
	if err != nil {
		return err
	}
	dir, durable := s.topic.dir(), s.topic.persistent
	if durable {
		// The backup first: alone it would bring the value back.
		if err := removeFile(dir, name+backupSuffix, true); err != nil {
			return err
		}
	}
	_, had := s.rows[key]
	if _, err := os.Lstat(filepath.Join(dir, name)); had || err == nil {
		had = true
		if err := s.withdrawn.note(key); err != nil { // what is withdrawn must go, even where no space is left
			s.log.WithError(err).WithField("key", key).Warn("a subscriber that is not connected now may keep a withdrawn key")
		}
	}
	s.unsure[key] = true
	if err := removeFile(dir, name, durable); err != nil {
		return err
	}
	delete(s.unsure, key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if had {
		delete(s.rows, key)
		s.withdrawn.add(key)
		s.changed(key)
	}
	return nil
}

// fits refuses a value that could not be sent, before anyone relies on it.
func (s *store) fits(key string, data []byte) error {
	value, err := splitLarge(data, func(field string, content []byte) (string, error) {
		if len(content) > maxLarge {
			return "", fmt.Errorf("%w: its file would have %d bytes, at most %d are possible", ErrTooLarge, len(content), maxLarge)
		}
		// The longest path that saveLarge makes: ten random digits.
		return filepath.Join(s.topic.largeDir(), filePrefix+field+"0123456789"), nil
	})
	if err != nil {
		return err
	}
	if n := updateSize(s.topic.name, key, value); n > maxPacket {
		return fmt.Errorf("%w: its message would have %d bytes (%d of JSON), at most %d are possible", ErrTooLarge, n, len(value), maxPacket)
	}
	return nil
}

// tell tells every client of key, whose value was put without.
func (s *store) tell(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed(key)
}

// tellUnless tells key to every client that was sent another value of it than data.
func (s *store) tellUnless(key string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.clients {
		sent, was := c.sent[key]
		if now, is := c.sending[key]; is {
			sent, was = now, true
		}
		if was && !bytes.Equal(sent, data) {
			c.dirty[key] = struct{}{}
			Ring(c.wake)
		}
	}
}

// changed tells every client that key is news. Called with mu held.
func (s *store) changed(key string) {
	s.counts.sent.Add(1)
	for c := range s.clients {
		c.dirty[key] = struct{}{}
		Ring(c.wake)
	}
}

func (s *store) stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts.stats(s.topic.String(), false, len(s.clients))
}
