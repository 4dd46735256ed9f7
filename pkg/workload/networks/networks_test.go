package networks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	netA = uuid.MustParse("6ba7b810-9dad-41d1-80b4-00c04fd430c8")
	netB = uuid.MustParse("6ba7b811-9dad-41d1-80b4-00c04fd430c8")
	netC = uuid.MustParse("6ba7b812-9dad-41d1-80b4-00c04fd430c8")
)

// cluster has the attachments; it does what kubeapi promises.
type cluster struct {
	mu      sync.Mutex
	nads    map[string]uuid.UUID // uuid.Nil: somebody else's
	calls   []string
	failing error
}

func (c *cluster) EnsureNetworkNAD(_ context.Context, nad types.NetworkNAD) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, "ensure "+nad.Name)
	if id, is := c.nads[nad.Name]; c.failing != nil {
		return c.failing
	} else if is && id == uuid.Nil {
		return fmt.Errorf("ensure network attachment %s: %w", nad.Name, types.ErrForeignNAD)
	}
	c.nads[nad.Name] = nad.ID
	return nil
}

func (c *cluster) DeleteNetworkNAD(_ context.Context, nad types.NetworkNAD) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, "delete "+nad.Name)
	if c.failing != nil {
		return c.failing
	}
	if c.nads[nad.Name] == nad.ID {
		delete(c.nads, nad.Name)
	}
	return nil
}

func (c *cluster) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failing = err
}

type source struct {
	pubsub.Table[types.NetworkInstanceStatus]
	unknown atomic.Bool
}

func (s *source) Synced() bool { return !s.unknown.Load() }

type stage struct {
	*testing.T
	cluster    *cluster
	membership pubsub.Table[types.ClusterMembership]
	networks   source
	leader     pubsub.Table[types.KubeLeaderElectInfo]
	api        pubsub.Table[types.APIStatus]
	kube       Kube
	logs       *logtest.Hook
	stop       func()
}

func play(t *testing.T, do func(s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t, cluster: &cluster{nads: map[string]uuid.UUID{}}, stop: func() {}}
		s.kube = s.cluster
		s.member(types.MembershipMember, true)
		_ = s.api.Publish(types.Global, types.APIStatus{Synced: true})
		s.leads(true)
		do(s)
		s.stop()
	})
}

func (s *stage) member(state types.Membership, native bool) {
	config := types.EdgeNodeClusterConfig{ClusterType: types.ClusterTypeReplicatedStorage, EnableNativeK8SOrchestration: native}
	_ = s.membership.Publish(types.Global, types.ClusterMembership{State: state, Config: &config})
}

func (s *stage) leads(is bool) {
	_ = s.leader.Publish(types.Global, types.KubeLeaderElectInfo{IsStatsLeader: is})
}

func (s *stage) network(id uuid.UUID, name string) {
	_ = s.networks.Publish(id.String(), types.NetworkInstanceStatus{DisplayName: name, Type: types.NetworkInstanceLocal, ClusterWide: true})
}

func (s *stage) gone(id uuid.UUID) { _ = s.networks.Unpublish(id.String()) }

func (s *stage) start() {
	ctx, cancel := context.WithCancel(s.Context())
	log, hook := logtest.NewNullLogger()
	s.logs = hook
	c := &Component{
		Log: log, Pulse: &loop.Pulse{}, Membership: &s.membership, Networks: &s.networks, Leader: &s.leader, API: &s.api, Kube: s.kube,
	}
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	s.stop = func() { cancel(); <-done }
	synctest.Wait()
}

func (s *stage) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// want compares the attachments, and how many calls there were since the last time.
func (s *stage) want(what string, calls int, nads map[string]uuid.UUID) {
	s.Helper()
	synctest.Wait()
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	if diff := cmp.Diff(nads, s.cluster.nads); diff != "" || len(s.cluster.calls) != calls {
		s.Errorf("%s: %d calls: %v (-want +got):\n%s", what, len(s.cluster.calls), s.cluster.calls, diff)
	}
	s.cluster.calls = nil
}

func (s *stage) said(text string) int {
	return len(slices.DeleteFunc(s.logs.AllEntries(), func(e *logrus.Entry) bool {
		line, _ := e.String()
		return !strings.Contains(line, text)
	}))
}

type nads = map[string]uuid.UUID

