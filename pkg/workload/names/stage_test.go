package names

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// source is a topic of which everything has come, or nothing yet.
type source[T any] struct {
	pubsub.Table[T]
	silent atomic.Bool
}

func (s *source[T]) Synced() bool { return !s.silent.Load() }

// stage is a cluster with agents of which one leads.
type stage struct {
	*testing.T
	ctx        context.Context
	nodes      pubsub.Table[types.Node]
	tables     pubsub.Table[types.TableStatus]
	configMaps pubsub.Table[types.NetworkAllocations]
	server     pubsub.Table[types.DNSServer]
	rollout    pubsub.Table[types.DNSRollout]
	agents     map[string]*agent
	world      sync.Mutex // held by verbs
	published  []string   // what CoreDNS was restarted for
	edited     int        // writes of ConfigMaps
	fails      error      // of every verb
	foreign    string     // a ConfigMap that is not EVE's
}

type agent struct {
	Component
	*stage
	end      func()
	log      *logtest.Hook
	apps     source[types.AppNetworkStatus]
	networks source[types.NetworkInstanceStatus]
	statuses pubsub.Table[types.ENClusterAppStatus]
	member   pubsub.Table[types.ClusterMembership]
	info     pubsub.Table[types.EdgeNodeInfo]
	leader   pubsub.Table[types.KubeLeaderElectInfo]
}

func (s *stage) EditAllocations(_ context.Context, name string, edit func(types.NetworkAllocations) types.NetworkAllocations) error {
	s.world.Lock()
	defer s.world.Unlock()
	if s.fails != nil || name == s.foreign {
		return cmp.Or(s.fails, errForeign)
	}
	row, there := s.configMaps.Get(name)
	switch next := edit(row); {
	case len(next.Entries) == 0 && there:
		s.edited++
		return s.configMaps.Unpublish(name)
	case len(next.Entries) > 0 && !reflect.DeepEqual(next, row):
		s.edited++
		data, _ := json.Marshal(next) // as it comes back from the API server
		next = types.NetworkAllocations{}
		_ = json.Unmarshal(data, &next)
		return s.configMaps.Publish(name, next)
	}
	return nil
}

func (s *stage) PublishNames(_ context.Context, text, hash string) error {
	s.world.Lock()
	defer s.world.Unlock()
	if s.fails != nil {
		return s.fails
	}
	row, _ := s.server.Get("coredns-custom")
	row.Text = text
	_ = s.server.Publish("coredns-custom", row)
	if row, _ := s.rollout.Get("coredns"); row.Hash != hash {
		s.published = append(s.published, text)
	}
	return s.rollout.Publish("coredns", types.DNSRollout{Hash: hash})
}

// play runs a story on nodes n1, the leader, n2 and n3 of a cluster with native orchestration.
func play(t *testing.T, story func(*stage)) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t, ctx: t.Context(), agents: map[string]*agent{}}
		for _, table := range []string{types.TableNodes, types.TableAllocations, types.TableDNSServer, types.TableDNSRollout} {
			_ = s.tables.Publish(table, types.TableStatus{Complete: true})
		}
		_ = s.rollout.Publish("coredns", types.DNSRollout{})
		for i, name := range []string{"n1", "n2", "n3"} {
			s.join(name)
			s.start(name, i == 0)
		}
		s.after(time.Minute)
		story(s)
		for _, a := range s.agents {
			a.end()
		}
	})
}

func device(node string) uuid.UUID { return uuid.NewSHA1(uuid.NameSpaceDNS, []byte(node)) }

func (s *stage) join(node string) {
	_ = s.nodes.Publish(node, types.Node{Name: node, UID: "uid-" + node, UUID: device(node).String()})
}

func (s *stage) start(node string, leads bool) *agent {
	log, hook := logtest.NewNullLogger()
	a := &agent{stage: s, log: hook}
	_ = a.member.Publish(types.Global, membership(types.ClusterTypeK3sBase))
	_ = a.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: node, DeviceID: device(node)})
	_ = a.leader.Publish(types.Global, types.KubeLeaderElectInfo{IsStatsLeader: leads})
	_ = a.networks.Publish(netID("floor").String(), types.NetworkInstanceStatus{DisplayName: "floor"})
	a.Component = Component{
		Log: log.WithField("node", node), Pulse: &loop.Pulse{}, Apps: &a.apps, Networks: &a.networks, AppStatus: &a.statuses,
		Membership: &a.member, Info: &a.info, Leader: &a.leader, Nodes: &s.nodes, Tables: &s.tables, Allocations: &s.configMaps, DNSServer: &s.server, DNSRollout: &s.rollout, Kube: s,
	}
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan struct{})
	go func() { defer close(done); a.Run(ctx) }()
	a.end = func() { cancel(); <-done }
	s.agents[node] = a
	return a
}

