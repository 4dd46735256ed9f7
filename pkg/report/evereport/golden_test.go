package evereport_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/lf-edge/eve-api/go/info"
	"github.com/lf-edge/eve-api/go/metrics"
	"google.golang.org/protobuf/proto"

	"github.com/zedkube/zedkube/pkg/report/evereport"
	"github.com/zedkube/zedkube/types"
)

var update = flag.Bool("update", false, "write testdata anew")

var (
	device  = uuid.MustParse("c4a1d7e2-90b3-4d58-8a6e-1be0f7723c05")
	plant   = uuid.MustParse("5d0c7a52-3a0e-4c7e-9f1b-2f6f0c3a9e11")
	printer = uuid.MustParse("9f27b6c8-4e15-4a02-b3d9-60c5d8e1fa34")
	noon    = time.Date(2026, 5, 3, 12, 0, 0, 250_000_000, time.UTC)
	sender  = evereport.Sender{Device: device, ClusterID: plant, At: noon}
)

func ago(minutes int) time.Time { return noon.Add(-time.Duration(minutes) * time.Minute) }

func of(n uint64) *uint64 { return &n }

// report has everything that a report can have.
func report() types.KubeClusterInfo {
	return types.KubeClusterInfo{
		Nodes: []types.KubeNodeInfo{
			{
				Name: "press-line-1", Status: types.KubeNodeReady, IsMaster: true, UsesEtcd: true, CreationTime: ago(5000), LastTransitionTime: ago(50),
				KubeletVersion: "v1.34.2+k3s1", InternalIP: "10.90.7.21", Schedulable: true, Admission: types.KubeNodeAdmissionJoined, NodeID: device.String(),
				Conditions: []types.KubeNodeCondition{
					{Type: types.KubeNodeConditionDiskPressure, Set: true, Since: ago(7)},
					{Type: types.KubeNodeConditionMemoryPressure, Since: ago(50)},
					{Type: types.KubeNodeConditionNetworkUnavailable},
					{Type: types.KubeNodeConditionPIDPressure, Since: ago(50)},
				},
			},
			{Name: "press-line-2", Status: types.KubeNodeNotReachable, LastTransitionTime: ago(3), ExternalIP: "1.2.3.4", Admission: types.KubeNodeAdmissionLeaving},
			{Name: "press-line-3", Admission: types.KubeNodeAdmissionJoining},
		},
		AppPods: []types.KubePodInfo{
			{Name: "scale-reader-77d01-0", Status: types.KubePodRunning, RestartCount: 2, RestartTimestamp: types.TextTime(ago(9)), CreationTimestamp: types.TextTime(ago(90)), PodIP: "10.42.1.14", NodeName: "press-line-1"},
			{Name: "mqtt-1e0c3-0", Status: types.KubePodRunning, Reason: "CrashLoopBackOff", RestartCount: 41, NodeName: "press-line-1"},
			{Name: "cam-0", Status: types.KubePodPending, Reason: "ContainerCreating", NodeName: "press-line-2"},
			{Name: "cam-1", Status: types.KubePodPending, Reason: "ImagePullBackOff", NodeName: "press-line-2"},
			{Name: "cam-2", Status: types.KubePodFailed, Reason: "Evicted"},
			{Name: "cam-3", Status: types.KubePodFailed, Reason: "Error"},
			{Name: "cam-4", Status: types.KubePodFailed, Reason: "DeadlineExceeded"},
		},
		AppVMIs: []types.KubeVMIInfo{{
			Name: "label-printer-9f27b", Status: types.KubeVMIRunning, CreationTime: ago(80), LastTransitionTime: ago(79), IsReady: true, NodeName: "press-line-1",
		}},
		Storage: types.KubeStorageInfo{
			Health: types.ServiceStatusDegraded, TransitionTime: ago(3),
			Volumes: []types.KubeVolumeInfo{{
				Name: "5f0e11c7-pvc-0", State: types.StorageVolumeStateAttached, Robustness: types.StorageVolumeRobustnessDegraded,
				CreatedAt: ago(90), ProvisionedBytes: 5 << 30, AllocatedBytes: 1 << 20, PvcStatus: types.StorageVolumePvcStatusBound,
				Replicas: []types.KubeVolumeReplicaInfo{
					{Name: "pvc-77-r-1", OwnerNode: "press-line-1", RebuildProgressPercentage: 100, Status: types.StorageVolumeReplicaStatusOnline},
					{Name: "pvc-77-r-2", OwnerNode: "press-line-2", RebuildProgressPercentage: 40, Status: types.StorageVolumeReplicaStatusRebuilding},
				},
				RobustnessSubstate: types.StorageHealthStatusDegraded2ReplicaAvailableReplicating, VolumeID: "5f0e11c7",
			}},
		},
		PodNsInfo: []types.KubePodNameSpaceInfo{{Name: "kube-system", PodCount: 10, PodRunningCount: 4, PodPendingCount: 3, PodFailedCount: 2, PodSucceededCount: 1}},
	}
}

