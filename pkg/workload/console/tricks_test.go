package console

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/zedkube/zedkube/types"
)

// Others may write where the file is, and the agent is root.
func TestNoLinkBesideTheFileLeadsElsewhere(t *testing.T) {
	path := place(t)
	dir, victim := filepath.Dir(path), filepath.Join(t.TempDir(), "victim")
	must(t, os.WriteFile(victim, []byte("precious"), 0o600))
	trap := func(name string) { must(t, os.Symlink(victim, filepath.Join(dir, name))) }
	trap(".vmiVNC.run.part")
	must(t, put(path, "ours"))
	holds(t, path, "ours")
	trap(".vmiVNC.run.old")
	is, err := read(path)
	must(t, err, take(path, is.id))
	holds(t, path, "")
	trap("vmiVNC.run")
	is, err = read(path)
	must(t, err)
	if is.kind != broken || is.text != "" {
		t.Errorf("the link is followed: %+v", is)
	}
	if err := put(path, "ours"); !errors.Is(err, errChanged) {
		t.Error(err)
	}
	must(t, take(path, is.id))
	holds(t, path, "")
	raw, err := os.ReadFile(victim)
	info, err2 := os.Stat(victim)
	must(t, err, err2)
	if string(raw) != "precious" || info.Mode() != 0o600 {
		t.Errorf("it is %q, %v", raw, info.Mode())
	}
}

func TestAnEmptyDirectoryBesideTheFileHindersNothing(t *testing.T) {
	path := place(t)
	for _, name := range []string{".vmiVNC.run.part", ".vmiVNC.run.old"} {
		must(t, os.Mkdir(filepath.Join(filepath.Dir(path), name), 0o755))
	}
	must(t, put(path, "ours"))
	is, err := read(path)
	must(t, err, take(path, is.id))
	holds(t, path, "")
}

func TestADirectoryThatBecameALinkIsNotOpenedToAll(t *testing.T) {
	root := t.TempDir()
	secret, link := filepath.Join(root, "secret"), filepath.Join(root, "link")
	must(t, os.Mkdir(secret, 0o700), os.Symlink(secret, link))
	if err := openToAll(link); err == nil {
		t.Error("the link was followed")
	}
	if info, err := os.Stat(secret); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// A process that is out of file descriptors must not take edgeview's session for
// a file without sense.
func TestAFileThatCannotBeReadNowIsNotCalledNonsense(t *testing.T) {
	c := &Component{Operations: types.NoOperations{}, File: place(t), Proc: t.TempDir()}
	must(t, put(c.File, textOf(edgeviews)))
	var limit syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Max: limit.Max}))
	s := c.see(time.Now())
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	if s.kind != barred || s.trouble == "" {
		t.Errorf("it is seen as %d, %q", s.kind, s.trouble)
	}
}

func TestWhyTheFileCannotBeWrittenIsToldToPeople(t *testing.T) {
	tell(t, func(n *node) {
		part := filepath.Join(filepath.Dir(n.file), ".vmiVNC.run.part")
		n.must(os.MkdirAll(filepath.Join(part, "x"), 0o755))
		n.wants(first, true)
		n.runs(first, own)
		n.start()
		n.later(time.Minute)
		n.because(first, "the console file cannot be used: remove "+part+": directory not empty")
		n.must(os.RemoveAll(part))
		n.later(2 * time.Minute)
		n.says(textOf(own))
		n.because(first, unopened)
		n.wants(first, false)
		n.says("")
	})
}
