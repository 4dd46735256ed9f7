package k3supdate

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/base/k3sprocess"
	"github.com/zedkube/zedkube/types"
)

func TestAFailureNoLongerCountsOnceAnOperatorSaysSo(t *testing.T) {
	at := time.Date(2026, 11, 1, 11, 0, 0, 0, time.UTC)
	for name, row := range map[string]struct {
		retry types.K3sRetryRequest
		step  types.K3sStep
		ended bool
	}{
		"nobody says so":           {types.K3sRetryRequest{}, "", false},
		"of this failure":          {types.K3sRetryRequest{Version: patch, FailedAt: at}, "", true},
		"of a failure before":      {types.K3sRetryRequest{Version: patch, FailedAt: at.Add(-time.Hour)}, "", false},
		"of another version":       {types.K3sRetryRequest{Version: minor, FailedAt: at}, "", false},
		"while the node is coming": {types.K3sRetryRequest{Version: patch, FailedAt: at}, types.K3sStepReturn, false},
	} {
		f := ready()
		f.node(0, func(n *types.Node) { n.K3s = &types.K3sStamp{Wanted: patch, Failed: patch} })
		f.journal.Failed, f.retry = types.K3sFailure{To: patch, Why: "No.", At: at}, row.retry
		if row.step != "" {
			f.journal.Step, f.journal.From, f.journal.To = row.step, old, patch
			f.version.Running = patch
		}
		a := decide(f)
		if ended := a.journal.Failed.To == "" && a.status.Failed.To == "" && a.stamp != nil && a.stamp.Failed == ""; ended != row.ended {
			t.Errorf("%s: %+v, stamp %+v", name, a.journal, a.stamp)
		}
		if lacks := strings.Join(lacking(a), " "); row.step == "" && row.ended == (lacks == "NotFailed") {
			t.Errorf("%s: it waits for %q", name, lacks)
		}
	}
}

func TestAnOperatorTakesAChangeBackBeforeItsVersionRuns(t *testing.T) {
	asked := time.Date(2026, 11, 1, 11, 0, 0, 0, time.UTC)
	for name, row := range map[string]struct {
		change  func(*facts)
		returns bool
	}{
		"it has not come about":      {func(*facts) {}, true},
		"nobody asks":                {func(f *facts) { f.rollback = types.K3sRollbackRequest{} }, false},
		"asked before it began":      {func(f *facts) { f.journal.Rollback = asked }, false},
		"asked of another version":   {func(f *facts) { f.rollback.Version = minor }, false},
		"it ran":                     {func(f *facts) { f.journal.Ran = true }, false},
		"it runs":                    {func(f *facts) { f.node(0, func(n *types.Node) { n.KubeletVersion = patch }) }, false},
		"the last server, on disk":   {func(f *facts) { f.journal.Commit = "No way back." }, false},
		"the last server, untouched": {func(f *facts) { f.journal.Commit, f.version.Binary = "No way back.", old }, true},
		"all others have changed by now": {func(f *facts) {
			f.node(1, func(n *types.Node) { n.KubeletVersion = patch })
			f.node(2, func(n *types.Node) { n.KubeletVersion = patch })
		}, false},
		"nothing is seen yet":         {func(f *facts) { f.agent, f.known, f.own, f.nodes = 0, false, types.Node{}, nil }, false},
		"nothing is seen for minutes": {func(f *facts) { f.agent, f.known, f.own, f.nodes = seenAfter, false, types.Node{}, nil }, true},
	} {
		f := changing()
		f.version.Running, f.version.Binary = old, ""
		f.node(0, func(n *types.Node) { n.KubeletVersion = old })
		f.rollback = types.K3sRollbackRequest{RequestedAt: asked, Version: patch}
		row.change(&f)
		a := decide(f)
		if returns := a.journal.Step == types.K3sStepReturn && a.status.Released == old && a.journal.Failed.To == patch && a.status.Phase == types.LifecycleReturns; returns != row.returns {
			t.Errorf("%s: %+v, %+v", name, a.status, a.journal)
		}
		f.rollback = types.K3sRollbackRequest{}
		asked := row.returns || name == "nobody asks" || strings.HasPrefix(name, "asked ")
		if can := decide(f).status.Rollback; can.To != old || (can.Lacks == "") != asked {
			t.Errorf("%s: it is said of a rollback: %+v", name, can)
		}
	}
}

