package console

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/types"
)

// place is a directory with the path of a file.
func place(t *testing.T) string { return filepath.Join(t.TempDir(), "vmiVNC.run") }

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// holds wants the directory to hold the one file with that content, "" for nothing.
func holds(t *testing.T, path, want string) {
	t.Helper()
	list, err := os.ReadDir(filepath.Dir(path))
	must(t, err)
	if want == "" && len(list) == 0 {
		return
	}
	raw, err := os.ReadFile(path)
	if len(list) != 1 || string(raw) != want {
		t.Errorf("there are %v, the file holds %q (%v), want %q", list, raw, err, want)
	}
}

func TestAFileThatCameMeanwhileIsNotReplaced(t *testing.T) {
	path := place(t)
	must(t, os.WriteFile(path, []byte("edgeview's"), 0o644))
	if err := put(path, "ours"); !errors.Is(err, errChanged) {
		t.Error(err)
	}
	holds(t, path, "edgeview's")
}

func TestAFileThatCameMeanwhileIsNotRemoved(t *testing.T) {
	path := place(t)
	must(t, put(path, "ours"))
	was, err := read(path)
	must(t, err, os.Remove(path), os.WriteFile(path, []byte("edgeview's"), 0o644))
	if err := take(path, was.id); !errors.Is(err, errChanged) {
		t.Error(err)
	}
	holds(t, path, "edgeview's")
}

func TestThatSomebodyWasFasterIsNoFailure(t *testing.T) {
	c := &Component{Operations: types.NoOperations{}, Log: logrus.New(), File: place(t), Proc: t.TempDir()}
	must(t, put(c.File, textOf(own)))
	c.see(time.Now())
	must(t, c.keep(t.Context(), action{file: write, config: own}))
	must(t, os.Remove(c.File), put(c.File, textOf(edgeviews)))
	must(t, c.keep(t.Context(), action{file: remove}))
	holds(t, c.File, textOf(edgeviews))
}

func TestADirectoryThatCameMeanwhileIsPutBack(t *testing.T) {
	path := place(t)
	must(t, put(path, "ours"))
	was, err := read(path)
	must(t, err, os.Remove(path), os.Mkdir(path, 0o755), os.WriteFile(filepath.Join(path, "x"), nil, 0o644))
	if err := take(path, was.id); !errors.Is(err, errChanged) {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(path, "x")); err != nil {
		t.Error(err)
	}
}

func TestAFileIsWrittenAndRemovedWithoutATrace(t *testing.T) {
	path := place(t)
	// What a killed run left is in nobody's way.
	must(t, os.WriteFile(filepath.Join(filepath.Dir(path), ".vmiVNC.run.part"), []byte("half"), 0o600))
	must(t, put(path, "ours"))
	holds(t, path, "ours")
	is, err := read(path)
	must(t, err, take(path, is.id))
	holds(t, path, "")
	must(t, take(path, is.id)) // gone is gone
}

// The kube container may look at any moment.
func TestAReaderNeverSeesHalfAFile(t *testing.T) {
	path := place(t)
	text := strings.Repeat("a", maxFile)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 300 {
			err := put(path, text)
			is, err2 := read(path)
			if err := errors.Join(err, err2, take(path, is.id)); err != nil {
				t.Error(err)
			}
		}
	}()
	for {
		if raw, err := os.ReadFile(path); err == nil && string(raw) != text {
			<-done
			t.Fatalf("%d bytes", len(raw))
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

func TestWhatStandsInThePlaceOfTheFile(t *testing.T) {
	for name, row := range map[string]struct {
		put  func(path string) error
		want kind
	}{
		"nothing":            {func(string) error { return nil }, nothing},
		"no directory":       {func(path string) error { return os.Remove(filepath.Dir(path)) }, nothing},
		"a good file":        {func(path string) error { return put(path, textOf(own)) }, valid},
		"an empty file":      {func(path string) error { return put(path, "") }, broken},
		"no port":            {func(path string) error { return put(path, `{"VMIName":"x"}`) }, broken},
		"a port beyond":      {func(path string) error { return put(path, `{"VMIName":"x","VNCPort":65536}`) }, broken},
		"a negative port":    {func(path string) error { return put(path, `{"VMIName":"x","VNCPort":-1}`) }, broken},
		"no machine":         {func(path string) error { return put(path, `{"VNCPort":5907}`) }, broken},
		"half a file":        {func(path string) error { return put(path, textOf(own)[:40]) }, broken},
		"a file and more":    {func(path string) error { return put(path, textOf(own)+"x") }, broken},
		"a huge file":        {func(path string) error { return put(path, textOf(own)+strings.Repeat(" ", maxFile)) }, broken},
		"a pipe":             {func(path string) error { return syscall.Mkfifo(path, 0o644) }, broken},
		"a link to the file": {func(path string) error { return os.Symlink("elsewhere", path) }, broken},
		"a directory":        {func(path string) error { return os.Mkdir(path, 0o755) }, barred},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Component{Operations: types.NoOperations{}, File: place(t), Proc: t.TempDir()}
			must(t, row.put(c.File))
			s := c.see(time.Now())
			if s.kind != row.want {
				t.Fatalf("it is seen as %d, want %d", s.kind, row.want)
			}
			if (s.trouble != "") != (row.want == barred) {
				t.Errorf("the trouble is %q", s.trouble)
			}
			if s.kind != broken {
				return
			}
			must(t, take(c.File, c.file.id))
			if _, err := os.Lstat(c.File); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("it is still there: %v", err)
			}
		})
	}
}

func TestWhatComesAndGoesBetweenTwoLooksIsNoticed(t *testing.T) {
	c := &Component{Operations: types.NoOperations{}, File: place(t), Proc: t.TempDir()}
	c.see(time.Now())
	before := c.file.id
	if c.see(time.Now()); c.file.id != before {
		t.Error("nothing happened, and it was noticed")
	}
	must(t, os.Chtimes(filepath.Dir(c.File), before.change.Add(1), before.change.Add(1)))
	if c.see(time.Now()); c.file.id == before {
		t.Error("it was not")
	}
}
