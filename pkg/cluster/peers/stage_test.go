package peers

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var plant = uuid.MustParse("6ba7b810-9dad-41d1-80b4-00c04fd430c8")

// network is what answers.
type network struct {
	mu      sync.Mutex
	answers map[string]error // by address with port; what is not in it is silent
	dials   int
}

func (n *network) set(address string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.answers == nil {
		n.answers = map[string]error{}
	}
	n.answers[address] = err
}

func (n *network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	n.dials++
	err, known := n.answers[address]
	n.mu.Unlock()
	if known && err == nil {
		one, other := net.Pipe()
		_ = other.Close()
		return one, nil
	}
	if known {
		return nil, err
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// stage is n1 with two peers, in fake time.
type stage struct {
	*testing.T
	request    pubsub.Table[types.ClusterLeaveRequest]
	membership pubsub.Table[types.ClusterMembership]
	status     pubsub.Table[types.EdgeNodeClusterStatus]
	agent      pubsub.Table[types.ZedAgentStatus]
	info       pubsub.Table[types.EdgeNodeInfo]
	nodes      pubsub.Table[types.Node]
	api        pubsub.Table[types.APIStatus]
	cluster    *kubetest.Cluster
	network    network
	dir        string

	peers   pubsub.Table[types.ClusterPeers]
	without pubsub.Table[types.WithoutCluster]
	booted  time.Time
	asleep  atomic.Int64 // how long the device was suspended
	stop    func()
}

func play(t *testing.T, tell func(*stage)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t, dir: dir, booted: time.Now().Add(-30 * 24 * time.Hour)}
		s.cluster = &kubetest.Cluster{Nodes: &s.nodes, Pods: &pubsub.Table[types.Pod]{}, API: &s.api}
		s.cluster.SetFault(kubetest.None)
		s.cluster.SetStorage(types.Storage{Longhorn: true, Volumes: []types.Volume{
			{UID: "u1", Name: "pvc-1", Replicas: []types.Replica{{Node: "n1"}, {Node: "n2"}}},
			{UID: "u2", Name: "pvc-2", Replicas: []types.Replica{{Node: "n2"}}},
		}})
		_ = s.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "n1"})
		for name, ip := range map[string]string{"n1": "10.0.0.1", "n2": "10.0.0.2", "n3": "10.0.0.3"} {
			_ = s.nodes.Publish(name, types.Node{Name: name, UID: name, Ready: types.ConditionTrue, InternalIP: ip})
		}
		_ = s.membership.Publish(types.Global, types.ClusterMembership{
			State: types.MembershipMember, Config: &types.EdgeNodeClusterConfig{ClusterID: types.UUIDandVersion{UUID: plant}},
		})
		_ = s.status.Publish(types.Global, types.EdgeNodeClusterStatus{ClusterInterface: "eth1"})
		s.reached(types.ConfigGetSuccess)
		s.file("sys/class/net/eth1/carrier", "1\n")
		s.start()
		s.sleep(time.Minute)
		tell(s)
		s.stop()
	})
}

func (s *stage) file(name, content string) {
	s.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) start() {
	log, _ := logtest.NewNullLogger()
	c := &Component{
		Log: log, Pulse: &loop.Pulse{}, Request: &s.request, Membership: &s.membership, Status: &s.status, Agent: &s.agent,
		Info: &s.info, Nodes: &s.nodes, API: &s.api, Kube: s.cluster, Dial: s.network.dial,
		Proc: filepath.Join(s.dir, "proc"), Sysfs: filepath.Join(s.dir, "sys"), BootID: "boot-1",
		Uptime: s.uptime,
		Peers:  &s.peers, Without: &s.without,
	}
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	s.stop = func() { cancel(); <-done }
	synctest.Wait()
}

func (s *stage) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (s *stage) reached(status types.ConfigGetStatus) {
	_ = s.agent.Publish(types.ZedAgentKey, types.ZedAgentStatus{ConfigGetStatus: status})
}

// die is the end of the other nodes.
func (s *stage) die() {
	s.cluster.SetFault(kubetest.Refused)
	s.sleep(time.Minute)
}

// ask is the operator's request.
func (s *stage) ask(change ...func(*types.ClusterLeaveRequest)) {
	r := types.ClusterLeaveRequest{
		RequestedAt: time.Now(), WithoutCluster: &types.LeaveWithoutCluster{Dead: []string{"n2", "n3"}},
		Consent: &types.LeaveConsent{BootID: "boot-1", Cluster: plant, Uptime: s.uptime(), Volumes: []types.LeaveVolume{{UID: "u1"}}, Unknown: true},
	}
	for _, c := range change {
		c(&r)
	}
	_ = s.request.Publish(types.Global, r)
	synctest.Wait()
}

func (s *stage) is(want types.WithoutClusterState, why string) {
	s.Helper()
	w, _ := s.without.Get(types.Global)
	if w.State != want || !contains(w.Reason, why) {
		s.Fatalf("it is %s because %q, want %s because %q", w.State, w.Reason, want, why)
	}
}

// proves expects a proof within d; later it may have been given up, as nobody uses it.
func (s *stage) proves(d time.Duration) {
	s.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); s.sleep(lookEvery) {
		if w, _ := s.without.Get(types.Global); w.State == types.WithoutProved {
			return
		}
	}
	s.is(types.WithoutProved, "")
}

var refused = &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}

// uptime is the time since the boot, the time asleep included.
func (s *stage) uptime() time.Duration { return time.Since(s.booted) + time.Duration(s.asleep.Load()) }
