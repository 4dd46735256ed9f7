package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/joincmd"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/k3stls"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

// TestMain lets the test binary stand for the program, so that the scripts run
// what the test run has built, race detector included.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"zedkube": mainWithHour, joincmd.ProbeName: mainWithHour})
}

// mainWithHour is the program with a flag that only tests have: how long an
// hour is.
func mainWithHour() {
	run(func(c *cobra.Command, o *device.Options) {
		c.PersistentFlags().DurationVar(&o.Hour, "hour", time.Hour, "how long an hour is")
		_ = c.PersistentFlags().MarkHidden("hour") // it is in no --help
	})
}

// TestStories plays testdata/*.txtar: the whole program on three devices
// against a real control plane. They mostly wait, so they are told on two control
// planes side by side; each takes the next one when it has told one, the longest
// first.
func TestStories(t *testing.T) {
	stories, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(stories) < 2 {
		t.Fatalf("there are the stories %v, %v", stories, err)
	}
	longest := []string{"testdata/crowd.txtar", "testdata/faults.txtar", "testdata/newoperator.txtar"}
	stories = slices.DeleteFunc(stories, func(story string) bool { return slices.Contains(longest, story) })
	next := make(chan string, len(stories)+len(longest))
	for _, story := range slices.Concat(longest, stories) {
		next <- story
	}
	close(next)
	for _, teller := range []string{"one", "other"} {
		t.Run(teller, func(t *testing.T) {
			t.Parallel()
			tell(t, next)
		})
	}
}

// tell plays stories until there is none left. They share the control plane, so
// they run one after the other, and each ends by giving it back as it was.
func tell(t *testing.T, next <-chan string) {
	cluster := controlPlane(t)
	for story := range next {
		testscript.RunT(inTurn{t}, told(cluster, story, nil))
	}
	// The agents have no other permissions than deploy/rbac.yaml grants.
	if _, refused, err := cluster.Permissions(t.Context()); err != nil || len(refused) > 0 {
		t.Errorf("agents were refused %q, %v", refused, err)
	}
}

