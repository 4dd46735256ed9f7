package turns

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/pkg/base/k3sbinary"
	"github.com/zedkube/zedkube/pkg/base/k3sprocess"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/cluster/k3supdate"
	"github.com/zedkube/zedkube/pkg/workload/drain"
	"github.com/zedkube/zedkube/pkg/workload/mounts"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/test/kubetest"
	"github.com/zedkube/zedkube/types"
)

const day = 24 * time.Hour

// node is a device with its k3s, and what its agents publish.
type node struct {
	*world
	name string
	i    int
	id   uuid.UUID

	// The device, changed by the play alone.
	up       bool
	boots    int
	booted   time.Time
	upAt     time.Time // when it boots, zero while nothing is to come
	backAt   time.Time // likewise k3s
	agentAt  time.Time // and its agent
	goesAt   time.Time // when it goes down, as it may
	mutes    time.Time // until when its API server is silent
	given    time.Time // when an operator takes a request back
	stop     func()    // of its agent; nil while there is none
	expires  time.Time // its certificates
	cordoned bool      // its Node, as was seen last
	running  string    // version of k3s

	// Under mu of the world.
	runs    bool // k3s
	stopped time.Time
	started time.Time
	disk    string // version
	former  string
	staged  string

	answers atomic.Bool // its API server
	lag     atomic.Int64
	rings   pubsub.Bells // when a call has ended

	device, update, operator pubsub.Table[types.NodeDrainRequest]
	wanted                   string
	version                  pubsub.Table[types.K3sVersionStatus]
	release                  pubsub.Table[types.K3sReleaseRequest]
	certs                    pubsub.Table[types.K3sCertificates]
	reset                    pubsub.Table[types.CertsResetRequest]
	config                   pubsub.Table[types.EdgeNodeClusterConfig]
	info                     pubsub.Table[types.EdgeNodeInfo]
	conditions               pubsub.Table[types.KubeNodeConditions]
	api                      pubsub.Table[types.APIStatus]
	rows                     *window[types.Node]
	pods, own                *window[types.Pod]
	leases                   *window[types.Lease]
	volumesHere              pubsub.Table[types.Volume]
	attachments              pubsub.Table[types.Attachment]
	tables                   pubsub.Table[types.TableStatus]
	status                   pubsub.Table[types.NodeDrainStatus]
	progress                 progress
	drains                   pubsub.Table[types.NodeDrainJournal]
	lifecycle                pubsub.Table[types.KubeLifecycle]
	journal                  pubsub.Table[types.KubeLifecycleJournal]
	recovery                 pubsub.Table[types.MountRecovery]
}

// progress writes down when a drain is complete.
type progress struct {
	pubsub.Table[types.NodeDrainProgress]
	node *node
}

func (p *progress) Publish(key string, is types.NodeDrainProgress) error {
	p.tells(is)
	return p.Table.Publish(key, is)
}

func (p *progress) tells(is types.NodeDrainProgress) {
	was, _ := p.Get(types.Global)
	switch now := is.Phase == types.PhaseComplete; {
	case now && was.Phase != types.PhaseComplete:
		p.node.note(event{Kind: completes, Node: p.node.name, Text: is.Reason})
	case !now && was.Phase == types.PhaseComplete:
		p.node.note(event{Kind: takesBack, Node: p.node.name, Text: is.Reason})
	}
}

func (n *node) boot() string { return fmt.Sprint(n.name, "-boot-", n.boots) }

// start begins a run of the agent.
func (n *node) start() {
	ctx, cancel := context.WithCancel(n.t.Context())
	ctx = context.WithValue(types.ActAs(ctx, n.name), callerKey{}, &life{n, func() bool { return ctx.Err() != nil }})
	var all sync.WaitGroup
	d, booted := n.drain(), n.booted
	uptime := func() time.Duration { return time.Since(booted) }
	d.Uptime = uptime
	all.Go(func() {
		loop.Run(ctx, d.Log, d.Pulse, 10*time.Second, d.Step, &n.rings, d.DeviceOp, d.Update, d.Operator, d.Lifecycle, d.Config, d.Nodes, d.NodePods, d.API, d.Leases)
	})
	k, m := n.change(), n.mounts()
	k.Uptime, m.Uptime = uptime, uptime
	all.Go(func() { k.Run(ctx) })
	all.Go(func() { m.Run(ctx) })
	n.stop = func() { cancel(); all.Wait(); n.stop = nil }
}

