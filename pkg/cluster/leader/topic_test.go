package leader

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// script is an election that goes as a test tells it.
type script struct {
	words chan types.KubeLeaderElectInfo
	ends  chan error
	left  func() // called when the component leaves it
	ended func() // called when it has ended by itself and said so
}

func (s *script) Elect(ctx context.Context, _ string, changed func(string, bool)) error {
	for {
		select {
		case w := <-s.words:
			changed(w.LeaderIdentity, w.IsStatsLeader)
		case err := <-s.ends:
			if s.ended != nil {
				changed("", false)
				s.ended()
			}
			return err
		case <-ctx.Done():
			if s.left != nil {
				s.left()
			}
			return nil
		}
	}
}

// slow is a topic that takes its time.
type slow struct {
	*pubsub.Table[types.KubeLeaderElectInfo]
}

func (s slow) Publish(key string, v types.KubeLeaderElectInfo) error {
	time.Sleep(time.Millisecond)
	return s.Table.Publish(key, v)
}

// full has no space left once it was told that this node leads.
type full struct {
	pubsub.Writer[types.KubeLeaderElectInfo]
}

func (f full) Publish(key string, v types.KubeLeaderElectInfo) error {
	if now, _ := f.Get(key); now.IsStatsLeader {
		return syscall.ENOSPC
	}
	return f.Writer.Publish(key, v)
}

// candidate is a component with a name and all reason to run.
func candidate(log logrus.FieldLogger, kube Kube, out pubsub.Writer[types.KubeLeaderElectInfo]) (*Component, *pubsub.Table[types.ZedAgentStatus]) {
	agent, api := &pubsub.Table[types.ZedAgentStatus]{}, &pubsub.Table[types.APIStatus]{}
	info := &pubsub.Table[types.EdgeNodeInfo]{}
	_ = info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: "n1"})
	_ = api.Publish(types.Global, types.APIStatus{})
	_ = agent.Publish(types.ZedAgentKey, types.ZedAgentStatus{ConfigGetStatus: types.ConfigGetSuccess})
	return &Component{
		Log: log, Pulse: &loop.Pulse{}, Agent: agent, Info: info, Nodes: &pubsub.Table[types.Node]{}, API: api,
		Kube: kube, Leader: out, Leases: &pubsub.Table[types.Lease]{}, LeaseName: "stats",
	}, agent
}

func TestAfterEveryBurstOfChangesFileAndSocketSayWhatIsTrue(t *testing.T) {
	log := logrus.New()
	log.SetOutput(t.Output())
	root := t.TempDir()
	ours, theirs := pubsub.NewBus(root, log), pubsub.NewBus(root, log)
	out := pubsub.NewPublication[types.KubeLeaderElectInfo](ours, "zedkube")
	heard := pubsub.NewSubscription[types.KubeLeaderElectInfo](theirs, "zedkube", pubsub.SocketOnly())
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for _, bus := range []*pubsub.Bus{ours, theirs} {
		if err := bus.Open(); err != nil {
			t.Fatal(err)
		}
		running.Go(func() { bus.Run(ctx) })
	}
	kube := &script{words: make(chan types.KubeLeaderElectInfo), ends: make(chan error)}
	c, agent := candidate(log, kube, out)
	running.Go(func() { c.Run(ctx) })

	says := func(want types.KubeLeaderElectInfo) {
		t.Helper()
		same := func(got types.KubeLeaderElectInfo) bool { got.LatestChange = time.Time{}; return got == want }
		var file, socket types.KubeLeaderElectInfo
		for begin := time.Now(); ; time.Sleep(time.Millisecond) {
			data, _ := os.ReadFile(filepath.Join(root, "run/zedkube/KubeLeaderElectInfo/global.json"))
			_ = json.Unmarshal(data, &file)
			socket, _ = heard.Get(types.Global)
			if same(file) && same(socket) && file.LatestChange.Equal(socket.LatestChange) {
				return
			}
			if time.Since(begin) > time.Minute {
				t.Fatalf("the file says %+v, the socket %+v, true is %+v", file, socket, want)
			}
		}
	}
	for burst := range 30 {
		want := types.KubeLeaderElectInfo{InLeaderElection: true, ElectionRunning: true}
		for i := range 1 + burst%7*5 {
			word := types.KubeLeaderElectInfo{LeaderIdentity: fmt.Sprint("n", (burst+i)%3), IsStatsLeader: (burst+i)%3 == 1}
			if (burst+i)%5 == 0 {
				word = types.KubeLeaderElectInfo{}
			}
			kube.words <- word
			want.LeaderIdentity, want.IsStatsLeader = word.LeaderIdentity, word.IsStatsLeader
		}
		says(want)
		if burst%10 == 9 { // the controller falls silent and speaks again
			_ = agent.Publish(types.ZedAgentKey, types.ZedAgentStatus{ConfigGetStatus: types.ConfigGetTemporaryFail})
			says(types.KubeLeaderElectInfo{})
			_ = agent.Publish(types.ZedAgentKey, types.ZedAgentStatus{ConfigGetStatus: types.ConfigGetReadSaved})
			says(types.KubeLeaderElectInfo{InLeaderElection: true, ElectionRunning: true})
		}
	}
}

