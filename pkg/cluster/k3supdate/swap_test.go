package k3supdate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zedkube/zedkube/pkg/base/k3sbinary"
	"github.com/zedkube/zedkube/pkg/base/k3setcd"
	"github.com/zedkube/zedkube/pkg/base/k3sprocess"
	"github.com/zedkube/zedkube/types"
)

// swapping are facts of the first of three servers, on which patch is staged and is to be put in its place.
func swapping() facts {
	f := ready()
	f.journal = types.KubeLifecycleJournal{Step: types.K3sStepSwap, From: old, To: patch, Kind: types.K3sPatch, BootID: "boot", Began: f.uptime - time.Minute, Sum: sum64}
	f.evidence.at, f.evidence.disk, f.evidence.staged = f.uptime, old, sum64
	f.lock.Holder, f.checked.lock = "n1", types.DrainLock{Holder: "n1", Task: types.TaskK3sChange, BootID: "boot"}
	f.process = k3sprocess.Process{PID: 7, Start: f.uptime - time.Hour}
	return f
}

func TestABinaryIsPutInItsPlaceAfterTheJournalSaysSo(t *testing.T) {
	f := ready()
	f.evidence.at, f.evidence.disk, f.evidence.staged = f.uptime, old, sum64
	f.lock.Holder, f.checked.lock = "n1", types.DrainLock{Holder: "n1", Task: types.TaskK3sChange, BootID: "boot"}
	if a := decide(f); a.journal.Step != types.K3sStepSwap || a.journal.Sum != sum64 || a.status.Released != old || a.call != noCall {
		t.Fatalf("call %d, %+v, %+v", a.call, a.status, a.journal)
	}
	for name, row := range map[string]struct {
		change   func(*facts)
		call     call
		step     types.K3sStep
		released string
		failed   string
	}{
		"it is staged":              {func(*facts) {}, install, types.K3sStepSwap, old, ""},
		"something is under way":    {func(f *facts) { f.busy = true }, noCall, types.K3sStepSwap, old, ""},
		"nothing is looked at":      {func(f *facts) { f.evidence = evidence{} }, noCall, types.K3sStepSwap, old, ""},
		"it failed a moment ago":    {func(f *facts) { f.acted = acted{install, f.uptime - 1, errors.New("EIO")} }, noCall, types.K3sStepSwap, old, ""},
		"it failed":                 {func(f *facts) { f.acted = acted{install, f.uptime - again, errors.New("EIO")} }, install, types.K3sStepSwap, old, ""},
		"it is in its place":        {func(f *facts) { f.evidence.disk, f.evidence.staged = patch, "" }, noCall, types.K3sStepChange, patch, ""},
		"so after a power cut":      {func(f *facts) { f.evidence.disk, f.boot, f.known = patch, "later", false }, noCall, types.K3sStepChange, patch, ""},
		"a power cut before":        {func(f *facts) { f.boot = "later" }, noCall, types.K3sStepReturn, old, ""},
		"the setting is taken back": {func(f *facts) { f.version.Wanted = old }, noCall, types.K3sStepReturn, old, ""},
		"the hold file":             {func(f *facts) { f.hold = "harvest" }, noCall, types.K3sStepReturn, old, ""},
		"an operator takes it back": {func(f *facts) { f.rollback = types.K3sRollbackRequest{Version: patch, RequestedAt: f.now} }, noCall, types.K3sStepReturn, old, "took the change"},
		"another one is staged":     {func(f *facts) { f.evidence.staged = strings.Repeat("6", 64) }, noCall, types.K3sStepReturn, old, "not what was staged"},
		"the disk is bad": {func(f *facts) {
			f.acted, f.journal.Began = acted{install, f.uptime - again, errors.New("EIO")}, f.uptime-swapFor
		}, noCall, types.K3sStepReturn, old, "EIO"},
	} {
		f := swapping()
		row.change(&f)
		a := decide(f)
		if booted := strings.Contains(name, "a power cut"); row.step == types.K3sStepChange && a.journal.Booted != booted {
			t.Errorf("%s: that it has booted is %t", name, a.journal.Booted)
		}
		if a.call != row.call || a.journal.Step != row.step || a.status.Released != row.released || (a.journal.Failed.To != "") != (row.failed != "") || !strings.Contains(a.journal.Failed.Why, row.failed) {
			t.Errorf("%s: call %d, %+v, %+v", name, a.call, a.status, a.journal)
		}
	}
}

// booting are facts of such a server whose power was cut in that step: nothing answers yet, and k3s has started with the
// boot where anyone can see its process.
func booting(last bool) facts {
	f := swapping()
	if last {
		f.journal.Commit = commits(f.own, nil, patch)
	}
	f.boot, f.uptime, f.agent, f.ill = "later", 2*time.Minute, 0, 0
	f.known, f.own, f.nodes, f.checked, f.version.Running, f.version.OnDisk = false, types.Node{}, nil, nil, "", false
	f.evidence.at, f.evidence.disk, f.evidence.staged, f.process.Start = f.uptime, "", "", 90*time.Second
	f.found.HasEtcd, f.found.EtcdErr = true, errors.New("refused")
	return f
}

// on is the next step of an agent, 10 s later and after another look.
func (f *facts) on(a action) {
	f.journal, f.published, f.ill, f.lacked, f.blocked = a.journal, a.status, a.ill, a.lacked, a.blocked
	f.uptime, f.agent = f.uptime+again, f.agent+again
	if f.evidence.at != 0 {
		f.evidence.at = f.uptime
	}
}

// The new binary was in its place, and the journal did not say so: k3s has started with it.
func TestAVersionThatAPowerCutStartedHasItsTimeFromTheBootOn(t *testing.T) {
	for name, row := range map[string]struct {
		last   bool
		change func(*facts)
		step   types.K3sStep
		phase  types.KubeLifecyclePhase
	}{
		"another server has the former one": {false, func(*facts) {}, types.K3sStepReturn, types.LifecycleReturns},
		"only kube-init knows the process":  {false, func(f *facts) { f.process, f.kubeInit = k3sprocess.Process{}, true }, types.K3sStepReturn, types.LifecycleReturns},
		"the last server":                   {true, func(*facts) {}, types.K3sStepChange, types.LifecycleStuck},
	} {
		f := booting(row.last)
		f.evidence.disk = patch
		row.change(&f)
		var a action
		for f.uptime < 2*patchFor && f.journal.Step != types.K3sStepReturn {
			if a = decide(f); a.call != noCall || a.status.Phase != types.LifecycleChanges && f.uptime < patchFor {
				t.Fatalf("%s, after %s: call %d, %+v, %+v", name, f.uptime, a.call, a.status, a.journal)
			}
			f.on(a)
		}
		if a.journal.Step != row.step || a.status.Phase != row.phase || a.status.Released != patch {
			t.Errorf("%s: %+v, %+v", name, a.status, a.journal)
		}
	}
}

