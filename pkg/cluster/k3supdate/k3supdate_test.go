package k3supdate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"

	"github.com/zedkube/zedkube/pkg/base/k3sbinary"
	"github.com/zedkube/zedkube/pkg/base/k3setcd"
	"github.com/zedkube/zedkube/pkg/base/k3sprocess"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a cluster of which every node has an agent, and a kube container that changes k3s
// as soon as that is released.
type site struct {
	*testing.T
	nodes   pubsub.Table[types.Node]
	pods    pubsub.Table[types.Pod]
	api     pubsub.Table[types.APIStatus]
	leases  pubsub.Table[types.Lease]
	cluster *kubetest.Cluster
	booted  time.Time
	agents  []*agent
	mu      sync.Mutex // of what restarts for certificates change
	down    int        // nodes whose k3s is stopped
	most    int
	order   []string // in which k3s was stopped
}

// agent is the component on one node.
type agent struct {
	*site
	name       string
	version    pubsub.Table[types.K3sVersionStatus]
	settings   pubsub.Table[types.ConfigItemValueMap]
	release    pubsub.Table[types.K3sReleaseRequest]
	retry      pubsub.Table[types.K3sRetryRequest]
	rollback   pubsub.Table[types.K3sRollbackRequest]
	info       pubsub.Table[types.EdgeNodeInfo]
	status     pubsub.Table[types.EdgeNodeClusterStatus]
	member     pubsub.Table[types.ClusterMembership]
	device     requests
	update     requests
	operator   pubsub.Table[types.NodeDrainRequest]
	drain      pubsub.Table[types.NodeDrainProgress]
	parts      pubsub.Table[types.KubeClusterUpdateStatus]
	conditions pubsub.Table[types.KubeNodeConditions]
	certs      pubsub.Table[types.K3sCertificates]
	reset      pubsub.Table[types.CertsResetRequest]
	recovery   pubsub.Table[types.MountRecovery]
	lifecycle  pubsub.Table[types.KubeLifecycle]
	journal    pubsub.Table[types.KubeLifecycleJournal]
	hold       string
	consent    Consent
	broken     bool // its k3s does not come up with another version
	stuck      bool // its kube container goes on with the k3s that it has
	changing   bool
	supervised bool // only its supervisor knows its k3s
	restarts   bool // k3s is to be stopped and started
	differs    int  // times in a row that KubeConfig was another one than the binary
	longest    int  // of such rows
	disk       disk
	real       *Device       // instead of disk
	since      time.Duration // uptime when its k3s was started
	started    time.Duration // uptime when its k3s did; 0 where only its supervisor knows
	expires    time.Time     // when its certificates do
	drained    int
	lost       bool // the agent is killed before the next restart of k3s
	renewals   []time.Time
	stop       func()
	overrides
}

// disk is that of a device on which no k3s can be seen, unless found says something else.
type disk struct {
	sync.Mutex
	found    Found
	trouble  error // of what changes it
	fetched  []time.Duration
	saved    int
	snapshot bool // k3s can take one
	former   string
	hangs    chan struct{}
}

// with is how a test reaches it while agents run.
func (d *disk) with(do func()) {
	d.Lock()
	defer d.Unlock()
	do()
}

func (d *disk) Look(context.Context, Found) Found {
	d.Lock()
	hangs := d.hangs
	d.Unlock()
	if hangs != nil {
		<-hangs
	}
	d.Lock()
	defer d.Unlock()
	if d.found.Binary == "" {
		return Found{None: k3sbinary.ErrNone}
	}
	return d.found
}

func (d *disk) Fetch(_ context.Context, version, _ string) error {
	d.Lock()
	defer d.Unlock()
	d.fetched = append(d.fetched, time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)))
	if d.trouble == nil {
		d.found.Staged, d.found.Sum = k3sbinary.Staged{Version: version}, strings.Repeat("0", 64)
	}
	return d.trouble
}

func (d *disk) Install(_ context.Context, version, sum string) error {
	d.Lock()
	defer d.Unlock()
	if d.trouble == nil {
		if d.found.Staged.Version != version || d.found.Sum != sum {
			return errors.New("another one is staged")
		}
		d.former, d.found.Binary, d.found.Staged, d.found.Sum = d.found.Binary, version, k3sbinary.Staged{}, ""
	}
	return d.trouble
}