func TestAnElectionThatEndsAtOnceIsStartedAgainForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := logrus.New()
		log.SetOutput(t.Output())
		out := &pubsub.Table[types.KubeLeaderElectInfo]{}
		kube := &script{words: make(chan types.KubeLeaderElectInfo), ends: make(chan error, 20)}
		for range 20 {
			kube.ends <- errEnded
		}
		c, _ := candidate(log, kube, out)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); c.Run(ctx) }()
		time.Sleep(20 * time.Minute)
		kube.words <- leads
		synctest.Wait()
		if got, _ := out.Get(types.Global); !got.IsStatsLeader || !got.ElectionRunning {
			t.Errorf("after twenty that ended at once: %+v", got)
		}
		cancel()
		<-done
	})
}

func TestNobodyReadsThatANodeLeadsWhenItsLeaseIsGivenBack(t *testing.T) {
	for name, leave := range map[string]func(*pubsub.Table[types.ZedAgentStatus], func()){
		"the agent stops":  func(_ *pubsub.Table[types.ZedAgentStatus], stop func()) { stop() },
		"a new kubeconfig": func(*pubsub.Table[types.ZedAgentStatus], func()) {},
		"the controller is lost": func(agent *pubsub.Table[types.ZedAgentStatus], _ func()) {
			_ = agent.Publish(types.ZedAgentKey, types.ZedAgentStatus{ConfigGetStatus: types.ConfigGetFail})
		},
	} {
		leaves := func(t *testing.T, isFull bool) {
			synctest.Test(t, func(t *testing.T) {
				log := logrus.New()
				log.SetOutput(t.Output())
				out := &pubsub.Table[types.KubeLeaderElectInfo]{}
				kube := &script{words: make(chan types.KubeLeaderElectInfo), ends: make(chan error)}
				left := false
				kube.left = func() {
					left = true
					if got, _ := out.Get(types.Global); got.IsStatsLeader || got.LeaderIdentity != "" {
						t.Errorf("when the Lease is given back it says %+v", got)
					}
				}
				kube.ended = kube.left
				var writer pubsub.Writer[types.KubeLeaderElectInfo] = slow{out}
				if isFull {
					writer = full{out}
				}
				c, agent := candidate(log, kube, writer)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); c.Run(ctx) }()
				time.Sleep(time.Second)
				kube.words <- leads
				time.Sleep(time.Second)
				if leave(agent, cancel); name == "a new kubeconfig" {
					kube.ends <- errEnded
				}
				time.Sleep(time.Second)
				synctest.Wait()
				if !left {
					t.Error("the election was not left")
				}
				cancel()
				<-done
			})
		}
		t.Run(name, func(t *testing.T) { leaves(t, false) })
		t.Run(name+", /run is full", func(t *testing.T) { leaves(t, true) })
	}
}
