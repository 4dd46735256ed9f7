package drain

import (
	"errors"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/test/seeds"
	"github.com/zedkube/zedkube/types"
)

var requestNames = map[apiRequest]string{
	readLock: "lock?", readNodes: "nodes?", readStorage: "storage?", readBriefly: "brief?", readPods: "pods?", readUsers: "users?",
	writeLock: "lock!", freeLock: "free!", cordonNode: "cordon!", deleteOwnNode: "delete!",
}

// answers is a cluster that answers the requests of a call: by what it holds, or
// with an error for the first request of a kind.
type answers struct {
	reading
	fails  map[apiRequest]error
	change func(*reading, apiRequest) // what happens just before a request
}

// carriedOut is the requests of a rule, in their order, and what came of them.
func (a answers) carriedOut(t *testing.T, v verb, in call) (string, outcome) {
	t.Helper()
	var made []string
	in.verb = v
	out := in.follow(func(n next, r *reading) error {
		made = append(made, requestNames[n.do])
		if len(made) > 20 {
			t.Fatalf("the rule does not end: %v", made)
		}
		if a.change != nil {
			a.change(&a.reading, n.do)
		}
		if err := a.fails[n.do]; err != nil {
			return err
		}
		a.answer(n, r)
		return nil
	})
	return strings.Join(made, " "), out
}

func (a *answers) answer(n next, r *reading) {
	switch n.do {
	case readLock:
		r.lock = a.lock
	case readNodes:
		r.nodes = slices.Clone(a.nodes)
	case readStorage:
		r.storage = a.storage
	case readBriefly:
		r.brief = a.storage
	case readPods:
		r.pods = a.pods
	case writeLock:
		r.lock = n.lock
	case freeLock:
		r.lock = types.DrainLock{}
	}
}

// threeNodes all take pods and vote; n1 is the own one, and in boot b.
func threeNodes() []types.Node {
	var nodes []types.Node
	for _, name := range []string{"n1", "n2", "n3"} {
		nodes = append(nodes, types.Node{Name: name, Ready: types.ConditionTrue, BootID: "b", Etcd: true, EtcdVoter: types.ConditionTrue, Agent: &types.AgentStamp{}})
	}
	return nodes
}