func TestTheReportingNodeMakesAllAttachmentsOnce(t *testing.T) {
	play(t, func(s *stage) {
		s.network(netA, "Line_1..x")
		s.network(netB, "")
		for name, status := range map[string]types.NetworkInstanceStatus{
			"6ba7b813-9dad-41d1-80b4-00c04fd430c8": {DisplayName: "device", Type: types.NetworkInstanceLocal},
			"6ba7b814-9dad-41d1-80b4-00c04fd430c8": {DisplayName: "cloud", Type: 3, ClusterWide: true},
			"no-uuid":                              {DisplayName: "hostile", Type: types.NetworkInstanceLocal, ClusterWide: true},
			"6ba7b815-9dad-41d1-80b4-00c04fd430c8": {DisplayName: "ends with -", Type: types.NetworkInstanceLocal, ClusterWide: true},
		} {
			_ = s.networks.Publish(name, status)
		}
		_ = s.networks.Publish(netC.String(), types.NetworkInstanceStatus{DisplayName: "Switch", Type: types.NetworkInstanceSwitch, ClusterWide: true})
		all := nads{"ni-line-1-x": netA, "ni-" + netB.String(): netB, "ni-switch": netC}
		s.leads(false)
		s.start()
		s.after(time.Hour)
		s.want("while it does not report", 0, nads{})
		s.leads(true)
		s.want("when it begins to", 3, all)
		delete(s.cluster.nads, "ni-switch")
		s.after(time.Hour)
		delete(all, "ni-switch")
		s.want("an hour later", 0, all)
		s.leads(false)
		s.after(0)
		s.leads(true)
		all["ni-switch"] = netC
		s.want("when it begins again", 3, all)
		if s.said("not a UUID") != 1 || s.said("not a valid name") != 1 {
			t.Error("what cannot be is not said, or often")
		}
	})
}

func TestOnlyADeletionOrRenamingThatIsSeenDeletesAnAttachment(t *testing.T) {
	play(t, func(s *stage) {
		s.network(netA, "one")
		s.network(netB, "two")
		s.start()
		s.want("at first", 2, nads{"ni-one": netA, "ni-two": netB})

		// A restart, and a boot at which zedrouter has nothing yet.
		s.stop()
		s.gone(netA)
		s.networks.unknown.Store(true)
		s.start()
		s.after(time.Hour)
		s.networks.unknown.Store(false)
		s.gone(netB)
		s.after(time.Hour)
		s.want("after a boot", 0, nads{"ni-one": netA, "ni-two": netB})

		s.network(netA, "one")
		s.network(netB, "two")
		s.after(time.Hour)
		s.gone(netA)
		s.network(netB, "second")
		s.want("renamed", 3, nads{"ni-one": netA, "ni-two": netB, "ni-second": netB})
		s.after(grace)
		s.want("deleted", 2, nads{"ni-second": netB})

		// It is of another type, or of this device alone: nobody has deleted it.
		_ = s.networks.Publish(netB.String(), types.NetworkInstanceStatus{DisplayName: "second", Type: 3})
		s.after(time.Hour)
		s.want("changed", 0, nads{"ni-second": netB})
		s.gone(netB)
		s.after(grace)
		s.want("then deleted", 1, nads{})
	})
}

func TestAnInstanceThatIsBackAtOnceKeepsItsAttachment(t *testing.T) {
	play(t, func(s *stage) {
		s.network(netA, "one")
		s.start()
		s.after(0)
		s.gone(netA)
		s.after(grace / 2)
		s.network(netA, "one")
		s.after(time.Hour)
		s.want("purged", 2, nads{"ni-one": netA})
	})
}

func TestADeviceThatLeavesTakesNoAttachmentFromTheOthers(t *testing.T) {
	for name, change := range map[string]func(s *stage){
		"leaving":    func(s *stage) { s.member(types.MembershipLeaving, true) },
		"doubtful":   func(s *stage) { s.member(types.MembershipDoubtful, true) },
		"not native": func(s *stage) { s.member(types.MembershipMember, false) },
	} {
		play(t, func(s *stage) {
			s.network(netA, "one")
			s.start()
			s.want("at first", 1, nads{"ni-one": netA})
			s.gone(netA) // it loses its configuration, and hears of the cluster a moment later
			s.after(grace / 2)
			change(s)
			s.after(time.Hour)
			s.want(name, 0, nads{"ni-one": netA})
		})
	}
}

