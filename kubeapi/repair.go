package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The Lease of docs/wire.md, "Repair lease".
const (
	repairLease    = "zedkube-repair"
	repairManager  = "zedkube"
	repairDuration = 10 * time.Second
	repairEvery    = 2500 * time.Millisecond
	// repairsFor is how long after the start of the last renewal this node has
	// the right: what it cancels then gets two seconds to stop.
	repairsFor = repairDuration - 2*time.Second
	// renewWithin bounds a try to renew, so that a second one comes in time.
	renewWithin = 4 * time.Second
	// repairWithin bounds the way to the right, and the one back.
	repairWithin = 5 * time.Second
)

var (
	errRightLost = errors.New("the right to repair was lost")
	errNobody    = errors.New("nobody is to have the right")
)

// Repair carries out do while this node, under the name identity, has the right
// to repair. It returns an error that wraps types.ErrHeld at once when
// another node has it, other errors when the right cannot be had, and else what
// do returns. The context of do ends when the right cannot be renewed, before
// another node can have it, and when a new connection is made. Callers of one
// Client take turns.
//
// What another process has left behind, of this node or of another, counts for
// repairDuration after its last sign of life was seen.
func (c *Client) Repair(ctx context.Context, identity string, do func(ctx context.Context) error) error {
	act := "repair as " + identity
	if identity == "" {
		return fmt.Errorf("repair: %w", errNobody)
	}
	select {
	case c.repairs <- struct{}{}: // callers queue here
		defer func() { <-c.repairs }()
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", act, ctx.Err())
	}
	conn, done, err := c.use()
	if err != nil {
		return fmt.Errorf("%s: %w", act, err)
	}
	defer done()
	r := &right{leases: leasesOn(conn), holder: identity, acquired: time.Now().UTC().Truncate(time.Microsecond)}
	defer func() {
		if err := r.giveBack(context.WithoutCancel(ctx)); err != nil {
			c.Log.WithError(err).Info("the right to repair could not be given back, it will run out")
		}
	}()
	if err := r.take(ctx); err != nil {
		return fmt.Errorf("%s: %w", act, err)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer context.AfterFunc(conn.ctx, func() { stop(errRetired) })()
	kept := make(chan struct{})
	go func() { defer close(kept); r.keep(ctx, stop) }()
	err = do(ctx)
	lost := context.Cause(ctx)
	stop(nil)
	<-kept
	if err != nil && lost != nil {
		return fmt.Errorf("%s: %w: %w", act, lost, err)
	}
	return err
}
