package k3supdate

import (
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/base/k3sprocess"
	"github.com/zedkube/zedkube/types"
)

// expiring are facts of the first of three servers, of which one certificate expires in left,
// and nothing is in the way of a restart.
func expiring(left time.Duration) facts {
	f := ready()
	f.version.Wanted = old
	for i := range f.nodes {
		f.node(i, func(n *types.Node) { n.K3s = &types.K3sStamp{Wanted: old} })
	}
	f.process = k3sprocess.Process{PID: 7, Start: time.Hour}
	f.certs = types.K3sCertificates{
		SeenAt: f.now.Add(-time.Hour),
		Leaves: []types.K3sCertificate{
			{Name: "client-admin", Where: "/tls/client-admin.crt", NotAfter: f.now.Add(left)},
			{Name: "serving-kubelet", Where: "/agent/serving-kubelet.crt", NotAfter: f.now.Add(300 * day)},
		},
		Authorities: []types.K3sCertificate{{Name: "server-ca", NotAfter: f.now.Add(3000 * day)}},
	}
	return f
}

// underLock are such facts with the drain lock.
func underLock(f facts) facts {
	f.lock.Holder = "n1"
	f.checked = &checked{at: f.uptime, nodes: f.nodes, lock: types.DrainLock{Holder: "n1", BootID: "boot", Task: types.TaskK3sChange}}
	return f
}

// lacks are the preconditions of a restart that do not hold.
func lacks(a action) string {
	var names []string
	for _, p := range a.status.Restart.Preconditions {
		if !p.Holds {
			names = append(names, p.Name)
		}
	}
	return strings.Join(names, " ")
}

func TestWhatAsksForARestart(t *testing.T) {
	asked := func(force bool) func(*facts) {
		return func(f *facts) { f.request = types.CertsResetRequest{RequestedAt: f.now, Force: force} }
	}
	for name, row := range map[string]struct {
		left   time.Duration
		change func(*facts)
		wish   types.K3sRestartWish
	}{
		"all are fine":     {left: 130 * day},
		"one is renewable": {left: 61 * day},
		"one is due":       {left: 60 * day, wish: types.RestartDue},
		"one is urgent":    {left: 14 * day, wish: types.RestartUrgent},
		"one has expired":  {left: -time.Hour, wish: types.RestartUrgent},
		"an operator asks": {61 * day, asked(false), types.RestartAsked},
		"an operator asks for what is not to renew": {130 * day, asked(false), ""},
		"an operator forces it":                     {130 * day, asked(true), types.RestartAsked},
		"an operator asks for what is urgent":       {10 * day, asked(false), types.RestartUrgent},
		"that was dealt with": {61 * day, func(f *facts) {
			asked(false)(f)
			f.journal.Restarts.Answers = f.now
		}, ""},
		"an older k3s renews within 90 days": {100 * day, func(f *facts) {
			asked(false)(f)
			f.version.Running = "v1.32.4+k3s1"
		}, ""},
		"the agent has just started": {10 * day, func(f *facts) { f.agent = readAfter - 1 }, ""},
		"no certificate is known":    {10 * day, func(f *facts) { f.certs.Leaves = nil }, ""},
		"the API server is silent, and one has not expired": {-time.Hour, func(f *facts) {
			f.known = false
			f.certs.Leaves[1].Where = "/tls/etcd/client.crt"
		}, types.RestartUrgent},
		"the API server is silent, and all have expired but the kubelet's": {-time.Hour, func(f *facts) { f.known = false }, types.RestartExpired},
		"and a server's are not known": {-time.Hour, func(f *facts) {
			f.known = false
			f.certs.Leaves[0].Where = "10.0.0.1:6443"
		}, types.RestartUrgent},
		"but the kubelet's, and that of the API server, by what they present": {-time.Hour, func(f *facts) {
			f.known = false
			f.certs.Leaves[0].Where, f.certs.Leaves[1].Where = "[fd00::2379:1]:2380", "[fd00::2379:1]:10250"
			f.certs.Leaves = append(f.certs.Leaves, types.K3sCertificate{Where: "[fd00::2379:1]:6443", NotAfter: f.now.Add(200 * day)})
		}, types.RestartExpired},
		"on a node that is not known": {-time.Hour, func(f *facts) { f.known, f.own, f.nodes, f.order = false, types.Node{}, nil, nil }, types.RestartExpired},
		"on a worker": {-time.Hour, func(f *facts) {
			f.known = false
			f.node(0, func(n *types.Node) { *n = worker("n1", old) })
		}, types.RestartUrgent},
		"on a worker, and its kubelet's": {-time.Hour, func(f *facts) {
			f.known = false
			f.node(0, func(n *types.Node) { *n = worker("n1", old) })
			f.certs.Leaves[0].Where, f.certs.Leaves[1].NotAfter = "/agent/client-kubelet.crt", f.now
		}, types.RestartExpired},
		"only that of the API server is known": {-time.Hour, func(f *facts) {
			f.known = false
			f.certs.Leaves = f.certs.Leaves[:1]
			f.certs.Leaves[0].Where = "10.0.0.1:6443"
		}, types.RestartUrgent},
		"the agent has run for less than 5 minutes": {-time.Hour, func(f *facts) { f.known, f.agent = false, seenAfter-1 }, types.RestartUrgent},
	} {
		f := expiring(row.left)
		if row.change != nil {
			row.change(&f)
		}
		if a := decide(f); a.status.Restart.Wish != row.wish || row.wish == "" && (a.call != noCall || a.journal.Step != "") {
			t.Errorf("%s: %q, call %d, %+v", name, a.status.Restart.Wish, a.call, a.journal)
		}
	}
}

