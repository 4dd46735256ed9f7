package k3supdate

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/pkg/base/k3sprocess"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	was     = "0000000000000000 was"
	another = "1111111111111111 next"
	more    = "2222222222222222 more"
)

// overridden are facts of the first of three servers, of which nothing is in the way of another
// override.
func overridden() facts {
	f := ready()
	f.version.Wanted = old
	for i := range f.nodes {
		f.node(i, func(n *types.Node) {
			n.K3s = &types.K3sStamp{Wanted: old, Joined: i == 0, Override: types.K3sOverrideStamp{Wanted: another, InForce: was}}
		})
	}
	f.override = types.K3sOverrideStatus{Accepted: true, Sum: another, InForce: was}
	f.process, f.runs = k3sprocess.Process{PID: 7, Start: time.Hour}, true
	return f
}

func missing(a action) string {
	var names []string
	for _, p := range a.status.Override.Preconditions {
		if !p.Holds {
			names = append(names, p.Name)
		}
	}
	return strings.Join(names, " ")
}

func TestPreconditionsOfAnOverride(t *testing.T) {
	peer := func(i int, change func(*types.Node)) func(*facts) { return func(f *facts) { f.node(i, change) } }
	stamp := func(i int, o types.K3sOverrideStamp) func(*facts) {
		return peer(i, func(n *types.Node) { n.K3s = &types.K3sStamp{Override: o} })
	}
	joinsAt := func(i int) func(*facts) {
		return func(f *facts) {
			for j := range f.nodes {
				f.node(j, func(n *types.Node) {
					n.K3s = &types.K3sStamp{Joined: i == j, Override: types.K3sOverrideStamp{Wanted: another, InForce: was}}
				})
			}
		}
	}
	for name, row := range map[string]struct {
		changes []func(*facts)
		lacks   string // in their order; "" where nothing is
		words   string
		release bool
	}{
		"nothing is in the way":      {},
		"a removal is a change, too": {changes: []func(*facts){func(f *facts) { f.override.Sum = types.K3sNoOverride }}, lacks: "Agreed", words: "node n2 is another one", release: true},
		"the hold file":              {[]func(*facts){func(f *facts) { f.hold = "the file says: harvest" }}, "NotHeld", "harvest", false},
		"it failed here":             {[]func(*facts){func(f *facts) { f.journal.Override = types.K3sFailure{To: another, Why: "No."} }}, "NotFailed", "no; zedkube k3s retry", true},
		"another one failed here":    {changes: []func(*facts){func(f *facts) { f.journal.Override = types.K3sFailure{To: more, Why: "No."} }}},
		"it failed on another node":  {[]func(*facts){stamp(2, types.K3sOverrideStamp{Wanted: another, InForce: was, Failed: another})}, "OthersNotFailed", "node n3 did not come up", false},
		"it is heard since the look that it failed on another node": {[]func(*facts){func(f *facts) {
			looked := f.checked
			stamp(2, types.K3sOverrideStamp{Wanted: another, InForce: was, Failed: another})(f)
			f.checked = looked
		}}, "OthersNotFailed", "node n3 did not come up", false},
		"another node wants another one":                   {[]func(*facts){stamp(1, types.K3sOverrideStamp{Wanted: more, InForce: was})}, "Agreed", "node n2 is another one", true},
		"it is refused on another node":                    {[]func(*facts){stamp(1, types.K3sOverrideStamp{InForce: was})}, "Agreed", "or is refused there", true},
		"another node says nothing of it":                  {[]func(*facts){stamp(1, types.K3sOverrideStamp{})}, "Agreed", "node n2 runs no zedkube", true},
		"another node runs EVE's own zedkube":              {[]func(*facts){peer(1, func(n *types.Node) { n.StampStale = true })}, "Agreed", "node n2 runs no zedkube", true},
		"the others join at another one":                   {[]func(*facts){joinsAt(2)}, "Turn", "node n3 takes the override before", true},
		"the others join here, and there is a tie-breaker": {changes: []func(*facts){peer(1, func(n *types.Node) { n.TieBreaker = true })}},
		"the one before has it":                            {changes: []func(*facts){joinsAt(2), stamp(2, types.K3sOverrideStamp{Wanted: another, InForce: another})}},
		"a worker comes after the servers": {[]func(*facts){joinsAt(1), stamp(1, types.K3sOverrideStamp{Wanted: another, InForce: another}), func(f *facts) {
			f.node(0, func(n *types.Node) { n.ControlPlane, n.Etcd, n.EtcdVoter = false, false, "" })
		}}, "Turn QuorumWithoutThis", "node n3 takes the override before", true},
		"the disk has another version": {[]func(*facts){func(f *facts) { f.version.OnDisk = false }}, "SameBinary", "would change the version", false},
		"a drain":                      {[]func(*facts){func(f *facts) { f.operatorDrain = true }}, "NoDrain", "a drain of this node", false},
		"a node is not Ready":          {[]func(*facts){peer(1, func(n *types.Node) { n.Ready = types.ConditionUnknown })}, "Quorum NodesReady", "1 of 3", false},
		"of two servers":               {[]func(*facts){func(f *facts) { f.nodes = f.nodes[:2]; f.node(0, func(*types.Node) {}) }}, "QuorumWithoutThis", "of two servers", true},
		"etcd has an alarm":            {[]func(*facts){func(f *facts) { f.evidence.etcd.lacks = "etcd has alarm NOSPACE" }}, "EtcdHealthy", "NOSPACE", true},
		"a component is updated":       {[]func(*facts){func(f *facts) { f.updating = "component cdi is updated on this node" }}, "Components", "cdi", true},
		"an update of one has failed":  {changes: []func(*facts){func(f *facts) { f.component = "the update of cdi failed" }}},
		"another node changes k3s":     {[]func(*facts){peer(2, func(n *types.Node) { n.K3s.Step = types.K3sStepChange })}, "Lock", "node n3 changes k3s", false},
		"a degraded volume": {[]func(*facts){func(f *facts) {
			f.checked.storage.Volumes = []types.Volume{{Name: "pv-1", Robustness: "degraded", Replicas: []types.Replica{{Node: "n1"}}}}
		}}, "Volumes", "pv-1", true},
	} {
		if name == "a worker comes after the servers" { // a worker has no part in quorum
			row.lacks = "Turn"
		}
		f := overridden()
		for _, change := range row.changes {
			change(&f)
		}
		a := decide(f)
		if got := missing(a); got != row.lacks || !strings.Contains(a.status.Override.Reason, row.words) || strings.HasSuffix(a.status.Override.Reason, "zedkube k3s release override") != row.release {
			t.Errorf("%s: %q lack: %s", name, got, a.status.Override.Reason)
		}
		if begins := a.call == take; begins != (row.lacks == "") || a.status.Override.Released != "" {
			t.Errorf("%s: call %d, %+v", name, a.call, a.status.Override)
		}
		f.release = types.K3sReleaseRequest{Version: f.override.Sum, RequestedAt: f.now, Without: strings.Fields(row.lacks)}
		if a := decide(f); row.lacks != "" && (a.call == take) != row.release {
			t.Errorf("%s, with a release: call %d, %q lack", name, a.call, missing(a))
		}
		f.release.Version = more
		if a := decide(f); row.lacks != "" && a.call == take {
			t.Errorf("%s, with a release of another one: call %d", name, a.call)
		}
	}
}

