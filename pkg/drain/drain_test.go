package drain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"

	"github.com/zedkube/zedkube/kubeapi/kubetest"
	"github.com/zedkube/zedkube/pkg/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// source is another agent's topic, which may not have been heard of yet.
type source struct {
	pubsub.Table[types.NodeDrainRequest]
	unheard bool
}

func (s *source) Synced() bool { return !s.unheard }

// recorder is the publication, with its history.
type recorder struct {
	pubsub.Table[types.NodeDrainStatus]
	mu   sync.Mutex
	seen []stamped
}

type stamped struct {
	at time.Time
	v  types.NodeDrainStatus
}

func (r *recorder) Publish(key string, v types.NodeDrainStatus) error {
	r.mu.Lock()
	r.seen = append(r.seen, stamped{time.Now(), v})
	r.mu.Unlock()
	return r.Table.Publish(key, v)
}

// path is the history as digits: 2345(7)9; a change of the requester alone shows twice.
func (r *recorder) path() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for _, s := range r.seen {
		fmt.Fprint(&b, int(s.v.Status))
	}
	return b.String()
}

// when is how long after start the value was first published; -1 for never.
func (r *recorder) when(start time.Time, v types.NodeDrainStatus) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.seen {
		if s.v == v {
			return s.at.Sub(start)
		}
	}
	return -1
}

// stage is a three-node cluster around the drain of n1.
type stage struct {
	t        *testing.T
	zedagent source
	baseos   source
	config   pubsub.Table[types.EdgeNodeClusterConfig]
	settings pubsub.Table[types.ConfigItemValueMap]
	info     pubsub.Table[types.EdgeNodeInfo]
	nodes    pubsub.Table[types.Node]
	pods     pubsub.Table[types.Pod]
	api      pubsub.Table[types.APIStatus]
	status   recorder
	kube     *kubetest.Cluster
	log      *test.Hook
	logger   *logrus.Logger
	force    string
	marker   string
}

// newStage is to be called inside a synctest bubble.
func newStage(t *testing.T, pods int) *stage {
	s := &stage{t: t, force: filepath.Join(t.TempDir(), "force"), marker: filepath.Join(t.TempDir(), "wait")}
	s.logger, s.log = test.NewNullLogger()
	s.logger.SetOutput(io.Discard)
	s.kube = &kubetest.Cluster{Nodes: &s.nodes, Pods: &s.pods, API: &s.api, Grace: time.Second}
	s.kube.SetFault(kubetest.None)
	_ = s.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "n1"})
	_ = s.config.Publish(types.Global, types.EdgeNodeClusterConfig{Initialized: true, Valid: true})
	for _, n := range []string{"n1", "n2", "n3"} {
		_ = s.nodes.Publish(n, types.Node{Name: n, Ready: types.ConditionTrue})
	}
	for i := range pods {
		p := types.Pod{Namespace: "eve-kube-app", Name: fmt.Sprintf("app-%d", i), UID: fmt.Sprint(i), NodeName: "n1", Phase: types.PodRunning}
		_ = s.pods.Publish(p.Key(), p)
	}
	ds := types.Pod{Namespace: "kube-system", Name: "ds", UID: "ds", NodeName: "n1", Owner: types.Owner{Kind: "DaemonSet"}}
	_ = s.pods.Publish(ds.Key(), ds)
	return s
}