func TestWhileOneHasNotExpiredItIsNamed(t *testing.T) {
	const silent = "The API server does not answer, or this node's kubelet has not reported in this boot."
	f := expiring(-time.Hour)
	f.known, f.certs.Leaves[1].Where = false, "/tls/etcd/client.crt"
	if a := decide(f); a.status.Restart.Reason != silent+" Without it k3s is restarted once certificate serving-kubelet has expired as well, at 2027-08-28T12:00:00Z." || a.call == restart {
		t.Errorf("call %d: %s", a.call, a.status.Restart.Reason)
	}
	f.certs.Leaves[0].NotAfter = f.now.Add(time.Second)
	if a := decide(f); a.status.Restart.Reason != silent {
		t.Errorf("none has expired: %s", a.status.Restart.Reason)
	}
}

func TestPreconditionsOfARestart(t *testing.T) {
	const due, urgent = 50 * day, 10 * day
	asked := func(f *facts) { f.request = types.CertsResetRequest{RequestedAt: f.now} }
	twoServers := func(f *facts) { f.nodes = f.nodes[:2]; f.node(0, func(*types.Node) {}) }
	oneDown := func(f *facts) { f.node(1, func(n *types.Node) { n.Ready = types.ConditionUnknown }) }
	peer := func(change func(*types.K3sStamp)) func(*facts) {
		return func(f *facts) {
			f.node(1, func(n *types.Node) {
				n.TieBreaker, n.K3s = true, &types.K3sStamp{Wanted: old} // it comes before n1
				change(n.K3s)
			})
		}
	}
	isWorker := func(f *facts) { f.node(0, func(n *types.Node) { *n = worker("n1", old) }) }
	said := func(text string) func(*facts) {
		return func(f *facts) {
			f.published.Restart.Announced, f.published.Restart.AnnouncedAt = text, f.uptime-announced
		}
	}
	const otherServer, ofThree = "of two servers the other one has no quorum meanwhile", "without this node 1 of 3 etcd members would be Ready, which is no quorum: n2 is not"
	for name, row := range map[string]struct {
		left    time.Duration
		changes []func(*facts)
		lacks   string // in their order; "" where nothing is
		words   string
		release bool // zedkube k3s certs reset does without it
	}{
		"nothing is in the way":                   {left: due},
		"nothing, of an operator's":               {left: 100 * day, changes: []func(*facts){asked}},
		"the hold file":                           {due, []func(*facts){func(f *facts) { f.hold = "the file says: harvest" }}, "NotHeld", "harvest", false},
		"the clock is doubted":                    {due, []func(*facts){func(f *facts) { f.certs.ClockDoubt = "It says 2031." }}, "Clock", "2031", false},
		"nobody has confirmed the clock":          {due, []func(*facts){func(f *facts) { f.certs.SeenAt = time.Time{} }}, "Clock", "confirmed", false},
		"the clock is before the newest time":     {due, []func(*facts){func(f *facts) { f.certs.SeenAt = f.now.Add(time.Second) }}, "Clock", "has changed", false},
		"the clock has jumped":                    {due, []func(*facts){func(f *facts) { f.certs.SeenAt = f.now.Add(-confirmedFor - 1) }}, "Clock", "has changed", false},
		"the clock differs from the others'":      {due, []func(*facts){func(f *facts) { f.conditions = conditions(types.ConditionFalse, types.StateClock) }}, "Clock", "it is bad", false},
		"a wrong clock is no reason to be urgent": {urgent, []func(*facts){func(f *facts) { f.certs.ClockDoubt = "It says 2031." }}, "Clock", "2031", false},
		"it did not help, less than a day ago":    {due, []func(*facts){func(f *facts) { f.journal.Restarts = types.K3sRestarts{At: f.now.Add(1 - day), Failed: "No."} }}, "NotAgain", ": No", true},
		"it did not help, a day ago":              {left: due, changes: []func(*facts){func(f *facts) { f.journal.Restarts = types.K3sRestarts{At: f.now.Add(-day), Failed: "No."} }}},
		"k3s has just started":                    {due, []func(*facts){func(f *facts) { f.process.Start = f.uptime - rereadAfter + 1 }}, "Process", "just started", false},
		"k3s cannot be restarted":                 {due, []func(*facts){func(f *facts) { f.noRestart = "k3s cannot be restarted: no" }}, "Process", "cannot be restarted", false},
		"the disk has another version":            {due, []func(*facts){func(f *facts) { f.version.OnDisk = false }}, "SameBinary", "change the version", false},
		"a drain":                                 {due, []func(*facts){func(f *facts) { f.operatorDrain = true }}, "NoDrain", "a drain of this node", false},
		"this node leaves":                        {urgent, []func(*facts){func(f *facts) { f.leaves = true }}, "NoDrain", "leaves", false},
		"a server before it is due":               {due, []func(*facts){peer(func(s *types.K3sStamp) { s.Restart = types.RestartDue })}, "Turn", "node n2 is restarted before", true},
		"a server before a worker":                {due, []func(*facts){isWorker, func(f *facts) { f.node(2, func(n *types.Node) { n.K3s = &types.K3sStamp{Restart: types.RestartDue} }) }}, "Turn", "node n3", true},
		"an urgent one before a due one":          {left: urgent, changes: []func(*facts){peer(func(s *types.K3sStamp) { s.Restart = types.RestartDue })}},
		"of urgent ones the first":                {urgent, []func(*facts){peer(func(s *types.K3sStamp) { s.Restart = types.RestartUrgent })}, "Turn", "node n2", true},
		"an operator does not wait for turns":     {left: 100 * day, changes: []func(*facts){asked, peer(func(s *types.K3sStamp) { s.Restart = types.RestartUrgent })}},
		"another node was restarted today":        {due, []func(*facts){peer(nothing), func(f *facts) { f.nodes[1].K3s.Restarted = f.now.Add(1 - day) }}, "OneADay", "node n2 was restarted", true},
		"another node was restarted yesterday":    {left: due, changes: []func(*facts){peer(nothing), func(f *facts) { f.nodes[1].K3s.Restarted = f.now.Add(-day) }}},
		"urgent, and another was restarted today": {left: urgent, changes: []func(*facts){peer(nothing), func(f *facts) { f.nodes[1].K3s.Restarted = f.now }}},
		"a node is not Ready":                     {due, []func(*facts){oneDown}, "Quorum NodesReady", "1 of 3", false},
		"a worker is not Ready": {due, []func(*facts){func(f *facts) {
			f.node(2, func(n *types.Node) { *n = worker("n3", old); n.Ready = types.ConditionFalse })
		}}, "QuorumWithoutThis NodesReady", "of two servers", true},
		"of two servers":                      {due, []func(*facts){twoServers}, "QuorumWithoutThis", "of two servers", true},
		"a single server":                     {left: due, changes: []func(*facts){func(f *facts) { f.nodes = f.nodes[:1]; f.node(0, func(*types.Node) {}) }}},
		"two servers, and urgent":             {urgent, []func(*facts){twoServers}, "Announced", "said for 10m0s", false},
		"and that was said long enough":       {left: urgent, changes: []func(*facts){twoServers, said(otherServer)}},
		"but something else was":              {urgent, []func(*facts){twoServers, said(ofThree)}, "Announced", "said for 10m0s", false},
		"and no snapshot is known":            {urgent, []func(*facts){twoServers, said(otherServer), func(f *facts) { f.evidence.snapshot = finding{} }}, "Snapshot", "snapshot of etcd", true},
		"and the snapshot is old":             {urgent, []func(*facts){twoServers, said(otherServer), func(f *facts) { f.evidence.snapshot.lacks = "the snapshot is old" }}, "Snapshot", "old", false},
		"and an operator asks":                {100 * day, []func(*facts){twoServers, said(otherServer), asked}, "QuorumWithoutThis", "of two servers", true},
		"three servers, one down, and urgent": {urgent, []func(*facts){oneDown}, "Announced", "n2 is not", false},
		"and that was said, too":              {left: urgent, changes: []func(*facts){oneDown, said(ofThree)}},
		"but the other one has the lock": {urgent, []func(*facts){oneDown, said(ofThree), func(f *facts) {
			f.lock.Holder, f.checked.lock = "n2", types.DrainLock{Holder: "n2", BootID: "boot", Task: types.TaskK3s}
		}}, "Lock", "n2 has the drain lock", false},
		"an operator's, one of three down":         {100 * day, []func(*facts){oneDown, said(ofThree), asked}, "Quorum NodesReady", "n2 is not", false},
		"a worker, urgent, while a server is down": {left: urgent, changes: []func(*facts){isWorker, func(f *facts) { f.node(1, func(n *types.Node) { n.Ready = types.ConditionUnknown }) }}},
		"etcd has an alarm":                        {due, []func(*facts){func(f *facts) { f.evidence.etcd.lacks = "etcd has alarm NOSPACE" }}, "EtcdHealthy", "NOSPACE", true},
		"etcd is not known":                        {left: due, changes: []func(*facts){func(f *facts) { f.evidence.etcd = finding{} }}},
		"a component is updated": {due, []func(*facts){func(f *facts) {
			f.component, f.updating = "component cdi is updated on this node", "component cdi is updated on this node"
		}}, "Components", "cdi", true},
		"the update of a component failed": {left: due, changes: []func(*facts){func(f *facts) { f.component = "the update of component cdi failed" }}},
		"it failed, and one is urgent":     {left: urgent, changes: []func(*facts){func(f *facts) { f.component = "the update of component cdi failed" }}},
		"another node changes k3s": {urgent, []func(*facts){func(f *facts) {
			f.node(2, func(n *types.Node) { n.K3s = &types.K3sStamp{Step: types.K3sStepChange, To: old} })
		}}, "Lock", "node n3 changes k3s", false},
		"a degraded volume": {due, []func(*facts){func(f *facts) {
			f.checked.storage.Volumes = []types.Volume{{Name: "pv-1", Robustness: "degraded", Replicas: []types.Replica{{Node: "n1"}}}}
		}}, "Volumes", "pv-1", true},
		"a degraded volume, and urgent": {left: urgent, changes: []func(*facts){func(f *facts) {
			f.checked.storage.Volumes = []types.Volume{{Name: "pv-1", Robustness: "degraded", Replicas: []types.Replica{{Node: "n1"}}}}
		}}},
		"files that are not known": {100 * day, []func(*facts){func(f *facts) {
			asked(f)
			f.request.Force, f.layout = true, "the layout of the certificates of k3s is not the known one"
		}}, "Layout", "layout", false},
	} {
		f := expiring(row.left)
		for _, change := range row.changes {
			change(&f)
		}
		a := decide(f)
		if got := lacks(a); got != row.lacks || !strings.Contains(a.status.Restart.Reason, row.words) {
			t.Errorf("%s: %q lack: %s", name, got, a.status.Restart.Reason)
		}
		if begins := a.call == take; begins != (row.lacks == "") {
			t.Errorf("%s: call %d", name, a.call)
		}
		without := []string{"Something"}
		for _, p := range a.status.Restart.Preconditions {
			if p.Release {
				without = append(without, p.Name)
			}
		}
		f.request = types.CertsResetRequest{RequestedAt: f.now, Force: f.request.Force, Without: without[:1]}
		if a := decide(f); row.release && f.request.RequestedAt == f.now && row.lacks != "Turn" && row.lacks != "OneADay" && row.lacks != "NotAgain" && a.call == take {
			t.Errorf("%s, something else is released: call %d", name, a.call)
		}
		f.request.Without = without
		if a := decide(f); row.lacks != "" && (a.call == take) != row.release {
			t.Errorf("%s, released: %q lack, call %d", name, lacks(a), a.call)
		}
	}
}