func TestWhatWaitsLeavesTheLockToWhatGoesAhead(t *testing.T) {
	differs := func(f *facts) { f.node(1, func(n *types.Node) { n.K3s.Override.Wanted = more }) }
	for name, ahead := range map[string]func(*facts){
		"nothing": func(*facts) {},
		"the version": func(f *facts) {
			f.version.Wanted = patch
			for i := range f.nodes {
				f.node(i, func(n *types.Node) { n.K3s.Wanted, n.K3s.Joined = patch, false })
			}
		},
		"a restart for certificates": func(f *facts) { f.certs = expiring(50 * day).certs },
	} {
		f := underLock(overridden())
		ahead(&f)
		differs(&f)
		f.checked.nodes = f.nodes
		f.holdIsOld = true
		if a := decide(f); missing(a) != "Agreed" || (a.call == free) != (name == "nothing") {
			t.Errorf("%s goes ahead: call %d, %q lack", name, a.call, missing(a))
		}
	}
}

func TestWhatNeedsNoTurn(t *testing.T) {
	for name, change := range map[string]func(*facts){
		"the file is so":                   func(f *facts) { f.override.InForce = another },
		"it is refused":                    func(f *facts) { f.override.Accepted = false },
		"the file has not been read":       func(f *facts) { f.override.InForce = "" },
		"the device belongs to no cluster": func(f *facts) { f.alone = true },
		"the version changes": func(f *facts) {
			f.journal = types.KubeLifecycleJournal{Step: types.K3sStepChange, From: old, To: patch}
		},
	} {
		f := underLock(overridden())
		change(&f)
		if a := decide(f); a.status.Override.Wanted != "" && a.journal.Kind != types.K3sPatch && f.journal.Step == "" || a.status.Override.Released != "" || a.journal.Kind == types.K3sOverride {
			t.Errorf("%s: %+v", name, a.status.Override)
		}
	}
}