func TestWhichRequestsACallMakes(t *testing.T) {
	ours := types.DrainLock{Holder: "n1", BootID: "b"}
	ended := types.DrainLock{Holder: "n1", BootID: "b", Ended: true}
	other := types.DrainLock{Holder: "n2", BootID: "b"}
	ofChange := types.DrainLock{Holder: "n1", BootID: "b", Task: types.TaskK3sChange, Since: time.Time{}.Add(-time.Hour)}
	down := func(nodes []types.Node) { nodes[1].Ready, nodes[2].Ready = types.ConditionFalse, types.ConditionFalse }
	refused, conflict := errors.New("refused"), types.ErrConflict
	type change = func(*answers, *call)
	lock := func(l types.DrainLock) change { return func(a *answers, _ *call) { a.lock = l } }
	fails := func(on apiRequest, err error) change {
		return func(a *answers, _ *call) { a.fails = map[apiRequest]error{on: err} }
	}
	noQuorum := func(a *answers, _ *call) { down(a.nodes) }
	quorumLostMeanwhile := func(a *answers, _ *call) {
		a.change = func(r *reading, next apiRequest) {
			if next == writeLock {
				down(r.nodes)
			}
		}
	}
	cordonedAlready := func(_ *answers, in *call) { in.node.CordonedBy = &types.Cordon{} }
	alone := func(_ *answers, in *call) { in.alone = true }
	podLeft := func(a *answers, _ *call) { a.pods = []types.Pod{{Namespace: "a", Name: "x"}} }
	worse := func(a *answers, _ *call) {
		a.lock.Volumes = map[string]int{"v": 2}
		a.storage = types.Storage{Longhorn: true, Volumes: []types.Volume{{Name: "v", State: "attached", Running: true, Wanted: 2, Replicas: []types.Replica{{Node: "n2", Mode: "RW"}}}}}
	}
	whole := func(a *answers, in *call) {
		worse(a, in)
		a.storage.Volumes[0].Replicas = append(a.storage.Volumes[0].Replicas, types.Replica{Node: "n1", Mode: "RW"})
	}
	last := func(a *answers, _ *call) { a.nodes = a.nodes[:1] }
	leaves := func(_ *answers, in *call) { in.leaving = true }
	nodeDeleted := func(a *answers, _ *call) { a.nodes = a.nodes[1:] }
	goes := func(reason string, cordoned bool) change { // n2 says so in its conditions
		return func(a *answers, _ *call) { a.nodes[1].DrainReason, a.nodes[1].Unschedulable = reason, cordoned }
	}
	complete, forced := goes(string(types.PhaseComplete), true), goes(types.DrainForced, true)
	tableShows := func(_ *answers, in *call) {
		in.nodes[1].DrainReason, in.nodes[1].Unschedulable = string(types.PhaseComplete), true
	}
	tieBreaker := func(a *answers, _ *call) { a.nodes[1].TieBreaker = true }
	off := func(a *answers, _ *call) { a.nodes[1].Ready, a.nodes[1].Etcd = types.ConditionFalse, false }
	byDrain := func(a *answers, _ *call) { a.nodes[1].CordonedBy = &types.Cordon{} }
	agentGone := func(a *answers, _ *call) { a.nodes[1].StampStale = true }
	seenIn := func(boot string) change {
		return func(_ *answers, in *call) { in.completed = map[string]string{"n2": boot} }
	}
	goesMeanwhile := func(a *answers, in *call) {
		a.change = func(r *reading, next apiRequest) {
			if next == writeLock {
				complete(&answers{reading: *r}, in)
			}
		}
	}
	consented := func(_ *answers, in *call) { in.consent = &types.LeaveConsent{Ends: true} }
	for _, row := range []struct {
		rule   string
		verb   verb
		change []change
		want   string // the requests
		gates  string
		err    error
	}{
		{"a free lock is taken, with quorum before and after", enter, nil, "lock? nodes? storage? lock! nodes?", "", nil},
		{"our own is not written again", enter, []change{lock(ours)}, "lock? nodes? nodes?", "", nil},
		{"that of an earlier boot is", enter, []change{lock(types.DrainLock{Holder: "n1", BootID: "a"})}, "lock? nodes? storage? lock! nodes?", "", nil},
		{"one that said that its drain has ended is", enter, []change{lock(ended)}, "lock? nodes? storage? lock! nodes?", "", nil},
		{"that of our change of k3s is not", enter, []change{lock(ofChange)}, "lock? nodes? nodes?", "", nil},
		{"nor freed for want of quorum", enter, []change{noQuorum, lock(ofChange)}, "lock? nodes?", "without this node", nil},
		{"another node's is waited for, by the table alone", enter, []change{lock(other)}, "lock?", "has not rebooted yet", nil},
		{"without quorum it is not taken", enter, []change{noQuorum}, "lock? nodes?", "without this node", nil},
		{"and is freed where it is ours", enter, []change{noQuorum, lock(ours)}, "lock? nodes? free!", "without this node", nil},
		{"but not after a cordon", enter, []change{noQuorum, lock(ours), cordonedAlready}, "lock? nodes?", "without this node", nil},
		{"nor while its volumes are worse: it says that no drain goes on under it", enter, []change{noQuorum, lock(ours), worse}, "lock? nodes? storage? lock!", "without this node", nil},
		{"once", enter, []change{noQuorum, lock(ended), worse}, "lock? nodes? storage?", "without this node", nil},
		{"and is freed when they are whole", enter, []change{noQuorum, lock(ended), whole}, "lock? nodes? storage? free!", "without this node", nil},
		{"where they cannot be read it is kept, and nothing else waits", enter, []change{noQuorum, lock(ours), whole, fails(readStorage, refused)}, "lock? nodes? storage? lock!", "without this node", nil},
		{"somebody may be faster to write it", enter, []change{noQuorum, lock(ours), worse, fails(writeLock, conflict)}, "lock? nodes? storage? lock!", "without this node", nil},
		{"quorum that is lost while it is taken frees it", enter, []change{quorumLostMeanwhile}, "lock? nodes? storage? lock! nodes? free!", "without this node", nil},
		{"of two nodes that write one has it", enter, []change{fails(writeLock, conflict)}, "lock? nodes? storage? lock!", lockChanged, nil},
		{"a freed lock that somebody has changed is none of ours", enter, []change{noQuorum, lock(ours), fails(freeLock, conflict)}, "lock? nodes? free!", "without this node", nil},
		{"without the volumes it is not taken", enter, []change{fails(readStorage, refused)}, "lock? nodes? storage?", "", refused},
		{"without the nodes neither", enter, []change{fails(readNodes, refused)}, "lock? nodes?", "", refused},

		{"a node that is complete without the lock is waited for", enter, []change{complete}, "lock? nodes?", "drain of node n2 is complete", nil},
		{"by the table alone", enter, []change{tableShows}, "lock?", "drain of node n2 is complete", nil},
		{"where our own lock may have to be freed by a fresh list", enter, []change{tableShows, lock(ours)}, "lock? nodes? nodes?", "", nil},
		{"and one that was called so", enter, []change{forced}, "lock? nodes?", "drain of node n2 is complete", nil},
		{"a tie-breaker too", enter, []change{complete, tieBreaker}, "lock? nodes?", "drain of node n2 is complete", nil},
		{"our own lock is freed for it", enter, []change{complete, lock(ours)}, "lock? nodes? free!", "drain of node n2 is complete", nil},
		{"not while its volumes are worse", enter, []change{complete, lock(ours), worse}, "lock? nodes? storage? lock!", "drain of node n2 is complete", nil},
		{"but not after a cordon", enter, []change{complete, lock(ours), cordonedAlready}, "lock? nodes?", "drain of node n2 is complete", nil},
		{"one that becomes so while the lock is taken frees it", enter, []change{goesMeanwhile}, "lock? nodes? storage? lock! nodes? free!", "drain of node n2 is complete", nil},
		{"one that drains is not, which may wait for us", enter, []change{goes(string(types.PhaseEmptying), true)}, "lock? nodes? storage? lock! nodes?", "", nil},
		{"nor one that is schedulable again", enter, []change{goes(string(types.PhaseComplete), false)}, "lock? nodes? storage? lock! nodes?", "", nil},
		{"nor one that is off", enter, []change{complete, off}, "lock? nodes? storage? lock! nodes?", "", nil},
		{"nor one whose agent is gone", enter, []change{complete, agentGone}, "lock? nodes? storage? lock! nodes?", "", nil},
		{"nor one that has rebooted since", enter, []change{complete, seenIn("a")}, "lock? nodes? storage? lock! nodes?", "", nil},
		{"one that has, and is still cordoned by its drain, is", enter, []change{complete, seenIn("a"), byDrain}, "lock? nodes?", "node n2 is still cordoned by its drain", nil},
		{"and one that is not Ready again", enter, []change{complete, off, seenIn("a")}, "lock? nodes?", "node n2, which was drained, is not Ready again", nil},
		{"a lock of an earlier boot is not freed for it", enter, []change{complete, lock(types.DrainLock{Holder: "n1", BootID: "a"})}, "lock? nodes?", "drain of node n2 is complete", nil},
		{"nor for want of quorum", enter, []change{noQuorum, lock(types.DrainLock{Holder: "n1", BootID: "a"})}, "lock? nodes?", "without this node", nil},
		{"one that is off since is", enter, []change{complete, off, seenIn("b")}, "lock? nodes?", "drain of node n2 is complete", nil},

		{"a device that may go down any moment is cordoned under the lock", cordonAfterDeadAPI, nil, "lock? nodes? storage? lock! cordon!", "", nil},
		{"and without it where another node has it", cordonAfterDeadAPI, []change{lock(other)}, "lock? cordon!", "", nil},
		{"and where it cannot be read", cordonAfterDeadAPI, []change{fails(readLock, refused)}, "lock? cordon!", "", refused},
		{"and where another was faster", cordonAfterDeadAPI, []change{fails(writeLock, conflict)}, "lock? nodes? storage? lock! cordon!", "", nil},
		{"a cordon that fails says so", cordonAfterDeadAPI, []change{fails(cordonNode, refused)}, "lock? nodes? storage? lock! cordon!", "", refused},

		{"a drain that is complete takes a lock that is free", takeLock, nil, "lock? nodes? storage? lock!", "", nil},
		{"it needs none beside that of our change of k3s", takeLock, []change{lock(ofChange)}, "lock? nodes?", "", nil},
		{"and no other", takeLock, []change{lock(other)}, "lock?", "has not rebooted yet", nil},

		{"a lock that is needed no longer is freed", release, []change{lock(ours)}, "lock? nodes? storage? free!", "", nil},
		{"that of a change of k3s is not", release, []change{lock(ofChange)}, "lock?", "", nil},
		{"no other node's is", release, []change{lock(other)}, "lock?", "", nil},
		{"while volumes are worse it says that the drain has ended", release, []change{lock(ours), worse}, "lock? nodes? storage? lock!", "fewer healthy replicas", nil},
		{"once", release, []change{lock(ended), worse}, "lock? nodes? storage?", "fewer healthy replicas", nil},
		{"a lock that changed while it was freed is looked at again later", release, []change{lock(ours), fails(freeLock, conflict)}, "lock? nodes? storage? free!", "", conflict},
		{"one that changed while it was written too", release, []change{lock(ours), worse, fails(writeLock, conflict)}, "lock? nodes? storage? lock!", "fewer healthy replicas", nil},

		{"a node that somebody has uncordoned is cordoned first", check, []change{func(a *answers, _ *call) { a.nodes[0].Unschedulable = false }}, "nodes?", "uncordoned", nil},
		{"pods that are left are reason enough to wait", check, []change{podLeft}, "nodes? pods?", "", nil},
		{"without any all is looked at", check, []change{lock(ours)}, "nodes? pods? storage? lock?", "", nil},
		{"also under the lock of our change of k3s", check, []change{lock(ofChange)}, "nodes? pods? storage? lock?", "", nil},
		{"a lock that was lost is taken again, by the volumes as they are then", check, nil, "nodes? pods? storage? lock? storage? lock!", "", nil},
		{"one that is complete without the lock holds COMPLETE back", check, []change{lock(ours), complete}, "nodes? pods? storage? lock?", "drain of node n2 is complete", nil},
		{"also of a lone node", check, []change{alone, lock(ours), forced}, "nodes? pods? lock? brief?", "drain of node n2 is complete", nil},
		{"a lone node looks for rebuilds alone", check, []change{alone, podLeft, lock(ours)}, "nodes? pods? lock? brief?", "", nil},

		{"the own Node is deleted and the lock freed", deleteNode, []change{lock(ours)}, "nodes? storage? delete! lock? free!", "", nil},
		{"another node's lock is left", deleteNode, []change{lock(other)}, "nodes? storage? delete! lock?", "", nil},
		{"that it cannot be read is no error then", deleteNode, []change{fails(readLock, refused)}, "nodes? storage? delete! lock?", "", nil},
		{"nor that another node was faster", deleteNode, []change{lock(ours), fails(freeLock, conflict)}, "nodes? storage? delete! lock? free!", "", nil},
		{"without quorum nothing is deleted", deleteNode, []change{noQuorum}, "nodes?", "without this node", nil},
		{"nor where the cluster ends with it, without consent", deleteNode, []change{last}, "nodes?", "the cluster ceases to exist with this node", nil},
		{"with consent the Node of the last one stays", deleteNode, []change{last, consented}, "nodes? storage?", "", nil},
		{"without the volumes nothing is deleted", deleteNode, []change{fails(readStorage, refused)}, "nodes? storage?", "", refused},
		{"a look here reads alone", checkLeave, nil, "nodes? storage?", "", nil},
		{"it leaves the lock while the Node is there", checkLeave, []change{lock(ours), leaves}, "nodes? storage?", "", nil},
		{"an agent that was killed once the Node was deleted frees the lock", checkLeave, []change{lock(ours), leaves, nodeDeleted}, "nodes? storage? lock? free!", "", nil},
		{"and leaves another node's", checkLeave, []change{lock(other), leaves, nodeDeleted}, "nodes? storage? lock?", "", nil},
		{"the look counts where the lock cannot be read", checkLeave, []change{leaves, nodeDeleted, fails(readLock, refused)}, "nodes? storage? lock?", "", nil},
		{"nor is it an error that another node was faster there", checkLeave, []change{lock(ours), leaves, nodeDeleted, fails(freeLock, conflict)}, "nodes? storage? lock? free!", "", nil},
	} {
		a := answers{reading: reading{nodes: threeNodes()}}
		in := call{verb: row.verb, observed: observed{node: types.Node{Name: "n1", BootID: "b"}, nodes: threeNodes()}, leaving: row.verb == deleteNode, forGood: row.verb == deleteNode}
		a.nodes[0].Unschedulable = row.verb == check
		for _, c := range row.change {
			c(&a, &in)
		}
		made, out := a.carriedOut(t, row.verb, in)
		gates := out.gates + out.check.lock
		if out.check.uncordoned {
			gates = "uncordoned"
		}
		if made != row.want || !strings.Contains(gates, row.gates) || (gates == "") != (row.gates == "") || !errors.Is(out.err, row.err) || (out.err == nil) != (row.err == nil) {
			t.Errorf("%s: requests %q, gates %q, error %v; want %q, %q, %v", row.rule, made, gates, out.err, row.want, row.gates, row.err)
		}
	}
}

