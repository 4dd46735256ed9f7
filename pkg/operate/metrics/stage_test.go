package metrics

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/operate/overview"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bus is a bus with that to tell.
type bus []pubsub.Stats

func (b bus) Stats() []pubsub.Stats { return b }

// stage is the tables that the numbers are read from.
type stage struct {
	info       pubsub.Table[types.EdgeNodeInfo]
	nodes      pubsub.Table[types.Node]
	api        pubsub.Table[types.APIStatus]
	leases     pubsub.Table[types.Lease]
	leader     pubsub.Table[types.KubeLeaderElectInfo]
	progress   pubsub.Table[types.NodeDrainProgress]
	health     pubsub.Table[types.KubeReportHealth]
	conditions pubsub.Table[types.KubeNodeConditions]
	object     pubsub.Table[types.ClusterObject]
	lifecycle  pubsub.Table[types.KubeLifecycle]
	overview   overview.Overview
	*Metrics
}

const ownID = "9f2c1c3e-0f0e-4c7a-9a64-1f6c6f4b7d10"

// newStage is a device of which nothing is known.
func newStage() *stage {
	s := &stage{}
	s.Metrics = &Metrics{
		Version: "1.8.0", Lease: "eve-kube-stats-leader", Pulses: map[string]*loop.Pulse{"drain": {}, "leader": {}},
		Bus: bus{}, Requests: NewRequests(), Operations: NewOperations(types.NoOperations{}),
		Info: &s.info, Nodes: &s.nodes, API: &s.api, Leases: &s.leases, Leader: &s.leader,
		Progress: &s.progress, Health: &s.health, Conditions: &s.conditions, Object: &s.object, Lifecycle: &s.lifecycle,
		Overview: func(time.Time) overview.Overview { return s.overview },
	}
	return s
}

