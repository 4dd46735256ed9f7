//go:build soak && failpoints

package k3supdate

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/base/k3sbinary"
	"github.com/zedkube/zedkube/pkg/base/k3setcd"
	"github.com/zedkube/zedkube/pkg/base/k3sprocess"
	program "github.com/zedkube/zedkube/test/agent"
	"github.com/zedkube/zedkube/test/seeds"
)

// victim names the directory on which a process that kills itself works, and task what it does there.
const (
	victim = "K3SUPDATE_KILLED_IN"
	task   = "K3SUPDATE_KILLED_AT"
)

// onFiles is what the agent does to the files of k3s in a directory, and how it goes on after it was killed.
var onFiles = map[string]struct {
	effects []string
	do      func(t *testing.T, dir string) error
	whole   func(t *testing.T, dir string)
}{
	"aside": {
		[]string{"move server/tls/*.crt", "move server/tls/*/*.crt", "remove server/tls-before-reset"},
		func(_ *testing.T, dir string) error { return LeafFiles{Dirs: []string{dir}}.Aside(reset) },
		func(t *testing.T, dir string) { allThere(t, dir, reset) },
	},
	"back": {
		[]string{"restore server/tls/*.crt", "restore server/tls/*/*.crt", "remove server/tls-before-reset/*"},
		func(_ *testing.T, dir string) error {
			l := LeafFiles{Dirs: []string{dir}}
			return errors.Join(l.Aside(reset), l.Back(reset))
		},
		func(t *testing.T, dir string) { allThere(t, dir, reset) },
	},
	"copy": {
		[]string{"write server/db/zedkube-copy-*", "remove server/db/zedkube-copy-*"},
		func(t *testing.T, dir string) error {
			_, err := k3setcd.CopySQLite(t.Context(), filepath.Join(dir, "server"), reset)
			return err
		},
		func(t *testing.T, dir string) {
			to, err := k3setcd.CopySQLite(t.Context(), filepath.Join(dir, "server"), reset.Add(time.Hour))
			all, _ := filepath.Glob(filepath.Join(dir, "server/db/zedkube-copy-*"))
			if err != nil || len(all) != 1 || all[0] != to {
				t.Errorf("the next copy is %s, %v; there are %q", to, err, all)
			}
		},
	},
	"stage": {
		[]string{"write k3s/bin/.k3s-v*"},
		stage,
		func(t *testing.T, dir string) {
			if err := stage(t, dir); err != nil {
				t.Error(err)
			}
			if s, err := binaries(dir).Staged(); err != nil || s.Version != staged {
				t.Errorf("staged is %+v, %v", s, err)
			}
		},
	},
}

const (
	staged     = "v1.34.9+k3s1"
	testBinary = "#!/bin/sh\necho 'k3s version " + staged + " (0123abcd)'\n"
)

func binaries(dir string) k3sbinary.Files {
	return k3sbinary.Files{VarLib: dir, K3s: k3sprocess.K3s{}, Need: 1}
}

func stage(t *testing.T, dir string) error {
	sum := sha256.Sum256([]byte(testBinary))
	_, err := binaries(dir).Stage(t.Context(), strings.NewReader(testBinary), staged, hex.EncodeToString(sum[:]))
	return err
}

// allThere puts the certificates back as an agent does that is started, and looks whether each is there.
func allThere(t *testing.T, dir string, reset time.Time) {
	l := LeafFiles{Dirs: []string{dir}}
	if err := l.Back(reset); err != nil || l.Kept(reset) {
		t.Errorf("put back: %v, aside: %v", err, l.Kept(reset))
	}
	for name := range strings.FieldsSeq(ofServer) {
		if raw, err := os.ReadFile(filepath.Join(dir, name)); string(raw) != name {
			t.Errorf("%s is %q, %v", name, raw, err)
		}
	}
}

// TestSoakTheFilesOfK3sAreWholeWhereverTheAgentDies has a process kill itself before and after it
// changes each kind of file.
func TestSoakTheFilesOfK3sAreWholeWhereverTheAgentDies(t *testing.T) {
	if dir := os.Getenv(victim); dir != "" {
		if err := onFiles[os.Getenv(task)].do(t, dir); err != nil {
			t.Error(err)
		}
		return
	}
	for range seeds.Each(t, 1) {
		for name, row := range onFiles {
			for _, effect := range row.effects {
				for _, when := range []string{"/before", "/after"} {
					t.Run(effect+when, func(t *testing.T) {
						dir := t.TempDir()
						for file := range strings.FieldsSeq(ofServer) {
							writeFile(t, filepath.Join(dir, file), file)
						}
						writeFile(t, filepath.Join(dir, "server/db/state.db"), "SQLite format 3\x00\x10\x00\x02\x02")
						writeFile(t, filepath.Join(dir, "server/db/state.db-shm"), "")
						writeFile(t, filepath.Join(dir, "server/db/state.db-wal"), "log")
						writeFile(t, filepath.Join(dir, "server/db/zedkube-copy-1/state.db"), "former")
						writeFile(t, filepath.Join(dir, "k3s/bin/k3s"), "former")
						program.DiesAt(t, "TestSoakTheFilesOfK3sAreWholeWhereverTheAgentDies", "k3supdate/"+effect+when, victim+"="+dir, task+"="+name)
						seeds.Killed(t, "k3supdate/"+effect+when)
						row.whole(t, dir)
					})
				}
			}
		}
	}
}
