package keptfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const text = "kind: Registration\n"

var (
	there = Desired{Do: Write, Content: text}
	gone  = Desired{Do: Remove}
)

// place is a file on a mount of others.
type place struct {
	*testing.T
	File
	mount, dir, part string
}

// eachRule plays a story by both rules of the directory.
func eachRule(t *testing.T, tell func(*testing.T, *place)) {
	for name, makes := range map[string]bool{"beside the mount's own": false, "in a directory of ours": true} {
		t.Run(name, func(t *testing.T) { tell(t, newPlace(t, makes)) })
	}
}

func newPlace(t *testing.T, makes bool) *place {
	p := &place{T: t, mount: filepath.Join(t.TempDir(), "vault")}
	p.must(os.Mkdir(p.mount, 0o755))
	p.dir = p.mount
	if makes {
		p.dir = filepath.Join(p.mount, "manifests")
	}
	p.File = File{Path: filepath.Join(p.dir, "a.yaml"), Name: "the file", MakeDir: makes}
	p.part = filepath.Join(p.dir, ".a.yaml.part")
	return p
}

func (p *place) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// keeps expects a result of a look that does not fail, and that the next one
// finds nothing to do.
func (p *place) keeps(w Desired, want Result) {
	p.Helper()
	if did, err := p.Keep(w); did != want || err != nil {
		p.Errorf("it did %d (%v), want %d", did, err, want)
	}
	if did, err := p.Keep(w); did != Same || err != nil {
		p.Errorf("the look after it did %d (%v)", did, err)
	}
	p.is(w)
}

// is expects the file to be so, and nothing beside it.
func (p *place) is(w Desired) {
	p.Helper()
	got, err := os.ReadFile(p.Path)
	if string(got) != w.Content || (w.Do == Write) != (err == nil) {
		p.Errorf("it holds %q (%v), want %q", got, err, w.Content)
	}
	if info, err := os.Lstat(p.Path); err == nil && info.Mode() != 0o600 {
		p.Errorf("its mode is %s", info.Mode())
	}
	all, _ := os.ReadDir(p.dir)
	for _, e := range all {
		if e.Name() != filepath.Base(p.Path) {
			p.Errorf("%s is left behind", e.Name())
		}
	}
}

// harms is what others may do to a file, or a run of ours that was killed.
var harms = map[string]func(p *place) error{
	"removed":             func(p *place) error { return os.Remove(p.Path) },
	"changed":             func(p *place) error { return os.WriteFile(p.Path, []byte(strings.ToUpper(text)), 0o600) },
	"appended to":         func(p *place) error { return os.WriteFile(p.Path, []byte(text+"a: 1\n"), 0o600) },
	"cut short":           func(p *place) error { return os.Truncate(p.Path, 3) },
	"opened to everybody": func(p *place) error { return os.Chmod(p.Path, 0o644) },
	"replaced by a fifo":  func(p *place) error { return errors.Join(os.Remove(p.Path), syscall.Mkfifo(p.Path, 0o600)) },
	"replaced by a link to its like": func(p *place) error {
		elsewhere := filepath.Join(p.mount, "..", "elsewhere")
		return errors.Join(os.Rename(p.Path, elsewhere), os.Symlink(elsewhere, p.Path))
	},
	"removed with its directory": func(p *place) error { return errors.Join(os.RemoveAll(p.mount), os.MkdirAll(p.dir, 0o755)) },
	"removed by a fresh mount":   func(p *place) error { return errors.Join(os.RemoveAll(p.mount), os.Mkdir(p.mount, 0o755)) },
	"half written by a killed run": func(p *place) error {
		return errors.Join(os.Remove(p.Path), os.WriteFile(p.part, []byte(text[:5]), 0o644))
	},
	"whole, but its rename was killed": func(p *place) error {
		return errors.Join(os.Remove(p.Path), os.WriteFile(p.part, []byte(text), 0o600))
	},
}
