package k3supdate

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/base/k3sprocess"
	"github.com/zedkube/zedkube/types"
)

var good = finding{known: true}

// ready are facts of the first of three servers, of which nothing is in the way of a patch.
func ready() facts {
	f := facts{
		now: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), uptime: 10 * time.Hour, hour: time.Hour, boot: "boot", heard: true, known: true,
		version: types.K3sVersionStatus{Version: old, Running: old, OnDisk: true, Wanted: patch},
		nodes:   []types.Node{server("n1", old), server("n2", old), server("n3", old)}, requestsKnown: true,
		evidence: evidence{binary: good, snapshot: good, etcd: good, components: good, removed: good},
		pods:     map[string]bool{"eve-kube-app/a": true}, off: map[string]bool{}, agent: 9 * time.Hour, conditions: conditions(types.ConditionTrue, ""),
		ill: time.Hour, // what k3s lacks it has lacked for long
	}
	f.own, f.order = f.nodes[0], order(f.nodes)
	f.checked = &checked{at: f.uptime, nodes: f.nodes}
	return f
}

// conditions are those that a change rests on, all True but one.
func conditions(of types.ConditionStatus, name types.NodeStateType) (list []types.NodeStateCondition) {
	for _, t := range []types.NodeStateType{types.StateServerCertificate, types.StateClientCertificate, types.StateCACertificate, types.StateClock} {
		c := types.NodeStateCondition{Type: t, Status: types.ConditionTrue}
		if t == name {
			c.Status, c.Message = of, "It is bad."
		}
		list = append(list, c)
	}
	return list
}

// lacking are the preconditions that do not hold.
func lacking(a action) (names []string) {
	for _, p := range a.status.Preconditions {
		if !p.Holds {
			names = append(names, p.Name)
		}
	}
	return names
}

func (f *facts) node(i int, change func(*types.Node)) {
	f.nodes = append([]types.Node(nil), f.nodes...)
	change(&f.nodes[i])
	f.own, f.order = f.nodes[0], order(f.nodes)
	if f.checked != nil {
		f.checked = &checked{at: f.checked.at, lock: f.checked.lock, nodes: f.nodes, storage: f.checked.storage}
	}
}

// completed has a node say that its drain is complete.
func completed(n *types.Node) {
	n.Unschedulable, n.DrainInProgress, n.DrainReason = true, types.ConditionFalse, types.DrainForced
}

