//go:build linux

package devcluster

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// pinned are the versions of Kubernetes' own modules and of what a go.mod names by itself.
func pinned(t *testing.T, file string) (list []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.Contains(line, " => ") || strings.HasPrefix(line, "k8s.io/kubernetes ") {
			list = append(list, line)
		}
	}
	slices.Sort(list)
	return list
}

func TestTheNextMinorReleaseHasTheModulesOfThisOne(t *testing.T) {
	now, next := pinned(t, "devkube/go.mod"), pinned(t, "devkube/next.mod")
	if !slices.Contains(now, "k8s.io/kubernetes "+kubeVersion) || !slices.Contains(next, "k8s.io/kubernetes "+minorVersion) {
		t.Errorf("the modules are not of %s and %s", kubeVersion, minorVersion)
	}
	for i := range now {
		now[i] = strings.TrimSuffix(now[i], strings.TrimPrefix(kubeVersion, "v1")) + strings.TrimPrefix(minorVersion, "v1")
	}
	if !slices.Equal(now, next) {
		t.Errorf("next.mod has %q,\nwant %q: .ci/next-mod writes it", next, now)
	}
}

// Where a release's programs are kept follows its own modules, and the usual ones' does not.
func TestReleasesAreBuiltApart(t *testing.T) {
	keys := map[string]Release{}
	for _, r := range []Release{NextPatch, NextMinor, OldEtcd} {
		key, err := r.bundle().cacheKey(t.Context(), ".")
		if err != nil {
			t.Fatal(err)
		}
		if other, taken := keys[key]; taken {
			t.Errorf("releases %d and %d are kept in one place", r, other)
		}
		keys[key] = r
	}
}
