//go:build linux

package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/test/devcluster"
)

var update = flag.Bool("update", false, "write testdata anew")

// TestAKnownClusterIsReportedWhole compares all that is told of a cluster that has
// everything in every state with what it is.
func TestAKnownClusterIsReportedWhole(t *testing.T) {
	k := &known{}
	s := newStage(t, devcluster.Options{}, k.arrange)
	s.Boot(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	beating := make(chan error, 1)
	go func() { beating <- k.beat(ctx) }()
	s.isTold(t, "whole.json")
	stop()
	if err := <-beating; err != nil {
		t.Error(err)
	}
}

// TestAClusterWithoutVirtualMachinesAndVolumesIsReported knows neither KubeVirt nor
// Longhorn, and no kube-vip.
func TestAClusterWithoutVirtualMachinesAndVolumesIsReported(t *testing.T) {
	k := &known{}
	s := newStage(t, devcluster.Options{}, func(ctx context.Context, c *devcluster.Cluster) error {
		return errors.Join(c.DropCustoms(ctx), k.arrangePods(ctx, c))
	})
	s.Boot(t)
	s.isTold(t, "bare.json")
}

func TestASingleNodeIsReported(t *testing.T) {
	k := &known{}
	s := newStage(t, devcluster.Options{Nodes: 1}, func(ctx context.Context, c *devcluster.Cluster) error {
		return errors.Join(k.arrangePods(ctx, c), c.InstallLonghorn(ctx), k.arrangeDaemons(ctx, c),
			c.CreateVolume(ctx, "vol-a", c.Nodes[0].Name, c.Nodes[0].Name), k.claim(ctx, c, "vol-a"))
	})
	s.Boot(t)
	s.isTold(t, "single.json")
}

// whole is all that the nodes of a cluster tell.
type whole struct {
	Report   json.RawMessage            // of the one node that has one
	Health   json.RawMessage            // of the same
	Others   json.RawMessage            // the health that all others tell
	Services json.RawMessage            // the same on every node
	Odd      map[string]json.RawMessage `json:",omitempty"` // what should have been the same
}

// isTold waits until all that is told is what the file says.
func (s *stage) isTold(t *testing.T, name string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	want, err := os.ReadFile(path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	within := 3 * time.Minute
	if *update {
		within = 40 * time.Second
	}
	var got []byte
	for began := time.Now(); time.Since(began) < within; pause(t.Context(), 200*time.Millisecond) {
		if got = s.tells(t); bytes.Equal(got, want) {
			t.Logf("it is told after %s", time.Since(began).Round(100*time.Millisecond))
			return
		}
	}
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s is written anew", path)
		return
	}
	t.Errorf("not what %s says:\n%s", path, cmp.Diff(string(want), string(got)))
}

// tells is what is told now, without what every cluster has of its own.
func (s *stage) tells(t *testing.T) []byte {
	t.Helper()
	w := whole{Odd: map[string]json.RawMessage{}}
	for _, m := range s.Fleet.Members {
		report, health, services := s.file(m.TopicDir(clusterTopic)), s.file(m.TopicDir(healthTopic)), s.file(m.TopicDir(serviceTopic))
		keep(&w.Services, services, w.Odd, "services of "+m.Name)
		if report != nil {
			keep(&w.Report, report, w.Odd, "report of "+m.Name)
			keep(&w.Health, health, w.Odd, "health of "+m.Name)
			continue
		}
		keep(&w.Others, health, w.Odd, "health of "+m.Name)
	}
	text, err := json.MarshalIndent(w, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

// keep takes down what is told, or that it is not what another node tells.
func keep(all *json.RawMessage, one json.RawMessage, odd map[string]json.RawMessage, whose string) {
	switch {
	case *all == nil:
		*all = one
	case !bytes.Equal(*all, one):
		odd[whose] = one
	}
}

var (
	moments  = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[0-9:.]+Z"`)
	suffixes = regexp.MustCompile(`"real[a-z0-9]{5}"`)
)

// never is the time that stands for none.
const never = `"0001-01-01T00:00:00Z"`

// file is a topic's one value, nil for none. Times, addresses and names that were
// drawn by lot are replaced.
func (s *stage) file(folder string) json.RawMessage {
	text, err := os.ReadFile(filepath.Join(folder, "global.json"))
	if err != nil || !json.Valid(text) {
		return nil
	}
	text = moments.ReplaceAllFunc(text, func(m []byte) []byte {
		if string(m) == never {
			return m
		}
		return []byte(`"TIME"`)
	})
	text = suffixes.ReplaceAll(text, []byte(`"real-LOT"`))
	for _, n := range s.Cluster.Nodes {
		text = bytes.ReplaceAll(text, []byte(`"`+n.IP+`"`), []byte(`"ADDRESS of `+n.Name+`"`))
	}
	return text
}
