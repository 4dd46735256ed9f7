package console

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/zedkube/zedkube/pkg/base/failpoint"
	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/types"
)

// maxFile bounds what is read of a file; a good one has some 100 bytes.
const maxFile = 4096

// errChanged is a file that is not any more what was looked at.
var errChanged = errors.New("it has been changed in the meantime")

// identity tells a file from every other one, its rewritten self included, and
// an absence from a later one: whatever comes or goes in a directory changes
// the time of that.
type identity struct {
	there  bool
	dev    uint64
	inode  uint64
	size   int64
	change time.Time
}

func identify(info fs.FileInfo, there bool) identity {
	id := identity{there: there, change: info.ModTime()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id.dev, id.inode = st.Dev, st.Ino
	}
	if there {
		id.size = info.Size()
	}
	return id
}

type seen struct {
	kind    kind // valid is a plain file, whatever it says
	id      identity
	text    string
	trouble string    // where it is barred
	since   time.Time // the first look at this very file, or at its absence
}

// read looks at a path. Nothing there can hold it up: what is no plain file is
// not read, and no link is followed.
func read(path string) (seen, error) {
	f, info, err := safefile.OpenFile(path, os.O_RDONLY|safefile.NoFollow, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return absent(path)
	case err != nil:
		info, err2 := os.Lstat(path)
		switch {
		case err2 != nil || info.Mode().IsRegular(): // there are no descriptors left, say
			return seen{}, err
		case info.IsDir():
			return seen{}, errors.New("a directory is in its place")
		}
		return seen{kind: broken, id: identify(info, true)}, nil
	}
	defer f.Close()
	raw, err := safefile.Head(f, maxFile+1)
	if err != nil {
		return seen{}, err
	}
	if len(raw) > maxFile {
		raw = nil // no sense can be made of it
	}
	return seen{kind: valid, id: identify(info, true), text: string(raw)}, nil
}

func absent(path string) (seen, error) {
	info, err := os.Stat(filepath.Dir(path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return seen{}, nil
	case err != nil:
		return seen{}, err
	}
	return seen{id: identify(info, false)}, nil
}

func parse(text string) (types.VmiVNCConfig, bool) {
	var c types.VmiVNCConfig
	err := json.Unmarshal([]byte(text), &c)
	return c, err == nil && c.VMIName != "" && c.VNCPort > 0 && c.VNCPort <= highestPort
}

// put makes a file where none is, complete from its first moment: a rename
// could replace one that edgeview writes at the same time, a link cannot.
func put(path, text string) error {
	part := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".part")
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a run that was killed
		return err
	}
	if err := safefile.Create(part, text, 0o644); err != nil {
		return err
	}
	err := failpoint.Do("write", path, func() error { return os.Link(part, path) })
	if errors.Is(err, fs.ErrExist) {
		err = errChanged
	}
	return errors.Join(err, os.Remove(part))
}

// take removes the very file that was looked at. What has taken its place
// meanwhile is put back.
func take(path string, id identity) error {
	aside := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".old")
	_ = os.Remove(aside) // an empty directory, say; what cannot be replaced the rename tells
	if err := failpoint.Do("remove", path, func() error { return os.Rename(path, aside) }); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	info, err := os.Lstat(aside)
	if err != nil {
		return err
	}
	if identify(info, true) == id {
		return os.Remove(aside)
	}
	switch err := os.Link(aside, path); {
	case err == nil, errors.Is(err, fs.ErrExist): // and by now something else is there
		return errors.Join(errChanged, os.Remove(aside))
	default: // a directory
		return errors.Join(errChanged, os.Rename(aside, path))
	}
}

// makeDir makes the directory of a file, for all to read.
func makeDir(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil { //nolint:gosec // edgeview reads it
		return err
	}
	switch err := os.Mkdir(dir, 0o755); { //nolint:gosec // edgeview reads it
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	return openToAll(dir)
}

// openToAll does so whatever the umask is, but not where a link leads: the agent
// is root, and others may write beside the directory.
func openToAll(dir string) error {
	d, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	return errors.Join(d.Chmod(0o755), d.Close())
}

const (
	// maxSockets bounds what is read of one of the kernel's tables: 30000
	// sockets. Beyond, nothing is known of the port.
	maxSockets = 4 << 20
	// edgeview is what the kernel calls edgeview's process.
	edgeview = "edge-view"
	// The kernel's states of a socket that matter here.
	established = "01"
	listening   = "0A"
)

// portUse looks up whether a port is listened on or connected, without
// connecting: the proxy takes the first connection for its one client.
func portUse(proc string, port uint32) use {
	found := silent
	for _, table := range []string{"net/tcp", "net/tcp6"} {
		is, err := inTable(filepath.Join(proc, table), port)
		switch {
		case is:
			return served
		case errors.Is(err, fs.ErrNotExist) && table == "net/tcp6": // a kernel without IPv6
		case err != nil:
			found = unknown
		}
	}
	return found
}

// inTable looks for the port in one table of sockets, in which those that
// listen come first.
func inTable(path string, port uint32) (bool, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	limited := &io.LimitedReader{R: f, N: maxSockets}
	lines := bufio.NewScanner(limited)
	suffix := fmt.Sprintf(":%04X", port)
	for lines.Scan() {
		field := strings.Fields(lines.Text())
		if len(field) > 3 && strings.HasSuffix(field[1], suffix) && (field[3] == listening || field[3] == established) {
			return true, nil
		}
	}
	if limited.N == 0 {
		return false, fmt.Errorf("%s is longer than %d bytes", path, maxSockets)
	}
	return false, lines.Err()
}

// edgeviewLives reports that the process is an edgeview, or that nobody can tell.
func edgeviewLives(proc string, pid int) bool {
	comm, err := safefile.Read(filepath.Join(proc, strconv.Itoa(pid), "comm"), 64) // the kernel's longest has 15
	switch {
	case err == nil:
		return strings.TrimSpace(string(comm)) == edgeview
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH):
		_, err := os.Stat(filepath.Join(proc, "net"))
		return err != nil // it is not the processes that are missing
	}
	return true
}