// run starts an agent, returns its stop.
func (s *stage) run() func() {
	c := &Component{
		Log: s.logger, Pulse: &loop.Pulse{}, DeviceOp: &s.zedagent, Update: &s.baseos, Config: &s.config,
		Settings: &s.settings, Info: &s.info, Nodes: &s.nodes, NodePods: &s.pods, API: &s.api, Kube: s.kube,
		ForceFile: s.force, FaultMarker: s.marker, Status: &s.status,
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	synctest.Wait()
	return func() { cancel(); <-done }
}

func (s *stage) request(from *source, by types.DrainRequester) {
	_ = from.Publish(types.Global, types.NodeDrainRequest{RequestedAt: time.Now(), RequestedBy: by, Context: "reboot"})
}

func (s *stage) is(v types.DrainStatus, by types.DrainRequester) {
	s.t.Helper()
	synctest.Wait()
	got, _ := s.status.Get(types.Global)
	if want := (types.NodeDrainStatus{Status: v, RequestedBy: by}); got != want {
		s.t.Errorf("status is %v by %v, want %v by %v; history %s", got.Status, got.RequestedBy, v, by, s.status.path())
	}
}

func (s *stage) cordoned(want, ours bool) {
	s.t.Helper()
	synctest.Wait()
	n, _ := s.nodes.Get("n1")
	if n.Unschedulable != want || (n.CordonedBy != nil) != ours {
		s.t.Errorf("node is cordoned: %v, by us: %v; want %v, %v", n.Unschedulable, n.CordonedBy != nil, want, ours)
	}
}

func (s *stage) path(want string) {
	s.t.Helper()
	if got := s.status.path(); got != want {
		s.t.Errorf("published states %s, want %s", got, want)
	}
}

func (s *stage) logged(part string) bool {
	return slices.ContainsFunc(s.log.AllEntries(), func(e *logrus.Entry) bool { return strings.Contains(e.Message, part) })
}

const (
	nobody   = types.DrainRequesterNone
	deviceOp = types.DrainRequesterDeviceOp
	osUpdate = types.DrainRequesterUpdate
	appZero  = "eve-kube-app/app-0"
)

func story(t *testing.T, pods int, tell func(*stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { tell(newStage(t, pods)) })
}

func TestARequestEmptiesTheNode(t *testing.T) {
	story(t, 30, func(s *stage) {
		defer s.run()()
		start := time.Now()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(3 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		s.path("2345" + "79")
		s.cordoned(true, true)
		if d := s.kube.Calls("evict")[0].At.Sub(start); d > 100*time.Millisecond {
			t.Errorf("first eviction after %s", d)
		}
		if d := s.status.when(start, types.NodeDrainStatus{Status: types.DrainComplete, RequestedBy: deviceOp}); d < edge || d > edge+100*time.Millisecond {
			t.Errorf("COMPLETE after %s, want the two seconds nodeagent needs", d)
		}
		if n := len(s.kube.Calls("evict")); n != 30 {
			t.Errorf("%d evictions of 30 pods", n)
		}
		if n := len(s.kube.Calls("list")); n > 3 {
			t.Errorf("%d lists", n)
		}
		for _, want := range []string{
			"Beginning kubernetes node drain process this could be a very long operation depending on replica rebuilds (24hours+)",
			"NodeDrainRequest", "NodeDrainStatus", "cordonNode", "cordonAndDrainNode", "nodedrain-step",
			"kubevirt_node_drain_completion_time_seconds:2.0",
		} {
			if !s.logged(want) {
				t.Errorf("no log line with %q", want)
			}
		}
	})
}

func TestAWithdrawnRequestGivesTheNodeBack(t *testing.T) {
	for _, row := range []struct {
		when    string
		trouble func(*stage)
		after   time.Duration
	}{
		{"in the middle", func(s *stage) { s.kube.Block(appZero, true) }, 20 * time.Second},
		{"after COMPLETE", func(*stage) {}, 20 * time.Second},
		{"while a call hangs", func(s *stage) { s.kube.SetLatency(time.Hour) }, 10 * time.Second},
	} {
		t.Run(row.when, func(t *testing.T) {
			story(t, 3, func(s *stage) {
				defer s.run()()
				row.trouble(s)
				s.request(&s.zedagent, deviceOp)
				time.Sleep(row.after)
				_ = s.zedagent.Unpublish(types.Global)
				time.Sleep(500 * time.Millisecond)
				s.is(types.DrainNotRequested, nobody)
				s.kube.SetLatency(0)
				time.Sleep(2 * time.Second)
				s.cordoned(false, false)
				calls := len(s.kube.Calls(""))
				time.Sleep(time.Hour)
				if n := len(s.kube.Calls("")); n != calls {
					t.Errorf("%d calls after the end", n-calls)
				}
			})
		})
	}
}

func TestAWithdrawalIsAnsweredWhileTheAPIIsDeadAndTheCordonUndoneLater(t *testing.T) {
	story(t, 1, func(s *stage) {
		defer s.run()()
		s.kube.Block(appZero, true)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(5 * time.Second)
		s.kube.SetFault(kubetest.Hung)
		time.Sleep(10 * time.Second)
		_ = s.zedagent.Unpublish(types.Global)
		time.Sleep(time.Second)
		s.is(types.DrainNotRequested, nobody)
		s.cordoned(true, true)
		s.kube.SetFault(kubetest.None)
		time.Sleep(3 * time.Second)
		s.cordoned(false, false)
	})
}

func TestTwoRequestersGetOneDrainAndAValueEach(t *testing.T) {
	story(t, 2, func(s *stage) {
		defer s.run()()
		s.kube.Block(appZero, true)
		s.request(&s.baseos, osUpdate)
		time.Sleep(5 * time.Second)
		s.is(types.DrainRetrying, osUpdate)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Second)
		s.is(types.DrainRetrying, deviceOp)
		s.kube.Block(appZero, false)
		time.Sleep(20 * time.Second)
		s.is(types.DrainComplete, osUpdate)
		start := time.Now()
		device := s.status.when(start, types.NodeDrainStatus{Status: types.DrainComplete, RequestedBy: deviceOp})
		update := s.status.when(start, types.NodeDrainStatus{Status: types.DrainComplete, RequestedBy: osUpdate})
		if update-device != edge {
			t.Errorf("the second requester was told %s after the first", update-device)
		}
		s.path("23457799")
		if n := len(s.kube.Calls("cordon")); n != 1 {
			t.Errorf("%d cordons", n)
		}
	})
}

func TestAPodWhoseBudgetOpensLaterLeavesThen(t *testing.T) {
	story(t, 3, func(s *stage) {
		defer s.run()()
		s.kube.Block(appZero, true)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(10 * time.Minute)
		s.is(types.DrainRetrying, deviceOp)
		tries := s.kube.Calls("evict")
		if gap := tries[len(tries)-1].At.Sub(tries[len(tries)-2].At); gap < 4*time.Second || gap > 6*time.Second {
			t.Errorf("tries are %s apart in the end", gap)
		}
		if s.logged("step failed") {
			t.Error("a budget is not a failure")
		}
		s.kube.Block(appZero, false)
		time.Sleep(10 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		s.path("234579")
	})
}

func TestADeadAPIDoesNotKeepTheDeviceFromItsReboot(t *testing.T) {
	for _, row := range []struct {
		api  string
		kill func(*stage)
	}{
		{"refusing connections", func(s *stage) { s.kube.SetFault(kubetest.Refused) }},
		{"hanging", func(s *stage) { s.kube.SetFault(kubetest.Hung) }},
		{"never heard of", func(s *stage) { _ = s.api.Unpublish(types.Global) }},
	} {
		t.Run(row.api, func(t *testing.T) {
			story(t, 2, func(s *stage) {
				row.kill(s)
				defer s.run()()
				time.Sleep(time.Hour)
				s.request(&s.zedagent, deviceOp)
				time.Sleep(299 * time.Second)
				s.is(types.DrainStarting, deviceOp)
				time.Sleep(3 * time.Second)
				s.is(types.DrainComplete, deviceOp)
				s.path("2349")
			})
		})
	}
}

func TestASlowAPIIsNotDead(t *testing.T) {
	story(t, 20, func(s *stage) {
		defer s.run()()
		s.kube.SetLatency(8 * time.Second)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(2 * time.Minute)
		s.is(types.DrainComplete, deviceOp)
		s.path("234579")
		if n := len(s.kube.Calls("evict")); n != 20 {
			t.Errorf("%d evictions of 20 pods", n)
		}
	})
}

func TestARestartedAgentGoesOnWhereItWas(t *testing.T) {
	for after := range 9 {
		t.Run(fmt.Sprintf("%d x 400 ms after the request", after), func(t *testing.T) {
			story(t, 3, func(s *stage) {
				s.kube.SetLatency(300 * time.Millisecond)
				stop := s.run()
				s.request(&s.zedagent, deviceOp)
				time.Sleep(time.Duration(after) * 400 * time.Millisecond)
				stop()
				s.zedagent.unheard = true
				stop = s.run()
				defer func() { stop() }()
				time.Sleep(20 * time.Second)
				s.is(types.DrainComplete, deviceOp)
				s.path("234579")
			})
		})
	}
}

func TestARequestNotYetHeardOfAfterARestartIsNotWithdrawn(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.Block(appZero, true)
		stop := s.run()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(10 * time.Second)
		stop()
		s.zedagent.unheard = true
		_ = s.zedagent.Unpublish(types.Global)
		defer s.run()()
		time.Sleep(doubtFor - time.Second)
		s.is(types.DrainRetrying, deviceOp)
		s.cordoned(true, true)
		time.Sleep(3 * time.Second)
		s.is(types.DrainNotRequested, nobody)
		s.cordoned(false, false)
	})
}