func TestARequestOfBeforeAChangeDoesNotTakeItBack(t *testing.T) {
	f := ready()
	f.rollback = types.K3sRollbackRequest{RequestedAt: f.now, Version: patch}
	f.lock.Holder, f.checked.lock = "n1", types.DrainLock{Holder: "n1", BootID: "boot", Task: types.TaskK3sChange}
	a := decide(f)
	if a.journal.Step != types.K3sStepChange || !a.journal.Rollback.Equal(f.now) {
		t.Fatalf("%+v: %s", a.journal, a.status.Reason)
	}
	f.journal, f.uptime = a.journal, f.uptime+time.Second
	if a = decide(f); a.journal.Step != types.K3sStepChange {
		t.Errorf("it is taken back: %+v", a.journal)
	}
	f.rollback.RequestedAt = f.now.Add(time.Second)
	if a = decide(f); a.journal.Step != types.K3sStepReturn {
		t.Errorf("it goes on: %+v", a.status)
	}
}

func TestTheTimeThatAChangeMayTakeFollowsTheHour(t *testing.T) {
	for hour, returns := range map[time.Duration]bool{time.Hour: false, 3 * time.Minute: true} {
		f := changing()
		f.version.Running, f.version.Binary, f.hour = old, "", hour
		f.node(0, func(n *types.Node) { n.KubeletVersion = old })
		f.journal.Began = f.uptime - patchFor/20
		if a := decide(f); (a.journal.Step == types.K3sStepReturn) != returns {
			t.Errorf("of an hour of %s: %s", hour, a.status.Reason)
		}
	}
}

func TestAnOperatorIsToldWhyAVersionThatRanCannotBeTakenBack(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*facts)
		words  string // "" where it can
	}{
		"nothing answers since":                 {func(*facts) {}, ""},
		"nor since the device booted":           {func(f *facts) { f.journal.BootID = "before" }, "not known whether other servers have changed"},
		"the binary of before was not kept":     {func(f *facts) { f.journal.Sum = "" }, "was not kept"},
		"this was the last server to change":    {func(f *facts) { f.journal.Commit = "No way back." }, "No way back."},
		"it has booted, and the server answers": {func(f *facts) { f.journal.Booted, f.known, f.version.OnDisk = true, true, false }, ""},
	} {
		f := changing()
		f.known, f.journal.Ran, f.journal.Sum, f.process.Start = false, true, sum64, f.uptime-time.Second
		row.change(&f)
		can := decide(f).status.Rollback
		if can.To != old || (can.Lacks == "") != (row.words == "") || !strings.Contains(can.Lacks, row.words) {
			t.Errorf("%s: %+v", name, can)
		}
		f.rollback = types.K3sRollbackRequest{Version: patch, RequestedAt: f.now}
		if a := decide(f); (a.journal.Step == types.K3sStepReturn) != (row.words == "") {
			t.Errorf("%s, asked: %s: %s", name, a.journal.Step, a.status.Reason)
		}
	}
}

// alone are facts of a single node with SQLite, whose change has run before k3s was stopped.
func alone() facts {
	f := changing()
	f.nodes = f.nodes[:1]
	f.node(0, func(n *types.Node) { n.Etcd = false })
	f.journal.Commit, f.journal.Ran, f.journal.Sum = "No way back.", true, sum64
	f.evidence.at, f.evidence.disk = f.uptime, patch
	return f
}

