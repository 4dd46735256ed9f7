package storage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	longhornv1 "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"

	"github.com/zedkube/zedkube/types"
)

func TestOnlyAnEngineThatCannotBeAskedHasLastModes(t *testing.T) {
	for state, want := range map[longhornv1.InstanceState]types.Replica{
		longhornv1.InstanceStateRunning:  {Name: "r", Mode: "RW"},
		longhornv1.InstanceStateUnknown:  {Name: "r", LastMode: "RW"},
		longhornv1.InstanceStateStopping: {Name: "r", LastMode: "RW"},
		longhornv1.InstanceStateStopped:  {Name: "r"},
		longhornv1.InstanceStateError:    {Name: "r"},
		"":                               {Name: "r"},
	} {
		e := &engine{state: state, modes: []modeOf{{"r", longhornv1.ReplicaModeRW}}}
		if diff := cmp.Diff(want, e.Shows(replica{Replica: types.Replica{Name: "r"}})); diff != "" {
			t.Errorf("%q: %s", state, diff)
		}
	}
}