// full is a device in the midst of a drain, in a cluster that it reports for.
func full(now time.Time) *stage {
	s := newStage()
	s.Bus = bus{
		{Topic: "zedkube/NodeDrainStatus", Clients: 2, Messages: 7, Refused: 1, Dropped: 1},
		{Topic: "zedagent/EdgeNodeInfo", Subscribed: true, Messages: 3, Refused: 2},
	}
	_ = s.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "node-1", DeviceID: uuid.MustParse(ownID)})
	_ = s.nodes.Publish("node-1", types.Node{Name: "node-1", UUID: ownID, Unschedulable: true, Ready: types.ConditionTrue, ReadySince: now.Add(-time.Hour)})
	_ = s.nodes.Publish("node-2", types.Node{Name: "node-2", Unschedulable: true})
	_ = s.api.Publish(types.Global, types.APIStatus{SilentSince: now.Add(-time.Minute), Synced: true})
	_ = s.leader.Publish(types.Global, types.KubeLeaderElectInfo{InLeaderElection: true, IsStatsLeader: true, LeaderIdentity: "node-1"})
	_ = s.leases.Publish("eve-kube-stats-leader", types.Lease{Name: "eve-kube-stats-leader", Holder: "node-1", Renewed: now.Add(-4 * time.Second)})
	_ = s.progress.Publish(types.Global, types.NodeDrainProgress{
		Phase: types.PhaseEmptying, Started: now.Add(-10 * time.Minute), Cordon: "zedkube",
		Pods:     types.DrainPods{Total: 9, Evicted: 4, Terminating: 2, Waiting: 3},
		Blockers: []types.DrainBlocker{{Outlook: types.OutlookSlow}, {Outlook: types.OutlookNever}, {Outlook: types.OutlookNever}}, BlockersOmitted: 5,
		Volumes: []types.DrainVolume{{Outlook: types.OutlookNever}},
	})
	_ = s.health.Publish(types.Global, types.KubeReportHealth{Reports: true, Sections: []types.ReportSection{
		{Name: types.SectionNodes, Known: true, Updated: now.Add(-time.Hour)},
		{Name: types.SectionStorage, Known: true, Updated: now.Add(-2 * time.Hour), StaleSince: now.Add(-20 * time.Minute), Total: 9, Truncated: 3},
	}})
	_ = s.conditions.Publish(types.Global, types.KubeNodeConditions{
		Conditions: []types.NodeStateCondition{
			{Type: types.StateMembers, Status: types.ConditionFalse, Since: now.Add(-time.Hour)},
			{Type: types.StateLeader, Status: types.ConditionTrue, Since: now.Add(-time.Hour)},
		},
		Kubernetes: "v1.34.2+k3s1", KubeVirt: "v1.7.3", Longhorn: "v1.9.1", CNI: "flannel vxlan", InstalledAt: now.Add(-24 * time.Hour),
		Certificates: []types.NodeCertificate{{Name: "client", NotAfter: now.Add(36 * time.Hour)}, {Name: "CA", NotAfter: now.Add(240 * time.Hour)}},
	})
	_ = s.object.Publish(types.Global, types.ClusterObject{Status: types.ClusterObjectStatus{
		Phase: types.ClusterUpgrading, Components: types.ClusterComponents{CDI: "v1.57.1"},
		Conditions: []types.ClusterCondition{{Type: types.ComponentsUpdated, Status: types.ConditionFalse, Reason: types.ComponentUpdateFailed}},
	}})
	_ = s.lifecycle.Publish(types.Global, types.KubeLifecycle{Phase: types.LifecycleStuck, Restart: types.K3sRestartStatus{Failed: "k3s was not restarted: it goes on as before."}})
	s.overview = overview.Overview{
		Problems: []types.Finding{
			{Rule: "AppDown", Severity: types.SeverityBad},
			{Rule: "AppDown", Severity: types.SeverityBad},
			{Rule: "VolumeDegraded", Severity: types.SeverityWarn},
			{Rule: "Strange", Severity: "absurd"},
		},
		Report: overview.Report{Reports: true},
		Apps: overview.Apps{List: []overview.App{
			{Activate: true, State: "RunningState"},
			{Activate: true, State: "NotRunningState"},
			{Activate: true, State: "NotInCluster"},
			{State: "NotInCluster"},
			{Activate: true, State: "APIUnreachable"},
			{Activate: true},
		}},
		Storage: overview.Storage{Volumes: []overview.Volume{
			{Robustness: "Healthy", Healthy: 3, Replicas: 3},
			{Robustness: "Degraded", Healthy: 2, Replicas: 3},
			{Robustness: "Degraded", Healthy: 1, Replicas: 3},
			{Robustness: "Faulted"},
			{Robustness: "Unknown"},
		}},
		Nodes: overview.Nodes{List: []overview.ClusterNode{{Status: "Ready"}, {Status: "Ready"}, {Status: "NotReady"}, {Status: "NotReachable"}, {Status: "Unknown"}}},
	}
	s.Requests.Answered("list", 200, 30*time.Millisecond)
	s.Requests.Answered("watch", 200, 2*time.Millisecond)
	s.Requests.Answered("get", 0, 12*time.Second)
	s.Requests.Watching(1)
	s.Operations.Begin(types.Operation{Op: "cordon"})(types.OperationOK, nil)
	s.Operations.Begin(types.Operation{Op: "delete pod"})(types.OperationRefused, nil)
	return s
}

// scrape is what a scraper reads.
func (s *stage) scrape(t *testing.T) []string {
	t.Helper()
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	return strings.Split(strings.TrimSuffix(w.Body.String(), "\n"), "\n")
}

// series are those with values, without the values.
func series(lines []string) []string {
	var out []string
	for _, line := range lines {
		if !strings.HasPrefix(line, "#") {
			out = append(out, line[:strings.LastIndexByte(line, ' ')])
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// families are the names of metrics, by their type and help.
func families(lines []string) map[string]bool {
	out := map[string]bool{}
	for _, line := range lines {
		if name, ok := strings.CutPrefix(line, "# TYPE "); ok {
			out[strings.Fields(name)[0]] = true
		}
	}
	return out
}
