package leases

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

// The Lease of docs/wire.md, "Repair lease".
const (
	RepairLease    = "zedkube-repair"
	repairManager  = "zedkube"
	repairDuration = 10 * time.Second
	repairEvery    = 2500 * time.Millisecond
	// repairsFor is how long after the start of the last renewal this node has
	// the right: what it cancels then gets two seconds to stop.
	repairsFor = repairDuration - 2*time.Second
	// renewWithin bounds a try to renew, so that a second one comes in time.
	renewWithin = 4 * time.Second
	// RepairWithin bounds the way to the right, and the one back.
	RepairWithin = 5 * time.Second
)

var (
	// ErrRepairLeaseLost is why a repair is cancelled: the Lease could not be renewed in time.
	ErrRepairLeaseLost = errors.New("the repair lease was lost")
	// ErrNoIdentity is returned where the name of the holder is missing.
	ErrNoIdentity = errors.New("no holder is named")
)

// Repair carries out do while this node, under the name identity, has the right
// to repair. It returns an error that wraps types.ErrHeld at once when
// another node has it, other errors when the right cannot be had, and else what
// do returns. The context of do ends when the right cannot be renewed, before
// another node can have it, and when a new connection is made. Callers of one
// Client take turns.
//
// What another process has left behind, of this node or of another, counts for
// repairDuration after its last renewal was seen.
func (c *Client) Repair(ctx context.Context, identity string, do func(ctx context.Context) error) error {
	act := "repair as " + identity
	if identity == "" {
		return fmt.Errorf("repair: %w", ErrNoIdentity)
	}
	select {
	case c.repairs <- struct{}{}: // callers queue here
		defer func() { <-c.repairs }()
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", act, ctx.Err())
	}
	conn, done, err := c.Use()
	if err != nil {
		return fmt.Errorf("%s: %w", act, err)
	}
	defer done()
	r := &repairRight{leases: On(conn), holder: identity, acquired: time.Now().UTC().Truncate(time.Microsecond)}
	defer func() {
		if err := r.giveBack(context.WithoutCancel(ctx)); err != nil {
			c.Logger.WithError(err).Info("the repair lease could not be released, it will expire")
		}
	}()
	if err := r.take(ctx); err != nil {
		return fmt.Errorf("%s: %w", act, err)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer context.AfterFunc(conn.Ctx, func() { stop(access.ErrRetired) })()
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

// repairRight is the right to repair in one's hands. Holder and time of acquisition
// tell it from any other, of another process on this node, too.
type repairRight struct {
	leases   leases
	holder   string
	acquired time.Time

	version string    // of the Lease as we last knew it to be ours
	until   time.Time // it is ours until then
	maybe   bool      // a write was sent and may have been made
}

func (r *repairRight) ours(l types.Lease) bool {
	return l.Holder == r.holder && l.Acquired.Equal(r.acquired)
}

// free returns the version of the Lease if it may be taken, "" if there is
// none, and else an error that wraps types.ErrHeld.
func (r *repairRight) free() (version string, watched bool, err error) {
	seen, watched, _ := r.leases.seen.Look(RepairLease)
	if time.Now().Before(seen.until(repairDuration)) {
		return "", watched, fmt.Errorf("%w: %s", types.ErrHeld, seen.Holder)
	}
	return seen.Version, watched, nil
}

// take takes the right if it is free.
func (r *repairRight) take(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, RepairWithin)
	defer cancel()
	if _, watched, err := r.free(); watched && err != nil {
		return err
	}
	if _, err := r.leases.Get(ctx, RepairLease, metav1.GetOptions{}); err != nil && !access.NotFound(err) {
		return err
	}
	version, _, err := r.free()
	if err != nil {
		return err
	}
	r.version = version
	err = r.write(ctx)
	if lost(err) { // somebody was faster
		r.maybe = false
		return fmt.Errorf("%w: %w", types.ErrHeld, err)
	}
	return err
}

// lost reports that the Lease is not as it was known.
func lost(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || access.NotFound(err)
}

// write makes or renews the Lease of r.version. A patch does not recreate one
// that is gone.
func (r *repairRight) write(ctx context.Context) error {
	start := time.Now()
	acquired, renewed, seconds := metav1.NewMicroTime(r.acquired), metav1.NewMicroTime(start), int32(repairDuration/time.Second)
	spec := coordinationv1.LeaseSpec{
		HolderIdentity: &r.holder, LeaseDurationSeconds: &seconds, AcquireTime: &acquired, RenewTime: &renewed,
	}
	var lease *coordinationv1.Lease
	var err error
	r.maybe = true
	if r.version == "" {
		lease, err = r.leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: access.Namespace, Name: RepairLease}, Spec: spec,
		}, metav1.CreateOptions{FieldManager: repairManager})
	} else {
		lease, err = access.Merge(ctx, r.leases, RepairLease, repairManager, access.ForVersion(r.version, access.Values{"spec": spec}))
	}
	switch {
	case err != nil:
		return err
	case !r.ours(LeaseOf(lease)):
		return access.ErrOther
	}
	r.version, r.until = lease.ResourceVersion, start.Add(repairsFor)
	return nil
}

// keep renews the right until ctx is done, or stops what is done under it.
func (r *repairRight) keep(ctx context.Context, stop context.CancelCauseFunc) {
	end := time.AfterFunc(time.Until(r.until), func() { stop(ErrRepairLeaseLost) })
	defer end.Stop()
	ticker := time.NewTicker(repairEvery)
	defer ticker.Stop()
	for {
		seen, watched, changed := r.leases.seen.Look(RepairLease)
		if watched && !r.ours(seen.Lease) {
			stop(ErrRepairLeaseLost)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
			continue
		case <-ticker.C:
		}
		if err := r.renew(ctx); lost(err) {
			stop(fmt.Errorf("%w: %w", ErrRepairLeaseLost, err))
			return
		}
		end.Reset(time.Until(r.until))
	}
}

// renew renews the right, with time left for another try. A conflict may be with a write of ours whose answer
// did not come.
func (r *repairRight) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, renewWithin)
	defer cancel()
	err := r.write(ctx)
	if !apierrors.IsConflict(err) {
		return err
	}
	lease, gone := r.leases.Get(ctx, RepairLease, metav1.GetOptions{})
	switch {
	case access.NotFound(gone):
		return gone
	case gone != nil:
		return nil // the next try will tell
	case !r.ours(LeaseOf(lease)):
		return err
	}
	r.version = lease.ResourceVersion
	return r.write(ctx)
}

// giveBack removes the Lease if it may be ours.
func (r *repairRight) giveBack(ctx context.Context) error {
	if !r.maybe {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, RepairWithin)
	defer cancel()
	for {
		lease, err := r.leases.Get(ctx, RepairLease, metav1.GetOptions{})
		if err == nil && r.ours(LeaseOf(lease)) {
			err = r.leases.Delete(ctx, RepairLease, access.Exactly(string(lease.UID), lease.ResourceVersion))
			if apierrors.IsConflict(err) {
				continue
			}
		}
		if err == nil || access.NotFound(err) {
			return nil
		}
		return fmt.Errorf("release the repair lease: %w", err)
	}
}