func (d *disk) Restore(_ context.Context, version string) error {
	d.Lock()
	defer d.Unlock()
	if d.trouble == nil {
		if d.former != version {
			return errors.New("the former one is " + d.former)
		}
		d.former, d.found.Binary = "", version
	}
	return d.trouble
}

func (d *disk) Save(context.Context) error {
	d.Lock()
	defer d.Unlock()
	if d.saved++; !d.snapshot {
		return errors.New("k3s answers 503")
	}
	d.found.Snapshot = k3setcd.Snapshot{Name: "zedkube-1", At: time.Now()}
	return nil
}

// requests is a topic of requests that has been received.
type requests struct {
	pubsub.Table[types.NodeDrainRequest]
}

func (r *requests) Synced() bool { return true }

func play(t *testing.T, names string, tell func(*site)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &site{T: t, booted: time.Now().Add(-time.Hour)}
		s.cluster = &kubetest.Cluster{Nodes: &s.nodes, Pods: &s.pods, API: &s.api, Leases: &s.leases}
		s.cluster.SetFault(kubetest.None)
		for _, name := range strings.Fields(names) {
			n := server(name, old)
			id := uuid.NewSHA1(uuid.NameSpaceOID, []byte(name))
			n.UUID, n.K3s = id.String(), nil
			_ = s.nodes.Publish(name, n)
			a := &agent{site: s, name: name, hold: filepath.Join(dir, name)}
			_ = a.info.Publish(types.Global, types.EdgeNodeInfo{DeviceName: name, DeviceID: id})
			s.agents = append(s.agents, a)
			a.runs(old, "")
			_ = a.conditions.Publish(types.Global, types.KubeNodeConditions{Conditions: conditions(types.ConditionTrue, "")})
			_ = a.settings.Publish(types.Global, types.ConfigItemValueMap{})
			a.start()
		}
		tell(s)
		for _, a := range s.agents {
			a.stop()
		}
	})
}

func (a *agent) runs(version, wanted string) {
	_ = a.version.Publish(types.Global, types.K3sVersionStatus{Version: version, Running: version, OnDisk: true, Binary: version, Wanted: wanted})
}

func (a *agent) component() *Component {
	log, _ := logtest.NewNullLogger()
	return &Component{
		Log: log, Pulse: &loop.Pulse{}, Version: &a.version, Override: &a.override, Settings: &a.settings, Release: &a.release, Retry: &a.retry, Rollback: &a.rollback, Info: &a.info, Cluster: &a.status,
		Membership: &a.member, Nodes: &a.nodes, AppPods: &a.site.pods, Leases: &a.leases, API: &a.api, DeviceOp: &a.device, Update: &a.update, Operator: &a.operator,
		Drain: &a.drain, Parts: &a.parts, Conditions: &a.conditions, Mounts: &a.recovery, Kube: a.cluster, K3s: a, Disk: a.onDisk(), Operations: types.NoOperations{},
		Certificates: &a.certs, Reset: &a.reset, LeafFiles: LeafFiles{Dirs: []string{a.hold + ".k3s"}},
		Consent: a.consent, HoldFile: a.hold, JournalFile: a.hold + ".journal", BootID: "boot", Hour: time.Hour, Uptime: func() time.Duration { return time.Since(a.booted) },
		Lifecycle: &a.lifecycle, Journal: &a.journal,
	}
}

func (a *agent) start() {
	a.run(a.component())
	synctest.Wait()
}

func (a *agent) run(c *Component) {
	ctx, cancel := context.WithCancel(types.ActAs(a.Context(), "k3supdate"))
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	a.stop = func() { cancel(); <-done }
}

func (a *agent) Find() (k3sprocess.Process, error) {
	a.mu.Lock()
	started, unseen := a.started, a.dead || a.supervised
	a.mu.Unlock()
	if unseen {
		return k3sprocess.Process{}, nil
	}
	a.disk.Lock()
	defer a.disk.Unlock()
	if a.disk.found.Binary == "" && a.real == nil && started == 0 {
		return k3sprocess.Process{}, nil
	}
	return k3sprocess.Process{PID: 7, Start: max(a.since, started)}, nil
}

func (a *agent) HasSupervisor() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.supervised
}

func (a *agent) Runs() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.dead
}

func (a *agent) onDisk() Disk {
	if a.real != nil {
		return a.real
	}
	return &a.disk
}