func TestPreconditionsOfAChange(t *testing.T) {
	toMinor := func(f *facts) {
		f.version.Wanted = minor
		for i := range f.nodes {
			f.node(i, func(n *types.Node) { n.K3s = &types.K3sStamp{Wanted: minor} })
		}
		f.published.Drain.RequestedAt = f.now
		f.drain = types.NodeDrainProgress{Phase: types.PhaseComplete, Requesters: []string{"K3S"}, Lock: types.DrainLockView{Mine: true}}
		f.lock.Holder, f.checked.lock = "n1", types.DrainLock{Holder: "n1", BootID: "boot", Version: "7"}
	}
	unready := func(i int) func(*facts) {
		return func(f *facts) { f.node(i, func(n *types.Node) { n.Ready = types.ConditionUnknown }) }
	}
	condition := func(name types.NodeStateType) func(*facts) {
		return func(f *facts) { f.conditions = conditions(types.ConditionFalse, name) }
	}
	locked := func(lock types.DrainLock) func(*facts) {
		return func(f *facts) { f.lock.Holder, f.checked.lock = lock.Holder, lock }
	}
	keptFor := func(v types.Volume, r types.Replica) func(*facts) { // by n2, which has booted since, and on which r is
		return func(f *facts) {
			r.Node = "n2"
			v.State, v.Wanted, v.Replicas = "attached", 2, []types.Replica{r, {Node: "n3", Mode: "ERR"}}
			f.checked.storage = types.Storage{Longhorn: true, Volumes: []types.Volume{v}}
			locked(types.DrainLock{Holder: "n2", BootID: "before", Task: types.TaskK3sChange, Volumes: map[string]int{"pv-1": 2}})(f)
		}
	}
	for name, row := range map[string]struct {
		changes []func(*facts)
		lacks   string // in their order; "" where nothing is
		words   string
		release bool // an operator's release does without it
	}{
		"nothing is in the way":                    {},
		"nothing is in the way of a minor version": {changes: []func(*facts){toMinor}},
		"the hold file":                            {[]func(*facts){func(f *facts) { f.hold = "the file says: harvest" }}, "NotHeld", "harvest", false},
		"this node failed before":                  {[]func(*facts){func(f *facts) { f.journal.Failed = types.K3sFailure{To: patch, Why: "No."} }}, "NotFailed", "this node failed to change", true},
		"another node failed": {[]func(*facts){func(f *facts) {
			f.node(1, func(n *types.Node) { n.K3s = &types.K3sStamp{Wanted: patch, Failed: patch} })
		}}, "OthersNotFailed", "node n2 failed", false},
		"another node failed, whose agent is gone": {[]func(*facts){func(f *facts) {
			f.node(1, func(n *types.Node) { n.StampStale, n.K3s = true, &types.K3sStamp{Wanted: patch, Failed: patch} })
		}}, "Agreed", "node n2 runs no zedkube", true},
		"another node wants something else":   {[]func(*facts){func(f *facts) { f.node(1, func(n *types.Node) { n.K3s = &types.K3sStamp{Wanted: old} }) }}, "Agreed", `node n2 is "v1.34.2`, true},
		"another node has no such stamp":      {[]func(*facts){func(f *facts) { f.node(2, func(n *types.Node) { n.K3s = nil }) }}, "Agreed", "node n3 runs no zedkube", true},
		"another node runs EVE's own zedkube": {[]func(*facts){func(f *facts) { f.node(2, func(n *types.Node) { n.StampStale = true }) }}, "Agreed", "node n3 runs no zedkube", true},
		"another one comes first":             {[]func(*facts){func(f *facts) { f.node(1, func(n *types.Node) { n.TieBreaker = true }) }}, "Turn", "node n2 changes before", true},
		"a worker waits for the servers":      {[]func(*facts){func(f *facts) { f.node(0, func(n *types.Node) { *n = worker("n1", old) }) }}, "ServersFirst Turn", "server n2 runs", false},
		"a worker is not Ready": {[]func(*facts){func(f *facts) {
			f.node(2, func(n *types.Node) { *n = worker("n3", old); n.Ready = types.ConditionFalse })
		}}, "NodesReady QuorumWithoutThis", "n3 is not Ready", true},
		"quorum would be lost":            {[]func(*facts){unready(1)}, "NodesReady Quorum", "n2 is not", false},
		"of two servers":                  {[]func(*facts){func(f *facts) { f.nodes = f.nodes[:2]; f.node(0, func(*types.Node) {}) }}, "QuorumWithoutThis", "of two servers", true},
		"a single server needs no others": {changes: []func(*facts){func(f *facts) { f.nodes = f.nodes[:1]; f.node(0, func(*types.Node) {}) }}},
		"this node leaves":                {[]func(*facts){func(f *facts) { f.leaves = true }}, "NoDrain", "leaves its cluster", false},
		"requests are not known":          {[]func(*facts){func(f *facts) { f.requestsKnown = false }}, "NoDrain", "not known yet", false},
		"the device goes down":            {[]func(*facts){func(f *facts) { f.deviceDrain = true }}, "NoDrain", "go down", false},
		"an operator drains":              {[]func(*facts){func(f *facts) { f.operatorDrain = true }}, "NoDrain", "a drain of this node", false},
		"a drain that failed is requested": {[]func(*facts){func(f *facts) {
			f.drain.Phase, f.drain.Requesters = types.PhaseNotEmpty, []string{"UPDATE"}
		}}, "NoDrain", "not over", false},
		"a drain that failed is withdrawn": {[]func(*facts){func(f *facts) { f.drain.Phase = types.PhaseNotEmpty }}, "", "", true},
		"a drain is not over":              {[]func(*facts){func(f *facts) { f.drain.Phase = types.PhaseComplete }}, "NoDrain", "not over", false},
		"a component is updated": {[]func(*facts){func(f *facts) {
			f.component = component(types.KubeClusterUpdateStatus{Component: types.KubeCompKubevirt, Status: types.KubeCompUpdateInProgress})
		}}, "Components", "kubevirt is updated", true},
		"a component's update failed": {[]func(*facts){func(f *facts) {
			f.component = component(types.KubeClusterUpdateStatus{Component: types.KubeCompLonghorn, Status: types.KubeCompUpdateFailed})
		}}, "Components", "longhorn failed", true},
		"a certificate expires":                       {[]func(*facts){condition(types.StateServerCertificate)}, "Certificates", "it is bad", false},
		"the clock is wrong":                          {[]func(*facts){condition(types.StateClock)}, "Clock", "it is bad", false},
		"a condition of something else does not mind": {changes: []func(*facts){condition(types.StateCordon)}},
		"a certificate is not known":                  {[]func(*facts){func(f *facts) { f.conditions = conditions(types.ConditionUnknown, types.StateCACertificate) }}, "Certificates", "not known whether the certificates", true},
		"no condition is known":                       {[]func(*facts){func(f *facts) { f.conditions = nil }}, "Certificates Clock", "not known whether the certificates", true},
		"kube-init, and nothing in place":             {[]func(*facts){func(f *facts) { f.evidence.binary, f.kubeInit = finding{}, true }}, "Binary", "first put the binary of " + patch, false},
		"kube-init, and a binary in place":            {[]func(*facts){func(f *facts) { f.evidence.binary, f.kubeInit, f.version.OnDisk = finding{}, true, false }}, "Binary", "not known whether k3s " + patch, true},
		"a server with EVE's own zedkube is cordoned": {[]func(*facts){func(f *facts) {
			f.node(2, func(n *types.Node) { n.StampStale, n.Unschedulable = true, true })
		}}, "Agreed Lock", "node n3 runs no zedkube", false},
		"a server whose agent is not confirmed is cordoned": {[]func(*facts){func(f *facts) {
			f.node(2, func(n *types.Node) { n.StampUnconfirmed, n.Unschedulable = true, true })
		}}, "Lock", "node n3 is cordoned and may be draining", false},
		"a drain is complete without the lock": {[]func(*facts){func(f *facts) { f.node(2, completed) }}, "Lock", "the drain of node n3 is complete, and it has not rebooted yet", false},
		"as the watch has it": {[]func(*facts){func(f *facts) {
			f.watched = slices.Clone(f.nodes)
			completed(&f.watched[2])
		}}, "Lock", "the drain of node n3 is complete", false},
		"also while this node is drained": {[]func(*facts){toMinor, func(f *facts) { f.node(2, completed) }}, "Lock", "the drain of node n3 is complete", false},
		"one that is off is not waited for": {[]func(*facts){func(f *facts) {
			f.node(2, completed)
			f.node(2, func(n *types.Node) { n.Ready = types.ConditionUnknown })
		}}, "NodesReady Quorum", "node n3 is not Ready", false},
		"one that waits for the lock may not reboot": {changes: []func(*facts){func(f *facts) {
			f.node(2, completed)
			f.node(2, func(n *types.Node) { n.DrainInProgress = types.ConditionTrue })
		}}},
		"a tie-breaker's cordon is no drain": {changes: []func(*facts){func(f *facts) {
			f.node(0, func(n *types.Node) { n.TieBreaker = true })
			f.node(2, func(n *types.Node) { n.TieBreaker, n.StampUnconfirmed, n.Unschedulable = true, true, true })
		}}},
		"a minor version of a single node is not drained for": {changes: []func(*facts){toMinor, func(f *facts) {
			f.nodes = f.nodes[:1]
			f.node(0, func(*types.Node) {})
			f.published.Drain, f.drain, f.lock, f.checked.lock = types.NodeDrainRequest{}, types.NodeDrainProgress{}, types.Lease{}, types.DrainLock{}
		}}},
		"but not while a drain of it is not over": {[]func(*facts){toMinor, func(f *facts) {
			f.nodes = f.nodes[:1]
			f.node(0, func(*types.Node) {})
		}}, "NoDrain Lock", "a drain of this node", false},
		"no binary is known":      {[]func(*facts){func(f *facts) { f.evidence.binary = finding{} }}, "Binary", "not known whether k3s " + patch, true},
		"no space for the binary": {[]func(*facts){func(f *facts) { f.evidence.binary.lacks = "the disk is full" }}, "Binary", "the disk is full", false},
		"no snapshot is known":    {[]func(*facts){func(f *facts) { f.evidence.snapshot = finding{} }}, "Snapshot", "snapshot of etcd", true},
		"an old snapshot":         {[]func(*facts){func(f *facts) { f.evidence.snapshot.lacks = "the snapshot is 2 h old" }}, "Snapshot", "2 h old", false},
		"etcd is not known":       {[]func(*facts){func(f *facts) { f.evidence.etcd = finding{} }}, "EtcdHealthy", "alarm", true},
		"etcd has an alarm":       {[]func(*facts){func(f *facts) { f.evidence.etcd.lacks = "etcd has alarm NOSPACE" }}, "EtcdHealthy", "NOSPACE", false},
		"a learner":               {[]func(*facts){func(f *facts) { f.node(2, func(n *types.Node) { n.EtcdVoter = types.ConditionFalse }) }}, "QuorumWithoutThis EtcdMembers", "two servers", false},
		"an unknown etcd before 3.6": {[]func(*facts){func(f *facts) {
			f.version = types.K3sVersionStatus{Version: "v1.33.9+k3s1", Running: "v1.33.9+k3s1", OnDisk: true, Wanted: "v1.34.2+k3s1"}
			toMinor(f)
			f.version.Wanted = "v1.34.2+k3s1"
			for i := range f.nodes {
				f.node(i, func(n *types.Node) { n.KubeletVersion, n.K3s = "v1.33.9+k3s1", &types.K3sStamp{Wanted: "v1.34.2+k3s1"} })
			}
		}}, "EtcdVersion", "which etcd node n1 has", true},
		"a minor version before the drain": {[]func(*facts){toMinor, func(f *facts) {
			f.published.Drain, f.drain, f.lock, f.checked.lock = types.NodeDrainRequest{}, types.NodeDrainProgress{}, types.Lease{}, types.DrainLock{}
		}}, "Drained", "this node is drained first", false},
		"a minor version after a drain of an operator's":       {[]func(*facts){toMinor, func(f *facts) { f.operatorDrain, f.drain.Requesters = true, []string{"OPERATOR"} }}, "Drained", "this node is drained first", false},
		"an operator drains as well":                           {changes: []func(*facts){toMinor, func(f *facts) { f.operatorDrain = true }}},
		"a drain without its lock":                             {[]func(*facts){toMinor, func(f *facts) { f.drain.Lock.Mine = false }}, "Drained", "this node is drained first", false},
		"a drain that emptied nothing":                         {[]func(*facts){toMinor, func(f *facts) { f.drain.Journal.Dead = true }}, "Drained", "this node is drained first", false},
		"a drain that failed":                                  {[]func(*facts){toMinor, func(f *facts) { f.drain.Phase = types.PhaseNotEmpty }}, "Drained", "failed, and is tried again", false},
		"a patch while a drain was wanted for a minor version": {[]func(*facts){func(f *facts) { f.published.Drain.RequestedAt = f.now }}, "NoDrain", "a drain of this node", false},
		"a minor version during the drain":                     {[]func(*facts){toMinor, func(f *facts) { f.drain.Phase = types.PhaseGates }}, "Drained", "zedkube drain status", false},
		"components are not known":                             {[]func(*facts){toMinor, func(f *facts) { f.evidence.components = finding{} }}, "Compatible", "KubeVirt and Longhorn", true},
		"a component does not work with it":                    {[]func(*facts){toMinor, func(f *facts) { f.evidence.components.lacks = "KubeVirt 1.6.0 does not run on 1.35" }}, "Compatible", "1.6.0", false},
		"APIs in use are not known":                            {[]func(*facts){toMinor, func(f *facts) { f.evidence.removed = finding{} }}, "RemovedAPIs", "an API is used", true},
		"a worker after its servers, whose APIs in use are not known": {changes: []func(*facts){toMinor, func(f *facts) {
			f.evidence.removed = finding{}
			f.node(0, func(n *types.Node) { *n = worker("n1", old); n.K3s = &types.K3sStamp{Wanted: minor} })
			for i := range f.nodes[1:] {
				f.node(i+1, func(n *types.Node) { n.KubeletVersion = minor })
			}
		}}},
		"consent to each node": {[]func(*facts){func(f *facts) { f.consent = "each" }}, "Consent", "to the change of each node", true},
		"consent to the last server": {[]func(*facts){func(f *facts) {
			f.consent = "commit"
			f.node(1, func(n *types.Node) { n.KubeletVersion = patch })
			f.node(2, func(n *types.Node) { n.KubeletVersion = patch })
		}}, "Consent", "cannot return", true},
		"no consent before the last one": {changes: []func(*facts){func(f *facts) { f.consent = "commit" }}},
		"another word for consent":       {[]func(*facts){func(f *facts) { f.consent = "maybe" }}, "Consent", `"maybe"`, true},
		"another node drains":            {[]func(*facts){locked(types.DrainLock{Holder: "n2", BootID: "boot"})}, "Lock", "node n2 has the drain lock", false},
		"another node that is silent changes": {[]func(*facts){locked(types.DrainLock{Holder: "n2", BootID: "boot", Task: types.TaskK3sChange}), func(f *facts) {
			f.node(1, func(n *types.Node) {
				n.StampStale, n.K3s = true, &types.K3sStamp{Wanted: patch, Step: types.K3sStepChange, To: patch}
			})
		}}, "Agreed Lock", "node n2 runs no zedkube", false},
		"the holder has booted since and is Ready":                {changes: []func(*facts){locked(types.DrainLock{Holder: "n2", BootID: "before", Task: types.TaskK3sChange})}},
		"the holder has booted and its replica is rebuilt":        {[]func(*facts){keptFor(types.Volume{Name: "pv-1", Running: true}, types.Replica{Mode: "WO"})}, "Lock", "the drain lock is kept until volumes on node n2 are rebuilt: pv-1", false},
		"the holder has booted and another node lacks one":        {changes: []func(*facts){keptFor(types.Volume{Name: "pv-1", Running: true}, types.Replica{Mode: "RW"})}},
		"the holder has booted and another node's engine is lost": {changes: []func(*facts){keptFor(types.Volume{Name: "pv-1", Engine: "n3"}, types.Replica{LastMode: "RW", HealthyAt: time.Unix(1, 0)})}},
		"the holder has booted and its volume is deleted":         {changes: []func(*facts){keptFor(types.Volume{Name: "pv-2", Running: true}, types.Replica{Mode: "WO"})}},
		"the holder has booted and is drained": {[]func(*facts){locked(types.DrainLock{Holder: "n2", BootID: "before", Task: types.TaskK3sChange}), func(f *facts) {
			f.node(1, func(n *types.Node) { n.Unschedulable, n.CordonedBy = true, &types.Cordon{} })
		}}, "Lock", "n2", false},
		"the holder has booted and is the tie-breaker, without a label": {changes: []func(*facts){locked(types.DrainLock{Holder: "n2", BootID: "before", Task: types.TaskK3sChange}), func(f *facts) {
			f.tie = "5a7e"
			f.node(1, func(n *types.Node) { n.UUID, n.Unschedulable, n.CordonedBy = f.tie, true, &types.Cordon{} })
		}}},
		"the holder has booted and goes on": {[]func(*facts){locked(types.DrainLock{Holder: "n2", BootID: "before", Task: types.TaskK3sChange}), func(f *facts) {
			f.node(1, func(n *types.Node) { n.K3s = &types.K3sStamp{Wanted: patch, Step: types.K3sStepChange, To: patch} })
		}}, "Lock", "node n2 has the drain lock and changes k3s", false},
		"another one changes without the lock": {[]func(*facts){func(f *facts) {
			f.node(1, func(n *types.Node) { n.K3s = &types.K3sStamp{Wanted: patch, Step: types.K3sStepReturn, To: patch} })
		}}, "Lock", "node n2 changes k3s", false},
		"of a drain that is not for us to judge": {[]func(*facts){locked(types.DrainLock{Holder: "n2", BootID: "before"})}, "Lock", "n2", false},
		"the holder's boot is not known":         {[]func(*facts){locked(types.DrainLock{Holder: "n2", Task: types.TaskK3sChange})}, "Lock", "n2", false},
		"the holder has booted and is not Ready": {[]func(*facts){locked(types.DrainLock{Holder: "n2", BootID: "before", Task: types.TaskK3sChange}), unready(1)}, "NodesReady Quorum Lock", "n2", false},
		"the holder is proved off":               {[]func(*facts){locked(types.DrainLock{Holder: "n2", BootID: "boot", Task: types.TaskK3sChange}), unready(1), func(f *facts) { f.off["n2"] = true }}, "NodesReady Quorum", "n2", false},
		"the holder's Node is gone":              {changes: []func(*facts){locked(types.DrainLock{Holder: "n9", BootID: "boot", Task: types.TaskK3sChange})}},
		"the lock is ours for a restart":         {[]func(*facts){locked(types.DrainLock{Holder: "n1", BootID: "boot", Task: types.TaskK3s})}, "Lock", "something else", false},
		"a degraded volume": {[]func(*facts){func(f *facts) {
			f.checked.storage.Volumes = []types.Volume{{Name: "pv-1", Robustness: "degraded", Replicas: []types.Replica{{Node: "n1"}}}}
		}}, "Volumes", "volume pv-1", true},
		"a degraded volume that has no replica here": {changes: []func(*facts){func(f *facts) {
			f.checked.storage.Volumes = []types.Volume{{Name: "pv-1", Robustness: "degraded", Replicas: []types.Replica{{Node: "n2"}}}}
		}}},
	} {
		f := ready()
		for _, change := range row.changes {
			change(&f)
		}
		a := decide(f)
		if got := strings.Join(lacking(a), " "); got != row.lacks || !strings.Contains(a.status.Reason, row.words) {
			t.Errorf("%s: %q lack: %s", name, got, a.status.Reason)
		}
		if begins := a.call == take || a.journal.Step == types.K3sStepChange; begins != (row.lacks == "") {
			t.Errorf("%s: call %d, %+v", name, a.call, a.journal)
		}
		f.release = types.K3sReleaseRequest{Version: f.version.Wanted, RequestedAt: f.now, Without: []string{"Something"}}
		if a := decide(f); row.lacks != "" && (a.call == take || a.journal.Step == types.K3sStepChange) {
			t.Errorf("%s, something else is released: call %d", name, a.call)
		}
		f.release.Without = lacking(a)
		a = decide(f)
		if begins := a.call == take || a.journal.Step == types.K3sStepChange; begins != (row.lacks == "" || row.release) {
			t.Errorf("%s, released: %q lack, call %d", name, lacking(a), a.call)
		}
	}
}

