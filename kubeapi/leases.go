package kubeapi

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"
	typedcoordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/zedkube/zedkube/types"
)

// leaseOf is the row of a Lease. Rows can be compared.
func leaseOf(l *coordinationv1.Lease) types.Lease {
	row := types.Lease{Name: l.Name, Version: l.ResourceVersion}
	if l.Spec.HolderIdentity != nil {
		row.Holder = *l.Spec.HolderIdentity
	}
	if l.Spec.LeaseDurationSeconds != nil {
		row.Duration = time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
	}
	if l.Spec.AcquireTime != nil {
		row.Acquired = l.Spec.AcquireTime.UTC().Round(0)
	}
	if l.Spec.RenewTime != nil {
		row.Renewed = l.Spec.RenewTime.UTC().Round(0)
	}
	return row
}

// slimLease keeps what leaseOf reads.
func slimLease(l *coordinationv1.Lease) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: slimMeta(l.ObjectMeta), Spec: coordinationv1.LeaseSpec{
		HolderIdentity:       l.Spec.HolderIdentity,
		LeaseDurationSeconds: l.Spec.LeaseDurationSeconds,
		AcquireTime:          l.Spec.AcquireTime,
		RenewTime:            l.Spec.RenewTime,
	}}
}

// leases is a client of the Leases of Namespace that takes no answer about
// something else for one, and notes what it sees. The methods that it does not
// define are client-go's.
type leases struct {
	typedcoordination.LeaseInterface
	seen *sightings
}

func leasesOn(conn *connection) leases {
	return leases{LeaseInterface: conn.kube.CoordinationV1().Leases(Namespace), seen: kept[sightings](conn)}
}

// Leases implements typedcoordination.LeasesGetter.
func (l leases) Leases(string) typedcoordination.LeaseInterface { return l }

// Get implements typedcoordination.LeaseInterface.
func (l leases) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error) {
	return l.noted(name, "", func() (*coordinationv1.Lease, error) { return l.LeaseInterface.Get(ctx, name, o) })
}

// Create implements typedcoordination.LeaseInterface.
func (l leases) Create(ctx context.Context, lease *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return l.noted(lease.Name, holder(lease), func() (*coordinationv1.Lease, error) { return l.LeaseInterface.Create(ctx, lease, o) })
}

// Update implements typedcoordination.LeaseInterface.
func (l leases) Update(ctx context.Context, lease *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return l.noted(lease.Name, holder(lease), func() (*coordinationv1.Lease, error) { return l.LeaseInterface.Update(ctx, lease, o) })
}

// Patch implements typedcoordination.LeaseInterface.
func (l leases) Patch(ctx context.Context, name string, kind ktypes.PatchType, data []byte, o metav1.PatchOptions, sub ...string) (*coordinationv1.Lease, error) {
	return l.noted(name, "", func() (*coordinationv1.Lease, error) { return l.LeaseInterface.Patch(ctx, name, kind, data, o, sub...) })
}

// Delete implements typedcoordination.LeaseInterface.
func (l leases) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	err := l.LeaseInterface.Delete(ctx, name, o)
	if err == nil || absent(err) {
		l.seen.gone(name)
	}
	return err
}

// noted sends what is about the Lease of that name, takes an answer about it
// and, unless wrote is "", about that holder, and notes it.
func (l leases) noted(name, wrote string, send func() (*coordinationv1.Lease, error)) (*coordinationv1.Lease, error) {
	asked := l.seen.ask()
	lease, err := send()
	switch {
	case absent(err):
		l.seen.absent(name, asked)
		return nil, err
	case err != nil:
		return nil, err
	case lease.Name != name || lease.Namespace != Namespace || lease.ResourceVersion == "",
		wrote != "" && holder(lease) != wrote:
		return nil, errOther
	}
	l.seen.answered(leaseOf(lease), asked)
	return lease, nil
}

func holder(l *coordinationv1.Lease) string {
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}
