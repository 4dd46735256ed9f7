package conditions

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// story is a node of three in fake time.
type story struct {
	*testing.T
	credentials pubsub.Table[types.Credentials]
	clocks      pubsub.Table[types.NodeClock]
	nodes       pubsub.Table[types.Node]
	pods        pubsub.Table[types.Pod]
	api         pubsub.Table[types.APIStatus]
	tables      pubsub.Table[types.TableStatus]
	info        pubsub.Table[types.EdgeNodeInfo]
	membership  pubsub.Table[types.ClusterMembership]
	k3s         pubsub.Table[types.K3sVersionStatus]
	certs       pubsub.Table[types.K3sCertificates]
	leader      pubsub.Table[types.KubeLeaderElectInfo]
	health      pubsub.Table[types.KubeReportHealth]
	out         pubsub.Table[types.KubeNodeConditions]
	node        pubsub.Table[types.ClusterNodeStatus]
	logs        *test.Hook
	stop        func()
}

// tell runs the component over a healthy cluster while play changes it.
func tell(t *testing.T, play func(*story)) {
	synctest.Test(t, func(t *testing.T) {
		s := &story{T: t}
		s.healthy()
		s.start()
		defer func() { s.stop() }()
		s.pass(10 * time.Minute)
		for _, c := range types.NodeStateTypes() {
			s.is(c, types.ConditionTrue, "")
		}
		play(s)
	})
}

func put[T any](s *story, table pubsub.Writer[T], key string, v T) {
	s.Helper()
	if err := table.Publish(key, v); err != nil {
		s.Fatal(err)
	}
}

func (s *story) healthy() {
	now := time.Now().UTC()
	valid := func(d time.Duration) types.Certificate {
		return types.Certificate{Subject: "x", NotBefore: now.Add(-day), NotAfter: now.Add(d)}
	}
	f := healthy()
	f.credentials.Client, f.credentials.CA, f.credentials.Server = valid(14*day+2*time.Hour), valid(3650*day), valid(365*day)
	put(s, &s.credentials, types.Global, f.credentials)
	for name, n := range f.nodes {
		put(s, &s.nodes, name, n)
	}
	put(s, &s.clocks, "n2", types.NodeClock{Node: "n2"})
	put(s, &s.api, types.Global, f.api)
	put(s, &s.tables, types.TableNodes, types.TableStatus{Complete: true})
	put(s, &s.info, types.Global, f.info)
	put(s, &s.membership, types.Global, f.membership)
	f.certs.Leaves[0].NotBefore, f.certs.Leaves[0].NotAfter = now.Add(-day), now.Add(3650*day)
	put(s, &s.certs, types.Global, f.certs)
	put(s, &s.leader, types.Global, f.leader)
	put(s, &s.health, types.Global, f.health)
}

// start starts the agent, over what a former one has published.
func (s *story) start() {
	log, hook := test.NewNullLogger()
	s.logs = hook
	began := time.Now()
	c := &Component{
		Log: log, Pulse: &loop.Pulse{},
		Credentials: &s.credentials, Clocks: &s.clocks, Nodes: &s.nodes, NodePods: &s.pods, API: &s.api, Tables: &s.tables,
		Info: &s.info, Membership: &s.membership, K3s: &s.k3s, K3sCerts: &s.certs, Leader: &s.leader, Health: &s.health,
		Uptime:     func() time.Duration { return time.Since(began) },
		Conditions: &s.out, Node: &s.node,
	}
	ctx, cancel := context.WithCancel(s.Context())
	var running sync.WaitGroup
	running.Go(func() { c.Run(ctx) })
	s.stop = func() { cancel(); running.Wait() }
}

func (s *story) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (s *story) now(t types.NodeStateType) types.NodeStateCondition {
	all, _ := s.out.Get(types.Global)
	c, _ := all.Of(t)
	return c
}

func (s *story) is(t types.NodeStateType, status types.ConditionStatus, says string) {
	s.Helper()
	c := s.now(t)
	if c.Status != status || !strings.Contains(c.Message, says) {
		s.Errorf("%s is %s since %v, %s: %s; want %s: %s", t, c.Status, c.Since, c.Reason, c.Message, status, says)
	}
}

func (s *story) change(name string, change func(*types.Node)) {
	s.Helper()
	n, _ := s.nodes.Get(name)
	change(&n)
	put(s, &s.nodes, name, n)
}

// said are the lines of the log.
func (s *story) said() (lines []string) {
	for _, e := range s.logs.AllEntries() {
		lines = append(lines, e.Level.String()+" "+e.Message)
	}
	return lines
}
