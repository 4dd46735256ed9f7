//go:build linux

// Package upgrade changes the release of three real servers, one after the other, while
// objects are written and watched at each of them.
package upgrade

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/rig"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, o devcluster.Options) *devcluster.Cluster {
	t.Helper()
	o.Hosts, o.Log = true, t.Output()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute) // it may have to build
	defer cancel()
	c, err := devcluster.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestServersTakeAPatchOneAfterAnother is what `make test` has of an upgrade: the release is
// the same but for the version that is linked in.
func TestServersTakeAPatchOneAfterAnother(t *testing.T) {
	rig.NeedsHosts(t)
	c := start(t, devcluster.Options{})
	w := newTraffic(t, c)
	for _, i := range []int{1, 2, 0} { // the server that the others joined comes last
		change(t, c, w, i, devcluster.NextPatch)
	}
	w.end(t)
}

// change gives a host another release. The others take writes while it is stopped, and it
// does when it runs again.
func change(t *testing.T, c *devcluster.Cluster, w *traffic, i int, r devcluster.Release) {
	t.Helper()
	if err := c.UseRelease(t.Context(), i, r); err != nil {
		t.Fatal(err)
	}
	name, began := c.Nodes[i].Name, time.Now()
	c.StopControlPlane(i)
	w.goesOn(t, name+" is stopped")
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience*time.Minute)
	defer cancel()
	if err := c.StartControlPlane(ctx, i); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s runs %s after %s", name, r.Version(), rig.Since(began))
	if got := apiVersion(t, w, i); got != r.Version() {
		t.Errorf("the API server of %s is of version %s, want %s", name, got, r.Version())
	}
	if err := c.SetKubeletVersion(ctx, i, r.Version()+"+k3s1"); err != nil {
		t.Fatal(err)
	}
	w.goesOn(t, "all servers run")
	voting, err := c.Members(t.Context())
	if err != nil || len(voting) != len(c.Nodes) {
		t.Errorf("hosts %v vote in etcd, %v", voting, err)
	}
}

// apiVersion is the version that the API server of a host reports.
func apiVersion(t *testing.T, w *traffic, i int) string {
	t.Helper()
	raw, err := w.servers[i].Discovery().RESTClient().Get().AbsPath("/version").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var answer struct{ GitVersion string }
	if err := json.Unmarshal(raw, &answer); err != nil {
		t.Fatal(err)
	}
	return answer.GitVersion
}