func nothing(*types.K3sStamp) {}

func TestARestartOffline(t *testing.T) {
	expired := func() facts {
		f := expiring(-time.Hour) // not all: k3s has been started since it made them
		f.known, f.own, f.nodes, f.order, f.checked = false, types.Node{}, nil, nil, nil
		f.version.Running, f.version.OnDisk, f.version.Binary = "", false, old
		return f
	}
	for name, row := range map[string]struct {
		change func(*facts)
		lacks  string
	}{
		"nothing is in the way":   {func(*facts) {}, ""},
		"its authority expired":   {func(f *facts) { f.certs.Authorities[0].NotAfter = f.now }, "Authority"},
		"no authority is known":   {func(f *facts) { f.certs.Authorities = nil }, "Authority"},
		"the clock is doubted":    {func(f *facts) { f.certs.ClockDoubt = "No." }, "Clock"},
		"once in this boot":       {func(f *facts) { f.journal.Restarts = types.K3sRestarts{At: f.now.Add(-2 * day), BootID: "boot"} }, "NotAgain"},
		"once in a day":           {func(f *facts) { f.journal.Restarts = types.K3sRestarts{At: f.now.Add(1 - day), BootID: "before"} }, "NotAgain"},
		"a day ago, another boot": {func(f *facts) { f.journal.Restarts = types.K3sRestarts{At: f.now.Add(-day), BootID: "before"} }, ""},
		"k3s does not run":        {func(f *facts) { f.noRestart = "k3s cannot be restarted: it is not there" }, "Process"},
		"k3s has just started":    {func(f *facts) { f.process.Start = f.uptime - time.Minute }, "Process"},
		"another k3s on the disk": {func(f *facts) { f.version.Binary = patch }, "SameBinary"},
		"the hold file":           {func(f *facts) { f.hold = "held" }, "NotHeld"},
	} {
		f := expired()
		row.change(&f)
		a := decide(f)
		if lacks(a) != row.lacks || (a.call == restart) != (row.lacks == "") || (a.journal.Step != "") != (row.lacks == "") {
			t.Errorf("%s: %q lack, call %d, %+v", name, lacks(a), a.call, a.journal)
		}
		if a.status.From != old { // so that k3sconfig looks at the disk
			t.Errorf("%s: from %q", name, a.status.From)
		}
		if row.lacks != "" {
			continue
		}
		f.journal = a.journal
		f.process.Start = f.uptime + 1
		f.uptime += patchFor
		if a = decide(f); a.journal.Step != "" || !strings.Contains(a.status.Restart.Failed, "all its certificates had expired") || a.journal.Restarts.BootID != "boot" {
			t.Errorf("%s, in vain: %+v, %+v", name, a.status, a.journal)
		}
		f.journal = a.journal
		if a = decide(f); a.call != noCall || lacks(a) != "NotAgain" {
			t.Errorf("%s, again: call %d, %q lack", name, a.call, lacks(a))
		}
	}
}