// Restart has k3s run the binary that is in its place.
func (a *agent) Restart(context.Context, k3sprocess.Process) error {
	if j, _ := a.journal.Get(types.Global); j.Kind == types.K3sRestart {
		return a.restartForCertificates(j)
	}
	a.disk.with(func() { a.since, a.restarts = time.Since(a.booted), true })
	return nil
}

// restartForCertificates takes a minute, after which k3s has renewed its certificates.
func (a *agent) restartForCertificates(j types.KubeLifecycleJournal) error {
	if lock := a.cluster.Lock(); lock.Holder != a.name || lock.Task != types.TaskK3sChange {
		a.Errorf("%s restarts while the lock is %+v, the journal %+v", a.name, lock, j)
	}
	if a.lost {
		a.lost = false
		go func() { a.stop(); a.start() }()
		return errors.New("killed")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.renewals = append(a.renewals, time.Now())
	a.down++
	a.most = max(a.most, a.down)
	a.order = append(a.order, a.name)
	a.cluster.ChangeNode(a.name, func(n *types.Node) { n.Ready = types.ConditionUnknown })
	time.AfterFunc(time.Minute, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.down--
		a.started, a.expires = time.Since(a.booted), time.Now().Add(365*day)
		a.cluster.ChangeNode(a.name, func(n *types.Node) { n.Ready = types.ConditionTrue })
	})
	return nil
}

func (a *agent) is() types.KubeLifecycle {
	s, _ := a.lifecycle.Get(types.Global)
	return s
}

// wants is what the controller asks of every node; each operator has looked at what zedkube
// does not know.
func (s *site) wants(version string, released bool) {
	for _, a := range s.agents {
		v, _ := a.version.Get(types.Global)
		v.Wanted = version
		_ = a.version.Publish(types.Global, v)
		if released {
			a.releases(version)
		}
	}
	synctest.Wait()
}

// all are the preconditions that an operator may do without.
var all = []string{"NotFailed", "Agreed", "Turn", "NodesReady", "QuorumWithoutThis", "Components", "Certificates", "Clock", "Binary", "Snapshot", "EtcdHealthy", "EtcdVersion", "Compatible", "RemovedAPIs", "Consent", "Volumes"}

func (a *agent) releases(version string) {
	_ = a.release.Publish(types.Global, types.K3sReleaseRequest{Version: version, RequestedAt: time.Now(), Without: all})
}

// pass lets time go by, in which kube containers do what is released.
func (s *site) pass(d time.Duration) {
	for range int(d / (5 * time.Second)) {
		time.Sleep(5 * time.Second)
		synctest.Wait()
		for _, a := range s.agents {
			a.drains()
			a.takesOverride()
			v, _ := a.version.Get(types.Global)
			binary, restarts := "", false
			a.disk.with(func() { binary, restarts, a.restarts = a.disk.found.Binary, a.restarts, false })
			if restarts {
				a.changes(a.onDisk().Look(a.Context(), Found{}).Binary)
				continue
			}
			switch to := a.is().Released; {
			case to == "" || a.changing || a.stuck:
			case a.real != nil:
			case binary != "":
				if a.differs++; to == binary {
					a.differs = 0
				}
				a.longest = max(a.longest, a.differs) // k3s would be stopped for a download, if that lasts
			case to != v.Version:
				a.changes(to)
			}
		}
	}
}

// drains plays the drain of this node, for as long as the change asks for it.
func (a *agent) drains() {
	is, _ := a.drain.Get(types.Global)
	lock, asks := a.cluster.Lock(), !a.is().Drain.RequestedAt.IsZero()
	switch {
	case asks && is.Phase == "":
		is = types.NodeDrainProgress{Phase: types.PhaseGates, Requesters: []string{types.RequestedByK3s}}
	case asks && is.Phase == types.PhaseGates && lock.Holder == "":
		_, err := a.cluster.SetDrainLock(a.Context(), types.DrainLock{Holder: a.name, BootID: "boot", Version: lock.Version})
		is.Phase = types.PhaseEmptying
		if err != nil {
			a.Error(err)
		}
	case asks && is.Phase == types.PhaseEmptying:
		is.Phase, is.Lock.Mine = types.PhaseComplete, true
		a.drained++
	case !asks && is.Phase != "":
		if lock.Holder == a.name && lock.Task == "" {
			_ = a.cluster.FreeDrainLock(a.Context(), lock)
		}
		is = types.NodeDrainProgress{}
	}
	_ = a.drain.Publish(types.Global, is)
}

