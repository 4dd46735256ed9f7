package evereport_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/lf-edge/eve-api/go/info"
	"google.golang.org/protobuf/proto"

	"github.com/zedkube/zedkube/pkg/report/evereport"
	"github.com/zedkube/zedkube/types"
)

func TestReportComesBackButForWhatAMessageCannotHold(t *testing.T) {
	want := report()
	want.Nodes[0].UsesEtcd, want.Nodes[1].ExternalIP = false, ""
	want.Nodes[1].Status = types.KubeNodeNotReady // was not reachable
	want.AppPods[3].Reason, want.AppPods[6].Reason = "", ""
	if d := cmp.Diff(want, evereport.ClusterInfo(evereport.Cluster(report(), plant))); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestOnlyControlPlaneNodesAreServers(t *testing.T) {
	m := evereport.Cluster(types.KubeClusterInfo{Nodes: []types.KubeNodeInfo{{Name: "a", IsMaster: true}, {Name: "b", UsesEtcd: true}}}, plant)
	if !m.Nodes[0].RoleServer || m.Nodes[1].RoleServer {
		t.Errorf("got %v", m.Nodes)
	}
}

func TestStateOfAPodFollowsFromPhaseAndReason(t *testing.T) {
	for reason, want := range map[string]map[types.KubePodStatus]info.KubePodStatus{
		"": {
			types.KubePodUnknown: info.KubePodStatus_KUBE_POD_STATUS_UNSPECIFIED, types.KubePodFailed: info.KubePodStatus_KUBE_POD_STATUS_FAILED,
			types.KubePodStatus(9): info.KubePodStatus_KUBE_POD_STATUS_UNSPECIFIED,
		},
		"ContainerCreating":          {types.KubePodPending: info.KubePodStatus_KUBE_POD_STATUS_CONTAINER_CREATING},
		"PodInitializing":            {types.KubePodPending: info.KubePodStatus_KUBE_POD_STATUS_CONTAINER_CREATING},
		"Unschedulable":              {types.KubePodPending: info.KubePodStatus_KUBE_POD_STATUS_PENDING},
		"ImagePullBackOff":           {types.KubePodPending: info.KubePodStatus_KUBE_POD_STATUS_PENDING},
		"CreateContainerConfigError": {types.KubePodPending: info.KubePodStatus_KUBE_POD_STATUS_PENDING},
		"CrashLoopBackOff": {
			types.KubePodRunning: info.KubePodStatus_KUBE_POD_STATUS_CRASHLOOP_BACKOFF,
			types.KubePodPending: info.KubePodStatus_KUBE_POD_STATUS_CRASHLOOP_BACKOFF, // of an init container
		},
		"Error": {
			types.KubePodFailed: info.KubePodStatus_KUBE_POD_STATUS_ERROR, types.KubePodRunning: info.KubePodStatus_KUBE_POD_STATUS_ERROR,
			types.KubePodSucceeded: info.KubePodStatus_KUBE_POD_STATUS_SUCCEEDED,
		},
		"OOMKilled": {types.KubePodRunning: info.KubePodStatus_KUBE_POD_STATUS_ERROR},
		"Evicted":   {types.KubePodFailed: info.KubePodStatus_KUBE_POD_STATUS_EVICTED},
		"error":     {types.KubePodRunning: info.KubePodStatus_KUBE_POD_STATUS_RUNNING},
	} {
		for phase, state := range want {
			m := evereport.Cluster(types.KubeClusterInfo{AppPods: []types.KubePodInfo{{Status: phase, Reason: reason}}}, plant)
			if got := m.EveApps[0].Status; got != state {
				t.Errorf("%v %q is %v, want %v", phase, reason, got, state)
			}
		}
	}
}

func TestNodeIsReadyNotReadyOrTheAPIServerDown(t *testing.T) {
	type own struct {
		answers bool
		ready   types.ConditionStatus
	}
	for own, want := range map[own]info.ZInfoClusterNodeStatus{
		{true, types.ConditionTrue}:    info.ZInfoClusterNodeStatus_Z_INFO_CLUSTER_NODE_STATUS_READY,
		{true, types.ConditionFalse}:   info.ZInfoClusterNodeStatus_Z_INFO_CLUSTER_NODE_STATUS_NOTREADY,
		{true, types.ConditionUnknown}: info.ZInfoClusterNodeStatus_Z_INFO_CLUSTER_NODE_STATUS_NOTREADY,
		{true, ""}:                     info.ZInfoClusterNodeStatus_Z_INFO_CLUSTER_NODE_STATUS_NOTREADY,
		{false, ""}:                    info.ZInfoClusterNodeStatus_Z_INFO_CLUSTER_NODE_STATUS_DOWN,
		{false, types.ConditionTrue}:   info.ZInfoClusterNodeStatus_Z_INFO_CLUSTER_NODE_STATUS_DOWN,
	} {
		if got := evereport.Node(types.OwnNodeStatus(own.answers, own.ready)).NodeStatus; got != want {
			t.Errorf("%+v is %v, want %v", own, got, want)
		}
	}
	if got := evereport.Node(types.KubeNodeStatus(9)).NodeStatus; got != info.ZInfoClusterNodeStatus_Z_INFO_CLUSTER_NODE_STATUS_UNSPECIFIED {
		t.Errorf("a status that eve-api lacks is %v", got)
	}
}

func TestAppRunsHereInWhateverState(t *testing.T) {
	for _, state := range []types.AppKubeStatus{types.AppKubeNotRunning, types.AppKubeRunning} {
		if !evereport.App(types.ENClusterAppStatus{ScheduledOnThisNode: true, AppKubeStatus: state}, types.AppInstanceConfig{}).ClusterAppRunning {
			t.Errorf("%v: it does not", state)
		}
	}
	if evereport.App(types.ENClusterAppStatus{AppKubeStatus: types.AppKubeRunning, IsDNidNode: true}, types.AppInstanceConfig{}).ClusterAppRunning {
		t.Error("one that runs elsewhere runs here")
	}
}

func TestAnApplicationIsMeasuredUnderItsName(t *testing.T) {
	m := evereport.Metrics(types.KubeClusterMetrics{
		Apps: []types.ClusterAppMetrics{{Name: "scale-reader-77d01-0-m4x2k", App: "Scale Reader"}, {Name: "stranger"}},
		VMIs: []types.ClusterAppMetrics{{Name: "label-printer-9f27b-4q8zt2", App: "Label_Printer"}},
	}, plant)
	if a, b, v := m.EvePodApps[0].Name, m.EvePodApps[1].Name, m.EveVmiApps[0].Name; a != "Scale Reader" || b != "stranger" || v != "Label_Printer" {
		t.Errorf("%s, %s and %s", a, b, v)
	}
}

func TestMetricsThatDoNotFitAreTheLargestThatDo(t *testing.T) {
	const most = math.MaxUint32
	for name, c := range map[string]struct {
		node                  types.ClusterNodeMetrics
		cores, memory         uint32
		usage, usedPercentage float32
	}{
		"nothing measured":    {},
		"as much as fits":     {node: types.ClusterNodeMetrics{Cores: 1, Memory: of(most)}, cores: 1000, memory: most},
		"a byte more":         {node: types.ClusterNodeMetrics{Memory: of(most + 1)}, memory: most},
		"absurdly much":       {node: types.ClusterNodeMetrics{Cores: math.MaxInt, CPU: of(math.MaxUint64), Memory: of(math.MaxUint64), Total: of(math.MaxUint64)}, cores: most, memory: most, usage: 200e-9, usedPercentage: 100},
		"fewer than no cores": {node: types.ClusterNodeMetrics{Cores: -1, CPU: of(5)}},
		"no total":            {node: types.ClusterNodeMetrics{Memory: of(5), Total: of(0)}, memory: 5},
		"half of it":          {node: types.ClusterNodeMetrics{Cores: 2, CPU: of(1_000_000_000), Memory: of(1), Total: of(2)}, cores: 2000, memory: 1, usage: 50, usedPercentage: 50},
	} {
		m := evereport.Metrics(types.KubeClusterMetrics{Nodes: []types.ClusterNodeMetrics{c.node}}, plant).Nodes[0]
		if m.CpuCores != c.cores || m.MemoryUsage != c.memory || m.MemoryUsagePercentage != c.usedPercentage ||
			math.Abs(float64(m.CpuUsage-c.usage)) > 1e-6 {
			t.Errorf("%s: got %v", name, m)
		}
	}
}

func TestTimesThatNoMessageCanHoldAreAbsent(t *testing.T) {
	for _, at := range []time.Time{{}, time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)} {
		m := evereport.Sender{At: at}.Cluster(types.KubeClusterInfo{Storage: types.KubeStorageInfo{TransitionTime: at}})
		if m.AtTimeStamp != nil || m.GetClusterInfo().Storage.TransitionTime != nil {
			t.Errorf("%s: got %v", at, m)
		}
	}
}