func TestAReleaseOfAnotherVersionOrBeforeTheFailureDoesNotCount(t *testing.T) {
	f := ready()
	f.journal.Failed = types.K3sFailure{To: patch, Why: "No.", At: f.now}
	for _, r := range []types.K3sReleaseRequest{
		{Version: minor, RequestedAt: f.now.Add(1), Without: []string{"NotFailed"}}, {Version: patch, RequestedAt: f.now, Without: []string{"NotFailed"}},
	} {
		f.release = r
		if a := decide(f); a.call != noCall || a.journal.Step != "" || a.status.Phase != types.LifecycleFailed {
			t.Errorf("%+v: call %d, %+v", r, a.call, a.journal)
		}
	}
}

func TestAChangeIsLookedAtThenLockedThenBegun(t *testing.T) {
	f := ready()
	f.checked = nil
	if a := decide(f); a.call != check || a.status.Released != "" {
		t.Fatalf("first: call %d, %+v", a.call, a.status)
	}
	f = ready()
	if a := decide(f); a.call != take || a.status.Released != "" || a.journal.Step != "" {
		t.Fatalf("second: call %d, %+v", a.call, a.status)
	}
	f.checked.lock, f.checked.nodes = types.DrainLock{Holder: "n1", Task: types.TaskK3sChange, BootID: "boot"}, append([]types.Node(nil), f.nodes...)
	f.checked.nodes[1].Ready = types.ConditionUnknown // as seen under the lock
	if a := decide(f); a.call != free || a.status.Released != "" {
		t.Fatalf("under the lock something is in the way: call %d, %+v", a.call, a.status)
	}
	f.checked.nodes[1].Ready = types.ConditionTrue
	a := decide(f)
	if a.call != noCall || a.status.Released != patch || a.journal.Step != types.K3sStepChange || a.journal.Began != f.uptime || a.status.Phase != types.LifecycleChanges {
		t.Fatalf("third: call %d, %+v, %+v", a.call, a.status, a.journal)
	}
	if a.stamp == nil || a.stamp.Step != types.K3sStepChange || a.stamp.To != patch {
		t.Errorf("the stamp is %+v", a.stamp)
	}
	f.checked.lock.BootID = "before"
	if a := decide(f); a.call != take || a.journal.Step != "" {
		t.Errorf("by a lock of the boot before, that another node may take: call %d, %+v", a.call, a.status)
	}
	f.checked.lock.BootID = "boot"
	f.checked.at = f.uptime - checkedFor // what was seen is too old to rest a change on
	if a := decide(f); a.journal.Step != "" || a.status.Released != "" {
		t.Errorf("by an old look: %+v", a.status)
	}
}

