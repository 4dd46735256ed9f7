package kubeapi

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/zedkube/zedkube/types"
)

// DeleteVMI deletes this very instance, not a namesake, and returns nil when it
// is gone or goes as soon as KubeVirt has ended it. Its replica set makes
// another one.
func (c *Client) DeleteVMI(ctx context.Context, vmi types.VMI) error {
	return c.deleteVery(ctx, deed{"delete vmi", "vmi/" + Namespace + "/" + vmi.Name}, "delete virtual machine instance "+vmi.Name, vmi.UID, nil, vmiObject(vmi.Name))
}

func vmiObject(name string) func(*connection) object {
	return func(conn *connection) object {
		api := conn.virt.VirtualMachineInstances(Namespace)
		return object{
			remove: func(ctx context.Context, o metav1.DeleteOptions) error { return api.Delete(ctx, name, o) },
			get:    func(ctx context.Context) (metav1.Object, error) { return api.Get(ctx, name, metav1.GetOptions{}) },
		}
	}
}

// ForgetVMI deletes this very instance with grace 0 and without its finalizers,
// for which a node that is gone does nothing any more. It returns nil when the
// instance is gone. It is deleted first: to what is being deleted nobody can add
// a finalizer, and a process that dies in between has left nothing that runs
// without them.
func (c *Client) ForgetVMI(ctx context.Context, vmi types.VMI) error {
	act := "forget virtual machine instance " + vmi.Name
	if vmi.UID == "" {
		return fmt.Errorf("%s: %w", act, errNoUID)
	}
	uid := ktypes.UID(vmi.UID)
	return c.write(ctx, deed{"forget vmi", "vmi/" + Namespace + "/" + vmi.Name}, act, func(ctx context.Context, conn *connection) error {
		if err := vmiObject(vmi.Name)(conn).delete(ctx, uid, new(int64)); err != nil {
			return err
		}
		return retry.RetryOnConflict(untilDone, func() error { return unfinalize(ctx, conn, vmi.Name, uid) })
	})
}

// unfinalize empties the finalizers of the instance, if it is that one.
func unfinalize(ctx context.Context, conn *connection, name string, uid ktypes.UID) error {
	api := conn.virt.VirtualMachineInstances(Namespace)
	now, err := api.Get(ctx, name, metav1.GetOptions{})
	switch {
	case absent(err):
		return nil
	case err != nil:
		return err
	case now.Name != name || now.UID == "" || now.ResourceVersion == "":
		return errOther
	case now.UID != uid:
		return nil
	case now.DeletionTimestamp == nil:
		return fmt.Errorf("%w: it is not being deleted", types.ErrConflict)
	case len(now.Finalizers) == 0:
		return nil
	}
	data, err := patchFor(now.ResourceVersion, values{"metadata": values{"finalizers": nil}})
	if err != nil {
		return err
	}
	_, err = api.Patch(ctx, name, ktypes.MergePatchType, data, metav1.PatchOptions{FieldManager: appsManager})
	if absent(err) {
		return nil
	}
	return err
}