// released are facts five minutes after an override was released, with which k3s runs well.
func released(t *testing.T) facts {
	f := underLock(overridden())
	a := decide(f)
	o, j := a.status.Override, a.journal
	if a.call != noCall || j.Step != types.K3sStepChange || j.Kind != types.K3sOverride || j.Sum != another || j.Former != was || o.Released != another || o.Former != was || a.stamp == nil || a.stamp.Step != types.K3sStepChange {
		t.Fatalf("call %d, %+v, %+v", a.call, o, j)
	}
	f.journal = j
	f.uptime, f.now = f.uptime+5*time.Minute, f.now.Add(5*time.Minute)
	f.process.Start = f.uptime - 4*time.Minute
	f.checked.at = f.uptime
	f.override.InForce = another
	f.node(0, func(n *types.Node) {
		n.K3s = &types.K3sStamp{Override: types.K3sOverrideStamp{Wanted: another, InForce: another}}
	})
	return f
}

func TestAnOverrideIsVerified(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*facts)
		words  string // "" where it is over
	}{
		"all is well":                      {func(*facts) {}, ""},
		"the file is not written":          {func(f *facts) { f.override.InForce = was }, "is not so yet"},
		"the process is the one of before": {func(f *facts) { f.process.Start = time.Hour }, "has not been restarted yet"},
		"it has run for half a minute":     {func(f *facts) { f.process.Start = f.uptime - 30*time.Second }, "less than 1m0s"},
		"its process cannot be seen":       {func(f *facts) { f.process = k3sprocess.Process{} }, ""},
		"nor soon after it": {func(f *facts) {
			f.process, f.uptime = k3sprocess.Process{}, f.journal.Began+unseenFor-1
			f.checked.at = f.uptime
		}, "has not been restarted yet"},
		"the API server is silent":     {func(f *facts) { f.known = false }, "does not answer"},
		"the Lease is not renewed":     {func(f *facts) { f.node(0, func(n *types.Node) { n.Ready = types.ConditionUnknown }) }, "not Ready"},
		"the others do not know of it": {func(f *facts) { f.node(0, func(n *types.Node) { n.K3s = &types.K3sStamp{} }) }, "have not been told"},
		"a pod does not run again":     {func(f *facts) { f.pods["eve-kube-app/a"] = false }, "pod eve-kube-app/a"},
		"the device has booted since":  {func(f *facts) { f.boot = "other"; f.own.BootID = "other"; f.process.Start = time.Minute }, ""},
	} {
		f := released(t)
		row.change(&f)
		a := decide(f)
		if over := a.journal.Step == ""; over != (row.words == "") || !strings.Contains(a.status.Reason, row.words) || (a.call == free) != over || (a.status.Override.Released == "") != over {
			t.Errorf("%s: call %d, %s: %s, %+v", name, a.call, a.status.Phase, a.status.Reason, a.status.Override)
		}
	}
}