// changes stops k3s; a minute later it runs the other version.
func (a *agent) changes(to string) {
	a.changing = true
	a.down++
	a.most = max(a.most, a.down)
	a.order = append(a.order, a.name)
	task := types.TaskK3sChange
	if drain, _ := a.drain.Get(types.Global); drain.Phase == types.PhaseComplete {
		task = ""
	}
	if lock := a.cluster.Lock(); lock.Holder != a.name || lock.Task != task {
		a.Errorf("%s changes to %s while the lock is %+v", a.name, to, lock)
	}
	if j, _ := a.journal.Get(types.Global); j.Step == types.K3sStepNone {
		a.Errorf("%s changes to %s, and its journal does not say so", a.name, to)
	}
	v, _ := a.version.Get(types.Global)
	v.Version, v.OnDisk = to, false
	_ = a.version.Publish(types.Global, v)
	a.cluster.ChangeNode(a.name, func(n *types.Node) { n.Ready = types.ConditionUnknown })
	a.changing = false
	time.AfterFunc(time.Minute, func() {
		a.down--
		if a.broken && to != old {
			return
		}
		a.cluster.ChangeNode(a.name, func(n *types.Node) { n.Ready, n.KubeletVersion = types.ConditionTrue, to })
		a.runs(to, v.Wanted)
	})
}

func TestThreeServersTakeAPatchOneAfterTheOther(t *testing.T) {
	play(t, "n1 n2 n3", func(s *site) {
		_ = s.agents[0].status.Publish(types.Global, types.EdgeNodeClusterStatus{BootstrapNode: true})
		s.cluster.ChangeNode("n3", func(n *types.Node) { n.TieBreaker = true })
		s.pass(time.Minute)
		s.wants(patch, false)
		s.pass(10 * time.Minute)
		if reason := s.agents[2].is().Reason; len(s.order) != 0 || !strings.Contains(reason, "not known whether k3s "+patch+" is on this disk") || !strings.Contains(reason, "zedkube k3s release "+patch) {
			t.Fatalf("%v changed: %s", s.order, reason)
		}
		s.agents[2].releases(patch)
		s.pass(30 * time.Second)
		s.agents[2].stop() // with its k3s stopped
		s.agents[2].start()
		s.pass(5 * time.Minute)
		if got := strings.Join(s.order, " "); got != "n3" || s.cluster.Lock().Holder != "" || s.agents[2].is().Phase != types.LifecycleIdle {
			t.Fatalf("%s changed, the lock is %+v, %+v", got, s.cluster.Lock(), s.agents[2].is())
		}
		s.wants(patch, true)
		s.pass(20 * time.Minute)
		if s.most != 1 || len(s.order) != 3 || s.cluster.Lock().Holder != "" {
			t.Errorf("%v changed, %d at once; the lock is %+v", s.order, s.most, s.cluster.Lock())
		}
		for _, a := range s.agents {
			if n, _ := s.nodes.Get(a.name); n.KubeletVersion != patch || a.is().Phase != types.LifecycleIdle || n.K3s == nil || n.K3s.Step != "" {
				t.Errorf("%s: %+v, %+v", a.name, a.is(), n.K3s)
			}
		}
	})
}

func TestANodeThatFailsReturnsAndStopsTheOthers(t *testing.T) {
	play(t, "n1 n2 n3", func(s *site) {
		s.pass(time.Minute)
		s.agents[0].broken = true
		s.wants(patch, false)
		s.agents[0].releases(patch)
		s.pass(10 * time.Minute)
		if lock := s.cluster.Lock(); lock.Holder != "n1" || s.agents[0].is().Phase != types.LifecycleChanges {
			t.Fatalf("the lock is %+v, %+v", lock, s.agents[0].is())
		}
		if reasons := s.agents[1].is().Preconditions; !strings.Contains(reasonOf(reasons, "Lock"), "Node n1 has the drain lock and changes k3s to "+patch+"; it is not Ready") {
			t.Errorf("n2 waits for %q", reasonOf(reasons, "Lock"))
		}
		s.agents[1].releases(patch) // without waiting for n1
		s.agents[2].releases(patch)
		s.pass(time.Hour)
		if got := strings.Join(s.order, " "); got != "n1 n1" { // there, and back
			t.Errorf("%s changed", got)
		}
		if a := s.agents[0].is(); a.Phase != types.LifecycleFailed || a.Failed.To != patch || s.cluster.Lock().Holder != "" {
			t.Errorf("%+v, the lock is %+v", a, s.cluster.Lock())
		}
		if n, _ := s.nodes.Get("n1"); n.KubeletVersion != old || n.K3s.Failed != patch {
			t.Errorf("%s, %+v", n.KubeletVersion, n.K3s)
		}
		if why := reasonOf(s.agents[1].is().Preconditions, "OthersNotFailed"); why != "Node n1 failed to change to "+patch+"." {
			t.Errorf("n2 waits for %q", why)
		}
	})
}