func TestARestartIsCheckedThenLockedThenBegun(t *testing.T) {
	f := expiring(50 * day)
	f.checked = nil
	if a := decide(f); a.call != check {
		t.Fatalf("first: call %d, %+v", a.call, a.status.Restart)
	}
	f = underLock(expiring(50 * day))
	f.checked.lock.BootID = "before"
	if a := decide(f); a.call != take || a.journal.Step != "" {
		t.Fatalf("by the lock of a former boot: call %d, %+v", a.call, a.journal)
	}
	f = underLock(expiring(50 * day))
	f.checked.nodes = append([]types.Node(nil), f.nodes...)
	f.checked.nodes[1].Ready = types.ConditionUnknown // as seen under the lock
	if a := decide(f); a.call != free || a.journal.Step != "" {
		t.Fatalf("under the lock something is in the way: call %d, %+v", a.call, a.journal)
	}
	f = underLock(expiring(50 * day))
	a := decide(f)
	if j := a.journal; a.call != restart || j.Step != types.K3sStepChange || j.Kind != types.K3sRestart || j.From != old || j.To != old || j.Began != f.uptime || !j.Restarts.At.Equal(f.now) {
		t.Fatalf("call %d, %+v", a.call, j)
	}
	if j := a.journal; len(j.Leaves) != 1 || !j.Leaves["/tls/client-admin.crt"].Equal(f.certs.Leaves[0].NotAfter) {
		t.Errorf("it is to renew %v", j.Leaves)
	}
	if a.status.Released != "" || a.status.Phase != types.LifecycleChanges || a.stamp == nil || a.stamp.Step != types.K3sStepChange || !a.stamp.Restarted.Equal(f.now) {
		t.Errorf("%+v, the stamp is %+v", a.status, a.stamp)
	}
}