func TestASingleNodeReturnsOnlyWithItsDatastore(t *testing.T) {
	f := alone()
	f.rollback = types.K3sRollbackRequest{RequestedAt: f.now, Version: patch, LoseChanges: true}
	f.pods["eve-kube-app/a"] = false
	a := decide(f)
	if can := a.status.Rollback; a.journal.Step == types.K3sStepReturn || !strings.Contains(can.Lacks, "cannot be replaced while k3s runs") || !strings.Contains(can.Lacks, "To take a single node back") {
		t.Errorf("with the datastore of the version: %+v, %+v", can, a.journal)
	}
	f.evidence.disk = old // and so is the datastore, as an operator has to know
	f.known, f.version.Running, f.process = false, "", k3sprocess.Process{}
	f.rollback.LoseChanges = false
	a = decide(f)
	if can := a.status.Rollback; a.journal.Step == types.K3sStepReturn || can.Lacks != "" || !strings.Contains(can.Loses, "is lost") {
		t.Errorf("without consent: %+v, %+v", can, a.journal)
	}
	f.rollback.LoseChanges = true
	if a = decide(f); a.journal.Step != types.K3sStepReturn || a.status.Released != old || a.journal.Failed.To != patch {
		t.Errorf("with consent: %+v, %+v", a.status, a.journal)
	}
	for range 10 { // also where k3s is not stopped before it, against the instructions
		f.on(a)
		f.known, f.version.Running = true, patch
		if a = decide(f); a.journal.Step != types.K3sStepReturn || a.journal.Began != f.journal.Began || a.status.Released != old {
			t.Fatalf("with consent, and k3s runs: %+v, %+v", a.status, a.journal)
		}
	}
	f = alone()
	f.found.HasEtcd, f.evidence.disk, f.rollback = true, old, types.K3sRollbackRequest{RequestedAt: f.now, Version: patch, LoseChanges: true}
	if a = decide(f); a.journal.Step == types.K3sStepReturn || a.status.Rollback.Lacks == "" {
		t.Errorf("the last server with etcd: %+v, %+v", a.status.Rollback, a.journal)
	}
}

func TestASingleNodeIsTakenBackAfterItsChangeHasEnded(t *testing.T) {
	ended := func() facts {
		f := alone()
		f.journal, f.known, f.evidence.disk = types.KubeLifecycleJournal{}, false, old
		f.version = types.K3sVersionStatus{Version: patch, Binary: old, Wanted: patch}
		f.rollback = types.K3sRollbackRequest{RequestedAt: f.now, Version: patch, LoseChanges: true}
		return f
	}
	a := decide(ended())
	if j := a.journal; j.Step != types.K3sStepReturn || j.From != old || j.To != patch || j.Failed.To != patch || a.status.Released != old {
		t.Fatalf("%+v, %+v", a.status, j)
	}
	f := ended()
	f.journal, f.uptime = a.journal, f.uptime+time.Second
	if a := decide(f); a.status.Phase != types.LifecycleReturns || a.status.Released != old {
		t.Errorf("it goes on with %+v", a.status)
	}
	for name, change := range map[string]func(*facts){
		"without consent":            func(f *facts) { f.rollback.LoseChanges = false },
		"of another version":         func(f *facts) { f.rollback.Version = minor },
		"k3s runs":                   func(f *facts) { f.known, f.version.Running = true, patch },
		"a newer binary is there":    func(f *facts) { f.evidence.disk = minor },
		"the same binary is there":   func(f *facts) { f.evidence.disk = patch },
		"the binary cannot be seen":  func(f *facts) { f.evidence.disk, f.evidence.at = "", 0 },
		"it is a server of etcd":     func(f *facts) { f.found.HasEtcd = true },
		"what is wanted is unknown":  func(f *facts) { f.heard = false },
		"it is older by two minors":  func(f *facts) { f.evidence.disk = "v1.32.9+k3s1" },
		"nothing was ever published": func(f *facts) { f.version.Version = "" },
	} {
		f := ended()
		change(&f)
		if a := decide(f); a.journal.Step != types.K3sStepNone || a.status.Released != "" {
			t.Errorf("%s: %+v, %+v", name, a.status, a.journal)
		}
		if can := decide(f).status.Rollback; (can.To == old) != (name == "without consent" || name == "of another version") {
			t.Errorf("%s: it is said of a rollback: %+v", name, can)
		}
	}
}