// k3s may have started as the new version with the boot: which binary is in its place is not known yet.
func TestAStepThatAPowerCutEndedWaitsUntilItIsKnownWhichBinaryIsInItsPlace(t *testing.T) {
	byKubeInit := func(f *facts) { f.kubeInit = true }
	unknown := func(f *facts) { f.process, f.kubeInit = k3sprocess.Process{}, true }
	hangs := func(f *facts) { f.evidence.at = 0 }
	reports := func(version string) func(*facts) {
		return func(f *facts) {
			n := server("n1", version)
			f.known, f.nodes, f.own, f.version.Running = true, []types.Node{n, server("n2", old)}, n, version
		}
	}
	for name, row := range map[string]struct {
		change func(*facts)
		after  time.Duration // of the agent, from which on it is known
		knows  func(*facts)
		step   types.K3sStep
		phase  types.KubeLifecyclePhase
	}{
		"the new one, after a minute":                     {func(*facts) {}, time.Minute, func(f *facts) { f.evidence.disk = patch }, types.K3sStepChange, types.LifecycleChanges},
		"the new one, after a quarter of an hour":         {func(*facts) {}, 15 * time.Minute, func(f *facts) { f.evidence.disk = patch }, types.K3sStepChange, types.LifecycleChanges},
		"the new one, and kube-init supervises k3s":       {byKubeInit, time.Minute, func(f *facts) { f.evidence.disk = patch }, types.K3sStepChange, types.LifecycleChanges},
		"the new one, and kube-init alone knows k3s":      {unknown, time.Minute, func(f *facts) { f.evidence.disk = patch }, types.K3sStepChange, types.LifecycleChanges},
		"the new one, by its kubelet":                     {func(*facts) {}, time.Minute, reports(patch), types.K3sStepChange, types.LifecycleChanges},
		"the new one, by its kubelet, and the disk hangs": {hangs, time.Minute, reports(patch), types.K3sStepChange, types.LifecycleChanges},
		"the former one, at once":                         {func(*facts) {}, 0, func(f *facts) { f.evidence.disk = old }, types.K3sStepReturn, types.LifecycleReturns},
		"the former one, after a minute":                  {func(*facts) {}, time.Minute, func(f *facts) { f.evidence.disk = old }, types.K3sStepReturn, types.LifecycleReturns},
		"the former one, and kube-init alone knows k3s":   {unknown, time.Minute, func(f *facts) { f.evidence.disk = old }, types.K3sStepReturn, types.LifecycleReturns},
		"a third one":                          {func(*facts) {}, time.Minute, func(f *facts) { f.evidence.disk = "v1.34.3+k3s1" }, types.K3sStepReturn, types.LifecycleReturns},
		"never":                                {func(*facts) {}, time.Hour, nil, types.K3sStepSwap, types.LifecycleStuck},
		"never, and kube-init alone knows k3s": {unknown, time.Hour, nil, types.K3sStepSwap, types.LifecycleStuck},
		"never, and the disk hangs":            {hangs, time.Hour, nil, types.K3sStepSwap, types.LifecycleStuck},
		"never, and the kubelet reports the former one": {reports(old), time.Hour, nil, types.K3sStepSwap, types.LifecycleStuck},
		"never, and the hold file is there":             {func(f *facts) { f.hold = "harvest" }, time.Hour, nil, types.K3sStepSwap, types.LifecycleStuck},
		"never, and the setting is taken back":          {func(f *facts) { f.version.Wanted = old }, time.Hour, nil, types.K3sStepSwap, types.LifecycleStuck},
		"never, and an operator takes it back": {func(f *facts) {
			f.rollback = types.K3sRollbackRequest{Version: patch, RequestedAt: f.now}
		}, time.Hour, nil, types.K3sStepSwap, types.LifecycleStuck},
	} {
		for _, last := range []bool{false, true} {
			f := booting(last)
			f.evidence.binary = finding{why: "it takes too long"}
			row.change(&f)
			commit := f.journal.Commit
			var a action
			for f.agent < row.after {
				phase, why := types.LifecycleChanges, "which k3s is on its disk"
				if f.agent >= 2*swapFor {
					phase = types.LifecycleStuck
				}
				switch {
				case f.evidence.at == 0 && phase == types.LifecycleStuck:
					why = "The disk does not answer."
				case f.evidence.at == 0:
					why = ""
				}
				if a = decide(f); a.call != noCall || a.journal.Step != types.K3sStepSwap || a.status.Released != old || a.status.Phase != phase || !strings.Contains(a.status.Reason, why) {
					t.Fatalf("%s, last %t, after %s: call %d, %+v, %+v", name, last, f.agent, a.call, a.status, a.journal)
				}
				f.on(a)
			}
			if row.knows != nil {
				row.knows(&f)
				a = decide(f)
			}
			released := old
			if a.journal.Step == types.K3sStepChange {
				released = patch
			}
			if goesOn := a.journal.Step == types.K3sStepChange; a.call != noCall || a.journal.Step != row.step || a.status.Phase != row.phase || a.journal.Failed.To != "" || goesOn && a.journal.Commit != commit ||
				a.status.Released != released && f.evidence.disk != "v1.34.3+k3s1" {
				t.Errorf("%s, last %t: call %d, %+v, %+v", name, last, a.call, a.status, a.journal)
			}
			for until := f.agent + 5*time.Minute; row.knows != nil && f.agent < until; {
				f.on(a)
				if a = decide(f); a.call == restore || a.call == restart || a.call == install {
					t.Fatalf("%s, last %t, after %s: call %d, %+v, %+v", name, last, f.agent, a.call, a.status, a.journal)
				}
			}
		}
	}
}

func TestK3sIsRestartedWithItsNewBinaryOnlyWhileTheClusterAllowsIt(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*facts)
		call   call
	}{
		"all is well":                {func(*facts) {}, restart},
		"KubeConfig is not read yet": {func(f *facts) { f.journal.Began = f.uptime - restartStaged + 1 }, noCall},
		"not listed since":           {func(f *facts) { f.checked.at = f.journal.Began }, check},
		"another server is away":     {func(f *facts) { f.node(1, func(n *types.Node) { n.Ready = types.ConditionUnknown }) }, check},
		"the lock is lost":           {func(f *facts) { f.checked.lock.Holder = "n2" }, check},
		"another node may reboot":    {mayReboot, check},
		"and has not for a while":    {func(f *facts) { mayReboot(f); f.lacked = f.uptime - rebootFor + 1 }, check},
		"and has not for too long":   {func(f *facts) { mayReboot(f); f.lacked = f.uptime - rebootFor }, restart},
		"it was restarted":           {func(f *facts) { f.process.Start = f.journal.Began + 1 }, noCall},
		"that did not come about":    {func(f *facts) { f.journal.Restarted, f.restarted = true, f.uptime-restartAfter }, restart},
		"it was tried a moment ago":  {func(f *facts) { f.journal.Restarted, f.restarted = true, f.uptime-restartAfter+1 }, noCall},
		"its binary is the old one":  {func(f *facts) { f.evidence.disk = old }, noCall},
		"only kube-init knows it":    {func(f *facts) { f.process, f.kubeInit = k3sprocess.Process{}, true }, restart},
		"nobody knows it":            {func(f *facts) { f.process = k3sprocess.Process{} }, noCall},
	} {
		f := swapping()
		f.journal.Step, f.evidence.disk, f.evidence.staged, f.version.OnDisk = types.K3sStepChange, patch, "", false
		row.change(&f)
		if a := decide(f); (a.lacked != 0) != (f.reboots() != "") {
			t.Errorf("%s: what delays it began at %s", name, a.lacked)
		}
		if a := decide(f); a.call != row.call || (a.call == restart) != (a.journal.Restarted && !f.journal.Restarted || f.journal.Restarted && a.call == restart) {
			t.Errorf("%s: call %d, %s", name, a.call, a.status.Reason)
		}
	}
}

