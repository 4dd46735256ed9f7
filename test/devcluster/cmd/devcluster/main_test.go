//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zedkube/zedkube/test/devcluster"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"devcluster": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata", Setup: shareCaches})
}

// shareCaches lets the scripts find what is built already, and what it is built from.
func shareCaches(env *testscript.Env) error {
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		return err
	}
	dirs := strings.Fields(string(out))
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	source, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	env.Setenv(devcluster.SourceVariable, source)
	env.Setenv("GOCACHE", dirs[0])
	env.Setenv("GOMODCACHE", dirs[1])
	env.Setenv("XDG_CACHE_HOME", cache)
	return nil
}