func TestTheStampNamesAWishThatOnlyOthersDelay(t *testing.T) {
	f := expiring(50 * day)
	f.node(1, func(n *types.Node) { n.K3s = &types.K3sStamp{Wanted: old, Restarted: f.now} })
	if a := decide(f); a.stamp == nil || a.stamp.Restart != types.RestartDue {
		t.Errorf("the stamp is %+v", a.stamp)
	}
	for name, change := range map[string]func(*facts){
		"the hold file":          func(f *facts) { f.hold = "held" },
		"a component is updated": func(f *facts) { f.updating = "component cdi is updated on this node" },
		"etcd has an alarm":      func(f *facts) { f.evidence.etcd.lacks = "etcd has alarm NOSPACE" },
		"of two servers, no snapshot is to be had": func(f *facts) {
			f.certs.Leaves[0].NotAfter = f.now.Add(10 * day)
			f.nodes = f.nodes[:2]
			f.evidence.snapshot.lacks = "the snapshot is old"
		},
	} {
		f := expiring(50 * day)
		change(&f)
		f.node(0, func(n *types.Node) { n.K3s = &types.K3sStamp{Wanted: old, Restart: types.RestartUrgent} })
		if a := decide(f); a.status.Restart.Wish == "" || a.call == take || a.stamp == nil || a.stamp.Restart != "" {
			t.Errorf("%s: %+v, the stamp is %+v", name, a.status.Restart, a.stamp)
		}
	}
}

func TestTheOtherNodesDoNotWaitForOneThatAnUpdateOfAComponentKeeps(t *testing.T) {
	n1, n3 := expiring(10*day), expiring(10*day)
	n1.updating = "component longhorn is updated on this node"
	n3.node(0, func(n *types.Node) { n.K3s = decide(n1).stamp })
	n3.own = n3.nodes[2]
	if a := decide(n3); lacks(a) != "" || a.call != take {
		t.Errorf("call %d, %q lack: %s", a.call, lacks(a), a.status.Restart.Reason)
	}
}

func TestAVersionThatNothingDelaysComesBeforeARestart(t *testing.T) {
	f := expiring(50 * day)
	f.version.Wanted = patch
	for i := range f.nodes {
		f.node(i, func(n *types.Node) { n.K3s = &types.K3sStamp{Wanted: patch} })
	}
	a := decide(f)
	if a.call != take || a.renews || !strings.Contains(a.status.Restart.Reason, "version of k3s changes first") {
		t.Errorf("call %d, %s", a.call, a.status.Restart.Reason)
	}
	if a = decide(underLock(f)); a.journal.Kind != types.K3sPatch {
		t.Errorf("%+v", a.journal)
	}
	f.evidence.binary = finding{} // an operator would have to release it
	if a = decide(underLock(f)); a.journal.Kind != types.K3sRestart || a.call != restart || !a.renews {
		t.Errorf("call %d, %+v", a.call, a.journal)
	}
}

// restarted are facts of a restart that went well five minutes ago.
func restarted() facts {
	f := underLock(expiring(50 * day))
	a := decide(f)
	f.journal = a.journal
	f.uptime += 5 * time.Minute
	f.now = f.now.Add(5 * time.Minute)
	f.process = k3sprocess.Process{PID: 9, Start: f.uptime - 4*time.Minute}
	f.checked.at = f.uptime
	f.certs.Leaves[0].NotAfter = f.now.Add(365 * day)
	f.node(0, func(n *types.Node) { n.K3s = a.stamp })
	return f
}

func TestARestartIsVerified(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*facts)
		words  string // "" where it is over
	}{
		"all is well":                      {func(*facts) {}, ""},
		"the API server is silent":         {func(f *facts) { f.known = false }, "does not answer"},
		"the process is the one of before": {func(f *facts) { f.process.Start = time.Hour }, "has not been restarted yet"},
		"it has run for half a minute":     {func(f *facts) { f.process.Start = f.uptime - 30*time.Second }, "less than 1m0s"},
		"only its supervisor knows it":     {func(f *facts) { f.process = k3sprocess.Process{} }, ""},
		"the Lease is not renewed":         {func(f *facts) { f.node(0, func(n *types.Node) { n.Ready = types.ConditionUnknown }) }, "not Ready"},
		"its member of etcd does not vote": {func(f *facts) { f.node(0, func(n *types.Node) { n.EtcdVoter = types.ConditionFalse }) }, "does not vote"},
		"the others do not know of it":     {func(f *facts) { f.node(0, func(n *types.Node) { n.K3s = &types.K3sStamp{} }) }, "have not been told"},
		"a pod does not run again":         {func(f *facts) { f.pods["eve-kube-app/a"] = false }, "pod eve-kube-app/a"},
		"a certificate has not moved":      {func(f *facts) { f.certs.Leaves[0].NotAfter = f.journal.Leaves["/tls/client-admin.crt"] }, "client-admin is the one of before"},
		"a certificate cannot be read any more": {func(f *facts) {
			f.certs.Leaves, f.certs.Unread = f.certs.Leaves[1:], []string{"/tls/client-admin.crt: no"}
		}, "/tls/client-admin.crt is the one of before"},
		"it is presented with one that is a file": {func(f *facts) { f.certs.Leaves = f.certs.Leaves[1:] }, ""},
		"the device has booted since":             {func(f *facts) { f.boot = "next"; f.own.BootID = "next"; f.process.Start = time.Minute }, ""},
	} {
		f := restarted()
		row.change(&f)
		a := decide(f)
		if over := a.journal.Step == ""; over != (row.words == "") || !strings.Contains(a.status.Reason, row.words) || (a.call == free) != over || a.status.Restart.Failed != "" || a.call == restart {
			t.Errorf("%s: call %d, %s: %s", name, a.call, a.status.Phase, a.status.Reason)
		}
	}
}

func TestARestartThatDoesNotHelpIsSaidAndNotRepeatedForADay(t *testing.T) {
	f := restarted()
	f.certs.Leaves[0].NotAfter = f.journal.Leaves["/tls/client-admin.crt"]
	f.uptime += patchFor
	f.now = f.now.Add(patchFor)
	f.checked.at, f.certs.SeenAt = f.uptime, f.now
	a := decide(f)
	if a.journal.Step != "" || !strings.Contains(a.status.Restart.Failed, "did not renew its certificates: certificate client-admin") || a.call != free {
		t.Fatalf("call %d, %+v, %+v", a.call, a.status, a.journal)
	}
	f.journal = a.journal
	for _, days := range []time.Duration{0, 1} {
		f.now = f.now.Add(days * day)
		f.certs.SeenAt = f.now
		if a = decide(f); (a.call == restart) != (days == 1) || a.status.Restart.Failed == "" && days == 0 {
			t.Errorf("after %d days: call %d, %q lack", days, a.call, lacks(a))
		}
	}
}