func TestADeletionIsMadeGoodByTheNodeThatReportsNext(t *testing.T) {
	play(t, func(s *stage) {
		s.cluster.nads["ni-one"] = netA
		s.leads(false)
		s.network(netA, "one")
		s.start()
		s.gone(netA)
		s.after(time.Hour)
		s.want("while another one reports", 0, nads{"ni-one": netA})
		s.leads(true)
		s.want("then", 1, nads{})
	})
}

func TestNamesThatBecomeOneAreSaidAndNotFoughtFor(t *testing.T) {
	play(t, func(s *stage) {
		s.network(netA, "Line 1")
		s.start()
		s.want("at first", 1, nads{"ni-line1": netA})
		s.network(netB, "line1")
		s.after(time.Hour)
		s.want("two", 0, nads{"ni-line1": netA})
		if n := s.said("2 network instances have the name ni-line1"); n != 1 {
			t.Errorf("said %d times", n)
		}
		s.gone(netA)
		s.after(time.Hour)
		s.want("the other one", 1, nads{"ni-line1": netB})
		s.network(netA, "LINE1")
		s.network(netC, "line.1")
		s.gone(netB)
		s.after(time.Hour)
		s.want("another pair", 2, nads{"ni-line1": netA, "ni-line-1": netC})

		// Two others claim the name of one that is deleted: it stays until one of them has it.
		s.network(netB, "line1")
		s.network(netC, "line1")
		s.gone(netA)
		s.after(time.Hour)
		s.want("two of three", 1, nads{"ni-line1": netA}) // the former name of the third is deleted
		s.gone(netB)
		s.after(time.Hour)
		s.want("one of three", 1, nads{"ni-line1": netC})
	})
}

func TestAForeignAttachmentIsSaidAndLeftAlone(t *testing.T) {
	play(t, func(s *stage) {
		s.cluster.nads["ni-one"] = uuid.Nil
		s.network(netA, "one")
		s.network(netB, "two")
		s.start()
		s.after(time.Hour)
		s.want("it stands", 2, nads{"ni-one": uuid.Nil, "ni-two": netB})
		if n := s.said("not zedkube's"); n != 1 {
			t.Errorf("said %d times", n)
		}
		s.gone(netA)
		s.after(time.Hour)
		s.want("its instance is deleted", 1, nads{"ni-one": uuid.Nil, "ni-two": netB})
	})
}

func TestWhatFailsIsTriedAgain(t *testing.T) {
	play(t, func(s *stage) {
		s.cluster.fail(errors.New("no answer"))
		s.network(netA, "one")
		s.start()
		s.after(10 * time.Minute)
		s.cluster.fail(nil)
		s.after(time.Minute)
		if n := len(s.cluster.calls); n > 20 {
			t.Errorf("%d calls in 11 minutes", n)
		}
		s.cluster.calls = nil
		s.want("in the end", 0, nads{"ni-one": netA})
		s.cluster.fail(errors.New("no answer"))
		s.gone(netA)
		s.after(10 * time.Minute)
		s.cluster.fail(nil)
		s.after(time.Minute)
		s.cluster.calls = nil
		s.want("deleted in the end", 0, nads{})
	})
}

func TestNothingIsAskedWhileTheClusterIsNotSeen(t *testing.T) {
	for name, status := range map[string]types.APIStatus{"silent": {SilentSince: time.Unix(1, 0), Synced: true}, "not synced": {}} {
		play(t, func(s *stage) {
			_ = s.api.Publish(types.Global, status)
			s.network(netA, "one")
			s.start()
			s.after(time.Hour)
			s.want(name, 0, nads{})
			_ = s.api.Publish(types.Global, types.APIStatus{Synced: true})
			s.want("then", 1, nads{"ni-one": netA})
		})
	}
}

func TestWithoutMultusADeletionIsDone(t *testing.T) {
	play(t, func(s *stage) {
		s.network(netA, "one")
		s.start()
		s.cluster.fail(fmt.Errorf("it is %w", types.ErrNotInstalled))
		s.gone(netA)
		s.after(time.Hour)
		if n := len(s.cluster.calls); n != 2 {
			t.Errorf("calls are %v", s.cluster.calls)
		}
	})
}
