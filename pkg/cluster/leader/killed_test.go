//go:build soak && failpoints

package leader

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/agent"
	"github.com/zedkube/zedkube/test/seeds"
	"github.com/zedkube/zedkube/types"
)

const (
	victim    = "LEADER_KILLED_IN" // names the root of a device on which a process kills itself
	withdraws = "leader/withdraw zedkube/KubeLeaderElectInfo"
)

// published is what the topic's file says of a device; false for that there is none.
func published(t *testing.T, root string) (info types.KubeLeaderElectInfo, ok bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "run/zedkube/KubeLeaderElectInfo/global.json"))
	if os.IsNotExist(err) {
		return info, false
	}
	if err == nil {
		err = json.Unmarshal(text, &info)
	}
	if err != nil {
		t.Fatal(err)
	}
	return info, true
}

// runIn runs the component of a device with a real topic while do does something.
func runIn(t *testing.T, root string, kube Kube, isFull bool, do func(*pubsub.Table[types.ZedAgentStatus])) {
	t.Helper()
	log := logrus.New()
	log.SetOutput(t.Output())
	bus := pubsub.NewBus(root, log)
	out := pubsub.NewPublication[types.KubeLeaderElectInfo](bus, "zedkube")
	if err := bus.Open(); err != nil {
		t.Fatal(err)
	}
	var writer pubsub.Writer[types.KubeLeaderElectInfo] = out
	if isFull {
		writer = full{out}
	}
	c, agent := candidate(log, kube, writer)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { bus.Run(ctx) })
	running.Go(func() { c.Run(ctx) })
	do(agent)
	cancel()
	running.Wait()
}

// until waits until something is so.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("did not happen: %s", what)
		}
	}
}

func TestSoakALeaderThatDiesOnAFullDiskKeepsItsLease(t *testing.T) {
	if root := os.Getenv(victim); root != "" {
		kube := &script{words: make(chan types.KubeLeaderElectInfo), left: func() { _ = os.WriteFile(filepath.Join(root, "left"), nil, 0o600) }}
		runIn(t, root, kube, true, func(agent *pubsub.Table[types.ZedAgentStatus]) {
			kube.words <- leads
			until(t, "it leads", func() bool { info, _ := published(t, root); return info.IsStatsLeader })
			_ = agent.Publish(types.ZedAgentKey, types.ZedAgentStatus{ConfigGetStatus: types.ConfigGetFail})
			until(t, "it is killed", func() bool { return false })
		})
		return
	}
	for range seeds.Each(t, 3) {
		for _, point := range []string{withdraws + "/before", withdraws + "/after"} {
			t.Run(point, func(t *testing.T) {
				root := t.TempDir()
				agent.DiesAt(t, "TestSoakALeaderThatDiesOnAFullDiskKeepsItsLease", point, victim+"="+root)
				seeds.Killed(t, point)
				if _, err := os.Stat(filepath.Join(root, "left")); !os.IsNotExist(err) {
					t.Errorf("the Lease was given back before that was told: %v", err)
				}
				if info, ok := published(t, root); info.IsStatsLeader != strings.HasSuffix(point, "/before") {
					t.Errorf("the file says %t %+v", ok, info)
				}
				runIn(t, root, &script{}, false, func(*pubsub.Table[types.ZedAgentStatus]) {
					until(t, "what starts again says that it does not lead", func() bool { info, ok := published(t, root); return ok && !info.IsStatsLeader })
				})
			})
		}
	}
}