// controlPlane runs until the test ends.
func controlPlane(t *testing.T) *devcluster.Cluster {
	t.Helper()
	cluster, err := devcluster.Start(t.Context(), devcluster.Options{Log: os.Stderr, Audit: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

// told is how a story is told on a cluster, in verbs of its own. What during
// returns goes on until the story ends.
func told(cluster *devcluster.Cluster, file string, during func(*story, *testscript.Env) func()) testscript.Params {
	return testscript.Params{
		Files: []string{file}, ContinueOnError: *cmdtest.Update,
		Setup: func(env *testscript.Env) error { return newStory(cluster, env, during) },
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			// What the devices and their agents go through.
			"boot": with(boot), "settings": with(settings), "hour": with(setHour), "config": with(config),
			"setting": with(setting), "masters": with(setMasters), "tiebreaker": with(setTieBreaker), "cluster": with(setCluster),
			"address": with(setAddress), "joinserver": with(joinServer), "manifest": with(setManifest), "port": with(setPort),
			"reboot": with(reboot), "powercut": with(powercut), "poweroff": with(poweroff),
			"request": with(request), "withdraw": with(withdraw), "secrets": with(secrets), "cert": with(cert),
			"sigkill": with(sigkill), "sigterm": with(sigterm), "start": with(start), "loglevel": with(setLevel),
			// What the cluster goes through.
			"app": with(app), "crowd": with(crowd), "pinned": with(pinned), "vm": with(vm), "budget": with(budget),
			"workload": with(workload), "network": with(network), "functions": with(functions), "finalizer": with(finalizer), "hold": with(hold), "volume": with(volume), "replica": with(replica), "detach": with(detach),
			"fault": with(fault), "forbid": with(forbid), "permit": with(permit), "newca": with(newca), "kubelet": with(kubelet), "alive": with(alive), "kubectl": with(kubectl),
			"k3s": with(k3s), "container": with(container), "killat": with(killAt), "ran": with(ran), "certificate": with(certificate), "supervisor": with(supervisor), "liar": with(liar), "occupy": with(occupy), "vacate": with(vacate), "leak": with(leak),
			// What is to be seen.
			"expect": with(expect), "absent": with(absent), "never": with(never), "answers": with(answers),
			"cordoned": with(cordoned), "pods": with(pods), "object": with(object), "lock": with(lock), "inturn": with(inturn),
			"booted": with(booted), "lead": with(lead), "harmless": with(harmless), "logged": with(logged), "pause": with(pause), "fresh": with(fresh),
			"token": with(hasToken), "status": with(statusOf), "explains": with(explained), "report": with(reportOf), "unleaked": with(unleaked), "uses": with(uses),
			"file": with(fileIs), "removed": with(removed), "cordons": with(cordons), "names": with(namesAre), "said": with(said), "waits": with(waits), "unsaid": with(unsaid), "golden": with(goldenIs), "traces": with(tracesAre),
		},
	}
}

// inTurn makes testscript run its scripts one after the other.
type inTurn struct{ *testing.T }

func (inTurn) Parallel()     {}
func (inTurn) Verbose() bool { return testing.Verbose() }
func (t inTurn) Run(name string, f func(testscript.T)) {
	t.T.Run(name, func(t *testing.T) { f(inTurn{t}) })
}

// story is the state of one script.
type story struct {
	ctx   context.Context
	fleet *player.Fleet
	began time.Time

	answers  []string                               // of the status servers, to report and explains
	tokens   []string                               // that the cluster has had
	handed   []string                               // tokens of issued kubeconfigs
	occupied map[string]net.Listener                // by address
	withheld map[string]types.EdgeNodeClusterConfig // by node

	containers map[string]*player.KubeContainer // by node
	tls        map[string]*k3stls.K3s           // by node
	stops      player.Stops
	playing    sync.WaitGroup // of these
	unplug     context.CancelFunc
	plugged    context.Context // of these

	mu       sync.Mutex
	drains   map[string][]types.NodeDrainStatus // each node's, as far as seen
	cordons  []string                           // the nodes zedkube has cordoned, one after the other
	together string                             // two at the same time; "" for never
	heard    map[string]string                  // what each device's agents have said, in lines
}

type storyKey struct{}

// patience is how long a script waits for what it expects: a multiple of what a
// quiet machine needs, for other tests may have both processors.
const patience = 2 * time.Minute

func newStory(cluster *devcluster.Cluster, env *testscript.Env, during func(*story, *testscript.Env) func()) error {
	program := filepath.Join(filepath.SplitList(env.Getenv("PATH"))[0], "zedkube")
	ctx, cancel := context.WithCancel(context.Background())
	s := &story{
		ctx: ctx, began: time.Now(), occupied: map[string]net.Listener{}, withheld: map[string]types.EdgeNodeClusterConfig{},
		drains: map[string][]types.NodeDrainStatus{}, heard: map[string]string{}, containers: map[string]*player.KubeContainer{}, tls: map[string]*k3stls.K3s{},
	}
	fleet, err := player.NewFleet(ctx, cluster, player.FleetOptions{
		Dir: env.WorkDir, Program: []string{program},
		Say: func(device, agent, text string) {
			s.hear(device, agent, text)
			if testing.Verbose() {
				fmt.Fprintln(os.Stderr, device, agent, text)
			}
		},
	})
	if err != nil {
		cancel()
		return err
	}
	s.fleet = fleet
	s.plugged, s.unplug = context.WithCancel(ctx)
	if err := fleet.Configure(player.ShortWindow()); err != nil {
		cancel()
		return errors.Join(err, fleet.Close())
	}
	s.nameAddresses(env)
	env.Values[storyKey{}] = s
	env.Setenv("CLUSTER", fleet.ClusterID.String())
	var recording sync.WaitGroup
	stopped, err := s.watchCordons()
	if err != nil {
		cancel()
		return errors.Join(err, fleet.Close())
	}
	recording.Go(stopped)
	for _, m := range fleet.Members {
		recording.Go(func() { s.record(m) })
	}
	if during != nil {
		s.playing.Go(during(s, env))
	}
	env.Defer(func() {
		errs := []error{fleet.Close()}
		s.unplug()
		s.playing.Wait()
		errs = append(errs, giveBack(cluster))
		cancel()
		recording.Wait()
		for _, err := range errs {
			if err != nil {
				fmt.Fprintln(os.Stderr, "end of story:", err)
			}
		}
	})
	return nil
}

// record keeps the drain statuses that a node's subscribers see.
func (s *story) record(m *player.Member) {
	bell := make(chan struct{}, 1)
	m.Watch.Drain.Notify(bell)
	for {
		if status, ok := m.Watch.Drain.Get(types.Global); ok {
			s.mu.Lock()
			if seen := s.drains[m.Name]; len(seen) == 0 || seen[len(seen)-1] != status {
				s.drains[m.Name] = append(seen, status)
			}
			s.mu.Unlock()
		}
		select {
		case <-s.ctx.Done():
			return
		case <-bell:
		}
	}
}

// with gives a command its story and turns its error into the script's end.
func with(do func(s *story, ts *testscript.TestScript, args []string) error) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg {
			ts.Fatalf("this command has no negation")
		}
		ts.Check(do(ts.Value(storyKey{}).(*story), ts, args))
	}
}

// boot NODE...: switches devices on.
func boot(s *story, _ *testscript.TestScript, args []string) error {
	for _, name := range args {
		m, _, err := s.member(name)
		if err != nil {
			return err
		}
		if err := m.Boot(s.ctx); err != nil {
			return err
		}
	}
	return nil
}

// settings KEY=SECONDS...: integer settings of every device.
func settings(s *story, _ *testscript.TestScript, args []string) error {
	items := player.ShortWindow()
	for _, arg := range args {
		key, text, _ := strings.Cut(arg, "=")
		value, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return err
		}
		items[key] = types.ConfigItemValue{Key: key, ItemType: types.ConfigItemInt, IntValue: uint32(value)}
	}
	return s.fleet.Configure(items)
}