// changing are facts of a change that has run well for five minutes.
func changing() facts {
	f := ready()
	f.journal = types.KubeLifecycleJournal{
		Step: types.K3sStepChange, From: old, To: patch, Kind: types.K3sPatch, BootID: "boot", Began: f.uptime - 5*time.Minute,
		Pods: []string{"eve-kube-app/a"}, Volumes: map[string]int{"pv-1": 2},
	}
	f.lock.Holder, f.checked.lock = "n1", types.DrainLock{Holder: "n1", Task: types.TaskK3sChange, BootID: "boot"}
	f.version.Version, f.version.Running = patch, patch
	f.process = k3sprocess.Process{PID: 7, Start: f.uptime - 4*time.Minute}
	f.node(0, func(n *types.Node) { n.KubeletVersion = patch })
	return f
}

func TestAChangeIsVerified(t *testing.T) {
	volume := types.Volume{Name: "pv-1", State: "attached", Wanted: 2, Running: true, Replicas: []types.Replica{{Node: "n1", Mode: "WO"}, {Node: "n2", Mode: "RW"}}}
	for name, row := range map[string]struct {
		change func(*facts)
		words  string // "" where the change is over
	}{
		"all is well":                          {func(*facts) {}, ""},
		"the API server is silent":             {func(f *facts) { f.known = false }, "does not answer"},
		"the kubelet is the former one":        {func(f *facts) { f.node(0, func(n *types.Node) { n.KubeletVersion = old }) }, "the kubelet reports " + old},
		"the disk has another one":             {func(f *facts) { f.version.OnDisk = false }, "on disk"},
		"k3sconfig has not seen it yet":        {func(f *facts) { f.version.Running = old }, "the kubelet reports"},
		"looked at before k3s was stopped":     {func(f *facts) { f.journal.Began = f.checked.at }, "renews its Lease"},
		"k3s began a moment ago":               {func(f *facts) { f.process.Start = f.uptime - 30*time.Second }, "less than 1m0s"},
		"k3s is known to its supervisor alone": {func(f *facts) { f.process = k3sprocess.Process{} }, ""},
		"its member of etcd does not vote":     {func(f *facts) { f.node(0, func(n *types.Node) { n.EtcdVoter = types.ConditionFalse }) }, "does not vote"},
		"not looked at yet":                    {func(f *facts) { f.checked = nil }, "renews its Lease"},
		"the Lease is not renewed":             {func(f *facts) { f.node(0, func(n *types.Node) { n.Ready = types.ConditionUnknown }) }, "not Ready"},
		"a pod does not run again":             {func(f *facts) { f.pods["eve-kube-app/a"] = false }, "pod eve-kube-app/a"},
		"a pod has gone elsewhere":             {func(f *facts) { delete(f.pods, "eve-kube-app/a") }, ""},
		"a volume has lost a replica on another node": {func(f *facts) {
			v := volume
			v.Replicas = []types.Replica{{Node: "n1", Mode: "RW"}, {Node: "n2", Mode: "ERR"}}
			f.checked.storage.Volumes = []types.Volume{v}
		}, ""},
		"a volume has fewer replicas": {func(f *facts) { f.checked.storage.Volumes = []types.Volume{volume} }, "volume pv-1 has fewer"},
		"its API server is not ready": {func(f *facts) { f.checked.unready = errors.New("etcd failed") }, "the API server of this node is not ready: etcd failed"},
		"a worker asks the API server of another node": {func(f *facts) {
			f.node(0, func(n *types.Node) { *n = worker("n1", patch) })
			f.checked.unready = errors.New("etcd failed")
		}, ""},
		"etcd has an alarm":           {func(f *facts) { f.evidence.at, f.evidence.etcd.lacks = f.uptime, "etcd reports NOSPACE" }, "etcd reports NOSPACE"},
		"it had one before k3s began": {func(f *facts) { f.evidence.at, f.evidence.etcd.lacks = f.process.Start, "etcd reports NOSPACE" }, ""},
		"etcd cannot be asked":        {func(f *facts) { f.evidence.at, f.evidence.etcd = f.uptime, finding{why: "no answer"} }, ""},
		"etcd does not reach a server that is off": {func(f *facts) {
			f.evidence.at, f.evidence.etcd.lacks = f.uptime, "etcd of this server is connected with 1 of 2 other members"
			f.node(2, func(n *types.Node) { n.Ready = types.ConditionUnknown })
		}, ""},
		"a volume of before that was worse before": {func(f *facts) {
			f.checked.storage.Volumes = []types.Volume{volume}
			f.journal.Volumes = map[string]int{"pv-1": 1}
		}, ""},
	} {
		f := changing()
		row.change(&f)
		a := decide(f)
		if over := a.journal.Step == ""; over != (row.words == "") || !strings.Contains(a.status.Reason, row.words) {
			t.Errorf("%s: %s: %s", name, a.status.Phase, a.status.Reason)
		}
		if over := a.call == free; over != (row.words == "") {
			t.Errorf("%s: call %d", name, a.call)
		}
		if want := patch; row.words != "" && a.status.Released != want {
			t.Errorf("%s: %q is released", name, a.status.Released)
		}
	}
}

