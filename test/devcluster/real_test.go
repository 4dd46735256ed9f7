//go:build linux

package devcluster

import (
	"os"
	"testing"
)

// needsPods skips where nodes cannot be real, but not on a build machine.
func needsPods(t *testing.T) {
	t.Helper()
	err := CanRunPods()
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skip(err)
	}
}

func TestRealNodes(t *testing.T) {
	needsPods(t)
	c := start(t, Options{Hosts: true, Real: true, LogMaxSize: "100Ki"})
	out, err := c.Kubectl(t.Context(), "get", "nodes", "-o", "wide")
	t.Logf("%s %v", out, err)
	if err := c.CreateApp(t.Context(), App{Name: "web", Node: c.Nodes[1].Name}); err != nil {
		t.Fatal(err)
	}
	pods, err := c.WaitRunning(t.Context(), "app=web", 1)
	t.Log(len(pods), err)
	out, err = c.Kubectl(t.Context(), "logs", "-n", AppNamespace, pods[0].Name)
	t.Logf("%s %v", out, err)
}