func (n *node) drain() *drain.Component {
	return &drain.Component{
		Log: n.log("drain"), Pulse: &loop.Pulse{}, Operations: types.NoOperations{}, DeviceOp: &n.device, Update: &n.update, Operator: &n.operator, Lifecycle: &n.lifecycle,
		Config: &n.config, Membership: &n.member, Settings: &n.settings, Info: &n.info, Nodes: n.rows, NodePods: n.own, API: &n.api, Clocks: &n.clocks, Leases: n.leases, Agent: &n.nodeagent,
		Kube: kube{n.cluster, n}, ForceFiles: []string{filepath.Join(n.dir, "force")}, FaultMarker: filepath.Join(n.dir, "fault"), Markers: nil, Hour: time.Hour, BootID: n.boot(),
		Status: &n.status, Progress: &n.progress, Journal: &n.drains,
	}
}

func (n *node) change() *k3supdate.Component {
	return &k3supdate.Component{
		Log: n.log("k3supdate"), Pulse: &loop.Pulse{}, Version: &n.version, Override: &n.override, Settings: &n.settings, Release: &n.release, Retry: &n.retry, Rollback: &n.rollback,
		Info: &n.info, Cluster: &n.joined, Membership: &n.member, Nodes: n.rows, AppPods: n.pods, Leases: n.leases, API: &n.api, DeviceOp: &n.device, Update: &n.update, Operator: &n.operator,
		Drain: &n.progress, Parts: &n.parts, Conditions: &n.conditions, Mounts: &n.recovery, Kube: kube{n.cluster, n}, K3s: k3s{n, "a change"}, Disk: n, Operations: types.NoOperations{},
		Certificates: &n.certs, Reset: &n.reset, LeafFiles: k3supdate.LeafFiles{Dirs: []string{filepath.Join(n.dir, "k3s")}},
		HoldFile: filepath.Join(n.dir, "hold"), JournalFile: filepath.Join(n.dir, "journal"), BootID: n.boot(), Hour: time.Hour, Lifecycle: &n.lifecycle, Journal: &n.journal,
	}
}

func (n *node) mounts() *mounts.Component {
	return &mounts.Component{
		Log: n.log("mounts"), Pulse: &loop.Pulse{}, Info: &n.info, Nodes: n.rows, AppPods: n.pods, Attachments: &n.attachments, Volumes: &n.volumesHere,
		Leases: n.leases, Tables: &n.tables, API: &n.api, DeviceOp: &n.device, Update: &n.update, Operator: &n.operator, Drain: &n.progress,
		Membership: &n.member, Parts: &n.parts, Version: &n.version, Lifecycle: &n.lifecycle, Kube: kube{n.cluster, n}, K3s: k3s{n, byMounts}, Operations: types.NoOperations{},
		Devices: n.devices, File: filepath.Join(n.dir, "mounts"), BootID: n.boot(), Recovery: &n.recovery,
	}
}

// k3s is the k3s of a node, as one component has it restarted.
type k3s struct {
	*node
	by string
}

func (k k3s) Find() (k3sprocess.Process, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.runs {
		return k3sprocess.Process{}, fmt.Errorf("%w: k3s does not run", k3sprocess.ErrNothingDone)
	}
	return k3sprocess.Process{PID: 7, Start: k.started.Sub(k.booted)}, nil
}

func (k k3s) HasSupervisor() bool { return false }

func (k k3s) Runs() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.runs
}

func (k k3s) Restart(ctx context.Context, _ k3sprocess.Process) error {
	if l := ctx.Value(callerKey{}).(*life); l.dead() {
		return kubetest.ErrKilled
	}
	why := k.by
	if j, _ := k.journal.Get(types.Global); k.by != byMounts {
		why = strings.TrimSpace(fmt.Sprint(j.Kind, " ", j.Step, " to ", j.To, " ", j.Wish))
	}
	k.note(event{Kind: endsK3s, Node: k.name, Text: why})
	k.ends()
	return nil
}

// ends is k3s that ends: its API server is silent, its kubelet renews nothing.
func (n *node) ends() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.runs {
		n.runs, n.stopped = false, time.Now()
	}
	n.mute("k3s does not run")
}

// mute is the own API server that does not answer any more. Called with mu held.
func (n *node) mute(why string) {
	if n.answers.Swap(false) {
		n.noted(event{Kind: mutes, Node: n.name, Text: why})
		_ = n.api.Publish(types.Global, types.APIStatus{SilentSince: time.Now(), Reason: why, Synced: true, Apps: true})
	}
}

