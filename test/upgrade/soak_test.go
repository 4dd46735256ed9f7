//go:build linux && soak

package upgrade

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/rig"
)

// longestSilence is how long the cluster may be without an acknowledged write.
const longestSilence = 30 * time.Second

func (w *traffic) endWithin(t *testing.T, limit time.Duration) {
	t.Helper()
	if longest := w.end(t); longest > limit {
		t.Errorf("for %s no write was acknowledged", longest)
	}
}

// TestSoakTheClusterVersionOfEtcdRisesWithItsLastMember changes etcd alone, from 3.5 to 3.6,
// of members that voted from the beginning: others may not start (etcd-io/etcd#20793), which
// is why the rules refuse this very pair (pkg/cluster/k3supdate).
func TestSoakTheClusterVersionOfEtcdRisesWithItsLastMember(t *testing.T) {
	rig.NeedsHosts(t)
	c := start(t, devcluster.Options{Release: devcluster.OldEtcd})
	wantEtcd(t, c, []string{"3.5.21", "3.5.21", "3.5.21"}, "3.5.0")
	w := newTraffic(t, c)
	change(t, c, w, 1, devcluster.Usual)
	wantEtcd(t, c, []string{"3.5.21", "3.6.4", "3.5.21"}, "3.5.0")

	change(t, c, w, 1, devcluster.OldEtcd)
	wantEtcd(t, c, []string{"3.5.21", "3.5.21", "3.5.21"}, "3.5.0")
	change(t, c, w, 1, devcluster.Usual)

	change(t, c, w, 2, devcluster.Usual)
	wantEtcd(t, c, []string{"3.5.21", "3.6.4", "3.6.4"}, "3.5.0")
	change(t, c, w, 0, devcluster.Usual)
	wantEtcd(t, c, []string{"3.6.4", "3.6.4", "3.6.4"}, "3.6.0")

	wantRefused(t, c, 1)
	change(t, c, w, 1, devcluster.Usual)
	w.endWithin(t, longestSilence)
}

// wantEtcd waits until each host's member is of this version, and says that the cluster is.
func wantEtcd(t *testing.T, c *devcluster.Cluster, servers []string, cluster string) {
	t.Helper()
	rig.Until(t, 30*time.Second, func() string {
		for i, want := range servers {
			server, of, err := c.EtcdVersion(t.Context(), i)
			if err != nil {
				return err.Error()
			}
			if server != want || of != cluster {
				return c.Nodes[i].Name + " has etcd " + server + ", of the cluster " + of + "; want " + want + ", " + cluster
			}
		}
		return ""
	})
}

// wantRefused starts the member of a host with the etcd of before, on the data of the new one.
func wantRefused(t *testing.T, c *devcluster.Cluster, i int) {
	t.Helper()
	if err := c.UseRelease(t.Context(), i, devcluster.OldEtcd); err != nil {
		t.Fatal(err)
	}
	c.StopControlPlane(i)
	log := filepath.Join(c.Dir, "etcd-"+c.Nodes[i].Name+".log")
	if err := os.Truncate(log, 0); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	started := make(chan error, 1)
	go func() { started <- c.StartControlPlane(ctx, i) }()
	rig.Until(t, 30*time.Second, func() string {
		text, err := os.ReadFile(log)
		if err != nil {
			return err.Error()
		}
		if !strings.Contains(string(text), "invalid downgrade; server version is lower than determined cluster version") {
			return "etcd 3.5 is not refused: " + string(text[max(0, len(text)-1000):])
		}
		return ""
	})
	cancel()
	if err := <-started; err == nil {
		t.Error("a server starts with the etcd of before")
	}
}
