package drain

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// podsOf shows an agent the pods of its own node.
type podsOf struct {
	*pubsub.Table[types.Pod]
	node string
}

func (p podsOf) All() map[string]types.Pod {
	all := maps.Clone(p.Table.All())
	maps.DeleteFunc(all, func(_ string, pod types.Pod) bool { return pod.NodeName != p.node })
	return all
}

// fleet is a cluster with an agent on each of its three nodes.
type fleet struct {
	*stage // of n1, and what all of them share
	agents map[string]*stage
	stops  map[string]func()
	boots  int
}

func fleetStory(t *testing.T, tell func(*fleet)) {
	t.Helper()
	story(t, 0, func(s *stage) {
		f := &fleet{stage: s, agents: map[string]*stage{"n1": s}, stops: map[string]func(){}}
		for _, name := range []string{"n2", "n3"} {
			f.agents[name] = newStage(s.t, 0)
			_ = f.agents[name].info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: name})
		}
		for name := range f.agents {
			for i := range 3 {
				p := types.Pod{Namespace: "apps", Name: fmt.Sprint(name, "-", i), UID: fmt.Sprint(name, "-", i), NodeName: name}
				_ = s.pods.Publish(p.Key(), p)
			}
			f.start(name)
		}
		defer func() {
			for _, stop := range f.stops {
				stop()
			}
		}()
		tell(f)
	})
}

// start runs the agent of a node.
func (f *fleet) start(name string) {
	a := f.agents[name]
	a.hour = time.Minute // a drain may take 24 of them
	c := a.component()
	c.Nodes, c.NodePods, c.API, c.Kube = &f.nodes, podsOf{&f.pods, name}, &f.api, f.kube
	f.stops[name] = a.start(c)
}

// ask is zedagent's request on each of the nodes.
func (f *fleet) ask(names ...string) {
	for _, name := range names {
		f.agents[name].request(&f.agents[name].zedagent, deviceOp)
	}
	synctest.Wait()
}

// off is a device that has gone down.
func (f *fleet) off(name string) {
	f.stops[name]()
	delete(f.stops, name)
	f.kube.ChangeNode(name, func(n *types.Node) { n.Ready = types.ConditionUnknown })
}

// on is a device that has booted; ready its Node.
func (f *fleet) on(name string) {
	a := f.agents[name]
	_, _ = a.status.Unpublish(types.Global), a.progress.Unpublish(types.Global)
	_ = a.zedagent.Unpublish(types.Global)
	f.boots++
	a.bootID, a.booted = fmt.Sprint("boot-again-", f.boots), time.Now()
	f.start(name)
}

func (f *fleet) ready(name string) {
	boot := f.agents[name].bootID
	f.kube.ChangeNode(name, func(n *types.Node) { n.Ready, n.BootID = types.ConditionTrue, boot })
}

// complete are the nodes whose devices may go down now.
func (f *fleet) complete() (names []string) {
	for name, a := range f.agents {
		if v, _ := a.status.Get(types.Global); v.Status == types.DrainComplete {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// live lets the time pass, and devices that may reboot do so, each for two
// minutes, after a while. It returns their order. Never are two nodes down.
func (f *fleet) live(d time.Duration, after time.Duration) (order []string) {
	back := map[string]time.Time{}
	may := map[string]time.Time{}
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		synctest.Wait()
		f.oneDown()
		for _, name := range f.complete() {
			switch at, waits := may[name]; {
			case f.stops[name] == nil:
			case !waits:
				may[name] = time.Now().Add(after)
			case !time.Now().Before(at):
				f.off(name)
				order, back[name] = append(order, name), time.Now().Add(2*time.Minute)
				delete(may, name)
			}
		}
		for name, at := range back {
			switch {
			case f.stops[name] == nil && time.Now().After(at):
				f.on(name)
			case f.stops[name] != nil && time.Now().After(at.Add(30*time.Second)):
				f.ready(name)
				delete(back, name)
			}
		}
	}
	return order
}

// oneDown checks that at most one node takes no pods.
func (f *fleet) oneDown() {
	f.t.Helper()
	var down []string
	for name, n := range f.nodes.All() {
		if n.Unschedulable || n.Ready != types.ConditionTrue {
			down = append(down, name)
		}
	}
	if len(down) > 1 {
		f.t.Fatalf("down at once: %v", down)
	}
}

// waits checks why the drain of a node waits for the lock.
func (f *fleet) waits(name, why string) {
	f.t.Helper()
	p, _ := f.agents[name].progress.Get(types.Global)
	if p.Phase != types.PhaseGates || !strings.Contains(p.Reason, why) || !strings.Contains(p.Lock.Waits, why) || p.Since.IsZero() {
		f.t.Errorf("%s: phase %s, reason %q, lock %+v; want it to wait because %q", name, p.Phase, p.Reason, p.Lock, why)
	}
}

// free checks that nothing is left of any drain.
func (f *fleet) free() {
	f.t.Helper()
	if l := f.kube.Lock(); l.Holder != "" {
		f.t.Errorf("the lock is still %s's", l.Holder)
	}
	for name, n := range f.nodes.All() {
		if n.Unschedulable || n.DrainInProgress == types.ConditionTrue || n.Drained == types.ConditionTrue {
			f.t.Errorf("%s is left as %+v", name, n)
		}
	}
}