func TestAChangeReturnsWhereItsAPIServerIsNotReadyButNotForWhatEtcdOrAPodLacks(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*facts)
		phase  types.KubeLifecyclePhase
	}{
		"a pod, while the nodes are looked at once more": {func(f *facts) { f.pods["eve-kube-app/a"], f.checked.at = false, f.uptime-checkedFor }, types.LifecycleStuck},
		"the list of nodes, for minutes": {func(f *facts) {
			f.checked, f.listed, f.unlisted = nil, f.uptime-seenAfter, errors.New("list leases: etcd failed")
		}, types.LifecycleReturns},
		"the list of nodes, just now": {func(f *facts) {
			f.checked, f.listed, f.unlisted = nil, f.uptime-seenAfter+1, errors.New("list leases: etcd failed")
		}, types.LifecycleStuck},
		"that of volumes, for minutes": {func(f *facts) {
			f.checked, f.listed, f.unlisted = nil, f.uptime-time.Hour, volumesError{errors.New("list volumes: refused")}
		}, types.LifecycleStuck},
		"the API server": {func(f *facts) { f.checked.unready = errors.New("etcd failed") }, types.LifecycleReturns},
		"the API server, for a moment": {func(f *facts) {
			f.checked.unready, f.ill, f.published.Phase = errors.New("etcd failed"), f.uptime-seenAfter+1, types.LifecycleStuck
		}, types.LifecycleStuck},
		"etcd": {func(f *facts) { f.evidence.at, f.evidence.etcd.lacks = f.uptime, "etcd reports NOSPACE" }, types.LifecycleStuck},
	} {
		f := changing()
		f.journal.Began, f.journal.Sum, f.evidence.disk = f.uptime-patchFor, sum64, patch
		row.change(&f)
		if a := decide(f); a.status.Phase != row.phase {
			t.Errorf("%s: %+v", name, a.status)
		}
	}
}