func TestAForeignCordonSurvivesTheDrainAndTheBoot(t *testing.T) {
	story(t, 1, func(s *stage) {
		_ = s.nodes.Publish("n1", types.Node{Name: "n1", Ready: types.ConditionTrue, Unschedulable: true})
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(5 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		_ = s.zedagent.Unpublish(types.Global)
		time.Sleep(time.Minute)
		s.is(types.DrainNotRequested, nobody)
		s.cordoned(true, false)
	})
}

func TestANewBootGivesTheNodeBackOnceItIsReady(t *testing.T) {
	story(t, 1, func(s *stage) {
		n := types.Node{Name: "n1", Ready: types.ConditionUnknown, Unschedulable: true, CordonedBy: &types.Cordon{By: "zedkube"}}
		_ = s.nodes.Publish("n1", n)
		s.kube.FailVerb("uncordon", errors.New("conflict"))
		defer s.run()()
		time.Sleep(time.Minute)
		s.cordoned(true, true)
		if n := len(s.kube.Calls("uncordon")); n != 0 {
			t.Errorf("%d tries before the node was Ready", n)
		}
		n.Ready = types.ConditionTrue
		_ = s.nodes.Publish("n1", n)
		time.Sleep(time.Minute)
		s.cordoned(true, true)
		s.kube.FailVerb("uncordon", nil)
		time.Sleep(5 * time.Second)
		s.cordoned(false, false)
		s.path("2")
	})
}

func TestRefusedCordonsFailTheDrain(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.FailVerb("cordon", errors.New("forbidden"))
		defer s.run()()
		start := time.Now()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(2 * time.Minute)
		s.is(types.DrainFailedCordon, deviceOp)
		if n := len(s.kube.Calls("cordon")); n != maxRefusals {
			t.Errorf("%d cordons", n)
		}
		if d := s.status.when(start, types.NodeDrainStatus{Status: types.DrainFailedCordon, RequestedBy: deviceOp}); d < 9*cordonEvery || d > 10*cordonEvery {
			t.Errorf("FAILEDCORDON after %s", d)
		}
		s.kube.FailVerb("cordon", nil)
		_ = s.zedagent.Unpublish(types.Global)
		time.Sleep(time.Minute)
		s.is(types.DrainFailedCordon, deviceOp)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(10 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestADrainThatCannotEndFailsAtItsDeadline(t *testing.T) {
	story(t, 2, func(s *stage) {
		_ = s.settings.Publish(types.Global, types.ConfigItemValueMap{GlobalSettings: map[string]types.ConfigItemValue{
			types.SettingDrainTimeout: {Key: types.SettingDrainTimeout, ItemType: types.ConfigItemInt, IntValue: 1},
		}})
		s.kube.Block(appZero, true)
		stop := s.run()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(30 * time.Minute)
		stop()
		stop = s.run()
		defer func() { stop() }()
		time.Sleep(30*time.Minute - 2*time.Second)
		s.is(types.DrainRetrying, deviceOp)
		time.Sleep(5 * time.Second)
		s.is(types.DrainFailedDrain, deviceOp)
		s.cordoned(false, false)
		time.Sleep(time.Hour)
		s.is(types.DrainFailedDrain, deviceOp)
		stop() // an agent that restarts now knows that this very request has failed
		stop = s.run()
		time.Sleep(time.Minute)
		s.is(types.DrainFailedDrain, deviceOp)
		s.kube.Block(appZero, false)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(5 * time.Second)
		s.is(types.DrainComplete, deviceOp)
		s.path("234578345" + "79")
	})
}

func TestAForced9EndsTheDrainAndKeepsTheCordon(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.Block(appZero, true)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(10 * time.Second)
		write(t, s.force, `{"Status":9}`)
		time.Sleep(time.Second)
		s.is(types.DrainComplete, deviceOp)
		s.cordoned(true, true)
		if _, err := os.Lstat(s.force); err == nil {
			t.Error("the force file was not used up")
		}
		evictions := len(s.kube.Calls("evict"))
		time.Sleep(time.Hour)
		s.is(types.DrainComplete, deviceOp)
		if n := len(s.kube.Calls("evict")); n != evictions {
			t.Errorf("%d evictions after the end", n-evictions)
		}
	})
}

func TestAForced1DisablesDrainsWhileTheFileExists(t *testing.T) {
	story(t, 1, func(s *stage) {
		defer s.run()()
		write(t, s.force, `{"Status":1,"RequestedBy":1}`)
		time.Sleep(time.Second)
		s.is(types.DrainNotSupported, nobody)
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Minute)
		s.is(types.DrainNotSupported, deviceOp)
		if n := len(s.kube.Calls("")); n != 0 {
			t.Errorf("%d calls", n)
		}
		if err := os.Remove(s.force); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestTheFaultMarkerHoldsCompleteBack(t *testing.T) {
	story(t, 1, func(s *stage) {
		write(t, s.marker, "")
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Hour)
		s.is(types.DrainRetrying, deviceOp)
		if err := os.Remove(s.marker); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestAPodThatComesLateLeavesToo(t *testing.T) {
	story(t, 2, func(s *stage) {
		s.kube.Block(appZero, true)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(5 * time.Second)
		late := types.Pod{Namespace: "eve-kube-app", Name: "late", UID: "late", NodeName: "n1"}
		_ = s.pods.Publish(late.Key(), late)
		time.Sleep(relistEvery + 2*time.Second)
		if _, ok := s.pods.Get(late.Key()); ok {
			t.Error("the late pod is still there")
		}
		s.kube.Block(appZero, false)
		time.Sleep(10 * time.Second)
		s.is(types.DrainComplete, deviceOp)
	})
}

func TestAnEdgeNodeOutsideAnyClusterNeverDrains(t *testing.T) {
	story(t, 1, func(s *stage) {
		_ = s.config.Publish(types.Global, types.EdgeNodeClusterConfig{Initialized: true})
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(time.Hour)
		if got, _ := s.status.Get(types.Global); got.Status != types.DrainNotSupported {
			t.Errorf("status is %v", got.Status)
		}
		if n := len(s.kube.Calls("")); n != 0 {
			t.Errorf("%d calls", n)
		}
	})
}

func TestAConfigUpdateInMidDrainChangesNothing(t *testing.T) {
	story(t, 1, func(s *stage) {
		s.kube.Block(appZero, true)
		defer s.run()()
		s.request(&s.zedagent, deviceOp)
		time.Sleep(5 * time.Second)
		_ = s.config.Publish(types.Global, types.EdgeNodeClusterConfig{Initialized: true, Valid: true, ClusterName: "new"})
		time.Sleep(time.Second)
		_ = s.config.Publish(types.Global, types.EdgeNodeClusterConfig{Initialized: true})
		time.Sleep(time.Second)
		_ = s.config.Unpublish(types.Global)
		time.Sleep(time.Minute)
		s.is(types.DrainRetrying, deviceOp)
		s.path("23457")
	})
}

func TestForceFilesThatAreNoneAreReportedOnceAndIgnored(t *testing.T) {
	for name, create := range map[string]func(path string) error{
		"half-written": func(p string) error { return os.WriteFile(p, []byte(`{"Status":`), 0o600) },
		"no status":    func(p string) error { return os.WriteFile(p, []byte(`{}`), 0o600) },
		"out of range": func(p string) error { return os.WriteFile(p, []byte(`{"Status":10}`), 0o600) },
		"too long":     func(p string) error { return os.WriteFile(p, make([]byte, 10000), 0o600) },
		"directory":    func(p string) error { return os.Mkdir(p, 0o700) },
		"symlink": func(p string) error {
			if err := os.WriteFile(p+".real", []byte(`{"Status":1}`), 0o600); err != nil {
				return err
			}
			return os.Symlink(p+".real", p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, 1, func(s *stage) {
				if err := create(s.force); err != nil {
					t.Fatal(err)
				}
				defer s.run()()
				time.Sleep(time.Minute)
				s.is(types.DrainNotRequested, nobody)
				var lines []string
				for _, e := range s.log.AllEntries() {
					if strings.Contains(e.Message, "force file") {
						lines = append(lines, e.Message)
					}
				}
				if d := cmp.Diff([]string{"NodeDrainStatus force file ignored"}, lines); d != "" {
					t.Error(d)
				}
			})
		})
	}
}

func TestAForceFileOfAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to give a file away")
	}
	path := filepath.Join(t.TempDir(), "force")
	write(t, path, `{"Status":9}`)
	if err := os.Chown(path, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if v, err := readForceFile(path); err == nil {
		t.Errorf("got %v", v)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