// answersAgain is the own API server that does.
func (n *node) answersAgain() {
	if n.answers.Swap(true) {
		return
	}
	n.note(event{Kind: hears, Node: n.name})
	n.rows.relist()
	n.pods.relist()
	n.own.relist()
	n.leases.relist()
	_ = n.api.Publish(types.Global, types.APIStatus{Synced: true, Apps: true})
}

// Look, Fetch, Save, Install and Restore are its disk.
func (n *node) Look(context.Context, k3supdate.Found) k3supdate.Found {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := k3supdate.Found{Binary: n.disk}
	if n.staged != "" {
		f.Staged, f.Sum = k3sbinary.Staged{Version: n.staged}, strings.Repeat("0", 64)
	}
	return f
}

func (n *node) onDisk(ctx context.Context, do func() error) error {
	if l := ctx.Value(callerKey{}).(*life); l.dead() {
		return kubetest.ErrKilled
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return do()
}

func (n *node) Fetch(ctx context.Context, version, _ string) error {
	return n.onDisk(ctx, func() error { n.staged = version; return nil })
}

func (n *node) Save(context.Context) error { return errors.New("there is no etcd here") }

func (n *node) Install(ctx context.Context, version, _ string) error {
	return n.onDisk(ctx, func() error {
		if n.staged != version {
			return errors.New("another one is staged")
		}
		n.former, n.disk, n.staged = n.disk, version, ""
		return nil
	})
}

func (n *node) Restore(ctx context.Context, version string) error {
	return n.onDisk(ctx, func() error {
		if n.former != version {
			return errors.New("another one was kept")
		}
		n.disk, n.former = version, ""
		return nil
	})
}

// loses is the power of the device that goes, or a reboot.
func (n *node) loses(why string, again time.Duration) {
	n.note(event{Kind: goesDown, Node: n.name, Text: why})
	if n.stop != nil {
		n.stop()
	}
	n.up, n.upAt, n.agentAt, n.backAt, n.goesAt = false, time.Now().Add(again), time.Time{}, time.Time{}, time.Time{}
	n.ends()
}

// comes is the device that boots again; nothing in /run is left.
func (n *node) comes() {
	n.up, n.upAt, n.booted = true, time.Time{}, time.Now()
	n.boots++
	n.agentAt, n.backAt = time.Now().Add(20*time.Second), time.Now().Add(time.Duration(40+n.r.IntN(120))*time.Second)
	_, _, _, _ = n.status.Unpublish(types.Global), n.progress.Unpublish(types.Global), n.device.Unpublish(types.Global), n.update.Unpublish(types.Global)
	_, _ = n.operator.Unpublish(types.Global), n.lifecycle.Unpublish(types.Global)
	_, _, _, _ = n.rows.Replace(nil), n.pods.Replace(nil), n.own.Replace(nil), n.leases.Replace(nil)
	_ = n.api.Publish(types.Global, types.APIStatus{SilentSince: time.Now(), Reason: "nothing is known yet"})
	n.world.happens(n.name, "boots")
}

// returns is k3s that runs again. What was stuck is mounted, and rarely something else is not; some replicas do not
// survive it.
func (n *node) returns() {
	n.mu.Lock()
	n.runs, n.started, n.backAt = true, time.Now(), time.Time{}
	n.running = n.disk
	n.mu.Unlock()
	if time.Until(n.expires) < types.CertRenewableWithin {
		n.expires = time.Now().Add(365 * day)
	}
	n.cluster.ChangeNode(n.name, func(row *types.Node) {
		row.Ready, row.BootID, row.KubeletVersion, row.StampStale = types.ConditionTrue, n.boot(), n.running, false
	})
	n.note(event{Kind: isBack, Node: n.name, Text: n.running})
	for _, p := range n.world.pods.All() {
		if p.NodeName == n.name && p.Phase == types.PodPending {
			p.Phase, p.Containers = types.PodRunning, nil
			_ = n.world.pods.Publish(p.Key(), p)
		}
	}
	for _, v := range n.world.volumes {
		if r := v.replicas[n.name]; r != nil && r.whole && v.healthy(n.isUp) > 1 && n.r.IntN(4) == 0 {
			r.whole, r.failed = false, time.Now()
		}
	}
	if n.world.mounts.IntN(6) == 0 {
		n.sticks(n)
	}
}

// lives lets happen to the device and its k3s what is due.
func (n *node) lives() {
	now := time.Now()
	due := func(at time.Time) bool { return !at.IsZero() && !now.Before(at) }
	row, there := n.world.rows.Get(n.name)
	if !there {
		return
	}
	if row.Unschedulable != n.cordoned {
		n.cordoned = row.Unschedulable
		n.world.happens(n.name, fmt.Sprint("cordoned: ", n.cordoned))
	}
	if due(n.upAt) {
		n.comes()
	}
	if n.stop == nil && due(n.agentAt) {
		n.agentAt = time.Time{}
		n.start()
	}
	switch runs := n.k3sRuns(); {
	case n.up && !runs && n.backAt.IsZero():
		n.backAt = now.Add(time.Duration(30+n.r.IntN(90)) * time.Second)
	case n.up && !runs && due(n.backAt):
		n.returns()
	case !runs && row.Ready == types.ConditionTrue && now.Sub(n.stopped) >= 40*time.Second:
		n.cluster.ChangeNode(n.name, func(row *types.Node) { row.Ready = types.ConditionUnknown })
	case !runs && !row.StampStale && now.Sub(n.stopped) >= types.StampFresh:
		n.cluster.ChangeNode(n.name, func(row *types.Node) { row.StampStale = true })
	}
	switch hears := n.k3sRuns() && !now.Before(n.mutes); {
	case hears && n.stop != nil:
		n.answersAgain()
	case !hears:
		n.mu.Lock()
		n.mute("it does not answer")
		n.mu.Unlock()
	}
	n.says()
	n.requested(now)
}

func (n *node) k3sRuns() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.runs
}