func TestNobodyAndNoClusterHaveNoUUID(t *testing.T) {
	m := evereport.Sender{At: noon}.Update(types.KubeClusterUpdateStatus{CurrentNode: "n"})
	if m.DevId != "" || m.GetClusterUpdateInfo().ClusterId != "" || m.GetClusterUpdateInfo().Error != nil {
		t.Errorf("got %v", m)
	}
}

func TestSameMessageIsAlwaysTheSameJSON(t *testing.T) {
	for name, m := range messages() {
		first, err := evereport.JSON(m)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := evereport.JSON(proto.Clone(m)); string(first) != string(again) {
			t.Errorf("%s: got\n%s\nand\n%s", name, first, again)
		}
		if strings.Contains(string(first), ":  ") {
			t.Errorf("%s: blanks are protojson's own:\n%s", name, first)
		}
	}
}

// FuzzClusterInfo: whatever the report holds, the message is sent, read and
// comes back as what it said.
func FuzzClusterInfo(f *testing.F) {
	sample, err := json.Marshal(report())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sample, "\xff\xfe")
	f.Add([]byte(`{"Nodes":[{"Status":200,"Admission":99,"Conditions":[{"Type":1},{"Type":77,"Since":"9999-12-31T23:59:59.999999999Z"}]}],"pubsub-large-Storage":{"Health":-7}}`), "")
	f.Add([]byte(`{"pubsub-large-AppPods":[{"Status":3,"Reason":"Evicted","CreationTimestamp":"0000-01-01T00:00:00Z"}]}`), "\x00")
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		var r types.KubeClusterInfo
		if json.Unmarshal(data, &r) != nil {
			return
		}
		for i := range r.Nodes {
			r.Nodes[i].Name, r.Nodes[i].NodeID = name, name // JSON brings no bytes that are not UTF-8
		}
		for i := range r.AppPods {
			r.AppPods[i].Name, r.AppPods[i].Reason = name, r.AppPods[i].Reason+name
		}
		m := evereport.Sender{Device: device, ClusterID: uuid.Nil, At: noon}.Cluster(r)
		if _, err := evereport.JSON(m); err != nil {
			t.Fatal(err)
		}
		raw, err := evereport.Binary(m)
		if err != nil {
			t.Fatal(err)
		}
		var read info.ZInfoMsg
		if err := proto.Unmarshal(raw, &read); err != nil {
			t.Fatal(err)
		}
		back := evereport.ClusterInfo(read.GetClusterInfo())
		if len(back.Nodes) != len(r.Nodes) || len(back.AppPods) != len(r.AppPods) || len(back.Storage.Volumes) != len(r.Storage.Volumes) {
			t.Fatalf("entries are lost: %+v of %+v", back, r)
		}
		if again := evereport.Cluster(back, uuid.Nil); !proto.Equal(again, m.GetClusterInfo()) {
			t.Fatalf("it comes back as\n%v\nof\n%v", again, m.GetClusterInfo())
		}
	})
}
