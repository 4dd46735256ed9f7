package clustermetrics

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/types"
)

func TestWhatIsMeasuredBearsTheNameOfItsApplication(t *testing.T) {
	play(t, 2, func(s *stage) {
		machine := types.AppInstanceConfig{DisplayName: "Label_Printer"}
		machine.UUIDandVersion.UUID = uuid.MustParse("9f27b6c8-4e15-4a02-b3d9-60c5d8e1fa34")
		machine.FixedResources.VirtualizationMode = types.VirtualizationHVM
		container := types.AppInstanceConfig{DisplayName: "Scale Reader"}
		container.UUIDandVersion.UUID = uuid.MustParse("77d01c11-4e15-4a02-b3d9-60c5d8e1fa34")
		container.FixedResources.VirtualizationMode = types.VirtualizationNoHyper
		_, _ = s.configs.Publish("a", machine), s.configs.Publish("b", container)
		for i := range 2 {
			vm := types.Pod{Namespace: types.NamespaceApps, Name: launcher + "vm-" + name(i) + "-x2x4z", VMI: "vm-" + name(i), AppDomain: "9f27b6c8-4e15-4a02-b3d9-60c5d8e1fa34.1.7"}
			web := types.Pod{Namespace: types.NamespaceApps, Name: "web-" + name(i), App: container.KubeName()}
			_, _ = s.pods.Publish(vm.Key(), vm), s.pods.Publish(web.Key(), web)
		}
		_ = s.own.Publish(types.Global, types.KubeNodeMetrics{Node: name(0), At: time.Now(), Pods: []types.PodMetrics{
			{Namespace: types.NamespaceApps, Name: "web-" + name(0), Samples: []types.PodSample{{}}},
			{Namespace: types.NamespaceApps, Name: "stranger", Samples: []types.PodSample{{}}},
		}})
		s.sleep(5 * time.Minute)
		for _, m := range s.says().Apps {
			want := "Scale Reader"
			if m.Name == "stranger" {
				want = ""
			}
			if m.App != want {
				t.Errorf("%s is of %q", m.Name, m.App)
			}
		}
		for _, m := range s.says().VMIs {
			if m.App != "Label_Printer" {
				t.Errorf("%s is of %q", m.Name, m.App)
			}
		}
		if n := len(s.says().Apps) + len(s.says().VMIs); n != 4 {
			t.Errorf("%d are measured", n)
		}
	})
}
