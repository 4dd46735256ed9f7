package witness

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func device(name string) uuid.UUID { return uuid.NewSHA1(uuid.NameSpaceOID, []byte(name)) }

// node is the i-th of a cluster, Ready.
func node(i int, change ...func(*types.Node)) types.Node {
	name := "n" + strconv.Itoa(i)
	n := types.Node{
		Name: name, UID: "uid-" + name, UUID: device(name).String(), Ready: types.ConditionTrue,
		InternalIP: fmt.Sprintf("10.0.%d.%d", i/250, i%250+1), Agent: &types.AgentStamp{Version: "1"},
	}
	for _, c := range change {
		c(&n)
	}
	return n
}

func unknown(n *types.Node) { n.Ready = types.ConditionUnknown }
func addressed(inner, outer string) func(*types.Node) {
	return func(n *types.Node) { n.InternalIP, n.ExternalIP = inner, outer }
}

// stage is the device n1 and its cluster, in fake time.
type stage struct {
	*testing.T
	info    pubsub.Table[types.EdgeNodeInfo]
	member  pubsub.Table[types.ClusterMembership]
	nodes   pubsub.Table[types.Node]
	api     pubsub.Table[types.APIStatus]
	pods    pubsub.Table[types.Pod]
	vmis    pubsub.Table[types.VMI]
	known   pubsub.Table[types.KnownNode]
	journal journal
	logs    *logtest.Hook
	lazy    time.Duration // how long a call takes to heed the end of its context
	stop    func()

	mu         sync.Mutex
	lines      map[string]error // what a connection to a host, or host:port, meets; nil answers, missing is silence
	dialed     []string
	writes     []types.Witness
	open       int                  // calls that have not returned, and connections
	fails      error                // of every write
	hangs      time.Duration        // before every write
	lag        time.Duration        // from a write to the table
	leases     map[string]time.Time // those of missing Nodes
	leasesFail error                // of every list of them
}

// play runs the witness of n1 in a cluster of three, all well.
func play(t *testing.T, tell func(*stage)) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t, lines: map[string]error{}, journal: journal{writes: map[string]int{}}}
		_ = s.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "n1", DeviceID: device("n1")})
		for i := 1; i <= 3; i++ {
			_ = s.nodes.Publish(node(i).Name, node(i))
			s.answers(node(i).InternalIP, nil)
		}
		s.apiIs(true)
		s.start()
		tell(s)
		s.stop()
		if s.open != 0 {
			t.Errorf("%d calls and connections are open after the end", s.open)
		}
	})
}

func (s *stage) start() {
	log, hook := logtest.NewNullLogger()
	s.logs = hook
	began := time.Now()
	c := &Component{
		Log: log, Pulse: &loop.Pulse{}, Info: &s.info, Membership: &s.member, Nodes: &s.nodes, API: &s.api, AppPods: &s.pods, VMIs: &s.vmis, Known: &s.known, Journal: &s.journal, Kube: s, Dial: s.dial,
		Ports: []int{types.PortStatus, types.PortKubelet}, Uptime: func() time.Duration { return time.Hour + time.Since(began) },
	}
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	s.stop = func() { cancel(); <-done }
	synctest.Wait()
}

func (s *stage) apiIs(answering bool) {
	status := types.APIStatus{Synced: answering}
	if !answering {
		status.SilentSince = time.Now()
	}
	_ = s.api.Publish(types.Global, status)
}

// lose lets the kubelet of a node report no more.
func (s *stage) lose(i int) { s.change(i, unknown) }

func (s *stage) change(i int, change ...func(*types.Node)) {
	n, ok := s.nodes.Get("n" + strconv.Itoa(i))
	if !ok {
		n = node(i)
	}
	for _, c := range change {
		c(&n)
	}
	_ = s.nodes.Publish(n.Name, n)
	synctest.Wait()
}

func (s *stage) recovers(i int) {
	s.answers(node(i).InternalIP, nil)
	s.change(i, func(n *types.Node) { n.Ready = types.ConditionTrue })
}

func (s *stage) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Witness implements Kube.
func (s *stage) Witness(ctx context.Context, name string, w types.Witness) error {
	defer s.calls()()
	s.mu.Lock()
	hangs, fails, lag := s.hangs, s.fails, s.lag
	s.writes = append(s.writes, w)
	s.mu.Unlock()
	select {
	case <-time.After(hangs):
	case <-ctx.Done():
		time.Sleep(s.lazy)
		return ctx.Err()
	}
	if fails != nil {
		return fails
	}
	time.AfterFunc(lag, func() {
		n, ok := s.nodes.Get(name)
		if !ok {
			return
		}
		n.Witness = nil
		if w.Round != 0 {
			n.Witness = &w
		}
		_ = s.nodes.Publish(name, n)
	})
	return nil
}

// writing says what writes meet from now on.
func (s *stage) writing(hangs time.Duration, fails error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangs, s.fails = hangs, fails
}

// written returns how many writes there were since the last call.
func (s *stage) written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.writes)
	s.writes = nil
	return n
}

// told is what n1 says at present, nil for nothing.
func (s *stage) told() *types.Witness {
	n, _ := s.nodes.Get("n1")
	return n.Witness
}

// sees returns the sighting of a node.
func (s *stage) sees(i int) types.Sighting {
	s.Helper()
	w := s.told()
	if w == nil {
		s.Fatal("n1 says nothing")
	}
	for _, seen := range w.Sightings {
		if seen.Node == "n"+strconv.Itoa(i) && seen.UID == "uid-n"+strconv.Itoa(i) {
			return seen
		}
	}
	s.Fatalf("n1 says nothing of n%d: %+v", i, w)
	return types.Sighting{}
}

// logged returns the lines of the log, and of them the errors.
func (s *stage) logged() (all []string, errs int) {
	for _, e := range s.logs.AllEntries() {
		all = append(all, e.Message)
		if e.Level == logrus.ErrorLevel {
			errs++
		}
	}
	return all, errs
}