func TestAChangeThatDoesNotEndReturnsOnceOrIsStuck(t *testing.T) {
	f := changing()
	f.version.Running = old
	f.node(0, func(n *types.Node) { n.KubeletVersion, n.Ready = old, types.ConditionUnknown })
	f.journal.Began = f.uptime - patchFor
	a := decide(f)
	if a.status.Phase != types.LifecycleReturns || a.status.Released != old || a.journal.Failed.To != patch || a.journal.Step != types.K3sStepReturn {
		t.Fatalf("%+v, %+v", a.status, a.journal)
	}
	f.journal = a.journal
	if a = decide(f); a.status.Released != old || a.status.Phase != types.LifecycleReturns || a.stamp.Failed != patch {
		t.Fatalf("%+v, %+v", a.status, a.stamp)
	}
	back := f
	back.version = types.K3sVersionStatus{Version: old, Running: old, OnDisk: true, Wanted: patch}
	back.node(0, func(n *types.Node) { n.Ready = types.ConditionTrue })
	back.checked.at = back.uptime + 1
	if a = decide(back); a.journal.Step == "" || !strings.Contains(a.status.Reason, "have not been told") {
		t.Errorf("another node may begin, and does not know of the failure: %+v", a.status)
	}
	back.node(0, func(n *types.Node) { n.K3s = &types.K3sStamp{Failed: patch} })
	if a = decide(back); a.journal.Step != "" || a.journal.Failed.To != patch || a.call != free || a.status.Phase != types.LifecycleFailed {
		t.Errorf("it is back: %+v, %+v", a.status, a.journal)
	}
	back.journal, back.checked.lock, back.lock = a.journal, types.DrainLock{}, types.Lease{}
	if a = decide(back); a.call != noCall || strings.Join(lacking(a), " ") != "NotFailed" {
		t.Errorf("it is tried again: call %d, %s", a.call, a.status.Reason)
	}
	back.version.Wanted = "v1.34.5+k3s1"
	if a = decide(back); a.journal.Failed.To != "" {
		t.Errorf("another setting: %+v", a.journal)
	}
	f.uptime += patchFor
	if a = decide(f); a.status.Phase != types.LifecycleStuck || a.status.Released != old {
		t.Errorf("it does not come back: %+v", a.status)
	}

	f = changing()
	f.version.Running = old
	f.node(0, func(n *types.Node) { n.KubeletVersion, n.Ready = old, types.ConditionUnknown })
	f.journal.Began, f.journal.Commit = f.uptime-patchFor, "No way back."
	if a = decide(f); a.status.Phase != types.LifecycleStuck || a.status.Released != patch || a.journal.Step != types.K3sStepChange || !strings.Contains(a.status.Reason, "No way back.") {
		t.Errorf("after the commit point: %+v", a.status)
	}
	f = changing()
	f.pods["eve-kube-app/a"], f.journal.Began = false, f.uptime-patchFor
	if a = decide(f); a.status.Phase != types.LifecycleStuck || a.status.Released != patch {
		t.Errorf("what runs the new version does not return: %+v", a.status)
	}
}

