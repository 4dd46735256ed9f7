package k3sbinary

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// staged is a device on which next is staged.
func staged(t *testing.T) (f Files, dir string) {
	t.Helper()
	f, dir = newFiles(t)
	if _, err := f.Stage(t.Context(), strings.NewReader(script(next)), next, sumOf(script(next))); err != nil {
		t.Fatal(err)
	}
	return f, dir
}

func is(t *testing.T, path, want string) {
	t.Helper()
	if got, err := Version(t.Context(), path); err != nil || got != want {
		t.Errorf("%s is %q, %v; want %s", path, got, err, want)
	}
}

func TestTheStagedBinaryIsInstalledAndTheFormerOneRestored(t *testing.T) {
	f, dir := staged(t)
	write(t, filepath.Join(dir, ".k3s-part-old"), "of a run that was killed")
	if err := f.Install(t.Context(), next, sumOf(script(next))); err != nil {
		t.Fatal(err)
	}
	is(t, filepath.Join(dir, "k3s"), next)
	is(t, filepath.Join(dir, "k3s.old"), "v1.34.4+k3s1")
	if got := entries(t, dir); got != "k3s k3s.old" {
		t.Errorf("the directory has %s", got)
	}
	if err := f.Restore(t.Context(), "v1.34.4+k3s1"); err != nil {
		t.Fatal(err)
	}
	is(t, filepath.Join(dir, "k3s"), "v1.34.4+k3s1")
	if got := entries(t, dir); got != "k3s" {
		t.Errorf("the directory has %s", got)
	}
}

func TestABinaryIsInstalledOnce(t *testing.T) {
	f, dir := staged(t)
	for range 2 {
		if err := f.Install(t.Context(), next, sumOf(script(next))); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Stage(t.Context(), strings.NewReader(script(next)), next, sumOf(script(next))); err != nil {
			t.Fatal(err)
		}
	}
	is(t, filepath.Join(dir, "k3s"), next)
	is(t, filepath.Join(dir, "k3s.old"), "v1.34.4+k3s1")
}

func TestWhatIsNotAsItWasStagedIsNotInstalled(t *testing.T) {
	for name, row := range map[string]struct {
		version string
		change  func(dir string) error
		why     string
	}{
		"another version":          {"v1.35.1+k3s1", nil, `staged is "` + next + `"`},
		"none":                     {next, func(dir string) error { return os.Remove(filepath.Join(dir, ".k3s-"+next)) }, `staged is ""`},
		"it has changed since":     {next, func(dir string) error { return os.WriteFile(filepath.Join(dir, ".k3s-"+next), []byte("x"), 0o755) }, "its SHA-256 is"},
		"there is a directory":     {next, func(dir string) error { return os.MkdirAll(filepath.Join(dir, "k3s.old/x"), 0o755) }, "file exists"},
		"others could have":        {next, func(dir string) error { return os.Chmod(filepath.Join(dir, ".k3s-"+next), 0o777) }, `staged is ""`},
		"nothing is in use at all": {next, func(dir string) error { return os.Remove(filepath.Join(dir, "k3s")) }, "there is no k3s binary"},
	} {
		t.Run(name, func(t *testing.T) {
			f, dir := staged(t)
			if row.change != nil {
				if err := row.change(dir); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.Install(t.Context(), row.version, sumOf(script(next))); err == nil || !strings.Contains(err.Error(), row.why) {
				t.Errorf("the error is %v, want %q", err, row.why)
			}
			if name != "nothing is in use at all" {
				is(t, filepath.Join(dir, "k3s"), "v1.34.4+k3s1")
			}
		})
	}
}

func TestOnlyTheFormerVersionIsPutBack(t *testing.T) {
	f, dir := staged(t)
	if err := f.Restore(t.Context(), "v1.34.4+k3s1"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("without a former one: %v", err)
	}
	write(t, filepath.Join(dir, "k3s.old"), script("v1.33.0+k3s1"))
	if err := f.Restore(t.Context(), "v1.34.4+k3s1"); err == nil || !strings.Contains(err.Error(), "the former one is v1.33.0+k3s1") {
		t.Errorf("with another one: %v", err)
	}
	is(t, filepath.Join(dir, "k3s"), "v1.34.4+k3s1")
}