func TestAnOverrideWithWhichK3sDoesNotComeUpIsPutBack(t *testing.T) {
	f := released(t)
	f.known = false
	f.process = k3sprocess.Process{}
	f.uptime = f.journal.Began + patchFor - 1
	if a := decide(f); a.journal.Step != types.K3sStepChange || a.status.Override.Released != another {
		t.Fatalf("too early: %+v", a.status)
	}
	f.uptime++
	f.agent = seenAfter - 1
	if a := decide(f); a.journal.Step != types.K3sStepChange {
		t.Fatalf("an agent that has just started: %+v", a.status)
	}
	f.agent = seenAfter
	comes := f // late, and nobody has looked yet
	comes.known, comes.checked = true, nil
	comes.process = k3sprocess.Process{PID: 9, Start: f.uptime - 4*time.Minute}
	a := decide(comes)
	if a.journal.Step != types.K3sStepChange || a.journal.Ran || a.call != check || strings.Contains(a.status.Reason, "written at once") {
		t.Errorf("it comes up late, and is looked at: call %d, %+v, %+v", a.call, a.status, a.journal)
	}
	if comes.override.Sum = more; decide(comes).status.Override.Released != another {
		t.Error("it comes up, and another file is released beside it")
	}
	a = decide(f)
	if a.journal.Step != types.K3sStepReturn || a.status.Override.Released != was || a.status.Override.Failed.To != another || a.status.Phase != types.LifecycleReturns {
		t.Fatalf("%+v, %+v", a.status, a.journal)
	}
	f.journal, f.known, f.override.InForce = a.journal, true, was
	f.uptime += 5 * time.Minute
	f.process = k3sprocess.Process{PID: 9, Start: f.uptime - 2*time.Minute}
	f.checked.at = f.uptime
	f.node(0, func(n *types.Node) {
		n.K3s = &types.K3sStamp{Override: types.K3sOverrideStamp{Wanted: another, InForce: was}}
	})
	if a = decide(f); a.journal.Step == "" || a.stamp == nil || a.stamp.Override.Failed != another {
		t.Fatalf("the others do not know that it failed: %+v, %+v", a.status, a.stamp)
	}
	f.node(0, func(n *types.Node) { n.K3s = a.stamp })
	if a = decide(f); a.journal.Step != "" || a.call != free || a.journal.Override.To != another || a.status.Override.Failed.To != another || a.status.Phase != types.LifecycleIdle {
		t.Fatalf("call %d, %+v", a.call, a.status)
	}
	f.journal = a.journal
	f.retry = types.K3sRetryRequest{Version: another, FailedAt: f.now.Add(-time.Hour)}
	if a = decide(f); missing(a) != "NotFailed" {
		t.Errorf("with a retry of another failure %q lack", missing(a))
	}
	f.retry.FailedAt = f.journal.Override.At
	if a = decide(f); a.status.Override.Failed.To != "" || missing(a) != "" {
		t.Errorf("with a retry %q lack: %+v", missing(a), a.status.Override)
	}
	f.retry, f.override.Sum = types.K3sRetryRequest{}, more
	if a = decide(f); a.journal.Override.To != "" || a.stamp.Override.Failed != "" {
		t.Errorf("with another setting: %+v", a.journal)
	}
}

// An agent that ended after it had written the file, and before it said so, finds its former status. k3s has
// started with the file meanwhile.
func TestAStatusOfAFormerRunDoesNotAskForAnotherRestart(t *testing.T) {
	f := released(t)
	f.agent, f.override.InForce, f.process.Start = 0, was, f.uptime
	if a := decide(f); a.journal.Process == f.process.Start {
		t.Error("k3s would have to start once more")
	}
	f.agent = again
	if a := decide(f); a.journal.Process != f.process.Start {
		t.Error("k3s runs with the file of before")
	}
}

func TestAnOverrideThatRanIsNotPutBack(t *testing.T) {
	f := released(t)
	f.pods["eve-kube-app/a"] = false
	a := decide(f)
	if !a.journal.Ran {
		t.Fatalf("%+v", a.journal)
	}
	f.journal, f.known, f.agent = a.journal, false, time.Hour // the others may be down
	f.uptime = f.journal.Began + patchFor
	if a = decide(f); a.journal.Step != types.K3sStepChange || a.status.Phase != types.LifecycleStuck || a.call == free || a.status.Override.Released != another {
		t.Errorf("call %d, %+v", a.call, a.status)
	}
	f = released(t) // nor one of which only the volumes could not be listed
	f.uptime = f.journal.Began + patchFor
	f.checked, f.listed, f.unlisted = nil, f.journal.Began, volumesError{errors.New("list volumes: refused")}
	a = decide(f)
	if !a.journal.Ran || a.status.Phase != types.LifecycleStuck || !strings.Contains(a.status.Reason, "is written at once") {
		t.Fatalf("%+v, %+v", a.journal, a.status)
	}
	if f.journal, f.known, f.agent = a.journal, false, time.Hour; decide(f).journal.Step != types.K3sStepChange {
		t.Errorf("%+v", decide(f).status)
	}
}