func TestWhatHasRunOrCannotBeSeenDoesNotReturn(t *testing.T) {
	f := changing()
	if a := decide(f); !a.journal.Ran && a.journal.Step != "" {
		t.Errorf("what runs is not noted: %+v", a.journal)
	}
	f.pods["eve-kube-app/a"] = false
	if a := decide(f); !a.journal.Ran {
		t.Errorf("what runs is not noted: %+v", a.journal)
	}
	for name, row := range map[string]struct {
		change  func(*facts)
		returns bool
	}{
		"it never ran":                {func(*facts) {}, true},
		"it ran":                      {func(f *facts) { f.journal.Ran = true }, false},
		"it ran, and nothing is seen": {func(f *facts) { f.journal.Ran, f.known, f.own, f.nodes = true, false, types.Node{}, nil }, false},
		"the agent has just started":  {func(f *facts) { f.agent, f.known, f.own, f.nodes = 0, false, types.Node{}, nil }, false},
		"nothing is seen for minutes": {func(f *facts) { f.agent, f.known, f.own, f.nodes = seenAfter, false, types.Node{}, nil }, true},
		"all others have changed by now": {func(f *facts) {
			f.node(1, func(n *types.Node) { n.KubeletVersion = patch })
			f.node(2, func(n *types.Node) { n.KubeletVersion = patch })
		}, false},
	} {
		f := changing()
		f.version.Running, f.journal.Began = old, f.uptime-patchFor
		f.node(0, func(n *types.Node) { n.KubeletVersion = old })
		row.change(&f)
		if a := decide(f); (a.journal.Step == types.K3sStepReturn) != row.returns || (a.status.Released == old) != row.returns {
			t.Errorf("%s: %+v, %+v", name, a.status, a.journal)
		}
	}
}

func TestAChangeIsWithdrawnWhileItsVersionHasNeverBeenOnTheDisk(t *testing.T) {
	for name, row := range map[string]struct {
		change  func(*facts)
		returns bool
	}{
		"nobody withdraws it":               {func(f *facts) { f.version.Wanted = patch }, false},
		"the setting says From":             {func(*facts) {}, true},
		"the hold file":                     {func(f *facts) { f.version.Wanted, f.hold = patch, "hold" }, true},
		"the setting is not known":          {func(f *facts) { f.heard = false }, false},
		"the setting is empty":              {func(f *facts) { f.version.Wanted = "" }, false},
		"To ran once":                       {func(f *facts) { f.journal.Ran = true }, false},
		"the disk has another one":          {func(f *facts) { f.version.Binary, f.version.OnDisk = "", false }, false},
		"another version runs":              {func(f *facts) { f.version.Running = "v1.34.9+k3s1" }, false},
		"k3s has not started in this boot":  {func(f *facts) { f.version.Running, f.known, f.own, f.nodes = "", false, types.Node{}, nil }, true},
		"also long after it was to be over": {func(f *facts) { f.journal.Began = 0 }, true},
	} {
		f := changing()
		f.journal.Commit = "No way back."
		f.version = types.K3sVersionStatus{Version: patch, Running: old, OnDisk: true, Binary: old, Wanted: old}
		f.node(0, func(n *types.Node) { n.KubeletVersion = old })
		row.change(&f)
		a := decide(f)
		if (a.status.Released == old) != row.returns || (a.journal.Step == types.K3sStepReturn) != row.returns {
			t.Errorf("%s: %+v", name, a.status)
		}
		if !row.returns || !a.status.Since.IsZero() || a.journal.Failed.To != "" {
			continue
		}
		f.journal, f.journal.Began, f.known = a.journal, 0, true
		f.nodes = ready().nodes
		f.node(0, func(*types.Node) {})
		f.version.Running, f.version.OnDisk = old, true
		if a = decide(f); a.journal.Step != "" || a.call != free || a.status.Phase != types.LifecycleIdle {
			t.Errorf("%s, later: call %d, %+v", name, a.call, a.status)
		}
	}
}

func TestK3sIsRestartedOnceWhereItsBinaryIsAnotherOneAlready(t *testing.T) {
	f := changing()
	f.node(0, func(n *types.Node) { n.KubeletVersion = old })
	f.version.Running, f.version.OnDisk = old, false
	f.process.Start = f.journal.Began - time.Hour
	a := decide(f)
	if a.call != restart || !a.journal.Restarted {
		t.Fatalf("call %d, %+v", a.call, a.journal)
	}
	f.journal = a.journal
	if a = decide(f); a.call == restart {
		t.Error("it is restarted twice")
	}
	for name, change := range map[string]func(*facts){
		"too early":                       func(f *facts) { f.journal.Began = f.uptime - restartAfter + 1 },
		"the binary is the one that runs": func(f *facts) { f.version.OnDisk = true },
		"k3s has been restarted":          func(f *facts) { f.process.Start = f.journal.Began + 1 },
		"k3s is not found":                func(f *facts) { f.process = k3sprocess.Process{} },
	} {
		g := f
		g.journal.Restarted = false
		change(&g)
		if a := decide(g); a.call == restart {
			t.Errorf("%s: it is restarted", name)
		}
	}
}

func TestWhereNothingIsToChange(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*facts)
		phase  types.KubeLifecyclePhase
		words  string
	}{
		"the setting is empty": {func(f *facts) { f.version.Wanted = "" }, types.LifecycleIdle, "Which version EVE itself would install is not known"},
		"it runs already":      {func(f *facts) { f.version.Wanted = old }, types.LifecycleIdle, "is of the version"},
		"no version runs":      {func(f *facts) { f.version.Running, f.version.Version = "", "" }, types.LifecycleWaits, "not known yet"},
		"the rules refuse it":  {func(f *facts) { f.version.Wanted = "v1.40.0+k3s1" }, types.LifecycleRefused, "skips minor versions"},
		"a released refusal": {func(f *facts) {
			f.version.Wanted = "v1.20.0+k3s1"
			f.release = types.K3sReleaseRequest{Version: "v1.20.0+k3s1", RequestedAt: f.now}
		}, types.LifecycleRefused, "downgraded"},
		"the API server is silent":   {func(f *facts) { f.known = false }, types.LifecycleWaits, "does not answer"},
		"kube-init alone":            {func(f *facts) { f.version.Wanted, f.kubeInit = old, true }, types.LifecycleIdle, "is of the version"},
		"the journal cannot be read": {func(f *facts) { f.unread = true }, types.LifecycleStuck, "cannot be read"},
		"nobody says what is wanted": {func(f *facts) { f.heard = false; f.published.Reason = "As before." }, "", "As before."},
	} {
		f := ready()
		row.change(&f)
		if a := decide(f); a.status.Phase != row.phase || !strings.Contains(a.status.Reason, row.words) || a.status.Released != "" || a.call == take || a.journal.Step != "" || f.unread && a.stamp != nil {
			t.Errorf("%s: call %d, %+v", name, a.call, a.status)
		}
	}
}