func TestANodeThatNeverRebootsDelaysTheRestartOnlyForAWhile(t *testing.T) {
	f := swapping()
	f.journal.Step, f.evidence.disk, f.evidence.staged, f.version.OnDisk = types.K3sStepChange, patch, "", false
	mayReboot(&f)
	began, checked := f.uptime, *f.checked
	var checks time.Duration // since when the cluster is listed, which takes 7 s; 0 for not at all
	for f.uptime < began+3*time.Hour {
		a := decide(f)
		switch f.lacked, f.journal = a.lacked, a.journal; {
		case a.call == restart:
			if took := f.uptime - began; took < rebootFor || took > rebootFor+time.Minute {
				t.Errorf("k3s is restarted after %s", took)
			}
			return
		case a.call == check:
			checks, f.busy = f.uptime, true
		}
		f.uptime += 5 * time.Second
		f.evidence.at = f.uptime
		if f.busy && f.uptime >= checks+7*time.Second {
			now := checked
			now.at = f.uptime
			f.busy, f.checked, f.triedAt = false, &now, f.uptime
		}
	}
	t.Error("k3s is never restarted")
}

func TestAFailureGoesBackWithTheFormerBinaryBeforeTheCommitPoint(t *testing.T) {
	failing := func() facts {
		f := swapping()
		f.journal.Step, f.journal.Began, f.evidence.disk, f.evidence.staged, f.version.OnDisk = types.K3sStepChange, f.uptime-patchFor, patch, "", false
		f.process.Start = f.uptime - time.Minute
		return f
	}
	for name, row := range map[string]struct {
		change func(*facts)
		goes   bool
	}{
		"it never ran":                {func(*facts) {}, true},
		"nothing answers":             {func(f *facts) { f.known, f.own, f.nodes = false, types.Node{}, nil }, true},
		"it ran, and is not Ready":    {func(f *facts) { f.journal.Ran = true }, true},
		"it ran, and nothing answers": {func(f *facts) { f.journal.Ran, f.known = true, false }, true},
		"it ran, the device booted, and nothing answers": {func(f *facts) {
			f.journal.Ran, f.journal.BootID, f.known = true, "before", false
		}, false},
		"it ran, the device booted some time ago, and nothing answers": {func(f *facts) {
			f.journal.Ran, f.journal.Booted, f.known = true, true, false
		}, false},
		"it ran, the device booted, and is not Ready": {func(f *facts) { f.journal.Ran, f.journal.Booted = true, true }, true},
		"it ran on the last server, and nothing answers": {func(f *facts) {
			f.journal.Ran, f.journal.Commit, f.known = true, "No way back.", false
		}, false},
		"it ran, and one pod is not back": {func(f *facts) {
			f.node(0, func(n *types.Node) { n.KubeletVersion = patch })
			f.version.Running, f.version.OnDisk, f.journal.Pods, f.pods = patch, true, []string{"a"}, map[string]bool{"a": false}
			f.checked.at = f.uptime + 1
		}, false},
		"after the commit point": {func(f *facts) { f.journal.Commit = "No way back." }, false},
		"by now it is": {func(f *facts) {
			f.node(1, func(n *types.Node) { n.KubeletVersion = patch })
			f.node(2, func(n *types.Node) { n.KubeletVersion = patch })
		}, false},
	} {
		f := failing()
		row.change(&f)
		a := decide(f)
		if goes := a.journal.Step == types.K3sStepReturn && a.journal.Failed.To == patch; goes != row.goes || a.status.Released != patch {
			t.Errorf("%s: %+v, %+v", name, a.status, a.journal)
		}
	}
	f := failing()
	f.journal = decide(f).journal
	f.uptime += time.Second
	a := decide(f)
	if a.call != restore || a.status.Released != patch {
		t.Fatalf("first the binary: call %d, %+v", a.call, a.status)
	}
	f.acted = acted{restore, f.uptime, errors.New("the former one is gone")}
	if a = decide(f); a.call != noCall || !strings.Contains(a.status.Reason, "the former one is gone") {
		t.Errorf("call %d: %s", a.call, a.status.Reason)
	}
	f.uptime += swapFor
	if a = decide(f); a.call != restore || a.status.Released != old {
		t.Errorf("the kube container downloads it: call %d, %+v", a.call, a.status)
	}
	f.kubeInit = true
	if a = decide(f); a.status.Released != patch {
		t.Errorf("but kube-init cannot: %+v", a.status)
	}
	f.evidence.disk = old
	if a = decide(f); a.call != restart || a.status.Released != old {
		t.Errorf("then k3s: call %d, %+v", a.call, a.status)
	}
}

// binaries are the versions of the k3s in its place and of the one that was kept.
func (d *disk) binaries() (is, former string) {
	d.Lock()
	defer d.Unlock()
	return d.found.Binary, d.former
}

// stages gives every device a k3s of its own, and the next one.
func (s *site) stages() {
	for _, a := range s.agents {
		a.disk.Lock()
		a.disk.snapshot = true
		a.disk.found = Found{Binary: old, Staged: k3sbinary.Staged{Version: patch}, Sum: sum64, HasEtcd: true, Etcd: k3setcd.Health{Version: "3.6.4", HasLeader: true}}
		a.disk.Unlock()
	}
}

func TestThreeServersTakeAStagedPatch(t *testing.T) {
	play(t, "n1 n2 n3", func(s *site) {
		s.stages()
		s.pass(time.Minute)
		s.wants(patch, false)
		s.pass(30 * time.Minute)
		if got := strings.Join(s.order, " "); got != "n1 n2 n3" || s.most != 1 || s.cluster.Lock().Holder != "" {
			t.Errorf("%s changed, %d at once; the lock is %+v; %+v", got, s.most, s.cluster.Lock(), s.agents[0].is())
		}
		for _, a := range s.agents {
			binary, former := a.disk.binaries()
			if binary != patch || former != old || a.is().Phase != types.LifecycleIdle || a.longest > 2 {
				t.Errorf("%s: %s, %s, %+v; KubeConfig was another one %d times in a row", a.name, binary, former, a.is(), a.longest)
			}
		}
	})
}

func TestAChangeIsNotOverBeforeItsAPIServerIsReady(t *testing.T) {
	play(t, "n1 n2 n3", func(s *site) {
		s.stages()
		s.pass(time.Minute)
		s.cluster.FailVerb("ready", errors.New("poststarthook failed"))
		s.wants(patch, false)
		s.pass(15 * time.Minute)
		if is := s.agents[0].is(); is.Phase != types.LifecycleChanges || !strings.Contains(is.Reason, "is not ready: poststarthook failed") || strings.Join(s.order, " ") != "n1" {
			t.Errorf("%v changed: %+v", s.order, is)
		}
		s.cluster.FailVerb("ready", nil)
		s.pass(30 * time.Minute)
		if got := strings.Join(s.order, " "); got != "n1 n2 n3" {
			t.Errorf("%s changed; %+v", got, s.agents[0].is())
		}
	})
}

func TestAStagedVersionThatDoesNotComeUpIsTakenBackOnce(t *testing.T) {
	play(t, "n1 n2 n3", func(s *site) {
		s.stages()
		s.agents[0].broken = true
		s.pass(time.Minute)
		s.wants(patch, false)
		s.pass(2 * time.Hour)
		if got := strings.Join(s.order, " "); got != "n1 n1" { // there, and back
			t.Errorf("%s changed", got)
		}
		binary, _ := s.agents[0].disk.binaries()
		if a := s.agents[0]; binary != old || a.is().Phase != types.LifecycleFailed || a.longest > 2 || s.cluster.Lock().Holder != "" {
			t.Errorf("%s, %+v; KubeConfig was another one %d times in a row; the lock is %+v", binary, a.is(), a.longest, s.cluster.Lock())
		}
	})
}

