package safefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestReadTakesARegularFileWithinItsBound(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(in("file"), []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", in("link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"file", "link"} {
		if got, err := Read(in(name), 5); string(got) != "12345" || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, err := Read(in("file"), 4); got != nil || err == nil || !strings.Contains(err.Error(), "longer than 4 bytes") {
		t.Errorf("too long: %q, %v", got, err)
	}
	if _, err := Read(in("none"), 5); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

func TestReadDoesNotWaitForWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, dir, "/dev/zero"} {
		if _, err := Read(path, 5); !errors.Is(err, ErrNotRegular) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestALinkIsRefusedWhereItIsNotToBeFollowed(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "file"), []byte("12345"), 0o600), os.Symlink("file", link)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := OpenFile(link, os.O_RDONLY|NoFollow, 0); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a link: %v", err)
	}
	f, info, err := OpenFile(filepath.Join(dir, "file"), os.O_RDONLY|NoFollow, 0)
	if err != nil || info.Size() != 5 {
		t.Fatalf("a file: %v", err)
	}
	defer f.Close()
	if got, err := Head(f, 3); string(got) != "123" || err != nil {
		t.Errorf("its front: %q, %v", got, err)
	}
}

func TestNamesAreOfADirectoryOnly(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Names(dir, 10); len(got) != 1 || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := Names(t.TempDir(), 10); len(got) != 0 || err != nil {
		t.Errorf("an empty one: %v, %v", got, err)
	}
	if _, err := Names(fifo, 10); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a pipe: %v", err)
	}
}

func TestAHugeFileCostsItsBoundOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "huge")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 3<<30); err != nil { // no block of it is on disk
		t.Fatal(err)
	}
	allocated := testing.AllocsPerRun(1, func() { _, _ = Read(path, 1000) })
	if allocated > 100 {
		t.Errorf("%v allocations", allocated)
	}
	if _, err := Read(path, 1000); err == nil {
		t.Error("it is read")
	}
}

func TestAFileIsOursWhereNobodyElseOwnsOrWritesIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		uid  int
		mode os.FileMode
		why  string
	}{
		"our own":              {os.Geteuid(), 0o644, ""},
		"of another":           {65534, 0o600, "another user (uid 65534)"},
		"of another, readable": {65534, 0o444, "another user"},
		"the group writes":     {os.Geteuid(), 0o620, "mode 0620"},
		"all write":            {os.Geteuid(), 0o602, "mode 0602"},
	} {
		if err := os.Chmod(path, row.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, row.uid, -1); err != nil {
			if row.uid != os.Geteuid() && os.Geteuid() != 0 {
				continue // only root can give files away
			}
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		switch err := Others(info); {
		case row.why == "" && err != nil, row.why != "" && (err == nil || !strings.Contains(err.Error(), row.why)):
			t.Errorf("%s: %v", name, err)
		}
	}
}
