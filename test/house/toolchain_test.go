package house

import (
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A program built with another standard library has other bytes, and other holes; so has one of old libraries.
func TestEveryModuleNamesItsToolchainAndGetsUpdates(t *testing.T) {
	list, err := exec.Command("git", "-C", "../..", "ls-files", "*go.mod").Output()
	updates, err2 := os.ReadFile("../../.github/dependabot.yml")
	if err != nil || err2 != nil || len(list) == 0 {
		t.Fatalf("%v %v %q", err, err2, list)
	}
	places := regexp.MustCompile(`directories: \[(.*)\]`).FindStringSubmatch(string(updates))
	if places == nil {
		t.Fatal("dependabot.yml names no directories")
	}
	updated := strings.Split(places[1], ", ")
	first := ""
	for _, file := range strings.Fields(string(list)) {
		if strings.HasPrefix(file, "test/devcluster/") {
			continue // another Kubernetes, with versions of its own
		}
		content, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		line := regexp.MustCompile(`(?m)^toolchain go1\.\d+\.\d+$`).FindString(string(content))
		if first == "" {
			first = line
		}
		if line == "" || line != first {
			t.Errorf("%s: toolchain %q, another one has %q", file, line, first)
		}
		at := "/" + strings.TrimPrefix(path.Dir(file), ".")
		if !slices.Contains(updated, at) {
			t.Errorf("%s is not in dependabot.yml", at)
		}
		updated = slices.DeleteFunc(updated, func(dir string) bool { return dir == at })
	}
	if len(updated) > 0 {
		t.Errorf("dependabot.yml names %q, where no module is", updated)
	}
}
