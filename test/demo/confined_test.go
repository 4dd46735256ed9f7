package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/zedkube/zedkube/test/agent"
)

// TestTheStoryPassesWithTheCapabilitiesOfTheUnit plays make run with agents that
// have of root's capabilities what .package/zedkube.service leaves them, and its
// umask. What else the unit says is tested in test/packaging, without a cluster.
func TestTheStoryPassesWithTheCapabilitiesOfTheUnit(t *testing.T) {
	if _, err := exec.LookPath("setpriv"); os.Geteuid() != 0 || err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("not root, or no setpriv")
		}
		t.Skip("only root has capabilities to give up, by setpriv")
	}
	unit, err := os.ReadFile("../../.package/zedkube.service")
	if err != nil {
		t.Fatal(err)
	}
	set := func(key string) string {
		found := regexp.MustCompile(`(?m)^` + key + `=(.+)$`).FindStringSubmatch(string(unit))
		if found == nil {
			t.Fatalf("the unit does not set %s", key)
		}
		return found[1]
	}
	capabilities := "-all"
	for _, c := range strings.Fields(set("CapabilityBoundingSet")) {
		capabilities += ",+" + strings.ToLower(strings.TrimPrefix(c, "CAP_"))
	}
	confined := []string{"sh", "-c", "umask " + set("UMask") + ` && exec setpriv --no-new-privs --bounding-set=` + capabilities + ` -- "$0" "$@"`}
	play(t, append(confined, agent.Build(t)))
}