// TestWhatWasBegunGoesOnByWhatIsThere: an agent was killed after each line of the journal, before
// its effect and after it; the files are real.
func TestWhatWasBegunGoesOnByWhatIsThere(t *testing.T) {
	at := func(step types.K3sStep, failed bool) types.KubeLifecycleJournal {
		j := types.KubeLifecycleJournal{Step: step, From: old, To: patch, Kind: types.K3sPatch, BootID: "boot", Began: time.Hour}
		if failed {
			j.Failed = types.K3sFailure{To: patch, Why: "No."}
		}
		return j
	}
	for name, row := range map[string]struct {
		journal   types.KubeLifecycleJournal
		installed bool   // the binary
		runs      string // k3s
		ends      string // the version that runs in the end
		phase     types.KubeLifecyclePhase
	}{
		"before the binary was installed": {at(types.K3sStepSwap, false), false, old, patch, types.LifecycleIdle},
		"before the journal said so":      {at(types.K3sStepSwap, false), true, old, patch, types.LifecycleIdle},
		"before k3s was restarted":        {at(types.K3sStepChange, false), true, old, patch, types.LifecycleIdle},
		"before it was verified":          {at(types.K3sStepChange, false), true, patch, patch, types.LifecycleIdle},
		"before the former was restored":  {at(types.K3sStepReturn, true), true, patch, old, types.LifecycleFailed},
		"before k3s was restarted again":  {at(types.K3sStepReturn, true), false, patch, old, types.LifecycleFailed},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := newDevice(t)
			if err := d.Fetch(t.Context(), patch, ""); err != nil {
				t.Fatal(err)
			}
			row.journal.Sum = d.Look(t.Context(), Found{}).Sum
			if row.installed {
				if err := d.Install(t.Context(), patch, row.journal.Sum); err != nil {
					t.Fatal(err)
				}
			}
			d.Releases = k3sbinary.Releases{} // without internet
			play(t, "n1 n2 n3", func(s *site) {
				a := s.agents[0]
				a.stop()
				a.real, a.since = &d, 30*time.Minute
				_ = a.journal.Publish(types.Global, row.journal)
				s.cluster.ChangeNode("n1", func(n *types.Node) { n.KubeletVersion = row.runs })
				a.runs(row.runs, patch)
				_, _ = s.cluster.SetDrainLock(t.Context(), types.DrainLock{Holder: "n1", BootID: "boot", Task: types.TaskK3sChange})
				a.start()
				s.pass(time.Hour)
				if n, _ := s.nodes.Get("n1"); n.KubeletVersion != row.ends || a.is().Phase != row.phase || s.cluster.Lock().Holder != "" {
					t.Errorf("%s runs, %+v, the lock is %+v", n.KubeletVersion, a.is(), s.cluster.Lock())
				}
				if f := d.Look(t.Context(), Found{}); f.Binary != row.ends {
					t.Errorf("in its place is %s", f.Binary)
				}
				synctest.Wait()
			})
		})
	}
}

func TestWithoutACopyOfItsDatastoreASingleNodeIsNotChanged(t *testing.T) {
	d, dir := newDevice(t)
	if err := d.Fetch(t.Context(), patch, ""); err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(dir, "../../rancher/k3s/server/db")
	if err := errors.Join(os.MkdirAll(db, 0o700), os.WriteFile(filepath.Join(db, "state.db"), []byte("no SQLite"), 0o600)); err != nil {
		t.Fatal(err)
	}
	f := d.Look(t.Context(), Found{})
	if err := d.Install(t.Context(), patch, f.Sum); err == nil || !strings.Contains(err.Error(), "copy the datastore") {
		t.Errorf("%v", err)
	}
	if f = d.Look(t.Context(), f); f.Binary != old || f.Staged.Version != patch {
		t.Errorf("%+v", f)
	}
	if err := os.Mkdir(filepath.Join(db, "etcd"), 0o700); err != nil { // it has been in a cluster since
		t.Fatal(err)
	}
	if err := d.Install(t.Context(), patch, f.Sum); err != nil {
		t.Error(err)
	}
}

func TestTheWayBackRestartsTheFormerK3sOnceAndThenWaits(t *testing.T) { // it may replay its database for long
	f := swapping()
	f.journal.Step, f.journal.Began, f.journal.Restarted, f.version.Binary = types.K3sStepReturn, f.uptime-10*time.Minute, true, old
	f.journal.Failed = types.K3sFailure{To: patch, Why: "No."}
	f.node(0, func(n *types.Node) { n.KubeletVersion = patch })
	f.process.Start = f.uptime - swapFor - time.Minute // with the one that was replaced a moment later
	if a := decide(f); a.call != restart {
		t.Fatalf("call %d: %s", a.call, a.status.Reason)
	}
	f.restarted = f.process.Start - time.Second // by this agent, since the way back began
	if a := decide(f); a.call == restart {
		t.Errorf("it is restarted again: %s", a.status.Reason)
	}
}

func TestNothingBeginsUntilTheHoldFileHasBeenRead(t *testing.T) {
	f, restart := underLock(ready()), underLock(expiring(50*day))
	f.unheld, restart.unheld = "it is not known", "it is not known"
	if a := decide(f); a.journal.Step != "" || strings.Join(lacking(a), " ") != "NotHeld" {
		t.Errorf("%q lack, %+v", lacking(a), a.journal)
	}
	if a := decide(restart); a.journal.Step != "" || lacks(a) != "NotHeld" {
		t.Errorf("%q lack, %+v", lacks(a), a.journal)
	}
	f = swapping()
	f.unheld = "it is not known"
	if a := decide(f); a.journal.Step != types.K3sStepSwap || a.call != install {
		t.Errorf("what was begun goes on: call %d, %+v", a.call, a.journal)
	}
}

func TestABinaryThatIsNeverPutInItsPlaceIsSaid(t *testing.T) {
	for name, busy := range map[string]bool{"to look": false, "to install": true} {
		f := swapping()
		f.busy, f.evidence.at, f.journal.Began = busy, 0, f.uptime-2*swapFor
		if a := decide(f); a.status.Phase != types.LifecycleStuck || a.journal.Step != types.K3sStepSwap || a.call != noCall {
			t.Errorf("%s: call %d, %+v", name, a.call, a.status)
		}
	}
}

func TestTheWayBackDoesNotStopAK3sThatWasNeverRestarted(t *testing.T) { // another server is away: the cluster would have no quorum
	f := swapping()
	f.journal.Step, f.journal.Began, f.evidence.disk, f.evidence.staged, f.version.OnDisk = types.K3sStepChange, f.uptime-patchFor, patch, "", false
	f.node(1, func(n *types.Node) { n.Ready = types.ConditionUnknown })
	f.checked.lock.Holder = "" // an operator has released it
	a := decide(f)
	if a.journal.Step != types.K3sStepReturn {
		t.Fatalf("%+v", a.journal)
	}
	f.journal, f.uptime = a.journal, f.uptime+time.Second
	if a = decide(f); a.call != restore {
		t.Fatalf("call %d", a.call)
	}
	f.node(0, func(n *types.Node) { n.K3s = a.stamp })
	f.journal, f.evidence.disk, f.version.OnDisk = a.journal, old, true
	for _, listed := range []bool{false, true} {
		f.uptime += swapFor
		if f.checked = nil; listed {
			f.checked = &checked{at: f.uptime, nodes: f.nodes, lock: types.DrainLock{Holder: "n1", Task: types.TaskK3sChange, BootID: "boot"}}
		}
		if a = decide(f); a.call == restart {
			t.Fatalf("it is restarted: %s", a.status.Reason)
		}
		f.journal = a.journal
	}
	if a.journal.Step != "" || a.journal.Failed.To != patch {
		t.Errorf("%s: %+v", a.status.Reason, a.journal)
	}
}

