package kubeapi

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"

	"github.com/zedkube/zedkube/types"
)

// right is the right to repair in one's hands. Holder and time of acquisition
// tell it from any other, of another process on this node, too.
type right struct {
	leases   leases
	holder   string
	acquired time.Time

	version string    // of the Lease as we last knew it to be ours
	until   time.Time // it is ours until then
	maybe   bool      // a write was sent and may have been made
}

func (r *right) ours(l types.Lease) bool {
	return l.Holder == r.holder && l.Acquired.Equal(r.acquired)
}

// free returns the version of the Lease if it may be taken, "" if there is
// none, and else an error that wraps types.ErrHeld.
func (r *right) free() (version string, watched bool, err error) {
	seen, watched, _ := r.leases.seen.look(repairLease)
	if time.Now().Before(seen.until(repairDuration)) {
		return "", watched, fmt.Errorf("%w: %s", types.ErrHeld, seen.Holder)
	}
	return seen.Version, watched, nil
}

// take takes the right if it is free.
func (r *right) take(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, repairWithin)
	defer cancel()
	if _, watched, err := r.free(); watched && err != nil {
		return err
	}
	if _, err := r.leases.Get(ctx, repairLease, metav1.GetOptions{}); err != nil && !absent(err) {
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
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || absent(err)
}

// write makes or renews the Lease of r.version. A patch makes none anew that is
// gone.
func (r *right) write(ctx context.Context) error {
	start := time.Now()
	acquired, renewed, seconds := metav1.NewMicroTime(r.acquired), metav1.NewMicroTime(start), int32(repairDuration/time.Second)
	var lease *coordinationv1.Lease
	var err error
	r.maybe = true
	if r.version == "" {
		lease, err = r.leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: repairLease},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &r.holder, LeaseDurationSeconds: &seconds, AcquireTime: &acquired, RenewTime: &renewed,
			},
		}, metav1.CreateOptions{FieldManager: repairManager})
	} else {
		var data []byte
		data, err = json.Marshal(forVersion(r.version, values{"spec": values{
			"holderIdentity": r.holder, "leaseDurationSeconds": seconds, "acquireTime": acquired, "renewTime": renewed,
		}}))
		if err == nil {
			lease, err = r.leases.Patch(ctx, repairLease, ktypes.MergePatchType, data, metav1.PatchOptions{FieldManager: repairManager})
		}
	}
	switch {
	case err != nil:
		return err
	case !r.ours(leaseOf(lease)):
		return errOther
	}
	r.version, r.until = lease.ResourceVersion, start.Add(repairsFor)
	return nil
}

// keep renews the right until ctx is done, or stops what is done under it.
func (r *right) keep(ctx context.Context, stop context.CancelCauseFunc) {
	end := time.AfterFunc(time.Until(r.until), func() { stop(errRightLost) })
	defer end.Stop()
	ticker := time.NewTicker(repairEvery)
	defer ticker.Stop()
	for {
		seen, watched, changed := r.leases.seen.look(repairLease)
		if watched && !r.ours(seen.Lease) {
			stop(errRightLost)
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
			stop(fmt.Errorf("%w: %w", errRightLost, err))
			return
		}
		end.Reset(time.Until(r.until))
	}
}

// renew renews the right, with time left for another try. A conflict may be with a write of ours whose answer
// did not come.
func (r *right) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, renewWithin)
	defer cancel()
	err := r.write(ctx)
	if !apierrors.IsConflict(err) {
		return err
	}
	lease, gone := r.leases.Get(ctx, repairLease, metav1.GetOptions{})
	switch {
	case absent(gone):
		return gone
	case gone != nil:
		return nil // the next try will tell
	case !r.ours(leaseOf(lease)):
		return err
	}
	r.version = lease.ResourceVersion
	return r.write(ctx)
}

// giveBack removes the Lease if it may be ours.
func (r *right) giveBack(ctx context.Context) error {
	if !r.maybe {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, repairWithin)
	defer cancel()
	for {
		lease, err := r.leases.Get(ctx, repairLease, metav1.GetOptions{})
		if err == nil && r.ours(leaseOf(lease)) {
			err = r.leases.Delete(ctx, repairLease, metav1.DeleteOptions{
				Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion},
			})
			if apierrors.IsConflict(err) {
				continue
			}
		}
		if err == nil || absent(err) {
			return nil
		}
		return fmt.Errorf("give the right to repair back: %w", err)
	}
}