func TestTheSettingCuresAK3sThatDoesNotComeUp(t *testing.T) {
	down := func() facts {
		f := released(t)
		f.known, f.override.Sum = false, more
		return f
	}
	f := down()
	a := decide(f)
	if a.journal.Sum != more || a.journal.Former != was || a.journal.Began != f.uptime || a.status.Override.Released != more {
		t.Fatalf("%+v, %+v", a.status.Override, a.journal)
	}
	f = down()
	f.known = true // it comes up
	if a = decide(f); a.journal.Sum != "" || a.call != free || a.status.Override.Wanted != more {
		t.Errorf("of one that is up: call %d, %+v", a.call, a.journal)
	}
	f = down()
	f.journal.Step, f.journal.Override.To, f.override.InForce = types.K3sStepReturn, more, was
	if a = decide(f); a.journal.Step != types.K3sStepReturn || a.status.Override.Released != was {
		t.Errorf("with the one that failed: %+v", a.journal)
	}
	f = down()
	f.journal.Step, f.journal.Override.To, f.override.InForce = types.K3sStepReturn, another, was
	if a = decide(f); a.journal.Step != types.K3sStepChange || a.journal.Sum != more || a.journal.Override.To != "" {
		t.Errorf("after one that failed: %+v", a.journal)
	}
}

// With it something does not answer, so that the volumes can never be listed, and the change never ends.
func TestTheSettingCuresAnOverrideWithWhichVolumesCannotBeListed(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*facts)
		cured  bool
	}{
		"for long":        {func(*facts) {}, true},
		"for a moment":    {func(f *facts) { f.listed = f.uptime - seenAfter + 1 }, false},
		"it is looked at": {func(f *facts) { f.unlisted = nil }, false},
		"etcd needs this": {func(f *facts) { f.node(1, func(n *types.Node) { n.Ready = types.ConditionUnknown }) }, false},
		"a node may reboot": {func(f *facts) {
			f.node(1, func(n *types.Node) {
				n.Unschedulable, n.DrainInProgress, n.DrainReason = true, types.ConditionFalse, types.DrainForced
			})
		}, false},
		"it is the former": {func(f *facts) { f.override.Sum = was }, true},
		"nothing else is":  {func(f *facts) { f.override.Sum = another }, false},
	} {
		f := released(t)
		f.uptime, f.override.Sum = f.journal.Began+patchFor, more
		f.listed, f.unlisted, f.journal.Ran = f.journal.Began, volumesError{errors.New("list volumes: refused")}, true
		row.change(&f)
		f.checked = nil
		a := decide(f)
		if cured := a.journal.Sum == f.override.Sum && a.journal.Sum != another; cured != row.cured || cured && (a.journal.Ran || a.journal.Began != f.uptime) || a.status.Override.Released != a.journal.Sum {
			t.Errorf("%s: %s: %s, %+v", name, a.status.Phase, a.status.Reason, a.journal)
		}
		if needed := strings.HasPrefix(name, "etcd"); needed && !strings.Contains(a.status.Reason, "Where a change is stuck") {
			t.Errorf("%s: %s", name, a.status.Reason)
		}
	}
}

func TestAK3sThatIsDownWaitsForNoOtherNode(t *testing.T) {
	f := overridden()
	f.known, f.runs, f.process, f.checked, f.unanswered = false, false, k3sprocess.Process{}, nil, seenAfter
	f.own, f.nodes, f.order, f.version.Running, f.version.OnDisk = types.Node{}, nil, nil, "", false
	for name, row := range map[string]struct {
		change func(*facts)
		begins bool
	}{
		"it is down":                     {func(*facts) {}, true},
		"not for long":                   {func(f *facts) { f.unanswered-- }, false},
		"a process is there":             {func(f *facts) { f.runs = true }, false},
		"it has failed with it":          {func(f *facts) { f.journal.Override.To = another }, false},
		"the hold file":                  {func(f *facts) { f.hold = "held" }, false},
		"the hold file cannot be read":   {func(f *facts) { f.unheld = "it is not known" }, false},
		"what runs there is not decided": {func(f *facts) { f.heard = false }, false},
	} {
		f := f
		row.change(&f)
		if a := decide(f); (a.status.Override.Released == another) != row.begins || (a.journal.Kind == types.K3sOverride) != row.begins {
			t.Errorf("%s: %+v", name, a.status.Override)
		}
	}
}

// overrides is what a device has besides for changes of the override file.
type overrides struct {
	override pubsub.Table[types.K3sOverrideStatus]
	dead     bool     // k3s does not run
	files    []string // with which k3s was started, one after the other
}

