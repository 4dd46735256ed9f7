package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/zedkube/zedkube/types"
)

// The Lease of docs/wire.md, "Lease". EVE's own zedkube holds it for
// 300 s at a time. Ours is shorter, so that a dead leader is followed within
// half a minute; in a mixed cluster that is safe, because a candidate judges
// the holder by the duration that the holder wrote into the Lease.
const (
	statsLease    = "eve-kube-stats-leader"
	leaseDuration = 25 * time.Second
	renewDeadline = 15 * time.Second // longer than one call may take
	retryPeriod   = 5 * time.Second
)

var errRetired = errors.New("the kubeconfig has changed")

// Elect takes part in the election of the node that reports for the cluster,
// under the name identity. It calls changed, never twice at a time, whenever
// the leader ("" while there is none) or our part changes, and at the end with
// "", false if it had said anything else. It returns nil when ctx is done,
// after giving the Lease back if it was ours and the API server answers; and
// an error when there is no connection, a new one is made, or leadership is lost.
func (c *Client) Elect(ctx context.Context, identity string, changed func(leader string, leads bool)) error {
	conn, done, err := c.use()
	if err != nil {
		return fmt.Errorf("elect stats leader: %w", err)
	}
	defer done()
	term, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(conn.ctx, cancel)()

	part := &candidate{changed: changed, bell: make(chan struct{}, 1)}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: Namespace, Name: statsLease},
			Client:     conn.kube.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		LeaseDuration:   leaseDuration,
		RenewDeadline:   renewDeadline,
		RetryPeriod:     retryPeriod,
		ReleaseOnCancel: true,
		Name:            statsLease,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { part.leads.Store(true); part.ring() },
			OnStoppedLeading: func() {},
			OnNewLeader:      func(string) { part.ring() },
		},
	})
	if err != nil {
		return fmt.Errorf("elect stats leader: %w", err)
	}
	over := make(chan struct{})
	var reporting sync.WaitGroup
	reporting.Go(func() { part.report(elector, over) })
	elector.Run(term)
	close(over)
	reporting.Wait()
	switch {
	case ctx.Err() != nil:
		return nil
	case conn.ctx.Err() != nil:
		return fmt.Errorf("elect stats leader: %w: %w", types.ErrNoAPI, errRetired)
	}
	return errors.New("elect stats leader: leadership lost, the lease was not renewed in time")
}

// candidate puts the elector's callbacks, which come from goroutines of their
// own in no certain order, into line: they only ring, and what is reported is
// what is true then.
type candidate struct {
	changed func(leader string, leads bool)
	leads   atomic.Bool
	bell    chan struct{}
}

func (p *candidate) ring() {
	select {
	case p.bell <- struct{}{}:
	default:
	}
}

func (p *candidate) report(elector *leaderelection.LeaderElector, over <-chan struct{}) {
	leader, leads := "", false
	say := func(l string, is bool) {
		if l != leader || is != leads {
			leader, leads = l, is
			p.changed(l, is)
		}
	}
	for {
		select {
		case <-over:
			say("", false)
			return
		case <-p.bell:
			say(elector.GetLeader(), p.leads.Load() && elector.IsLeader())
		}
	}
}