// installed are facts of such a server whose binary was put in its place 25 minutes ago, and whose k3s still
// is the one of before, because etcd needs it.
func installed() facts {
	f := swapping()
	f.journal.Step, f.journal.Began, f.evidence.disk, f.evidence.staged, f.version.OnDisk = types.K3sStepChange, f.uptime-25*time.Minute, patch, "", false
	f.process.Start = f.journal.Began - time.Hour
	f.node(1, func(n *types.Node) { n.Ready = types.ConditionUnknown })
	return f
}

func TestAChangeForWhichAnotherServerIsAwayWaitsAndDoesNotFail(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*facts)
		fails  bool
	}{
		"etcd needs this server":               {func(*facts) {}, false},
		"it is looked at once more":            {func(f *facts) { f.checked = nil }, false},
		"a call is under way":                  {func(f *facts) { f.busy = true }, false},
		"the API server is silent":             {func(f *facts) { f.known = false }, false},
		"only kube-init knows the process":     {func(f *facts) { f.process, f.kubeInit = k3sprocess.Process{}, true }, false},
		"and nobody knows whether k3s goes on": {func(f *facts) { f.process, f.kubeInit, f.known = k3sprocess.Process{}, true, false }, true},
		"it has not the drain lock any more":   {func(f *facts) { f.checked.lock.Holder = "" }, true},
		"k3s was restarted":                    {func(f *facts) { f.journal.Restarted = true }, true},
		"k3s is a new one":                     {func(f *facts) { f.process.Start = f.journal.Began + time.Minute }, true},
		"the disk has the former one":          {func(f *facts) { f.evidence.disk = "v1.34.3+k3s1" }, true},
	} {
		f := installed()
		row.change(&f)
		a := decide(f)
		if fails := a.journal.Failed.To != "" || a.journal.Step != types.K3sStepChange; fails != row.fails || !fails && a.status.Phase != types.LifecycleChanges || a.call == restart {
			t.Errorf("%s: call %d, %s, %+v", name, a.call, a.status.Reason, a.journal)
		}
	}
	f := installed()
	if a := decide(f); !strings.Contains(a.status.Reason, "It is not restarted yet: without this node 1 of 3 etcd members would be Ready") {
		t.Error(a.status.Reason)
	}
	f.journal.Began, f.process.Start = f.uptime-2*rebootFor, f.uptime-2*time.Hour
	if a := decide(f); a.call == restart || a.journal.Step != types.K3sStepChange || a.blocked != f.uptime {
		t.Errorf("it went away a moment ago: call %d, %s, %+v", a.call, a.status.Reason, a.journal)
	}
	f.blocked = f.uptime - rebootFor
	if a := decide(f); a.call == restart || a.journal.Failed.To != "" || a.journal.Step != types.K3sStepReturn || !a.journal.Restarted || !strings.Contains(a.status.Reason, "is taken back, because without this node 1 of 3") {
		t.Errorf("after half an hour: call %d, %s, %+v", a.call, a.status.Reason, a.journal)
	}
	unseen := f
	unseen.process, unseen.kubeInit = k3sprocess.Process{}, true
	if a := decide(unseen); a.call == restart || a.journal.Step != types.K3sStepReturn || !a.journal.Restarted {
		t.Errorf("after half an hour, and only kube-init knows the process: call %d, %s, %+v", a.call, a.status.Reason, a.journal)
	}
	silent := f
	silent.known = false // it may have quorum by now
	if a := decide(silent); a.journal.Step != types.K3sStepChange {
		t.Errorf("the API server is silent: %s, %+v", a.status.Reason, a.journal)
	}
	f.node(1, func(n *types.Node) { n.Ready = types.ConditionTrue }) // it is back, and its replica is rebuilt
	f.checked.storage.Volumes = []types.Volume{{Name: "pv-1", State: "attached", Robustness: "degraded", Replicas: []types.Replica{{Node: "n1"}, {Node: "n2"}}}}
	const lacks = "volume pv-1, which has a replica on this node, is not healthy"
	soon := f
	soon.blocked++
	if a := decide(soon); a.call == restart || a.journal.Failed.To != "" || !strings.Contains(a.status.Reason, "It is not restarted yet: "+lacks) {
		t.Errorf("call %d, %s, %+v", a.call, a.status.Reason, a.journal)
	}
	if a := decide(f); a.call == restart || a.journal.Failed.To != "" || a.journal.Step != types.K3sStepReturn || !a.journal.Restarted || !strings.Contains(a.status.Reason, "is taken back, because "+lacks) {
		t.Errorf("after half an hour: call %d, %s, %+v", a.call, a.status.Reason, a.journal)
	}
	released := f
	released.release = types.K3sReleaseRequest{Version: patch, Without: []string{"Volumes"}, RequestedAt: f.now}
	if a := decide(released); a.call != restart {
		t.Errorf("without Volumes: call %d, %s", a.call, a.status.Reason)
	}
	f.checked.storage.Volumes = nil
	a := decide(f)
	if a.call != restart || a.journal.Began != f.uptime {
		t.Fatalf("call %d, %+v", a.call, a.journal)
	}
	f.journal, f.uptime, f.known = a.journal, f.uptime+patchFor-1, false
	f.process.Start = f.uptime - time.Minute
	if a = decide(f); a.journal.Failed.To != "" {
		t.Errorf("it is not given its time: %+v", a.journal)
	}
	f.uptime++
	if a = decide(f); a.journal.Failed.To != patch {
		t.Errorf("a k3s that does not come up: %s, %+v", a.status.Reason, a.journal)
	}
}

// installs has n1 put the staged patch in its place, and not yet restart k3s.
func (s *site) installs() *agent {
	a := s.agents[0]
	s.stages()
	s.pass(time.Minute)
	s.wants(patch, false)
	for range 60 {
		if s.pass(5 * time.Second); a.is().Released == patch {
			return a
		}
	}
	s.Fatalf("%s: %s", a.is().Phase, a.is().Reason)
	return nil
}

func TestWhyK3sIsNotRestartedYetIsSaidWithoutABreak(t *testing.T) {
	play(t, "n1 n2 n3", func(s *site) {
		a := s.installs()
		s.cluster.ChangeNode("n2", func(n *types.Node) { n.Ready = types.ConditionUnknown })
		s.pass(2 * time.Minute)
		first := a.is()
		if !strings.Contains(first.Reason, "It is not restarted yet: without this node ") {
			s.Fatalf("%v changed: %s: %s", s.order, first.Phase, first.Reason)
		}
		for range 60 {
			if s.pass(5 * time.Second); a.is().Reason != first.Reason || !a.is().Since.Equal(first.Since) {
				s.Fatalf("since %s, and then %s: %s", first.Since, a.is().Since, a.is().Reason)
			}
		}
	})
}

