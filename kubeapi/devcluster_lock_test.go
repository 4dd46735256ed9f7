//go:build linux

package kubeapi_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/types"
)

func lockRaces(t *testing.T, c *devcluster.Cluster) {
	agents := []*agent{newAgent(t, c, 2), newAgent(t, c, 0)}
	if lock, err := agents[0].DrainLock(t.Context()); err != nil || lock.Version != "" || lock.Holder != "" {
		t.Fatalf("at first there is %+v, %v", lock, err)
	}
	for round := range 20 {
		lock := racesOnce(t, agents, types.DrainLock{BootID: "b1", Since: time.Now(), Volumes: map[string]int{"v": round}})
		// The others may change it, too: of two who saw the same one wins.
		lock.Ended = true
		changed := racesOnce(t, agents, lock)
		if err := agents[0].FreeDrainLock(t.Context(), lock); !errors.Is(err, types.ErrConflict) {
			t.Fatalf("a lock that had changed was freed: %v", err)
		}
		if err := errors.Join(agents[1].FreeDrainLock(t.Context(), changed), agents[0].FreeDrainLock(t.Context(), changed)); err != nil {
			t.Fatal(err)
		}
		if _, err := agents[0].SetDrainLock(t.Context(), changed); !errors.Is(err, types.ErrConflict) {
			t.Fatalf("a lock that was freed was changed: %v", err)
		}
		if again, err := agents[1].DrainLock(t.Context()); err != nil || again.Version != "" {
			t.Fatalf("then there is %+v, %v", again, err)
		}
	}
	fillsLock(t, c, agents[0])
}

// racesOnce has all agents write the lock at once, and returns what won.
func racesOnce(t *testing.T, agents []*agent, lock types.DrainLock) types.DrainLock {
	t.Helper()
	type result struct {
		lock types.DrainLock
		err  error
	}
	results := make(chan result)
	for i, a := range agents {
		go func() {
			mine := lock
			mine.Holder = fmt.Sprint("node-", i)
			got, err := a.SetDrainLock(t.Context(), mine)
			results <- result{got, err}
		}()
	}
	var won []types.DrainLock
	for range agents {
		if r := <-results; r.err == nil {
			won = append(won, r.lock)
		} else if !errors.Is(r.err, types.ErrConflict) {
			t.Fatal(r.err)
		}
	}
	if len(won) != 1 {
		t.Fatalf("%d won", len(won))
	}
	seen, err := agents[0].DrainLock(t.Context())
	if err != nil || seen.Holder != won[0].Holder || seen.Version != won[0].Version || seen.BootID != lock.BootID ||
		!seen.Since.Equal(lock.Since) || seen.Ended != lock.Ended || seen.Volumes["v"] != lock.Volumes["v"] {
		t.Fatalf("%+v won, and there is %+v, %v", won[0], seen, err)
	}
	return won[0]
}

// fillsLock has as many volumes as the API server takes, and more.
func fillsLock(t *testing.T, c *devcluster.Cluster, a *agent) {
	lock := types.DrainLock{Holder: "node-1", BootID: "b1", Since: time.Now(), Volumes: map[string]int{}}
	for range 5000 {
		lock.Volumes["pvc-"+uuid.NewString()] = 3
	}
	begin := time.Now()
	got, err := a.SetDrainLock(t.Context(), lock)
	if err != nil || len(got.Volumes) != 5000 {
		t.Fatalf("of 5000 volumes %d are kept, %v", len(got.Volumes), err)
	}
	t.Logf("5000 volumes in %v", time.Since(begin))
	got.Holder = "node-2"
	for range 5000 {
		got.Volumes["pvc-"+uuid.NewString()] = 2
	}
	got, err = a.SetDrainLock(t.Context(), got)
	worst := 0
	for _, healthy := range got.Volumes {
		if healthy == 2 {
			worst++
		}
	}
	if err != nil || worst != 5000 {
		t.Fatalf("of 5000 degraded volumes %d are kept, %v", worst, err)
	}
	for name, patch := range map[string]string{
		"garbage": `{"metadata":{"annotations":{"zedkube.github.io/drain-lock":"{\"bootID\":"}}}`,
		"no note": `{"metadata":{"annotations":null}}`,
	} {
		if _, err := c.Client().CoordinationV1().Leases(kubeapi.Namespace).Patch(t.Context(), "zedkube-node-drain", ktypes.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		got, err = a.DrainLock(t.Context())
		if err != nil || got.Holder != "node-2" || got.BootID != "" || got.Volumes != nil || got.Since.IsZero() {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if err := a.FreeDrainLock(t.Context(), got); err != nil {
		t.Fatal(err)
	}
}