// Its node rebooted under it, and what was rebuilt since is not whole yet. It has got a replica of w since,
// another replica of x was rebuilt then, and y had never been attached.
func TestALockOfAFormerBootKeepsWhatItRecorded(t *testing.T) {
	both := []types.Replica{{Node: "n1", Mode: "RW"}, {Node: "n3", Mode: "RW"}}
	volumes := map[string]int{"v": 2, "w": 2, "x": 2, "y": 2}
	for _, task := range []string{"", types.TaskK3sChange} {
		lock := types.DrainLock{Holder: "n1", BootID: "a", Task: task, Since: wall0.Add(-2 * time.Hour), Volumes: map[string]int{"v": 2, "x": 1, "y": 0}, Version: "7"}
		a := answers{reading: reading{nodes: threeNodes(), lock: lock, storage: types.Storage{Longhorn: true, Volumes: []types.Volume{
			{Name: "v", State: "attached", Running: true, Wanted: 2, Replicas: []types.Replica{{Node: "n1", Mode: "WO"}, {Node: "n2", Mode: "RW"}}},
			{Name: "w", State: "attached", Running: true, Wanted: 2, Replicas: both},
			{Name: "x", State: "attached", Running: true, Wanted: 2, Replicas: both},
			{Name: "y", State: "attached", Running: true, Wanted: 2, Replicas: both},
		}}}}
		_, out := a.carriedOut(t, enter, call{observed: observed{node: a.nodes[0], nodes: a.nodes}})
		if got := out.lock; got.Holder != "n1" || got.BootID != "b" || got.Task != "" || !maps.Equal(got.Volumes, volumes) || !got.Since.Equal(lock.Since) {
			t.Errorf("of task %q: %+v", task, got)
		}
	}
}