// Volumes cannot be listed from the moment on at which the binary was put in its place.
func TestAChangeThatWaitsForAListSaysWhichAndIsTakenBackAfterHalfAnHour(t *testing.T) {
	for name, row := range map[string]struct {
		err  error
		said string
	}{
		"refused":                {errors.New("list volumes: refused"), "list volumes: refused"},
		"it does not answer":     {context.DeadlineExceeded, "list volumes: it takes too long"},
		"without a word of what": {errors.New("refused"), "list volumes: refused"},
	} {
		play(t, "n1 n2 n3", func(s *site) {
			a := s.installs()
			s.cluster.FailVerb("storage", row.err)
			s.pass(20 * time.Minute)
			if is := a.is(); len(s.order) != 0 || is.Phase != types.LifecycleChanges || !strings.Contains(is.Reason, "It is not restarted yet: the cluster could not be listed for 5m0s: "+row.said+".") {
				s.Fatalf("%s: %v changed: %s: %s", name, s.order, is.Phase, is.Reason)
			}
			s.pass(20 * time.Minute)
			if binary, _ := a.disk.binaries(); binary != old || len(s.order) != 0 || a.is().Phase != types.LifecycleReturns {
				s.Fatalf("%s, after half an hour: %s is in its place, %v changed: %s: %s", name, binary, s.order, a.is().Phase, a.is().Reason)
			}
			s.pass(30 * time.Minute)
			if is := a.is(); is.Phase != types.LifecycleStuck || !strings.Contains(is.Reason, row.said) {
				s.Errorf("%s, later: %s: %s", name, is.Phase, is.Reason)
			}
			s.cluster.FailVerb("storage", nil)
			s.pass(30 * time.Minute)
			if is := a.is(); is.Failed.To != "" || is.Phase != types.LifecycleIdle || s.cluster.Lock().Holder != "" || strings.Join(s.order, " ") != "n1 n2 n3" {
				s.Errorf("%s, at the end: %v changed: %s: %s", name, s.order, is.Phase, is.Reason)
			}
		})
	}
}

// n2 dies for good before k3s on n1 is restarted. Whoever removes it needs the drain lock.
func TestAChangeForWhichAServerIsAwayForGoodIsTakenBackAndGivesItsLock(t *testing.T) {
	play(t, "n1 n2 n3", func(s *site) {
		a := s.installs()
		s.cluster.ChangeNode("n2", func(n *types.Node) { n.Ready = types.ConditionUnknown })
		s.pass(25 * time.Minute)
		if binary, _ := a.disk.binaries(); binary != patch || a.is().Phase != types.LifecycleChanges || s.cluster.Lock().Holder != "n1" {
			s.Fatalf("%s is in its place, %v changed: %s: %s", binary, s.order, a.is().Phase, a.is().Reason)
		}
		s.pass(10 * time.Minute)
		if binary, _ := a.disk.binaries(); binary != old || len(s.order) != 0 || s.cluster.Lock().Holder != "" || a.is().Phase != types.LifecycleWaits || a.is().Failed.To != "" {
			s.Errorf("%s is in its place, %v changed, the lock is %+v: %s: %s", binary, s.order, s.cluster.Lock(), a.is().Phase, a.is().Reason)
		}
		a.disk.with(func() { a.disk.found.Staged, a.disk.found.Sum = k3sbinary.Staged{Version: patch}, sum64 })
		s.cluster.ChangeNode("n2", func(n *types.Node) { n.Ready = types.ConditionTrue })
		s.pass(30 * time.Minute)
		if got := strings.Join(s.order, " "); got != "n1 n2 n3" {
			s.Errorf("n2 is back, and %s changed: %s: %s", got, a.is().Phase, a.is().Reason)
		}
	})
}

// A pod and a volume of n1 are lost while k3s waits for n2, and k3s of before has gone on all the time.
func TestATakeBackThatStopsNothingWaitsForNoPodAndItsLockForVolumesAlone(t *testing.T) {
	storage := func(mode string) types.Storage {
		return types.Storage{Longhorn: true, Volumes: []types.Volume{{
			Name: "pv-1", State: "attached", Running: true, Robustness: "healthy", Wanted: 2, Replicas: []types.Replica{{Node: "n1", Mode: mode}, {Node: "n3", Mode: "RW"}},
		}}}
	}
	for name, row := range map[string]struct {
		mode string // of the replica on n1
		lock types.DrainLock
	}{
		"a pod":               {"RW", types.DrainLock{}},
		"a pod and a replica": {"WO", types.DrainLock{Holder: "n1", Ended: true}},
	} {
		play(t, "n1 n2 n3", func(s *site) {
			s.runsPod(true)
			s.cluster.SetStorage(storage("RW"))
			a := s.installs()
			s.runsPod(false)
			s.cluster.SetStorage(storage(row.mode))
			s.cluster.ChangeNode("n2", func(n *types.Node) { n.Ready = types.ConditionUnknown })
			s.pass(time.Hour)
			if lock := s.cluster.Lock(); lock.Holder != row.lock.Holder || lock.Ended != row.lock.Ended || len(s.order) != 0 || a.is().Phase != types.LifecycleWaits {
				s.Errorf("%s: %v changed, the lock is %+v: %s: %s", name, s.order, lock, a.is().Phase, a.is().Reason)
			}
			s.cluster.SetStorage(storage("RW"))
			s.pass(5 * time.Minute)
			if lock := s.cluster.Lock(); lock.Holder != "" {
				s.Errorf("%s, and it is rebuilt: the lock is %+v: %s", name, lock, a.is().Reason)
			}
		})
	}
}

// Only kube-init knows the process: an operator takes back what waits, and etcd needs this server.
func TestAReturnUnderKubeInitDoesNotStopAK3sThatWasNeverRestarted(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*facts)
		stops  bool
	}{
		"it is the former one":            {func(*facts) {}, false},
		"it was restarted":                {func(f *facts) { f.journal.Restarted = true }, true},
		"nobody knows whether it goes on": {func(f *facts) { f.known, f.own, f.nodes = false, types.Node{}, nil }, true},
		"it is a third one":               {func(f *facts) { f.node(0, func(n *types.Node) { n.KubeletVersion = "v1.34.3+k3s1" }) }, true},
	} {
		f := installed()
		f.process, f.kubeInit = k3sprocess.Process{}, true
		f.rollback = types.K3sRollbackRequest{Version: patch, RequestedAt: f.now}
		row.change(&f)
		a := decide(f)
		if a.journal.Step != types.K3sStepReturn || a.journal.Failed.To != patch {
			t.Errorf("%s: %s, %+v", name, a.status.Reason, a.journal)
		}
		f.journal, f.evidence.disk, f.version.OnDisk, f.uptime = a.journal, old, true, f.uptime+swapFor
		f.evidence.at = f.uptime
		if a = decide(f); (a.call == restart) != row.stops {
			t.Errorf("%s, and it is back in its place: call %d: %s", name, a.call, a.status.Reason)
		}
	}
}

// The kube container would stop it, to download the version that runs.
func TestAFormerBinaryThatCannotBePutBackIsNotReleasedWhileTheK3sOfItGoesOn(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*facts)
		from   bool
	}{
		"it goes on":                 {func(*facts) {}, false},
		"it was stopped":             {func(f *facts) { f.process.Start = f.uptime - time.Minute }, true},
		"nobody knows":               {func(f *facts) { f.process = k3sprocess.Process{} }, true},
		"the former one is in place": {func(f *facts) { f.evidence.disk = old }, true},
		"while it is put back":       {func(f *facts) { f.busy, f.evidence = true, evidence{} }, false},
	} {
		f := installed()
		f.rollback = types.K3sRollbackRequest{Version: patch, RequestedAt: f.now}
		a := decide(f)
		if a.journal.Step != types.K3sStepReturn || a.status.Released != patch {
			t.Fatalf("%s: %+v, %+v", name, a.status, a.journal)
		}
		f.journal, f.uptime = a.journal, f.uptime+swapFor
		f.evidence.at, f.acted = f.uptime, acted{restore, f.uptime, errors.New("EIO")}
		row.change(&f)
		if a = decide(f); (a.status.Released == old) != row.from {
			t.Errorf("%s: %s is released: %s", name, a.status.Released, a.status.Reason)
		}
	}
}

