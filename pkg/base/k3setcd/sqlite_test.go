package k3setcd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// newSQLite is a single node whose k3s has its database open.
func newSQLite(t *testing.T) *k3s {
	t.Helper()
	k := &k3s{}
	k.Server = t.TempDir()
	k.write(t, "db/state.db", "SQLite format 3\x00\x10\x00\x02\x02 and pages")
	k.write(t, "db/state.db-wal", "the log")
	k.write(t, "db/state.db-shm", strings.Repeat("\x00", 32<<10))
	return k
}

func (k *k3s) copies(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(k.Server, "db", copyPrefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range found {
		found[i] = filepath.Base(found[i])
	}
	return strings.Join(found, " ")
}

func TestTheDatastoreOfASingleNodeIsCopied(t *testing.T) {
	k := newSQLite(t)
	k.write(t, "db/zedkube-copy-1/state.db", "former")
	k.write(t, "db/zedkube-copy-2.part/state.db", "of a run that was killed")
	dir, err := CopySQLite(t.Context(), k.Server, time.Unix(1795432850, 0))
	if err != nil || dir != filepath.Join(k.Server, "db/zedkube-copy-1795432850") {
		t.Fatalf("%s, %v", dir, err)
	}
	if got := k.copies(t); got != "zedkube-copy-1795432850" {
		t.Errorf("copies are %s", got)
	}
	for _, name := range []string{"state.db", "state.db-wal"} {
		want, _ := os.ReadFile(filepath.Join(k.Server, "db", name))
		got, err := os.ReadFile(filepath.Join(dir, name))
		info, statErr := os.Stat(filepath.Join(dir, name))
		if err := errors.Join(err, statErr); err != nil || string(got) != string(want) || info.Mode() != 0o600 {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"state.db", "state.db-shm"} { // nobody is locked out afterwards
		f := k.open(t, name)
		if err := errors.Join(lock(f, unix.F_WRLCK, walWrite, walLocks), lock(f, unix.F_WRLCK, sharedFirst, sharedSize)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What killed runs have left takes the space that the next copy needs.
func TestThePartsOfKilledCopiesAreRemovedBeforeSpaceIsAskedFor(t *testing.T) {
	k := newSQLite(t)
	k.write(t, "db/zedkube-copy-1/state.db", "former")
	k.write(t, "db/zedkube-copy-2.part/state.db", "of a run that was killed")
	if err := os.Truncate(filepath.Join(k.Server, "db/state.db"), 8<<40); err != nil { // more than there is
		t.Fatal(err)
	}
	if _, err := CopySQLite(t.Context(), k.Server, time.Now()); err == nil || !strings.Contains(err.Error(), "MiB are free for k3s") {
		t.Errorf("the error is %v", err)
	}
	if got := k.copies(t); got != "zedkube-copy-1" {
		t.Errorf("copies are %s", got)
	}
}

func (k *k3s) open(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(k.Server, "db", name), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestACopyWaitsForTheWriterTheCheckpointAndTheLastClose(t *testing.T) {
	for name, row := range map[string]struct {
		file        string
		first, size int64
	}{
		"a writer":      {"state.db-shm", walWrite, 1},
		"a checkpoint":  {"state.db-shm", walWrite + 1, 1},
		"a last closer": {"state.db", sharedFirst, sharedSize},
	} {
		t.Run(name, func(t *testing.T) {
			k := newSQLite(t)
			f := k.open(t, row.file)
			if err := lock(f, unix.F_WRLCK, row.first, row.size); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if dir, err := CopySQLite(ctx, k.Server, time.Now()); !errors.Is(err, context.DeadlineExceeded) || dir != "" {
				t.Errorf("%q, %v", dir, err)
			}
			if got := k.copies(t); got != "" {
				t.Errorf("copies are %s", got)
			}
			go func() { _ = f.Close() }()
			if _, err := CopySQLite(t.Context(), k.Server, time.Now()); err != nil {
				t.Errorf("when it has ended: %v", err)
			}
		})
	}
}

func TestNobodyWritesWhileTheLocksAreHeld(t *testing.T) {
	k := newSQLite(t)
	unlock, err := lockSQLite(t.Context(), filepath.Join(k.Server, "db/state.db"))
	if err != nil {
		t.Fatal(err)
	}
	shm, db := k.open(t, "state.db-shm"), k.open(t, "state.db")
	for what, err := range map[string]error{
		"a writer":      lock(shm, unix.F_WRLCK, walWrite, 1),
		"a checkpoint":  lock(shm, unix.F_WRLCK, walWrite+1, 1),
		"a last closer": lock(db, unix.F_WRLCK, sharedFirst, sharedSize),
	} {
		if !errors.Is(err, unix.EAGAIN) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := lock(db, unix.F_RDLCK, sharedFirst, 1); err != nil {
		t.Errorf("a reader is locked out: %v", err)
	}
	unlock()
	if err := lock(shm, unix.F_WRLCK, walWrite, walLocks); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestWhatIsNotAnOpenDatabaseIsNotCopied(t *testing.T) {
	for name, row := range map[string]struct{ file, text, why string }{
		"another file":         {"state.db", "hello, this is not a database", "it is not SQLite"},
		"a file that is short": {"state.db", "SQLite", "EOF"},
		"with a rollback log":  {"state.db", "SQLite format 3\x00\x10\x00\x01\x01 and pages", "it is not SQLite with a write-ahead log"},
		"no log":               {"state.db-wal", "", "no such file"},
		"no index":             {"state.db-shm", "", "no such file"},
		"no database":          {"state.db", "", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newSQLite(t)
			if err := os.Remove(filepath.Join(k.Server, "db", row.file)); err != nil {
				t.Fatal(err)
			}
			if row.text != "" {
				k.write(t, "db/"+row.file, row.text)
			}
			if _, err := CopySQLite(t.Context(), k.Server, time.Now()); err == nil || !strings.Contains(err.Error(), row.why) {
				t.Errorf("the error is %v, want %q", err, row.why)
			}
			if got := k.copies(t); got != "" {
				t.Errorf("copies are %s", got)
			}
		})
	}
}

func TestWhatDoesNotFitOnTheDiskIsNotCopied(t *testing.T) {
	single, server := newSQLite(t), newK3s(t)
	server.write(t, "db/etcd/member/snap/db", "")
	for _, path := range []string{filepath.Join(single.Server, "db/state.db"), filepath.Join(server.Server, "db/etcd/member/snap/db")} {
		if err := os.Truncate(path, 8<<40); err != nil { // 8 TiB, of which nothing is on the disk
			t.Fatal(err)
		}
	}
	if dir, err := CopySQLite(t.Context(), single.Server, time.Now()); err == nil || !strings.Contains(err.Error(), "MiB are free for k3s, it needs 838") || dir != "" || single.copies(t) != "" {
		t.Errorf("%q, %s: %v", dir, single.copies(t), err)
	}
	if _, err := server.Save(t.Context()); err == nil || !strings.Contains(err.Error(), "take a snapshot of etcd: ") || !strings.Contains(err.Error(), "MiB are free for k3s") || server.asked != nil {
		t.Errorf("k3s was asked for %v: %v", server.asked, err)
	}
}