// The gates do not open after all: in the call that has taken the lock over, or in the next one.
func TestALockThatIsTakenOverIsKeptAtTheGatesForItsVolumes(t *testing.T) {
	volumes := map[string]int{"v": 3}
	for name, lock := range map[string]types.DrainLock{
		"of an earlier boot":             {Holder: "n1", BootID: "a", Volumes: volumes},
		"of a drain that has ended":      {Holder: "n1", BootID: "b", Ended: true, Volumes: volumes},
		"of a change of an earlier boot": {Holder: "n1", BootID: "a", Task: types.TaskK3sChange, Volumes: volumes},
		"of a change that has ended":     {Holder: "n1", BootID: "b", Ended: true, Task: types.TaskK3sChange, Volumes: volumes},
	} {
		for gate, shut := range map[string]func([]types.Node){
			"quorum is lost": func(nodes []types.Node) { nodes[1].Ready, nodes[2].Ready = types.ConditionFalse, types.ConditionFalse },
			"another is complete": func(nodes []types.Node) {
				nodes[1].DrainReason, nodes[1].Unschedulable = string(types.PhaseComplete), true
			},
		} {
			for _, later := range []bool{false, true} {
				a := answers{reading: reading{nodes: threeNodes(), lock: lock, storage: longhorn(types.Volume{
					Name: "v", State: "attached", Running: true, Wanted: 3,
					Replicas: []types.Replica{{Node: "n1", Mode: "WO"}, {Node: "n2", Mode: "RW"}, {Node: "n3", Mode: "RW"}},
				})}}
				in := call{observed: observed{node: a.nodes[0], nodes: threeNodes()}}
				if !later {
					a.change = func(r *reading, next apiRequest) {
						if next == writeLock {
							shut(r.nodes)
						}
					}
				}
				made, out := a.carriedOut(t, enter, in)
				if later {
					a.lock = out.lock
					shut(a.nodes)
					made, out = a.carriedOut(t, enter, in)
				}
				if l := out.lock; l.Holder != "n1" || !l.Ended || l.Volumes["v"] != 3 || out.gates == "" || out.err != nil {
					t.Errorf("%s, %s, later %v: %s: gates %q, error %v, the lock is %+v", name, gate, later, made, out.gates, out.err, l)
				}
			}
		}
	}
}