// The new one was put in its place, and cannot be asked for its version. k3s.old is whole.
func TestTheFormerBinaryIsPutBackInThePlaceOfOneThatSaysNoVersion(t *testing.T) {
	starts := func(f *facts) { f.process.Start = f.uptime - time.Minute }
	silent := func(f *facts) { f.known, f.own, f.nodes = false, types.Node{}, nil }
	for name, row := range map[string]struct {
		withdrawn bool
		change    func(*facts)
		restores  bool
	}{
		"the former k3s goes on":            {false, func(*facts) {}, true},
		"it was withdrawn":                  {true, func(*facts) {}, true},
		"only kube-init knows the process":  {false, func(f *facts) { f.process, f.kubeInit = k3sprocess.Process{}, true }, true},
		"the former k3s has started again":  {false, starts, true},
		"nothing was looked at since":       {false, func(f *facts) { f.evidence.at = f.journal.Began }, false},
		"k3sconfig sees the former one":     {false, func(f *facts) { f.version.OnDisk = true }, false},
		"it failed, and nothing answers":    {false, func(f *facts) { starts(f); silent(f) }, true},
		"withdrawn, and another one starts": {true, func(f *facts) { starts(f); silent(f) }, false}, // it may be the last server's
	} {
		f := swapping()
		f.journal.Began, f.evidence.disk, f.evidence.staged, f.version.OnDisk = f.uptime-swapFor, "", "", false
		if row.withdrawn {
			f.version.Wanted = old
		}
		a := decide(f)
		if a.journal.Step != types.K3sStepReturn || (a.journal.Failed.To == "") != row.withdrawn || a.status.Released != patch {
			t.Fatalf("%s: %+v, %+v", name, a.status, a.journal)
		}
		f.journal, f.uptime = a.journal, f.uptime+swapFor
		f.evidence.at, f.acted = f.uptime, acted{install, f.journal.Began - swapFor, nil}
		row.change(&f)
		if a = decide(f); (a.call == restore) != row.restores || a.call == restart || f.known && !a.journal.Restarted {
			t.Errorf("%s: call %d, %+v, %+v", name, a.call, a.status, a.journal)
		}
		f.acted = acted{restore, f.uptime, errors.New("EIO")}
		if a = decide(f); strings.Contains(a.status.Reason, "could not be put back: EIO") != row.restores {
			t.Errorf("%s: %s", name, a.status.Reason)
		}
	}
}

// k3s ended by itself while its binary was put in its place, and started as the new version: its data is of that.
func TestTheLastServerGoesOnWithAVersionThatStartedWhileItsBinaryWasPutInItsPlace(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*facts)
		step   types.K3sStep
		call   call
	}{
		"it runs":   {func(f *facts) { f.node(0, func(n *types.Node) { n.KubeletVersion = patch }) }, types.K3sStepChange, check},
		"it starts": {func(f *facts) { f.known, f.own, f.nodes = false, types.Node{}, nil }, types.K3sStepReturn, noCall},
		"it starts, and its binary is seen": {func(f *facts) {
			f.known, f.own, f.nodes, f.evidence.disk = false, types.Node{}, nil, patch
		}, types.K3sStepChange, noCall},
		"the former one runs":  {func(f *facts) { f.process.Start = f.uptime - time.Hour }, types.K3sStepReturn, restore},
		"kube-init knows both": {func(f *facts) { f.process, f.kubeInit = k3sprocess.Process{}, true }, types.K3sStepReturn, restore},
	} {
		for _, server := range []string{"the last server", "another one"} {
			f := swapping()
			if server == "the last server" {
				f.journal.Commit = commits(f.own, nil, patch)
			}
			f.journal.Began, f.evidence.disk, f.evidence.staged, f.version.OnDisk = f.uptime-swapFor, "", "", false
			f.journal = decide(f).journal
			if f.journal.Step != types.K3sStepReturn || f.journal.Failed.To != patch || !f.journal.Restarted {
				t.Fatalf("%s, %s: %+v", name, server, f.journal)
			}
			f.uptime += time.Minute
			f.evidence.at, f.process.Start = f.uptime, f.uptime-30*time.Second
			row.change(&f)
			step, call := row.step, row.call
			if server == "another one" {
				step, call = types.K3sStepReturn, restore
			}
			a := decide(f)
			if a.call != call || a.journal.Step != step || (a.journal.Failed.To == "") != (step == types.K3sStepChange) || a.status.Failed != a.journal.Failed || a.status.Released != patch {
				t.Errorf("%s, %s: call %d, %+v, %+v", name, server, a.call, a.status, a.journal)
			}
			f.uptime += swapFor
			f.evidence.at, f.journal, f.acted = f.uptime, a.journal, acted{restore, f.uptime, errors.New("EIO")}
			if a = decide(f); call != restore && (a.status.Released != patch || a.call == restart || a.call == restore) {
				t.Errorf("%s, %s, later: call %d, %+v, %+v", name, server, a.call, a.status, a.journal)
			}
		}
	}
}

// What kube-init alone knows may be the process of before: only a boot shows that it is not.
func TestAProcessThatKubeInitAloneKnowsIsNotTakenForOneThatWasStarted(t *testing.T) {
	f := installed()
	f.journal.Began, f.process.Start, f.blocked = f.uptime-rebootFor, f.uptime-time.Hour, f.uptime-rebootFor
	f.journal = decide(f).journal
	f.process, f.kubeInit, f.uptime = k3sprocess.Process{}, true, f.uptime+time.Minute
	f.evidence.at = f.uptime
	if a := decide(f); a.journal.Step != types.K3sStepReturn || a.call != restore {
		t.Errorf("call %d, %+v, %+v", a.call, a.status, a.journal)
	}
}

// The kube container looked between the binary and KubeConfig, or k3s ended by itself before the former one was back.
func TestAVersionThatRunsAfterItsChangeWasTakenBackIsNotReplacedOnTheLastServer(t *testing.T) {
	for name, up := range map[string]bool{"it starts": false, "it starts, and the disk is looked at": false, "it starts with a boot, and only kube-init knows it": false, "it runs": true, "it starts, and its kubelet reports the former one": true} {
		f := installed()
		f.journal.Commit = commits(f.own, nil, patch)
		f.journal.Began, f.process.Start, f.blocked = f.uptime-rebootFor, f.uptime-time.Hour, f.uptime-rebootFor
		a := decide(f)
		if a.journal.Step != types.K3sStepReturn || a.journal.Failed.To != "" {
			t.Fatalf("%s: %s, %+v", name, a.status.Reason, a.journal)
		}
		for i := range f.nodes {
			f.node(i, func(n *types.Node) { n.KubeletVersion, n.Ready = patch, types.ConditionTrue })
		}
		f.journal, f.uptime = a.journal, f.uptime+swapFor
		f.evidence.at, f.acted, f.process.Start = f.uptime, acted{restore, f.uptime, errors.New("it is gone")}, f.uptime-2*time.Minute
		if f.known = up; up {
			f.version.Running, f.version.OnDisk = patch, true
		}
		if strings.HasSuffix(name, "the former one") {
			f.node(0, func(n *types.Node) { n.KubeletVersion = old })
			f.version.Running, f.version.OnDisk = old, false
		}
		if !up { // nor has the agent, which has started again, heard of a node
			f.own, f.nodes = types.Node{}, nil
		}
		if strings.Contains(name, "kube-init") {
			f.boot, f.uptime, f.process, f.kubeInit = "later", time.Minute, k3sprocess.Process{}, true
			seen := f.evidence
			f.evidence, f.checked = evidence{}, nil // the first step knows neither
			f.journal = decide(f).journal
			f.evidence, f.uptime = seen, f.uptime+time.Minute
			f.evidence.at, f.acted = f.uptime, acted{}
		}
		looks := strings.HasSuffix(name, "looked at")
		if looks {
			f.evidence = evidence{}
		}
		if a = decide(f); a.status.Released != patch || (a.journal.Step == types.K3sStepChange) == looks || a.journal.Commit == "" || (a.status.Commit == "") != looks || a.call == restart || a.call == restore {
			t.Errorf("%s: call %d, %+v, %+v", name, a.call, a.status, a.journal)
		}
		f.journal, f.uptime = a.journal, f.uptime+restartAfter
		f.checked = &checked{at: f.uptime, lock: types.DrainLock{Holder: "n1", Task: types.TaskK3sChange, BootID: "boot"}, nodes: f.nodes}
		if a = decide(f); a.call == restart || a.call == restore || !looks && f.unstopped() {
			t.Errorf("%s, later: call %d, %+v, %+v", name, a.call, a.status, a.journal)
		}
	}
}