func TestARestartThatIsNotOverInItsTimeIsStuckWithItsLock(t *testing.T) {
	f := restarted()
	f.pods["eve-kube-app/a"] = false
	f.uptime += patchFor
	f.checked.at = f.uptime
	a := decide(f)
	if a.status.Phase != types.LifecycleStuck || a.call == free || a.journal.Step == "" {
		t.Errorf("call %d, %+v", a.call, a.status)
	}
	f.pods["eve-kube-app/a"] = true
	if a = decide(f); a.journal.Step != "" || a.call != free {
		t.Errorf("later: call %d, %+v", a.call, a.status)
	}
	f.lock.Holder, f.checked.lock = "n2", types.DrainLock{Holder: "n2", BootID: "boot"} // an operator has released it
	if a = decide(f); a.journal.Step != "" || a.call != noCall {
		t.Errorf("without the lock: call %d, %+v", a.call, a.status)
	}
}

func TestAnAgentThatWasKilledBeforeTheRestartLooksAndMakesItLater(t *testing.T) {
	f := restarted()
	f.certs.Leaves[0].NotAfter = f.journal.Leaves["/tls/client-admin.crt"]
	f.process.Start = time.Hour // nothing has been done
	for try := 1; try <= mostTries; try++ {
		f.uptime = f.journal.Began + endsWithin - 1
		f.checked.at = f.uptime
		if a := decide(f); a.journal.Step == "" || a.call == restart || !strings.Contains(a.status.Reason, "not been restarted yet") {
			t.Fatalf("try %d, too early: call %d, %+v", try, a.call, a.journal)
		}
		f.uptime++
		a := decide(f)
		if a.journal.Step != "" || a.call != free || (a.status.Restart.Failed != "") != (try == mostTries) {
			t.Fatalf("try %d: call %d, %+v", try, a.call, a.journal)
		}
		f.journal = a.journal
		if a = decide(f); (a.call == restart) != (try < mostTries) {
			t.Fatalf("try %d, next: call %d, %q lack", try, a.call, lacks(a))
		}
		f.journal = a.journal
	}
}

func TestForcedCertificatesArePutBackWhereK3sDoesNotComeUp(t *testing.T) {
	f := underLock(expiring(300 * day))
	f.request = types.CertsResetRequest{RequestedAt: f.now, Force: true}
	a := decide(f)
	stamp := a.stamp
	if a.call != renew || !a.journal.Force || len(a.journal.Leaves) != 2 || !a.journal.Restarts.Answers.Equal(f.now) {
		t.Fatalf("call %d, %+v", a.call, a.journal)
	}
	f.journal, f.known = a.journal, false
	f.process = k3sprocess.Process{}
	f.uptime += restoreAfter - 1
	if a = decide(f); a.call != noCall {
		t.Fatalf("too early: call %d", a.call)
	}
	f.uptime++
	if a = decide(f); a.call != putBack || !a.journal.Restored {
		t.Fatalf("call %d, %+v", a.call, a.journal)
	}
	f.journal, f.known = a.journal, true
	f.node(0, func(n *types.Node) { n.K3s = stamp })
	f.uptime += 5 * time.Minute
	f.checked.at = f.uptime
	if a = decide(f); a.journal.Step != "" || !strings.Contains(a.status.Restart.Failed, "put back") || a.call != free {
		t.Fatalf("call %d, %+v", a.call, a.status)
	}
	f.journal = a.journal
	if a = decide(f); a.status.Restart.Wish != "" || a.call == restart || a.call == renew {
		t.Errorf("the request is dealt with again: call %d, %+v", a.call, a.status.Restart)
	}
}

func TestARequestForWhatIsNotToRenewEnds(t *testing.T) {
	f := expiring(130 * day)
	f.request = types.CertsResetRequest{RequestedAt: f.now}
	a := decide(f)
	if !a.journal.Restarts.Answers.Equal(f.now) || a.call != noCall {
		t.Fatalf("call %d, %+v", a.call, a.journal)
	}
	f.journal = a.journal
	f.certs.Leaves[0].NotAfter = f.now.Add(100 * day)
	if a = decide(f); a.status.Restart.Wish != "" {
		t.Errorf("a month later: %+v", a.status.Restart)
	}
}

func TestAChangeOfTheVersionKeepsWhatCameOfTheLastRestart(t *testing.T) {
	f := changing()
	f.journal.Restarts = types.K3sRestarts{At: f.now, Failed: "No."}
	if a := decide(f); a.journal.Step != "" || a.journal.Restarts != f.journal.Restarts {
		t.Errorf("%+v", a.journal)
	}
}

func TestNothingBeginsWhileACallIsUnderWay(t *testing.T) { // it may be freeing the drain lock
	staged := ready()
	staged.evidence.at, staged.evidence.disk, staged.evidence.staged = staged.uptime, old, sum64
	forced := underLock(expiring(300 * day))
	forced.request = types.CertsResetRequest{RequestedAt: forced.now, Force: true}
	for name, f := range map[string]facts{"a change": underLock(ready()), "a staged one": underLock(staged), "a restart": underLock(expiring(50 * day)), "a forced one": forced} {
		if a := decide(f); a.journal.Step == "" {
			t.Fatalf("%s does not begin at all: %s %s", name, a.status.Reason, a.status.Restart.Reason)
		}
		f.busy = true
		if a := decide(f); a.journal.Step != "" {
			t.Errorf("%s begins: %+v", name, a.journal)
		}
	}
	f := forced
	f.journal = decide(f).journal
	f.known, f.uptime, f.busy = false, f.uptime+restoreAfter, true
	if a := decide(f); a.journal.Restored {
		t.Error("its files count as put back although nothing does that")
	}
}

