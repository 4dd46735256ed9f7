//go:build linux

package devcluster

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// fakeSource is a tree in the shape of this package whose programs build in no
// time, or not at all.
func fakeSource(t *testing.T, mainGo string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"devkube/go.mod": "module devkube\n", "devkube/go.sum": "", "devkube/main.go": mainGo,
		"devkube/multicall/multicall.go": "package multicall\n",
		"kwok/go.mod":                    "module kwok\n", "kwok/go.sum": "",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAFailedBuildSaysWhyAndIsNotCached(t *testing.T) {
	goCache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	t.Setenv("GOCACHE", strings.TrimSpace(string(goCache)))
	t.Setenv("XDG_CACHE_HOME", cache)
	_, err = Build(t.Context(), fakeSource(t, "package main\n\nfunc main() { mistake() }\n"), t.Output())
	if err == nil || !strings.Contains(err.Error(), "undefined: mistake") {
		t.Errorf("the error does not name the mistake: %v", err)
	}
	entries, err := filepath.Glob(filepath.Join(cache, "zedkube-devcluster", "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || filepath.Ext(entries[0]) != ".lock" {
		t.Errorf("the cache holds %q, want only the lock", entries)
	}
}

func TestTheCacheKeyFollowsTheSources(t *testing.T) {
	source := fakeSource(t, "package main\n")
	key := func() string {
		k, err := baseBundle.cacheKey(t.Context(), source)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	before := key()
	if again := key(); again != before {
		t.Errorf("the key changes by itself, from %s to %s", before, again)
	}
	if err := os.WriteFile(filepath.Join(source, "kwok", "go.sum"), []byte("a new version"), 0o600); err != nil {
		t.Fatal(err)
	}
	if after := key(); after == before {
		t.Error("another go.sum has the same key")
	}
}

func TestAForeignDirectoryIsNoSource(t *testing.T) {
	if _, err := Build(t.Context(), t.TempDir(), io.Discard); err == nil || !strings.Contains(err.Error(), "Options.Source") {
		t.Errorf("the error does not say what to set: %v", err)
	}
}

func TestOnlyOneBuilds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, path, &log); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the second one got %v", err)
	}
	if !strings.Contains(log.String(), "waiting for another process") {
		t.Errorf("the second one says %q", log.String())
	}
	unlock()
	unlock, err = lock(t.Context(), path, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

func TestABuildTellsHowFarItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		p := newProgress(&log, "devkube", 40)
		_, _ = io.WriteString(p, "internal/abi\nruntime\nk8s.io/ap")
		time.Sleep(6 * time.Second)
		p.stop()
		if want := "building devkube: 2 of at most 40 packages after 5s, at runtime\n"; !strings.Contains(log.String(), want) {
			t.Errorf("the log is %q, want %q in it", log.String(), want)
		}
	})
}