func updating() types.KubeClusterUpdateStatus {
	return types.KubeClusterUpdateStatus{
		CurrentNode: "press-line-1", Component: types.KubeCompLonghorn, Status: types.KubeCompUpdateFailed, DestinationKubeUpdateVersion: 3,
		ErrorDescription: types.ErrorDescription{
			Error: "no room", ErrorTime: ago(1), ErrorSeverity: types.ErrorSeverityError, ErrorRetryCondition: "when there is",
			ErrorEntities: []*types.ErrorEntity{{EntityType: 1, EntityID: "base"}, nil, {EntityType: 12, EntityID: "newer"}},
		},
	}
}

func used() types.KubeClusterMetrics {
	return types.KubeClusterMetrics{
		Nodes: []types.ClusterNodeMetrics{
			{Name: "press-line-1", At: noon, Cores: 4, CPU: of(1_000_000_000), Memory: of(6 << 30), Total: of(8 << 30)},
			{Name: "press-line-2", Stale: "it does not answer"},
		},
		Apps: []types.ClusterAppMetrics{{Name: "scale-reader-77d01-0", Node: "press-line-1", CPU: of(12_500_000), Memory: of(9000)}, {Name: "unmeasured"}},
		VMIs: []types.ClusterAppMetrics{{Name: "label-printer-9f27b", CPU: of(1 << 63), Memory: of(4 << 30)}},
	}
}

// messages are one of each kind, by the name of their golden file.
func messages() map[string]proto.Message {
	return map[string]proto.Message{
		"cluster":        sender.Cluster(report()),
		"cluster-update": sender.Update(updating()),
		"cluster-node":   sender.Node(types.KubeNodeReady),
		"app": sender.App(types.ENClusterAppStatus{AppUUID: printer, ScheduledOnThisNode: true, AppKubeStatus: types.AppKubeNotRunning},
			types.AppInstanceConfig{UUIDandVersion: types.UUIDandVersion{UUID: printer, Version: "3"}, DisplayName: "Label_Printer"}),
		"metrics": sender.Metrics(used()),
	}
}

// TestEachMessageIsAsItWas compares with testdata; -update rewrites it.
func TestEachMessageIsAsItWas(t *testing.T) {
	for name, m := range messages() {
		t.Run(name, func(t *testing.T) {
			got, err := evereport.JSON(m)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+".json")
			if *update {
				if err := os.WriteFile(file, append(got, '\n'), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), string(got)+"\n"); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
			raw, err := evereport.Binary(m)
			if err != nil {
				t.Fatal(err)
			}
			var again proto.Message = &info.ZInfoMsg{}
			if name == "metrics" {
				again = &metrics.ZMetricMsg{}
			}
			if err := proto.Unmarshal(raw, again); err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(m, again) {
				t.Errorf("sent and read it is another:\n%v\n%v", m, again)
			}
		})
	}
}
