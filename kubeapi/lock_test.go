package kubeapi

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/kubeapi/leases"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func drainLeaseOf(holder, note string) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: access.Namespace, Name: leases.DrainLease, ResourceVersion: "7"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, AcquireTime: new(metav1.NewMicroTime(kubetest.At(2).Time))},
	}
	if note != "" {
		lease.Annotations = map[string]string{leases.LockAnnotation: note}
	}
	return lease
}

func TestALockWithAScribbledNoteIsItsHoldersAndOfUnknownBoot(t *testing.T) {
	known := func(l types.DrainLock) types.DrainLock {
		l.Holder, l.Version = "n2", "7"
		if l.Since.IsZero() {
			l.Since = kubetest.At(2).Time
		}
		return l
	}
	tests := map[string]types.DrainLock{
		`{"bootID":"b1"}`: known(types.DrainLock{BootID: "b1"}),
		`{"bootID":"b1","new":1,"volumes":{"v":2}}`:                   known(types.DrainLock{BootID: "b1", Volumes: map[string]int{"v": 2}}),
		`{"bootID":"b1","since":"2026-01-02T03:01:00Z","ended":true}`: known(types.DrainLock{BootID: "b1", Since: kubetest.At(1).Time, Ended: true}),
	}
	for _, scribble := range []string{
		``, `null`, `[]`, `{}`, `{"bootID":"b1"`, `{"bootID":7}`, `{"bootID":"b1"} and`, `{"bootID":"b1","since":"yesterday"}`,
		`{"bootID":"b1","volumes":{"v":"two"}}`, `{"bootID":"b1","volumes":{"v":-1}}`, `{"bootID":"b1","volumes":{"":1}}`,
		`{"bootID":"b1","volumes":{"v":1e400}}`, `{"bootID":"b1","volumes":["v"]}`, `{"bootID":"b1","ended":"yes"}`,
		strings.Repeat("[", 20000),
	} {
		tests[scribble] = known(types.DrainLock{})
	}
	for note, want := range tests {
		c, _ := withFake(t, drainLeaseOf("n2", note))
		got, err := c.DrainLock(t.Context())
		if err != nil {
			t.Errorf("%.40s: %v", note, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%.40s (-want +got):\n%s", note, diff)
		}
	}
}

func TestALeaseThatNobodyHoldsIsALockToTake(t *testing.T) {
	lease := drainLeaseOf("", "")
	lease.Spec.HolderIdentity = nil
	c, kube := withFake(t, lease)
	lock, err := c.DrainLock(t.Context())
	if err != nil || lock.Holder != "" || lock.Version != "7" {
		t.Fatalf("got %+v, %v", lock, err)
	}
	lock.Holder, lock.BootID = "n1", "b1"
	if lock, err = c.SetDrainLock(t.Context(), lock); err != nil || lock.Holder != "n1" || lock.BootID != "b1" {
		t.Errorf("taken it is %+v, %v", lock, err)
	}
	if sent := patches(t, kube); len(sent) != 1 || sent[0]["metadata"].(map[string]any)["resourceVersion"] != "7" {
		t.Errorf("sent %v", sent)
	}
}

func TestAnAnswerOfAnotherKindIsNoLock(t *testing.T) {
	c, kube := withFake(t)
	kube.PrependReactor("*", "leases", func(k8stesting.Action) (bool, runtime.Object, error) { return true, &coordinationv1.Lease{}, nil })
	if lock, err := c.DrainLock(t.Context()); !errors.Is(err, access.ErrOther) || lock.Version != "" {
		t.Errorf("read: %+v, %v", lock, err)
	}
	for _, version := range []string{"", "7"} {
		if _, err := c.SetDrainLock(t.Context(), types.DrainLock{Holder: "n1", Version: version}); !errors.Is(err, access.ErrOther) {
			t.Errorf("written at version %q: %v", version, err)
		}
	}
}

func TestALockIsNeitherMadeForNobodyNorFreedUnseen(t *testing.T) {
	c, kube := withFake(t, drainLeaseOf("n2", ""))
	if _, err := c.SetDrainLock(t.Context(), types.DrainLock{Version: "7"}); !errors.Is(err, leases.ErrNoIdentity) {
		t.Errorf("for nobody: %v", err)
	}
	if err := c.FreeDrainLock(t.Context(), types.DrainLock{Holder: "n2"}); err != nil {
		t.Error(err)
	}
	if sent := kube.Actions(); len(sent) > 0 {
		t.Errorf("sent %v", sent)
	}
	if err := c.FreeDrainLock(t.Context(), types.DrainLock{Holder: "n2", Version: "7"}); err != nil {
		t.Error(err)
	}
	actions := kube.Actions()
	options := actions[len(actions)-1].(k8stesting.DeleteActionImpl).DeleteOptions
	if p := options.Preconditions; p == nil || p.ResourceVersion == nil || *p.ResourceVersion != "7" {
		t.Errorf("deleted under %+v", p)
	}
}