// The node reboots under it, and the change ends after that. w has got a replica there since the lock was taken.
func TestADrainUnderTheLockOfAChangeAddsItsVolumes(t *testing.T) {
	lock := types.DrainLock{Holder: "n1", BootID: "b", Task: types.TaskK3sChange, Since: time.Now().Add(-48 * time.Hour), Volumes: map[string]int{"v": 2}, Version: "7"}
	w := func(mode string) types.Storage {
		return longhorn(types.Volume{Name: "w", State: "attached", Running: true, Wanted: 2, Replicas: []types.Replica{{Node: "n1", Mode: mode}, {Node: "n2", Mode: "RW"}}})
	}
	a := answers{reading: reading{nodes: threeNodes(), lock: lock, storage: w("RW")}}
	a.nodes[0].Unschedulable = true
	in := call{observed: observed{node: a.nodes[0], nodes: a.nodes}}
	made, out := a.carriedOut(t, check, in)
	if want := "nodes? pods? storage? lock? lock!"; made != want || out.check.lock != "" || out.err != nil {
		t.Errorf("requests %q, want %q: the lock is waited for: %q, error %v", made, want, out.check.lock, out.err)
	}
	want := lock
	want.Volumes = map[string]int{"v": 2, "w": 2}
	if !reflect.DeepEqual(out.lock, want) {
		t.Errorf("the lock is %+v, want %+v", out.lock, want)
	}
	a.lock = out.lock
	if again, _ := a.carriedOut(t, check, in); again != "nodes? pods? storage? lock?" {
		t.Errorf("requests %q for a lock that has them", again)
	}
	a.lock, a.fails = lock, map[apiRequest]error{writeLock: types.ErrConflict}
	if _, out = a.carriedOut(t, check, in); out.check.lock != lockChanged {
		t.Errorf("%q where somebody was faster", out.check.lock)
	}
	in.alone = true
	if made, _ = a.carriedOut(t, check, in); made != "nodes? pods? lock? brief?" {
		t.Errorf("requests %q of a lone node", made)
	}
	if a.nodes[0].BootID = "c"; needed(want, heard{}, a.nodes, w("WO")) == "" {
		t.Error("another node may drain while w is rebuilt")
	}
}