// Its binary is not there any more: whoever can return does so.
func TestAVersionThatRunsAfterItsBinaryWasReplacedGoesOnWhereNothingElseCan(t *testing.T) {
	for name, last := range map[string]bool{"another server has the former one": false, "the last server": true} {
		f := installed()
		f.journal.Began, f.process.Start, f.blocked = f.uptime-rebootFor, f.uptime-time.Hour, f.uptime-rebootFor
		f.journal = decide(f).journal
		for i := range f.nodes {
			f.node(i, func(n *types.Node) { n.Ready = types.ConditionTrue })
			if i == 0 || last {
				f.node(i, func(n *types.Node) { n.KubeletVersion = patch })
			}
		}
		f.uptime += time.Minute
		f.process.Start, f.evidence.disk, f.version.Running = f.uptime-30*time.Second, old, patch
		if a := decide(f); (a.journal.Step == types.K3sStepChange) != last {
			t.Errorf("%s: %+v, %+v", name, a.status, a.journal)
		}
		if last {
			continue
		}
		f.process, f.kubeInit = k3sprocess.Process{}, true // only kube-init knows it
		if a := decide(f); a.call == restart {
			t.Errorf("%s, too early: %+v", name, a.journal)
		}
		f.uptime += swapFor
		a := decide(f)
		if a.call != restart {
			t.Errorf("%s: call %d, %+v", name, a.call, a.journal)
		}
		f.journal, f.restarted = a.journal, f.uptime
		at := f.uptime
		// Of an agent that has ended since it is not known what came of it.
		for when, row := range map[string]struct {
			agent, after time.Duration
			refused, now bool
		}{
			"it was refused":                       {time.Hour, swapFor - 1, true, false},
			"it was refused for long":              {time.Hour, swapFor, true, true},
			"it was accepted":                      {time.Hour, patchFor - 1, false, false},
			"it was accepted for long":             {time.Hour, patchFor, false, true},
			"another agent asked for it":           {patchFor - 1, 2 * patchFor, false, false},
			"another agent asked for it long ago":  {patchFor, 2 * patchFor, false, true},
			"it is not known whether another does": {swapFor, swapFor + 1, false, false},
		} {
			f := f
			f.uptime, f.agent, f.refused = at+row.after, row.agent, row.refused
			if f.agent < row.after {
				f.restarted = 0
			}
			if a := decide(f); (a.call == restart) != row.now {
				t.Errorf("%s, %s: call %d, %s, %+v", name, when, a.call, a.status.Reason, a.journal)
			}
		}
		f.uptime += patchFor
		f.node(0, func(n *types.Node) { n.KubeletVersion = old }) // it has returned
		if a = decide(f); a.call == restart {
			t.Errorf("%s, although it has returned: %+v", name, a.journal)
		}
	}
}

func TestAnEtcdThatRunsWithoutTheOthersIsNoFailureOfTheVersion(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*facts)
		fails  bool
	}{
		"without the others":           {func(*facts) {}, false},
		"it has a leader":              {func(f *facts) { f.found.Etcd.HasLeader = true }, true},
		"it is connected with enough":  {func(f *facts) { f.found.Etcd.Connected = 1 }, true},
		"it does not answer":           {func(f *facts) { f.found.EtcdErr = errors.New("refused") }, true},
		"it was looked at before":      {func(f *facts) { f.evidence.at = f.process.Start }, true},
		"nothing was looked at":        {func(f *facts) { f.evidence.at = 0 }, true},
		"this server has none":         {func(f *facts) { f.found.HasEtcd = false }, true},
		"it is the only member":        {func(f *facts) { f.found.Etcd.Members = 1 }, true},
		"the kubelet reports the next": {func(f *facts) { f.known = true }, true},
	} {
		f := installed()
		f.known, f.journal.Restarted, f.process.Start = false, true, f.journal.Began+time.Minute
		f.found.HasEtcd, f.found.Etcd = true, k3setcd.Health{Version: "3.6.4", Members: 3}
		row.change(&f)
		a := decide(f)
		if fails := a.journal.Failed.To != ""; fails != row.fails || !fails && (a.status.Phase != types.LifecycleStuck || !strings.Contains(a.status.Reason, "connected with 0 of 2 other members")) {
			t.Errorf("%s: %s: %s", name, a.status.Phase, a.status.Reason)
		}
		f.rollback = types.K3sRollbackRequest{Version: patch, RequestedAt: f.now}
		if a = decide(f); a.journal.Step != types.K3sStepReturn {
			t.Errorf("%s, and an operator takes it back: %s", name, a.status.Reason)
		}
	}
}

func TestWhereNoBinaryIsSeenK3sIsRestartedOnceForAStep(t *testing.T) { // as on zfs, and its supervisor does not help
	for name, supervised := range map[string]bool{"the shell script": false, "kube-init": true} {
		f := ready()
		f.journal = types.KubeLifecycleJournal{Step: types.K3sStepChange, From: old, To: patch, Kind: types.K3sPatch, BootID: "boot", Began: f.uptime}
		f.version.OnDisk, f.kubeInit, f.evidence.at = false, supervised, f.uptime
		f.lock.Holder = "n1"
		f.process = k3sprocess.Process{PID: 7, Start: time.Hour}
		steps := map[types.K3sStep]int{}
		for range 6 * 24 * 60 { // a day
			f.uptime += 10 * time.Second
			f.checked = &checked{at: f.uptime, nodes: f.nodes, lock: types.DrainLock{Holder: "n1", Task: types.TaskK3sChange, BootID: "boot"}}
			f.evidence.at = f.uptime
			a := decide(f)
			if a.stamp != nil {
				f.node(0, func(n *types.Node) { n.K3s = a.stamp })
			}
			if a.call == restart {
				steps[a.journal.Step]++
				f.process.Start, f.restarted = f.uptime, f.uptime // and it is the former version again
			}
			if f.journal = a.journal; f.journal.Step == "" {
				break
			}
		}
		if steps[types.K3sStepChange] != 1 || steps[types.K3sStepReturn] > 1 {
			t.Errorf("%s: restarted %v, %+v", name, steps, f.journal)
		}
	}
}