func TestAChangeThatTheKubeContainerDoesNotMakeEndsWithTheSetting(t *testing.T) {
	play(t, "n1", func(s *site) {
		a := s.agents[0]
		a.stuck = true
		s.wants(patch, true)
		s.pass(30 * time.Minute)
		if got := a.is(); got.Phase != types.LifecycleStuck || got.Released != patch || s.cluster.Lock().Holder != "n1" {
			t.Fatalf("%+v, the lock is %+v", got, s.cluster.Lock())
		}
		s.wants(old, false)
		s.pass(5 * time.Minute)
		if got := a.is(); got.Phase != types.LifecycleIdle || got.Released != "" || s.cluster.Lock().Holder != "" {
			t.Errorf("%+v, the lock is %+v", got, s.cluster.Lock())
		}
	})
}

func reasonOf(list []types.KubeLifecyclePrecondition, name string) string {
	for _, p := range list {
		if p.Name == name {
			return p.Reason
		}
	}
	return ""
}

func TestTheHoldFileHolds(t *testing.T) {
	play(t, "n1", func(s *site) {
		a := s.agents[0]
		if err := os.WriteFile(a.hold, []byte("harvest until Friday.\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s.wants(patch, true)
		s.pass(10 * time.Minute)
		if got := a.is(); len(s.order) != 0 || !strings.Contains(got.Reason, "the file "+DefaultHoldFile+" is there: harvest until Friday.") {
			t.Fatalf("%v changed: %+v", s.order, got)
		}
		if err := errors.Join(os.Remove(a.hold), os.Mkdir(a.hold, 0o700)); err != nil { // it cannot be read
			t.Fatal(err)
		}
		s.pass(10 * time.Minute)
		if len(s.order) != 0 {
			t.Fatalf("%v changed", s.order)
		}
		if err := os.Remove(a.hold); err != nil {
			t.Fatal(err)
		}
		s.pass(10 * time.Minute)
		if n, _ := s.nodes.Get("n1"); n.KubeletVersion != patch || s.cluster.Lock().Holder != "" {
			t.Errorf("%s runs, %+v", n.KubeletVersion, a.is())
		}
	})
}

func TestTheFlagAsksForConsentWhereTheSettingSaysNothing(t *testing.T) {
	play(t, "n1", func(s *site) {
		a := s.agents[0]
		a.stop()
		a.consent = ConsentEach
		a.start()
		s.wants(patch, false)
		_ = a.release.Publish(types.Global, types.K3sReleaseRequest{Version: patch, RequestedAt: time.Now(), Without: slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == "Consent" })})
		s.pass(10 * time.Minute)
		if reason := a.is().Reason; len(s.order) != 0 || !strings.Contains(reason, "an operator has to consent to the change of each node") {
			t.Fatalf("%v changed: %s", s.order, reason)
		}
		_ = a.settings.Publish(types.Global, types.ConfigItemValueMap{GlobalSettings: map[string]types.ConfigItemValue{types.SettingK3sConsent: {StrValue: "none"}}})
		s.pass(10 * time.Minute)
		if len(s.order) != 1 {
			t.Errorf("%v changed: %s", s.order, a.is().Reason)
		}
	})
}

func TestAJournalThatCannotBeReadChangesNothing(t *testing.T) {
	play(t, "n1", func(s *site) {
		a := s.agents[0]
		a.stop()
		_ = a.journal.Unpublish(types.Global)
		if err := os.WriteFile(a.hold+".journal", []byte("?"), 0o600); err != nil {
			t.Fatal(err)
		}
		a.start()
		s.wants(patch, true)
		s.pass(10 * time.Minute)
		if len(s.order) != 0 || a.is().Phase != types.LifecycleStuck {
			t.Errorf("%v changed: %+v", s.order, a.is())
		}
	})
}