// Whatever is answered, a call ends, takes no lock that its holder needs, frees none while its
// volumes are worse, and deletes no Node without quorum.
func TestEveryRuleEnds(t *testing.T) {
	for seed := range seeds.Each(t, 2000) {
		w := rand.New(rand.NewPCG(seed, 3))
		nodes := threeNodes()
		for i := range nodes {
			nodes[i].Ready = []types.ConditionStatus{types.ConditionTrue, types.ConditionTrue, types.ConditionFalse}[w.IntN(3)]
		}
		a := answers{reading: reading{nodes: nodes, lock: types.DrainLock{Holder: []string{"", "n1", "n2", "gone"}[w.IntN(4)], BootID: []string{"a", "b"}[w.IntN(2)], Ended: w.IntN(3) == 0}}}
		if w.IntN(2) == 0 {
			a.lock.Volumes = map[string]int{"pvc-1": 2}
			a.storage = longhorn(vol("n2", map[string]string{a.lock.Holder: []string{"RW", "WO"}[w.IntN(2)], "n2": "RW"}))
		}
		a.fails = map[apiRequest]error{apiRequest(w.IntN(11)): []error{types.ErrConflict, errors.New("no")}[w.IntN(2)]}
		for v := range rules {
			in := call{verb: v, observed: observed{node: nodes[0], nodes: nodes}, alone: w.IntN(2) == 0, leaving: v == deleteNode, forGood: v == deleteNode}
			made, out := a.carriedOut(t, v, in)
			if strings.Contains(made, "lock!") && v != release && needed(a.lock, heard{}, nodes, a.storage) != "" && a.lock.Holder != "n1" {
				t.Fatalf("seed %d: %s takes a lock that node %s needs: %s", seed, verbNames[v], a.lock.Holder, made)
			}
			if strings.Contains(made, "free!") && v != deleteNode && len(a.lock.Degraded(a.storage)) > 0 {
				t.Fatalf("seed %d: %s frees a lock that is kept for its volumes: %s", seed, verbNames[v], made)
			}
			if strings.Contains(made, "delete!") && quorum(nodes, "n1") != "" {
				t.Fatalf("seed %d: the Node is deleted without quorum: %s, %q", seed, made, out.gates)
			}
		}
	}
}
