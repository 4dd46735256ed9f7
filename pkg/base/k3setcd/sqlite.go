package k3setcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zedkube/zedkube/pkg/base/failpoint"
	"github.com/zedkube/zedkube/pkg/base/safefile"
)

const (
	copyPrefix = "zedkube-copy-"
	copyPart   = ".part" // at the end of one that is not complete
	// copyFor is how long writers may have to wait for a copy: k3s gives up after 30 s.
	copyFor   = 15 * time.Second
	lockEvery = 5 * time.Millisecond

	// Where SQLite locks its files: the readers of a database in the file itself, the writer
	// and the checkpoint of a write-ahead log in the index beside it (sqlite.org, "WAL-mode File Format").
	sharedFirst, sharedSize = 0x40000002, 510
	walWrite, walLocks      = 120, 2
)

// CopySQLite copies the datastore of a single node, while k3s runs, into a directory beside it,
// and removes the former copy; what a run that was killed has left goes first, for its space. A plain copy of a database that is being written to may not be readable. So no write, no
// checkpoint and no last close happens meanwhile, by the locks that SQLite itself takes for these: then the file and its
// log belong together.
func CopySQLite(ctx context.Context, server string, now time.Time) (dir string, err error) {
	ctx, cancel := context.WithTimeout(ctx, copyFor)
	defer cancel()
	db := filepath.Join(server, "db/state.db")
	dir = filepath.Join(server, "db", fmt.Sprintf("%s%d", copyPrefix, now.Unix()))
	part := dir + copyPart
	defer func() {
		if err != nil {
			_ = os.RemoveAll(part)
			dir, err = "", fmt.Errorf("copy the datastore of k3s: %w", err)
		}
	}()
	if err := removeCopies(filepath.Dir(db), func(name string) bool { return strings.HasSuffix(name, copyPart) }); err != nil {
		return dir, err
	}
	if err := errors.Join(safefile.CheckSpace(filepath.Dir(db), spare, db, db+"-wal"), os.Mkdir(part, 0o700)); err != nil {
		return dir, err
	}
	unlock, err := lockSQLite(ctx, db)
	if err != nil {
		return dir, err
	}
	err = errors.Join(copyFile(ctx, part, db), copyFile(ctx, part, db+"-wal"))
	unlock() // what follows takes the disk longest, and holds nobody up
	for _, name := range []string{"state.db", "state.db-wal"} {
		if err == nil {
			err = syncPath(filepath.Join(part, name))
		}
	}
	if err = errors.Join(err, syncPath(part)); err != nil {
		return dir, err
	}
	if err = failpoint.Do("write", dir, func() error { return os.Rename(part, dir) }); err != nil {
		return dir, err
	}
	err = removeCopies(filepath.Dir(dir), func(name string) bool { return name != filepath.Base(dir) })
	return dir, errors.Join(err, syncPath(filepath.Dir(dir)))
}

// removeCopies removes the copies in a directory with such names.
func removeCopies(in string, which func(name string) bool) error {
	names, err := safefile.Names(in, maxSnapshots)
	for _, name := range names {
		if strings.HasPrefix(name, copyPrefix) && which(name) {
			old := filepath.Join(in, name)
			err = errors.Join(err, failpoint.Do("remove", old, func() error { return os.RemoveAll(old) }))
		}
	}
	return err
}

// lockSQLite waits until nobody writes to a database, and lets nobody until unlock. A
// database whose log has no index is open in no process.
func lockSQLite(ctx context.Context, db string) (unlock func(), err error) {
	f, _, err := safefile.OpenFile(db, os.O_RDWR|safefile.NoFollow, 0)
	if err != nil {
		return nil, err
	}
	var head [20]byte
	if _, err = io.ReadFull(f, head[:]); err == nil && (string(head[:16]) != "SQLite format 3\x00" || head[18] != 2 || head[19] != 2) {
		err = errors.New("it is not SQLite with a write-ahead log")
	}
	tick := time.NewTicker(lockEvery)
	defer tick.Stop()
	for err == nil {
		var index *os.File
		var opened, now os.FileInfo
		if index, opened, err = safefile.OpenFile(db+"-shm", os.O_RDWR|safefile.NoFollow, 0); err != nil {
			break
		}
		busy := errors.Join(lock(f, unix.F_RDLCK, sharedFirst, sharedSize), lock(index, unix.F_WRLCK, walWrite, walLocks))
		// The last one who closes the database removes the index.
		if now, err = os.Lstat(db + "-shm"); busy == nil && err == nil && os.SameFile(opened, now) {
			return func() { _ = errors.Join(index.Close(), f.Close()) }, nil // which unlocks
		}
		_ = index.Close()
		err = lock(f, unix.F_UNLCK, sharedFirst, sharedSize) // others may wait for it
		select {
		case <-ctx.Done():
			err = errors.Join(err, busy, ctx.Err())
		case <-tick.C:
		}
	}
	_ = f.Close()
	return nil, err
}

func lock(f *os.File, kind int16, first, size int64) error {
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Start: first, Len: size})
}

func copyFile(ctx context.Context, dir, path string) error {
	from, _, err := safefile.OpenFile(path, os.O_RDONLY|safefile.NoFollow, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(filepath.Join(dir, filepath.Base(path)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	for err == nil && ctx.Err() == nil {
		_, err = io.CopyN(to, from, 4<<20)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, ctx.Err(), to.Close())
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