func TestALockOfAFormerRunIsFreed(t *testing.T) {
	f := ready()
	f.version.Wanted, f.checked, f.triedAt = "", nil, f.uptime-time.Hour
	f.lock = types.Lease{Holder: "n1", Version: "7"}
	if a := decide(f); a.call != check {
		t.Errorf("call %d", a.call)
	}
	f.checked = &checked{at: f.uptime, nodes: f.nodes, lock: types.DrainLock{Holder: "n1", Task: types.TaskK3sChange, Version: "7"}}
	if a := decide(f); a.call != free {
		t.Errorf("call %d", a.call)
	}
	f.drain.Phase = types.PhaseComplete
	if a := decide(f); a.call != noCall {
		t.Errorf("under which this node is drained: call %d", a.call)
	}
	for name, drain := range map[string]types.NodeDrainProgress{
		"a drain of this node waits for it":                {Phase: types.PhaseGates, Requesters: []string{"UPDATE"}},
		"a drain has failed, and its request stands":       {Phase: types.PhaseNotEmpty, Requesters: []string{"OPERATOR"}},
		"a drain for the next change needs one of its own": {Phase: types.PhaseComplete, Requesters: []string{types.RequestedByK3s}},
	} {
		f.drain = drain
		if a := decide(f); a.call != free {
			t.Errorf("%s: call %d", name, a.call)
		}
	}
	f.drain = types.NodeDrainProgress{Phase: types.PhaseComplete, Requesters: []string{"OPERATOR", types.RequestedByK3s}}
	if a := decide(f); a.call != noCall {
		t.Errorf("under which an operator's drain is complete as well: call %d", a.call)
	}
	f.drain.Phase, f.checked.lock.Task = types.PhaseIdle, ""
	if a := decide(f); a.call != noCall {
		t.Errorf("a drain's: call %d", a.call)
	}
	f.checked, f.looked = nil, "7"
	if a := decide(f); a.call != noCall {
		t.Errorf("a drain's, later: call %d", a.call)
	}
}

func TestALockUnderWhichThisNodeHasRebootedIsKeptUntilItIsBack(t *testing.T) {
	cordoned := func(f *facts) {
		f.node(0, func(n *types.Node) { n.Unschedulable, n.CordonedBy = true, &types.Cordon{} })
	}
	volume := func(change func(*types.Volume)) func(*facts) {
		return func(f *facts) {
			v := types.Volume{Name: "pv-1", State: "attached", Running: true, Wanted: 3, Replicas: []types.Replica{{Node: "n1", Mode: "WO"}, {Node: "n2", Mode: "RW"}, {Node: "n3", Mode: "RW"}}}
			change(&v)
			f.checked.storage = types.Storage{Longhorn: true, Volumes: []types.Volume{v}}
		}
	}
	rebuilds := volume(func(*types.Volume) {})
	for name, row := range map[string]struct {
		change []func(*facts)
		want   call
	}{
		"it is back": {nil, free},
		"it is not Ready, or its kubelet does not renew": {[]func(*facts){func(f *facts) { f.node(0, func(n *types.Node) { n.Ready = types.ConditionUnknown }) }}, noCall},
		"it is cordoned by its drain":                    {[]func(*facts){cordoned}, noCall},
		"its replica is rebuilt":                         {[]func(*facts){rebuilds}, noCall},
		"the next drain waits for its gates":             {[]func(*facts){rebuilds, func(f *facts) { f.drain.Phase = types.PhaseGates }}, noCall},
		"a drain for the next change has no lock": {[]func(*facts){cordoned, rebuilds, func(f *facts) {
			f.drain = types.NodeDrainProgress{Phase: types.PhaseComplete, Requesters: []string{types.RequestedByK3s}}
		}}, free},
		"the cordon is kept": {[]func(*facts){cordoned, func(f *facts) { f.node(0, func(n *types.Node) { n.CordonKept = true }) }}, free},
		"it is the tie-breaker, without a label": {[]func(*facts){cordoned, func(f *facts) {
			f.tie = "5a7e"
			f.node(0, func(n *types.Node) { n.UUID = f.tie })
		}}, free},
		"the volume is to have fewer replicas":   {[]func(*facts){volume(func(v *types.Volume) { v.Wanted = 2 })}, free},
		"the volume is detached":                 {[]func(*facts){volume(func(v *types.Volume) { v.State, v.Running = "detached", false })}, free},
		"the volume was deleted":                 {[]func(*facts){volume(func(v *types.Volume) { v.Name = "pv-2" })}, free},
		"it has not rebooted":                    {[]func(*facts){func(f *facts) { f.checked.lock.BootID = f.boot }}, free},
		"the lock was taken over in this boot":   {[]func(*facts){rebuilds, func(f *facts) { f.checked.lock.BootID = f.boot }}, end},
		"which is noted already":                 {[]func(*facts){rebuilds, func(f *facts) { f.checked.lock.BootID, f.checked.lock.Ended = f.boot, true }}, noCall},
		"and it is as before":                    {[]func(*facts){func(f *facts) { f.checked.lock.BootID, f.checked.lock.Ended = f.boot, true }}, free},
		"of which boot the lock is nobody knows": {[]func(*facts){rebuilds, func(f *facts) { f.checked.lock.BootID = "" }}, free},
	} {
		f := ready()
		f.version.Wanted, f.lock.Holder = "", "n1"
		f.checked.lock = types.DrainLock{Holder: "n1", BootID: "before", Task: types.TaskK3sChange, Volumes: map[string]int{"pv-1": 3}}
		for _, change := range row.change {
			change(&f)
		}
		if a := decide(f); a.call != row.want {
			t.Errorf("%s: call %d", name, a.call)
		}
	}
}