// days lets days go by, in which the certificates are read every five minutes.
func (s *site) days(n int) {
	for range n * 24 * 12 {
		for _, a := range s.agents {
			s.mu.Lock()
			expires := a.expires
			s.mu.Unlock()
			_ = a.certs.Publish(types.Global, types.K3sCertificates{SeenAt: time.Now(), Leaves: []types.K3sCertificate{{Name: "client-admin", Where: "/client-admin.crt", NotAfter: expires}}})
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
	}
}

func TestThreeServersAreRestartedForTheirCertificatesOneADay(t *testing.T) {
	play(t, "n1 n2 n3", func(s *site) {
		for _, a := range s.agents {
			a.started, a.expires = time.Minute, time.Now().Add(60*day+12*time.Hour)
		}
		s.agents[1].lost = true
		s.days(1) // half a day before it is due
		if len(s.order) != 1 {
			t.Fatalf("%v restarted", s.order)
		}
		s.days(3)
		if got := strings.Join(s.order, " "); got != "n1 n2 n3" || s.most != 1 || s.cluster.Lock().Holder != "" {
			t.Fatalf("%s restarted, %d at once, the lock is %+v: %+v", got, s.most, s.cluster.Lock(), s.agents[1].is())
		}
		for i, a := range s.agents {
			if i > 0 && a.renewals[0].Sub(s.agents[i-1].renewals[0]) < day {
				t.Errorf("%s restarted %s after the one before", a.name, a.renewals[0].Sub(s.agents[i-1].renewals[0]))
			}
			n, _ := s.nodes.Get(a.name)
			if r := a.is().Restart; r.Wish != "" || r.Failed != "" || n.K3s == nil || n.K3s.Step != "" || n.K3s.Restart != "" || !n.K3s.Restarted.Equal(r.Last) {
				t.Errorf("%s: %+v, %+v", a.name, r, n.K3s)
			}
		}
		if s.agents[1].lost {
			t.Error("n2 was not killed")
		}
	})
}

func TestAChangeEndsWithTheClusterInWhichItWasBegun(t *testing.T) { // a device that left has the k3s of before it joined
	play(t, "n1", func(s *site) {
		a := s.agents[0]
		member := func(is string) {
			m := types.ClusterMembership{State: types.MembershipLeft}
			if is != "" {
				m = types.ClusterMembership{State: types.MembershipMember, Config: &types.EdgeNodeClusterConfig{ClusterID: types.UUIDandVersion{UUID: uuid.NewSHA1(uuid.NameSpaceOID, []byte(is))}}}
			}
			_ = a.member.Publish(types.Global, m)
		}
		a.stuck = true
		member("a")
		s.wants(patch, true)
		s.pass(time.Minute)
		s.wants("", false)
		if got, _ := a.journal.Get(types.Global); got.Step != types.K3sStepChange || got.Cluster == "" {
			t.Fatalf("%+v: %+v", got, a.is())
		}
		a.stop()
		a.start()
		if got := a.is(); got.Released != patch {
			t.Fatalf("an agent that is started: %+v", got)
		}
		for _, is := range []string{"", "b"} {
			member(is)
			s.pass(time.Minute)
			if got, _ := a.journal.Get(types.Global); got.Step != "" || a.is().Released != "" {
				t.Errorf("in cluster %q: %+v, %+v", is, got, a.is())
			}
		}
	})
}

func TestAnAlarmOfEtcdKeepsK3sFromARestartForAsLongAsItLasts(t *testing.T) {
	play(t, "n1", func(s *site) {
		a := s.agents[0]
		s.stages()
		a.disk.with(func() { a.disk.found.Etcd.Alarm = "ALARM NOSPACE" })
		s.pass(time.Minute)
		a.started, a.expires = time.Minute, time.Now().Add(50*day)
		s.days(1)
		if len(s.order) != 0 || !strings.Contains(a.is().Restart.Reason, "NOSPACE") {
			t.Fatalf("%v restarted: %+v", s.order, a.is().Restart)
		}
		a.disk.with(func() { a.disk.found.Etcd.Alarm = "" })
		s.days(1)
		if len(s.order) != 1 {
			t.Errorf("%v restarted: %+v", s.order, a.is().Restart)
		}
	})
}

// TestWhatIsOnTheDiskIsReadBesideTheSteps: a disk that hangs keeps no step from its end.
func TestWhatIsOnTheDiskIsReadBesideTheSteps(t *testing.T) {
	play(t, "n1", func(s *site) {
		a := s.agents[0]
		a.stop()
		a.stop = func() {}
		_ = a.lifecycle.Unpublish(types.Global)
		if err := os.WriteFile(a.hold+".journal", []byte("?"), 0o600); err != nil {
			t.Fatal(err)
		}
		c := a.component()
		if _ = c.Step(t.Context()); a.is().Phase != "" {
			t.Errorf("the step has waited for the disk: %+v", a.is())
		}
		synctest.Wait()
		if _ = c.Step(t.Context()); a.is().Phase != types.LifecycleStuck {
			t.Errorf("what the disk says is not seen: %+v", a.is())
		}
		c.holding.End()
		c.looking.End()
		c.stamping.End()
		c.calling.End()
	})
	for name, phase := range map[time.Duration]types.KubeLifecyclePhase{readAfter - 1: types.LifecycleRefused, readAfter: types.LifecycleWaits} {
		f := underLock(expiring(10 * day))
		f.unread, f.unlooked, f.agent, f.published.Phase = true, true, name, types.LifecycleRefused
		if a := decide(f); a.status.Phase != phase || a.call != noCall || a.stamp != nil || a.journal.Step != "" {
			t.Errorf("after %s: call %d, %+v", name, a.call, a.status)
		}
	}
}

func TestAnUpdateOfAComponentDelaysOneNodeForAsLongAsItIsUnderWay(t *testing.T) {
	play(t, "n1 n2 n3", func(s *site) {
		for _, a := range s.agents {
			a.started, a.expires = time.Minute, time.Now().Add(50*day)
		}
		updates := func(i int, status types.KubeCompUpdateStatus) {
			_ = s.agents[i].parts.Publish(types.Global, types.KubeClusterUpdateStatus{Component: types.KubeCompLonghorn, Status: status})
		}
		updates(0, types.KubeCompUpdateFailed) // which lasts until EVE brings another one
		updates(1, types.KubeCompUpdateInProgress)
		updates(2, types.KubeCompUpdateDownloadFailed)
		s.days(3)
		if got := strings.Join(s.order, " "); got != "n1 n3" || !strings.Contains(s.agents[1].is().Restart.Reason, "component longhorn is updated") {
			t.Fatalf("%s restarted: %+v", got, s.agents[1].is().Restart)
		}
		updates(1, types.KubeCompUpdateDownload)
		s.days(1)
		updates(1, types.KubeCompUpdateCompleted)
		if len(s.order) != 2 {
			t.Fatalf("%v restarted", s.order)
		}
		s.days(1)
		if got := strings.Join(s.order, " "); got != "n1 n3 n2" {
			t.Errorf("%s restarted: %+v", got, s.agents[1].is().Restart)
		}
	})
}

// heldAs is a cluster whose lock is written once more after it was judged.
type heldAs struct {
	*kubetest.Cluster
	then func()
}

func (h *heldAs) Ready(ctx context.Context) error { // the last look before a decision
	if then := h.then; then != nil {
		h.then = nil
		then()
	}
	return h.Cluster.Ready(ctx)
}

func TestTheLockIsFreedAsItWasJudgedAlone(t *testing.T) {
	play(t, "n1 n2 n3", func(s *site) {
		a := s.agents[0]
		a.stop()
		worse := types.Volume{Name: "pv-9", State: "attached", Running: true, Wanted: 2, Replicas: []types.Replica{{Node: "n1", Mode: "WO"}, {Node: "n3", Mode: "RW"}}}
		s.cluster.SetStorage(types.Storage{Longhorn: true, Volumes: []types.Volume{worse}})
		lock := types.DrainLock{Holder: "n1", BootID: "boot", Task: types.TaskK3sChange}
		s.cluster.SetLock(lock) // of a change that has ended
		lock.Volumes = map[string]int{"pv-9": 2}
		c := a.component()
		c.Kube = &heldAs{s.cluster, func() { s.cluster.SetLock(lock) }}
		a.run(c)
		s.pass(5 * time.Minute)
		if lock := s.cluster.Lock(); lock.Volumes["pv-9"] != 2 || !lock.Ended {
			t.Errorf("it is %+v", lock)
		}
		worse.Replicas[0].Mode = "RW"
		s.cluster.SetStorage(types.Storage{Longhorn: true, Volumes: []types.Volume{worse}})
		s.pass(5 * time.Minute)
		if lock := s.cluster.Lock(); lock.Holder != "" {
			t.Errorf("once that is whole it is %+v", lock)
		}
	})
}
