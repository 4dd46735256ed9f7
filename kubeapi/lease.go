package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/zedkube/zedkube/types"
)

// StatsLease is the name of the Lease of docs/wire.md, "Lease".
const StatsLease = "eve-kube-stats-leader"

// The bounds of that Lease. EVE's own zedkube holds it for
// 300 s at a time. Ours is shorter, so that a dead leader is followed within
// half a minute; in a mixed cluster that is safe, because a candidate judges
// the holder by the duration that the holder wrote into the Lease.
const (
	statsLease    = StatsLease
	leaseDuration = 25 * time.Second
	renewDeadline = 15 * time.Second // longer than one call may take
	retryPeriod   = 5 * time.Second
	// leadsFor is how long after the start of the last renewal this node may
	// call itself the leader: until shortly before another one may.
	leadsFor = leaseDuration - 2*time.Second
	// giveBackWithin bounds giving the Lease back: after a shutdown somebody waits.
	giveBackWithin = 5 * time.Second
)

var errRetired = errors.New("the kubeconfig has changed")

// Elect takes part in the election of the node that reports for the cluster,
// under the name identity. It calls changed, never twice at a time, whenever
// the leader ("" while none is known to hold the Lease) or our part changes, and
// at the end with "", false if it had said anything else. It returns nil when
// ctx is done, after giving the Lease back if it was ours and the API server
// answers; and an error when there is no connection or a new one is made.
//
// While another node holds the Lease it sends nothing: the watch tells when it
// is given back, and a clock when it has run out. Where there is no watch it
// asks every 5 to 11 s.
func (c *Client) Elect(ctx context.Context, identity string, changed func(leader string, leads bool)) error {
	conn, done, err := c.use()
	if err != nil {
		return fmt.Errorf("elect stats leader: %w", err)
	}
	defer done()
	term, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(conn.ctx, cancel)()

	part := &candidate{
		Interface: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: Namespace, Name: statsLease},
			Client:     leasesOn(conn),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		seen: kept[sightings](conn), changed: changed, bell: make(chan struct{}, 1),
	}
	err = part.run(term)
	if back := part.giveBack(context.WithoutCancel(ctx)); back != nil {
		c.Log.WithError(back).Info("the lease could not be given back, it will run out")
	}
	switch {
	case err != nil:
		return fmt.Errorf("elect stats leader: %w", err)
	case ctx.Err() != nil:
		return nil
	}
	return fmt.Errorf("elect stats leader: %w: %w", types.ErrNoAPI, errRetired)
}