func TestCertificatesThatAreMadeForAShortTimeAreRenewedHalfwayOnly(t *testing.T) { // k3s may be told to make them for a month
	for name, row := range map[string]struct{ life, ago, left time.Duration }{
		"due":         {54 * day, 27 * day, 27 * day},
		"urgent":      {20 * day, 10 * day, 10 * day},
		"of a day":    {26 * time.Hour, 24 * time.Hour, 2 * time.Hour},
		"of two days": {2 * day, day, day},
	} {
		f := underLock(expiring(row.left))
		f.journal.Restarts.At = f.now.Add(time.Minute - row.ago)
		f.certs.Leaves[0].NotAfter = f.journal.Restarts.At.Add(row.life)
		if a := decide(f); a.call == restart || lacks(a) != "NotAgain" {
			t.Errorf("%s: call %d, %q lack", name, a.call, lacks(a))
		}
		f.now = f.now.Add(time.Minute)
		f.certs.SeenAt = f.now
		if a := decide(f); a.call != restart {
			t.Errorf("%s, a minute later: call %d, %q lack: %s", name, a.call, lacks(a), a.status.Restart.Reason)
		}
	}
}

// TestACertificateThatNoRestartRenewsEndsTheRestarts plays 300 days of a k3s that makes no new ones.
func TestACertificateThatNoRestartRenewsEndsTheRestarts(t *testing.T) {
	f := expiring(70 * day)
	first := f.now
	var restarts []string
	var a action
	step := func() {
		f.certs.SeenAt = f.now
		f = underLock(f)
		if a = decide(f); a.call == restart {
			restarts = append(restarts, string(a.journal.Wish))
			f.process.Start = f.uptime + time.Second
		}
		f.journal = a.journal
		if a.stamp != nil {
			f.node(0, func(n *types.Node) { n.K3s = a.stamp })
		}
		f.published = a.status
	}
	for f.now.Before(first.Add(300 * day)) {
		step()
		f.now, f.uptime = f.now.Add(6*time.Hour), f.uptime+6*time.Hour
	}
	if got := strings.Join(restarts, " "); got != "Due Due Due Urgent Urgent Urgent" {
		t.Fatalf("restarted %s", got)
	}
	if r := a.status.Restart; r.Failed == "" || lacks(a) != "NotAgain" || !strings.Contains(r.Reason, "6 times without effect, and zedkube does not try again by itself: k3s was restarted and did not renew") || !strings.Contains(r.Reason, "zedkube k3s certs reset") {
		t.Errorf("%+v", r)
	}
	f.request = types.CertsResetRequest{RequestedAt: f.now, Without: []string{"NotAgain"}}
	if step(); a.call != restart {
		t.Fatalf("an operator asks: call %d, %s", a.call, a.status.Restart.Reason)
	}
	f.now, f.uptime = f.now.Add(5*time.Minute), f.uptime+5*time.Minute
	for i := range f.certs.Leaves {
		f.certs.Leaves[i].NotAfter = f.now.Add(365 * day)
	}
	if step(); a.journal.Step != "" || a.journal.Restarts.Failures != 0 || a.status.Restart.Failed != "" {
		t.Errorf("that helped: %+v", a.journal)
	}
}

func TestCertificatesThatWereRenewedOtherwiseEndTheFailure(t *testing.T) {
	f := expiring(300 * day)
	f.journal.Restarts = types.K3sRestarts{At: f.now.Add(-day), Failed: "No.", Failures: mostFailures}
	known := f.certs.Leaves
	f.certs.Leaves = nil
	if a := decide(f); a.journal.Restarts.Failures != mostFailures {
		t.Errorf("nothing is known of them: %+v", a.journal.Restarts)
	}
	f.certs.Leaves = known
	if a := decide(f); a.journal.Restarts.Failures != 0 || a.journal.Restarts.Failed != "" || a.status.Restart.Failed != "" || !a.journal.Restarts.At.Equal(f.journal.Restarts.At) {
		t.Errorf("%+v, %+v", a.journal.Restarts, a.status.Restart)
	}
	f = restarted()
	f.journal.Wish, f.journal.Force = types.RestartAsked, true
	f.journal.Leaves["/agent/serving-kubelet.crt"] = f.certs.Leaves[1].NotAfter
	f.uptime += patchFor
	f.checked.at = f.uptime
	f.journal = decide(f).journal
	if a := decide(f); f.journal.Step != "" || !strings.Contains(a.status.Restart.Failed, "serving-kubelet is the one of before") {
		t.Errorf("the failure of a forced reset is forgotten: %+v", a.status.Restart)
	}
}

func TestAJournalThatWasRemovedLeavesNoRequestToBeAnsweredTwice(t *testing.T) {
	f := underLock(expiring(300 * day))
	f.request = types.CertsResetRequest{RequestedAt: f.now.Add(-time.Hour), Force: true}
	f.node(0, func(n *types.Node) { n.K3s = &types.K3sStamp{Wanted: old, Restarted: f.now.Add(-time.Minute)} })
	f.unread = true
	if a := decide(f); a.journal.Restarts != (types.K3sRestarts{}) {
		t.Fatalf("while it cannot be read: %+v", a.journal)
	}
	f.unread = false
	a := decide(f)
	if a.call == renew || a.journal.Step != "" || !a.journal.Restarts.Answers.Equal(f.request.RequestedAt) || !a.journal.Restarts.At.Equal(f.own.K3s.Restarted) {
		t.Errorf("call %d, %+v", a.call, a.journal)
	}
	if a.stamp != nil && !a.stamp.Restarted.Equal(f.own.K3s.Restarted) {
		t.Errorf("the stamp forgets it: %+v", a.stamp)
	}
	f.request.RequestedAt = f.now // a new one
	if a := decide(f); a.call != renew {
		t.Errorf("a new one: call %d, %+v", a.call, a.status.Restart)
	}
}