func TestAStuckChangeNamesWhatAnOperatorMayDo(t *testing.T) {
	for recipe, change := range map[string]func(*facts){
		"To take a single node back":           func(*facts) {},
		"To take a cluster back to a snapshot": func(f *facts) { f.found.HasEtcd = true },
		"Where a change is stuck":              func(f *facts) { f.journal.Commit = "" },
	} {
		f := alone()
		f.journal.Began, f.pods["eve-kube-app/a"] = f.uptime-patchFor, false
		change(&f)
		if a := decide(f); a.status.Phase != types.LifecycleStuck || !strings.Contains(a.status.Reason, recipe) {
			t.Errorf("%s: %+v", recipe, a.status)
		}
	}
}

// The journal keeps what could not be taken back, for a version that is started all the same.
func TestAStuckWayBackOfTheLastServerIsNotToBeTakenBackToASnapshot(t *testing.T) {
	for name, etcd := range map[string]bool{"a cluster": true, "a single node": false} {
		f := installed()
		f.node(0, func(n *types.Node) { n.Etcd = etcd })
		f.found.HasEtcd = etcd
		f.journal.Step, f.journal.Restarted, f.journal.Commit = types.K3sStepReturn, true, "No way back."
		f.acted = acted{restore, f.uptime, errors.New("it is gone")}
		if a := decide(f); a.status.Phase != types.LifecycleStuck || a.journal.Commit == "" || !strings.Contains(a.status.Reason, "Where a change is stuck") {
			t.Errorf("%s: %s: %s, %+v", name, a.status.Phase, a.status.Reason, a.journal)
		}
	}
}

func TestAReleaseOfBeforeAFailureDoesNotCountAfterARetry(t *testing.T) {
	for name, fail := range map[string]func() facts{
		"it did not run":           func() facts { f := changing(); f.uptime += 2 * time.Hour; f.version.Running = old; return f },
		"it could not be replaced": func() facts { f := swapping(); f.evidence.staged = "another"; return f },
		"it was taken back": func() facts {
			f := swapping()
			f.rollback = types.K3sRollbackRequest{Version: patch, RequestedAt: f.now}
			return f
		},
	} {
		f := fail()
		f.node(0, func(n *types.Node) { n.KubeletVersion = old })
		f.release = types.K3sReleaseRequest{Version: patch, RequestedAt: f.now.Add(-time.Hour), Without: all}
		a := decide(f)
		if a.journal.Failed.To != patch {
			t.Fatalf("%s: %+v", name, a.journal)
		}
		next := ready()
		next.release, next.conditions, next.journal = f.release, nil, types.KubeLifecycleJournal{Failed: a.journal.Failed, Release: a.journal.Release}
		next.retry = types.K3sRetryRequest{Version: patch, FailedAt: a.journal.Failed.At}
		a = decide(next)
		if got := lacking(a); len(got) == 0 || a.journal.Failed.To != "" {
			t.Errorf("%s: after a retry %q lack, call %d, %+v", name, got, a.call, a.journal)
		}
		next.journal = a.journal
		if a = decide(next); len(lacking(a)) == 0 {
			t.Errorf("%s: in the step after it nothing lacks", name)
		}
		next.release.RequestedAt = next.now
		if a = decide(next); len(lacking(a)) != 0 || a.call != take {
			t.Errorf("%s: another release: %q lack, call %d", name, lacking(a), a.call)
		}
		if a = decide(underLock(next)); a.journal.Step == "" || a.journal.Release.IsZero() {
			t.Errorf("%s: the next change: %+v", name, a.journal)
		}
	}
}
