package updatestatus

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus/hooks/test"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func report(status types.KubeCompUpdateStatus) types.KubeClusterUpdateStatus {
	return types.KubeClusterUpdateStatus{
		CurrentNode: "node-1", Component: types.KubeCompLonghorn, Status: status, DestinationKubeUpdateVersion: 7,
	}
}

func TestReportIsPassedOnReplacedAndWithdrawn(t *testing.T) {
	log, _ := test.NewNullLogger()
	reported, status := &pubsub.Table[types.KubeClusterUpdateStatus]{}, &pubsub.Table[types.KubeClusterUpdateStatus]{}
	c := &Component{Log: log, Pulse: &loop.Pulse{}, Reported: reported, Status: status}
	old := report(types.KubeCompUpdateFailed)
	if err := status.Publish(types.Global, old); err != nil {
		t.Fatal(err)
	}
	none := types.KubeClusterUpdateStatus{CurrentNode: "node-1"}
	for _, tc := range []struct {
		name   string
		report *types.KubeClusterUpdateStatus
		want   map[string]types.KubeClusterUpdateStatus
	}{
		{"what a boot before left stands until something is reported", nil, map[string]types.KubeClusterUpdateStatus{types.Global: old}},
		{"a report is passed on", ptr(report(types.KubeCompUpdateDownload)), map[string]types.KubeClusterUpdateStatus{types.Global: report(types.KubeCompUpdateDownload)}},
		{"the next one replaces it", ptr(report(types.KubeCompUpdateCompleted)), map[string]types.KubeClusterUpdateStatus{types.Global: report(types.KubeCompUpdateCompleted)}},
		{"one that says nothing takes it back", &none, map[string]types.KubeClusterUpdateStatus{}},
	} {
		if tc.report != nil {
			if err := reported.Publish(types.Global, *tc.report); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, status.All()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func ptr[T any](v T) *T { return &v }
