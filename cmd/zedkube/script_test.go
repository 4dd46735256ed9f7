package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/jsonpath"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

// TestMain lets the test binary stand for the program, so that the scripts run
// what the test run has built, race detector included.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"zedkube": main})
}

// TestStories plays testdata/*.txtar: the whole program on three devices
// against a real control plane. The stories share the control plane, so they
// run one after the other, and each ends by giving it back as it was.
func TestStories(t *testing.T) {
	cluster, err := devcluster.Start(t.Context(), devcluster.Options{Log: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	testscript.RunT(inTurn{t}, testscript.Params{
		Dir:   "testdata",
		Setup: func(env *testscript.Env) error { return newStory(cluster, env) },
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"boot":     with(boot),
			"settings": with(settings),
			"expect":   with(expect),
			"absent":   with(absent),
			"never":    with(never),
			"answers":  with(answers),
			"cordoned": with(cordoned),
			"app":      with(app),
			"pods":     with(pods),
			"budget":   with(budget),
			"fault":    with(fault),
			"reboot":   with(reboot),
			"request":  with(request),
			"withdraw": with(withdraw),
			"sigkill":  with(sigkill),
			"sigterm":  with(sigterm),
			"start":    with(start),
			"lead":     with(lead),
			"loglevel": with(setLevel),
			"logged":   with(logged),
			"kubectl":  with(kubectl),
			"pause":    with(pause),
			"fresh":    with(fresh),
		},
	})
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

	mu     sync.Mutex
	drains map[string][]types.NodeDrainStatus // each node's, as far as seen
}

type storyKey struct{}

// patience is how long a script waits for what it expects.
const patience = 40 * time.Second

func newStory(cluster *devcluster.Cluster, env *testscript.Env) error {
	program := filepath.Join(filepath.SplitList(env.Getenv("PATH"))[0], "zedkube")
	ctx, cancel := context.WithCancel(context.Background())
	fleet, err := player.NewFleet(ctx, cluster, player.FleetOptions{
		Dir: env.WorkDir, Program: []string{program},
		Say: func(device, agent, text string) {
			if testing.Verbose() {
				fmt.Fprintln(os.Stderr, device, agent, text)
			}
		},
	})
	if err != nil {
		cancel()
		return err
	}
	s := &story{ctx: ctx, fleet: fleet, drains: map[string][]types.NodeDrainStatus{}}
	env.Values[storyKey{}] = s
	env.Setenv("CLUSTER", fleet.ClusterID.String())
	var recording sync.WaitGroup
	for _, m := range fleet.Members {
		recording.Go(func() { s.record(m) })
	}
	env.Defer(func() {
		errs := []error{fleet.Close(), giveBack(cluster)}
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

// giveBack leaves the control plane as a new one for the next story.
func giveBack(cluster *devcluster.Cluster) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := cluster.SetFault(devcluster.None); err != nil {
		return err
	}
	for i, n := range cluster.Nodes {
		if err := cluster.StartKubelet(i); err != nil {
			return err
		}
		if out, err := cluster.Kubectl(ctx, "uncordon", n.Name); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		if out, err := cluster.Kubectl(ctx, "annotate", "node", n.Name, "zedkube.github.io/cordon-"); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	if out, err := cluster.Kubectl(ctx, "-n", devcluster.AppNamespace, "delete", "replicasets,pdb,pods,leases", "--all", "--wait=true"); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
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

// eventually waits for missing to return "".
func eventually(missing func() string) error {
	deadline := time.Now().Add(patience)
	for {
		m := missing()
		if m == "" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %s: %s", patience, m)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (s *story) member(name string) (*player.Member, int, error) {
	for i, m := range s.fleet.Members {
		if m.Name == name {
			return m, i, nil
		}
	}
	return nil, 0, fmt.Errorf("no node %q", name)
}

// read returns the value at a JSONPath in a published file, as text.
func (s *story) read(node, topic, path string) (string, error) {
	m, _, err := s.member(node)
	if err != nil {
		return "", err
	}
	content, err := os.ReadFile(filepath.Join(m.Root, "run", topic+".json"))
	if err != nil {
		return "", err
	}
	var value any
	if err := json.Unmarshal(content, &value); err != nil {
		return "", err
	}
	query := jsonpath.New(path).AllowMissingKeys(true)
	if err := query.Parse(path); err != nil {
		return "", err
	}
	var out strings.Builder
	err = query.Execute(&out, value)
	return out.String(), err
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

// settings KEY=SECONDS...: integer settings of every device, before they boot.
func settings(s *story, _ *testscript.TestScript, args []string) error {
	items := map[string]types.ConfigItemValue{}
	for _, arg := range args {
		key, text, _ := strings.Cut(arg, "=")
		value, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return err
		}
		items[key] = types.ConfigItemValue{Key: key, ItemType: types.ConfigItemInt, IntValue: uint32(value)}
	}
	for _, m := range s.fleet.Members {
		m.Settings.GlobalSettings = items
	}
	return nil
}

// expect NODE TOPIC/KEY PATH VALUE: waits for a value in a published file.
func expect(s *story, _ *testscript.TestScript, args []string) error {
	node, topic, path, want := args[0], args[1], args[2], args[3]
	return eventually(func() string {
		got, err := s.read(node, topic, path)
		if err != nil {
			return err.Error()
		}
		if got != want {
			return fmt.Sprintf("%s %s %s is %q, not %q", node, topic, path, got, want)
		}
		return ""
	})
}

// absent NODE TOPIC/KEY: waits until a value is not published.
func absent(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	return eventually(func() string {
		if _, err := os.Stat(filepath.Join(m.Root, "run", args[1]+".json")); !os.IsNotExist(err) {
			return args[1] + " is published"
		}
		return ""
	})
}

// never NODE STATUS...: no subscriber has seen these drain states, by number.
func never(s *story, _ *testscript.TestScript, args []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, seen := range s.drains[args[0]] {
		for _, status := range args[1:] {
			if strconv.Itoa(int(seen.Status)) == status {
				return fmt.Errorf("%s was in state %s: %v", args[0], status, s.drains[args[0]])
			}
		}
	}
	return nil
}

// answers NODE TEXT: waits until /status of the node's cluster address has
// this body.
func answers(s *story, _ *testscript.TestScript, args []string) error {
	m, _, err := s.member(args[0])
	if err != nil {
		return err
	}
	return eventually(func() string {
		got, err := player.Ask(s.ctx, m.IP)
		if err != nil {
			return err.Error()
		}
		if got != args[1] {
			return fmt.Sprintf("/status answers %q", got)
		}
		return ""
	})
}

// cordoned NODE true|false: waits for the Node's spec.unschedulable.
func cordoned(s *story, _ *testscript.TestScript, args []string) error {
	return eventually(func() string {
		n, err := s.fleet.Cluster.Client().CoreV1().Nodes().Get(s.ctx, args[0], metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if strconv.FormatBool(n.Spec.Unschedulable) != args[1] {
			return fmt.Sprintf("%s: unschedulable is %v", args[0], n.Spec.Unschedulable)
		}
		return ""
	})
}
