package clusterobject

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// stage is a component with tables in memory.
type stage struct {
	*Component
	cluster    pubsub.Table[types.EdgeNodeClusterStatus]
	membership pubsub.Table[types.ClusterMembership]
	info       pubsub.Table[types.EdgeNodeInfo]
	nodes      pubsub.Table[types.Node]
	api        pubsub.Table[types.APIStatus]
	object     pubsub.Table[types.ClusterObject]
	refuses    atomic.Bool
	dialled    atomic.Int64
}

func newStage(f facts) *stage {
	log := logrus.New()
	log.SetOutput(io.Discard)
	s := &stage{}
	s.Component = &Component{
		Log: log, Pulse: &loop.Pulse{}, Membership: &s.membership, Cluster: &s.cluster, Info: &s.info, Nodes: &s.nodes, API: &s.api, Object: &s.object,
		KubeInit: &pubsub.Table[types.KubeInitStatus]{}, Update: &pubsub.Table[types.KubeClusterUpdateStatus]{}, K3s: &pubsub.Table[types.K3sVersionStatus]{}, Lifecycle: &pubsub.Table[types.KubeLifecycle]{},
		Override: &pubsub.Table[types.K3sOverrideStatus]{}, Conditions: &pubsub.Table[types.KubeNodeConditions]{}, Leave: &pubsub.Table[types.ClusterLeaveRequest]{},
		Progress: &pubsub.Table[types.NodeDrainProgress]{}, Journal: &pubsub.Table[types.NodeDrainJournal]{}, Peers: &pubsub.Table[types.ClusterPeers]{},
		Without: &pubsub.Table[types.WithoutCluster]{}, Workloads: &pubsub.Table[types.WorkloadsStatus]{}, AppPods: &pubsub.Table[types.Pod]{},
		CDI: &pubsub.Table[types.DeployedVersion]{}, Version: "1.0",
		Dial: func(context.Context, string, string) (net.Conn, error) {
			s.dialled.Add(1)
			if s.refuses.Load() {
				return nil, errors.New("refused")
			}
			near, far := net.Pipe()
			_ = far.Close()
			return near, nil
		},
	}
	_ = s.membership.Publish(types.Global, f.membership)
	_ = s.cluster.Publish(types.Global, f.cluster)
	_ = s.info.Publish(types.Global, f.info)
	_ = s.api.Publish(types.Global, f.api)
	for name, n := range f.nodes {
		_ = s.nodes.Publish(name, n)
	}
	return s
}

// runs runs the component until the end of the test.
func (s *stage) runs(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	synctest.Wait()
}

func (s *stage) now() types.ClusterObjectStatus {
	synctest.Wait()
	o, _ := s.object.Get(types.Global)
	return o.Status
}

func TestTheServerIsTriedUntilTheNodeHasJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := joinedServer(before)
		s := newStage(f)
		_ = s.nodes.Publish("n2", f.own)
		s.refuses.Store(true)
		s.runs(t)
		if c := s.now().Of(types.ClusterPeersReachable); c.Reason != "NoAnswer" || s.now().Phase != types.ClusterProvisioning {
			t.Errorf("%+v", s.now())
		}
		s.refuses.Store(false)
		time.Sleep(11 * time.Second)
		if c := s.now().Of(types.ClusterPeersReachable); c.Status != types.ConditionTrue || c.Reason != "Answers" {
			t.Errorf("%+v", c)
		}
		time.Sleep(time.Hour)
		if n := s.dialled.Load(); n < 300 || n > 370 {
			t.Errorf("%d connections in an hour, want one in 10 s", n)
		}
		for name, n := range joinedServer().nodes {
			_ = s.nodes.Publish(name, n)
		}
		if p := s.now(); p.Of(types.ClusterJoined).Status != types.ConditionTrue {
			t.Errorf("%+v", p)
		}
		n := s.dialled.Load()
		time.Sleep(time.Hour)
		_ = s.api.Publish(types.Global, types.APIStatus{SilentSince: time.Now(), Reason: "connection refused"})
		time.Sleep(time.Hour)
		if more := s.dialled.Load() - n; more > 1 {
			t.Errorf("%d connections after the join", more)
		}
	})
}

func TestASingleNodeWithK3sDeadStillHasItsObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := single()
		s := newStage(f)
		s.runs(t)
		if p := s.now(); p.Phase != types.ClusterProvisioned {
			t.Fatalf("%+v", p)
		}
		began := s.now().Of(types.ClusterVersion).LastTransitionTime
		time.Sleep(time.Hour)
		_ = s.api.Publish(types.Global, types.APIStatus{SilentSince: time.Now(), Reason: "connection refused"})
		p := s.now()
		if p.Phase != types.ClusterDegraded || p.Of(types.ControlPlaneReady).Reason != "APIServerUnreachable" || p.Components.Kubelet != "v1.34.2+k3s1" {
			t.Errorf("%+v", p)
		}
		if got := p.Of(types.ClusterVersion).LastTransitionTime; !got.Equal(began) {
			t.Errorf("since %s, want %s", got, began)
		}
		if s.dialled.Load() != 0 {
			t.Error("a single node connects to a server")
		}
	})
}

func TestTheTimesOutlastARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := single()
		former := decide(f)
		s := newStage(f)
		_ = s.object.Publish(types.Global, former)
		_ = s.api.Unpublish(types.Global) // as at a start
		s.runs(t)
		if p := s.now(); p.Phase != types.ClusterProvisioned || !p.Since.Equal(former.Status.Since) || !p.Of(types.NodeReady).LastTransitionTime.Equal(noon) {
			t.Errorf("%+v", p)
		}
	})
}

func TestEveryInputIsInTheObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(joinedServer(leaving))
		look := &types.StorageLook{Volumes: []types.LeaveVolume{{Name: "pvc-1"}}, At: noon}
		for _, err := range []error{
			publish(s.Leave, types.ClusterLeaveRequest{RequestedAt: noon}),
			publish(s.KubeInit, types.KubeInitStatus{State: "RUNNING", AllComponentsInitialized: true}),
			publish(s.Update, types.KubeClusterUpdateStatus{Component: types.KubeCompCdi, Status: types.KubeCompUpdateCompleted}),
			publish(s.K3s, types.K3sVersionStatus{Wanted: "v1.35.0+k3s1"}),
			publish(s.Override, types.K3sOverrideStatus{CertSANs: []string{"a.example.org"}}),
			publish(s.Conditions, types.KubeNodeConditions{Kubernetes: "v1.34.2+k3s1", Longhorn: "v1.9.1"}),
			publish(s.Lifecycle, types.KubeLifecycle{Phase: types.LifecycleStuck, Reason: "It is stuck."}),
			publish(s.Progress, types.NodeDrainProgress{Phase: types.PhaseEmptying, Reason: "It waits."}),
			publish(s.Journal, types.NodeDrainJournal{Look: look}),
			publish(s.Workloads, types.WorkloadsStatus{Phase: types.WorkloadsDisabled}),
			s.AppPods.(*pubsub.Table[types.Pod]).Publish("a/cam", types.Pod{Namespace: "a", Name: "cam", NodeName: "n2", App: "cam", Phase: types.PodRunning}),
			s.AppPods.(*pubsub.Table[types.Pod]).Publish("a/cam-2", types.Pod{Namespace: "a", Name: "cam-2", NodeName: "n2", App: "cam", Phase: types.PodRunning}),
			s.AppPods.(*pubsub.Table[types.Pod]).Publish("a/plc", types.Pod{Namespace: "a", Name: "plc", NodeName: "n3", App: "plc", Phase: types.PodRunning}),
			s.AppPods.(*pubsub.Table[types.Pod]).Publish("a/hmi", types.Pod{Namespace: "a", Name: "hmi", NodeName: "n2", App: "hmi", Phase: types.PodPending}),
			publish(s.Without, types.WithoutCluster{Reason: "nothing answers."}),
			s.CDI.(*pubsub.Table[types.DeployedVersion]).Publish(types.CDIDeployment, types.DeployedVersion{Version: "v1.57.1"}),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		s.runs(t)
		p := s.now()
		o, _ := s.object.Get(types.Global)
		got := []string{
			fmt.Sprint(o.Spec.Leave), o.Spec.Version, o.Spec.APIServer.CertSANs[0], p.KubernetesVersion, p.Components.Longhorn, p.Components.CDI, p.Components.Zedkube,
			p.Of(types.KubeContainerReady).Reason, p.Of(types.ComponentsUpdated).Reason, p.AtStake.Drain, p.AtStake.Volumes[0].Name, p.AtStake.WithoutCluster,
			fmt.Sprint(o.Spec.Disabled, p.AtStake.Applications),
		}
		want := []string{
			"true", "v1.35.0+k3s1", "a.example.org", "v1.34.2+k3s1", "v1.9.1", "v1.57.1", "1.0",
			"Initialized", "Updated", "Emptying: It waits.", "pvc-1", "nothing answers.", "true 1",
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("want -, got +\n%s", d)
		}
		_ = publish(s.Leave, types.ClusterLeaveRequest{RequestedAt: noon, Undo: true})
		synctest.Wait()
		if o, _ := s.object.Get(types.Global); o.Spec.Leave {
			t.Error("a request that undoes a leave asks for one")
		}
	})
}

func publish[T any](table pubsub.Reader[T], v T) error {
	return table.(*pubsub.Table[T]).Publish(types.Global, v)
}