func membership(kind types.ClusterType) types.ClusterMembership {
	return types.ClusterMembership{State: types.MembershipMember, Config: &types.EdgeNodeClusterConfig{Valid: true, ClusterType: kind}}
}

func (s *stage) fail(err error) {
	s.world.Lock()
	defer s.world.Unlock()
	s.fails = err
}

func (s *stage) after(d time.Duration) {
	s.fail(s.fails) // what the test has read is read before the verbs that follow
	time.Sleep(d)
	synctest.Wait()
}

func netID(network string) uuid.UUID { return uuid.NewSHA1(uuid.NameSpaceURL, []byte(network)) }

// app is what zedrouter says of a workload; of namespace "" for one of the controller.
func app(namespace, name, address string, networks ...string) types.AppNetworkStatus {
	s := types.AppNetworkStatus{DisplayName: name, Activated: true, ConfigInSync: true}
	if namespace != "" {
		s.KubeApp = &types.KubeAppInfo{Namespace: namespace, OwnerName: name + "-6d9f"}
	}
	for _, n := range networks {
		adapter := types.AppNetAdapterStatus{Network: netID(n), Mac: net.HardwareAddr{2, 0x16, 0, 0, 0, 1}}
		if ip := net.ParseIP(address); ip.To4() != nil {
			adapter.AssignedAddresses.IPv4Addrs = []types.AssignedAddr{{Address: ip}}
		} else {
			adapter.AssignedAddresses.IPv6Addrs = []types.AssignedAddr{{Address: ip}}
		}
		s.AppNetAdapterList = append(s.AppNetAdapterList, adapter)
	}
	return s
}

func appID(name string) string { return uuid.NewSHA1(uuid.NameSpaceOID, []byte(name)).String() }

// runs has zedrouter assign an address to a pod of namespace shop.
func (a *agent) runs(name, address string) {
	_ = a.apps.Publish(appID(name), app("shop", name, address, "floor"))
}

// activates has zedrouter set up an application of the controller.
func (a *agent) activates(name, address string) {
	_ = a.apps.Publish(appID(name), app("", name, address, "floor"))
}

// places has this node's zedkube say where an application of the controller runs.
func (a *agent) places(name string, is types.AppKubeStatus, here bool) {
	_ = a.statuses.Publish(appID(name), types.ENClusterAppStatus{AppKubeStatus: is, ScheduledOnThisNode: here})
}

func (a *agent) stops(name string) { _ = a.apps.Unpublish(appID(name)) }

func (a *agent) leads(leads bool) {
	_ = a.leader.Publish(types.Global, types.KubeLeaderElectInfo{IsStatsLeader: leads})
}

func (a *agent) logged(text string) (n int) {
	for _, e := range a.log.AllEntries() {
		line, _ := (&logrus.TextFormatter{DisableColors: true}).Format(e)
		n += strings.Count(string(line), text)
	}
	return n
}

// entries are those of the network floor: by workload's name, its node.
func (s *stage) entries() map[string]string {
	out := map[string]string{}
	row, _ := s.configMaps.Get("eve-ni-floor-allocations")
	for _, is := range row.Entries {
		out[is.AppName] = is.NodeName
	}
	return out
}

func (s *stage) want(what string, want map[string]string) {
	s.Helper()
	if got := s.entries(); !maps.Equal(got, want) {
		s.Errorf("%s: the ConfigMap has %v, want %v", what, got, want)
	}
}

func (s *stage) text() string {
	row, _ := s.server.Get("coredns-custom")
	return row.Text
}

var errAPI, errForeign = errors.New("the API server does not answer"), errors.New("it is not EVE's")

func address(i int) string { return fmt.Sprintf("10.55.%d.%d", i/200, i%200+1) }