// says is what other components publish: k3sconfig and k3scerts.
func (n *node) says() {
	n.mu.Lock()
	disk, runs := n.disk, n.runs
	n.mu.Unlock()
	l, _ := n.lifecycle.Get(types.Global)
	v := types.K3sVersionStatus{Version: n.running, Running: n.running, OnDisk: disk == n.running, Binary: disk, Wanted: n.wanted}
	if l.Released != "" {
		v.Version = l.Released
	}
	_ = n.version.Publish(types.Global, v)
	if c, _ := n.certs.Get(types.Global); runs && (time.Since(c.SeenAt) > time.Hour || !c.Leaves[0].NotAfter.Equal(n.expires)) {
		_ = n.certs.Publish(types.Global, types.K3sCertificates{
			SeenAt: time.Now(), Leaves: []types.K3sCertificate{{Name: "a", Where: "/a.crt", NotBefore: n.expires.Add(-365 * day), NotAfter: n.expires}},
			Authorities: []types.K3sCertificate{{NotAfter: time.Now().Add(3000 * day)}},
		})
	}
}

// requested is what EVE's agents do once their drain is complete, and operators.
func (n *node) requested(now time.Time) {
	is, _ := n.status.Get(types.Global)
	complete := is.Status == types.DrainComplete && is.RequestedBy != types.DrainRequesterNone && n.stop != nil
	switch {
	case !complete:
		n.goesAt = time.Time{}
	case n.goesAt.IsZero():
		n.goesAt = now.Add(time.Duration(5+n.r.IntN(240)) * time.Second)
	case !now.Before(n.goesAt) && n.r.IntN(8) == 0: // the update fails, or the command is withdrawn
		_, _ = n.device.Unpublish(types.Global), n.update.Unpublish(types.Global)
		n.world.happens(n.name, "its requests are withdrawn")
	case !now.Before(n.goesAt):
		n.loses("reboots", time.Duration(30+n.r.IntN(240))*time.Second)
	}
	if !n.given.IsZero() && !now.Before(n.given) {
		n.given = time.Time{}
		_ = n.operator.Unpublish(types.Global)
		n.world.happens(n.name, "the operator's request is withdrawn")
	}
}

// left says what is not done in the end, and does not say why.
func (n *node) left() (all []string) {
	row, _ := n.world.rows.Get(n.name)
	if row.InDrain() {
		all = append(all, n.name+" is cordoned")
	}
	p, _ := n.progress.Get(types.Global)
	if len(p.Requesters) > 0 && p.Phase != types.PhaseComplete && p.Reason == "" {
		all = append(all, n.name+" does not say what its drain waits for")
	}
	l, _ := n.lifecycle.Get(types.Global)
	if n.running != n.wanted && l.Reason == "" || l.Restart.Wish != "" && l.Restart.Reason == "" {
		all = append(all, n.name+" does not say what its k3s waits for")
	}
	if slices.Contains([]types.KubeLifecyclePhase{types.LifecycleStuck, types.LifecycleChanges, types.LifecycleReturns}, l.Phase) {
		all = append(all, n.name+" changes k3s still: "+l.Reason)
	}
	return all
}