// asks is what the controller sets on every node.
func (s *site) asks(override string) {
	for _, a := range s.agents {
		o, _ := a.override.Get(types.Global)
		o.Accepted, o.Sum = true, override
		if o.InForce == "" {
			o.InForce = was
		}
		_ = a.override.Publish(types.Global, o)
		s.mu.Lock()
		if a.started == 0 {
			a.started = time.Minute
		}
		s.mu.Unlock()
	}
	synctest.Wait()
}

// takesOverride plays k3sconfig and the kube container: k3s starts again a minute after the file has changed, but
// not with one that is bad.
func (a *agent) takesOverride() {
	o, _ := a.override.Get(types.Global)
	turn := a.is().Override
	if turn.Released == "" || turn.Released == o.InForce {
		return
	}
	j, _ := a.journal.Get(types.Global)
	if lock := a.cluster.Lock(); lock.Holder != a.name || j.Step == types.K3sStepNone {
		a.Errorf("%s takes %s while the lock is %+v, the journal %+v", a.name, turn.Released, lock, j)
	}
	o.InForce = turn.Released
	a.files = append(a.files, o.InForce)
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.dead {
		a.down++
		a.most = max(a.most, a.down)
	}
	a.order, a.dead = append(a.order, a.name), true
	_ = a.override.Publish(types.Global, o)
	a.cluster.ChangeNode(a.name, func(n *types.Node) { n.Ready = types.ConditionUnknown })
	if strings.Contains(o.InForce, "bad") {
		return
	}
	time.AfterFunc(time.Minute, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.down--
		a.started, a.dead = time.Since(a.booted), false
		a.cluster.ChangeNode(a.name, func(n *types.Node) { n.Ready = types.ConditionTrue })
	})
}

func TestThreeServersTakeAnOverrideOneAfterTheOther(t *testing.T) {
	play(t, "n1 n2 n3", func(s *site) {
		_ = s.agents[1].status.Publish(types.Global, types.EdgeNodeClusterStatus{BootstrapNode: true})
		s.asks(was)
		s.pass(time.Minute)
		s.asks(another)
		for len(s.order) == 0 {
			s.pass(5 * time.Second)
		}
		s.agents[1].stop() // with its k3s stopped
		s.agents[1].start()
		s.pass(30 * time.Minute)
		if got := strings.Join(s.order, " "); got != "n2 n1 n3" || s.most != 1 || s.cluster.Lock().Holder != "" {
			t.Fatalf("%s took it, %d at once, the lock is %+v: %+v", got, s.most, s.cluster.Lock(), s.agents[0].is().Override)
		}
		s.asks(types.K3sNoOverride)
		s.pass(30 * time.Minute)
		if got := strings.Join(s.order, " "); got != "n2 n1 n3 n2 n1 n3" || s.most != 1 {
			t.Errorf("%s took it, %d at once", got, s.most)
		}
		for _, a := range s.agents {
			n, _ := s.nodes.Get(a.name)
			if j, _ := a.journal.Get(types.Global); j.Step != "" || a.is().Override.Wanted != "" || n.K3s.Override != (types.K3sOverrideStamp{Wanted: types.K3sNoOverride, InForce: types.K3sNoOverride}) {
				t.Errorf("%s: %+v, %+v", a.name, a.is(), n.K3s)
			}
		}
	})
}

func TestABadOverrideTakesDownTheFirstNodeAloneAndIsPutBack(t *testing.T) {
	const bad = "3333333333333333 bad"
	play(t, "n1 n2 n3", func(s *site) {
		s.asks(was)
		s.pass(time.Minute)
		s.asks(bad)
		s.pass(2 * time.Hour)
		if got := strings.Join(s.order, " "); got != "n1 n1" || strings.Join(s.agents[0].files, " ") != bad+" "+was || s.cluster.Lock().Holder != "" {
			t.Fatalf("%s took it, %q: %+v", got, s.agents[0].files, s.agents[0].is())
		}
		if why := s.agents[0].is().Override.Failed.Why; !strings.Contains(why, "not Ready") || !strings.Contains(why, "put back") {
			t.Errorf("n1 says %q", why)
		}
		if why := reasonOf(s.agents[1].is().Override.Preconditions, "OthersNotFailed"); !strings.Contains(why, "node n1") {
			t.Errorf("n2 waits for %q", why)
		}
		s.asks(another)
		s.pass(time.Hour)
		if got := strings.Join(s.order, " "); got != "n1 n1 n1 n2 n3" || s.most != 1 {
			t.Errorf("%s took one, %d at once: %+v", got, s.most, s.agents[0].is())
		}
	})
}
