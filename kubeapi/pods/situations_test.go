package pods

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/zedkube/zedkube/test/kubetest"
)

func TestAPodIsPinnedByWhoeverMadeIt(t *testing.T) {
	for fields, want := range map[string]bool{
		`{"f:spec":{"f:nodeName":{}}}`: true, `{"f:spec":{"f:nodeSelector":{}}}`: false, `{"f:metadata":{}}`: false, `nonsense`: false,
	} {
		if got := pinned([]metav1.ManagedFieldsEntry{{}, {FieldsV1: metav1.NewFieldsV1(fields)}}); got != want {
			t.Errorf("%s: %v", fields, got)
		}
	}
}

func TestAPodBeingDeletedHasTheGraceOfItsDeletion(t *testing.T) {
	p := kubetest.TestPod("n", "p", "n1")
	if got := graceOf(&p); got != 30*time.Second {
		t.Errorf("without one it is %s", got)
	}
	none := int64(0)
	p.DeletionGracePeriodSeconds = &none
	if got := graceOf(&p); got != 0 {
		t.Errorf("once the kubelet is done it is %s", got)
	}
}