func TestFilesOfAForcedResetArePutBackWhereK3sIsNotRestarted(t *testing.T) {
	f := underLock(expiring(300 * day))
	f.request = types.CertsResetRequest{RequestedAt: f.now, Force: true}
	a := decide(f)
	f.journal, f.kept = a.journal, true
	f.node(0, func(n *types.Node) { n.K3s = a.stamp })
	f.uptime += endsWithin
	f.checked.at = f.uptime
	if a = decide(f); a.call != putBack || a.journal.Step == "" {
		t.Fatalf("call %d, %+v", a.call, a.journal)
	}
	f.journal, f.kept = a.journal, false
	if a = decide(f); a.call != free || a.journal.Step != "" || a.journal.Restarts.Tries != 1 {
		t.Errorf("they are there: call %d, %+v", a.call, a.journal)
	}
	f.kept, f.uptime = true, f.uptime+swapFor
	f.checked.at = f.uptime
	if a = decide(f); a.journal.Step != "" {
		t.Errorf("they are not for long: call %d, %+v", a.call, a.journal)
	}
	f.journal.Restored, f.kept = true, false
	if a = decide(f); a.journal.Step != "" || a.call != free || a.journal.Restarts.Failed == "" {
		t.Errorf("it was not restarted after that either: call %d, %+v", a.call, a.journal)
	}
}

func TestAnAgentThatChangesTheVersionGoesOnSayingWhatTheLastRestartDid(t *testing.T) { // an alert rests on that
	f := underLock(ready())
	f.journal.Restarts = types.K3sRestarts{At: f.now.Add(-time.Hour), Failed: "No."}
	a := decide(f)
	if a.journal.Step == "" || a.status.Restart.Failed != "No." {
		t.Errorf("%+v, %+v", a.journal, a.status.Restart)
	}
}

func TestTheDrainLockIsKeptWhileTheHoldFileIsReadAgain(t *testing.T) {
	for name, f := range map[string]facts{"a change": underLock(ready()), "a restart": underLock(expiring(50 * day))} {
		f.holdIsOld = true
		if a := decide(f); a.journal.Step != "" || a.call == free || a.call == take {
			t.Errorf("%s: call %d, %+v", name, a.call, a.journal)
		}
	}
}

func TestTheLockOfARestartIsFreedWhileAMinorVersionWaits(t *testing.T) { // which may begin under the lock of its drain
	f := ready()
	f.version.Wanted, f.hold = minor, "held"
	f.lock.Holder, f.lock.Version, f.checked, f.triedAt = "n1", "7", nil, f.uptime-checkEvery
	if a := decide(f); a.call != check {
		t.Fatalf("it is not looked at: call %d, %s", a.call, a.status.Reason)
	}
	if a := decide(underLock(f)); a.call != free {
		t.Errorf("call %d, %s", a.call, a.status.Reason)
	}
	f.looked = "7" // it is that of a drain
	if a := decide(f); a.call != noCall {
		t.Errorf("of a drain: call %d, %s", a.call, a.status.Reason)
	}
}

func TestPuttingCertificatesBackIsDoneAgainByAnAgentThatIsStarted(t *testing.T) {
	f := underLock(expiring(300 * day))
	f.request = types.CertsResetRequest{RequestedAt: f.now, Force: true}
	a := decide(f)
	f.journal, f.known, f.checked, f.kept = a.journal, false, nil, true
	f.process = k3sprocess.Process{PID: 9, Start: f.uptime + time.Minute} // with new ones, and it does not come up
	f.uptime += restoreAfter
	if a = decide(f); a.call != putBack || !a.journal.Restored {
		t.Fatalf("call %d, %+v", a.call, a.journal)
	}
	f.journal, f.agent, f.triedAt = a.journal, time.Second, 0 // killed before it was done
	f.uptime += time.Hour
	f.filesUnseen = true
	if a = decide(f); a.call != noCall || a.journal.Step == "" {
		t.Fatalf("it is not known whether they are back: call %d, %+v", a.call, a.journal)
	}
	f.filesUnseen = false
	if a = decide(f); a.call != putBack {
		t.Fatalf("call %d, %s", a.call, a.status.Reason)
	}
	f.triedAt = f.uptime
	if a = decide(f); a.call != noCall {
		t.Errorf("at once again: call %d", a.call)
	}
	f.kept = false // they are back, and k3s of the new ones was not ended
	f.uptime += restartAfter
	if a = decide(f); a.call != putBack {
		t.Errorf("the former k3s goes on: call %d, %s", a.call, a.status.Reason)
	}
	f.process.Start, f.triedAt = f.uptime, f.uptime
	f.uptime += restartAfter
	if a = decide(f); a.call != noCall || a.journal.Step == "" {
		t.Errorf("it has been restarted: call %d, %+v", a.call, a.journal)
	}
	// k3s came up with the new ones after all.
	f = restarted()
	f.journal.Force, f.journal.Restored, f.kept = true, true, true
	if a = decide(f); a.journal.Step != "" || a.journal.Restarts.Failed != "" {
		t.Errorf("%+v: %s", a.journal, a.status.Reason)
	}
}
