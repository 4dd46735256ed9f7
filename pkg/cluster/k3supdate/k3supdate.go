// Package k3supdate decides to which version and override k3s changes on this node, and when it is
// its turn: one node of the cluster after the other, under the drain lock (docs/wire.md,
// "KubeLifecycle").
//
//	reads:  K3sVersionStatus, K3sOverrideStatus, settings, nodes, the drain lock, whatever makes this node go down, KubeNodeConditions, MountRecovery, the hold file, an operator's release, retry
//	        and rollback, the binaries and the etcd of k3s, K3sCertificates, CertsResetRequest
//	writes: KubeLifecycle, KubeLifecycleJournal
//	acts:   stages the binary of k3s, has a snapshot of etcd taken, takes and frees the drain lock, stamps the own Node, restarts k3s where its binary is
//	        another one already or its certificates expire, moves these aside where an operator asks for that
package k3supdate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/k3sprocess"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// DefaultHoldFile keeps k3s at the version that runs; what it says is the reason.
const DefaultHoldFile = "/persist/zedkube/k3s-hold"

const (
	period       = 30 * time.Second
	callTimeout  = 3 * time.Minute // the wait for renewed Leases included; to copy or to run a binary, too
	stampTimeout = 30 * time.Second
)

// Kube is what the component does to the cluster. Every verb ends when its context does.
type Kube interface {
	// FreshNodes lists the nodes with the renewals of their kubelets, Storage the volumes
	// of Longhorn.
	FreshNodes(ctx context.Context) ([]types.Node, error)
	Storage(ctx context.Context, node string) (types.Storage, error)
	// SetDrainLock and FreeDrainLock change the lock of that Version, or fail with an
	// error that wraps types.ErrConflict.
	DrainLock(ctx context.Context) (types.DrainLock, error)
	SetDrainLock(ctx context.Context, lock types.DrainLock) (types.DrainLock, error)
	FreeDrainLock(ctx context.Context, lock types.DrainLock) error
	// Ready asks the own API server whether it is, DeprecatedAPIs for those that it was asked for.
	Ready(ctx context.Context) error
	DeprecatedAPIs(ctx context.Context) (types.DeprecatedAPIs, error)
	// StampK3s replaces the stamp about k3s on the node.
	StampK3s(ctx context.Context, node string, stamp types.K3sStamp) error
}

// K3s is the k3s of this device.
type K3s interface {
	Find() (k3sprocess.Process, error)
	HasSupervisor() bool
	Runs() bool
	Restart(ctx context.Context, found k3sprocess.Process) error
}

// Component is the changes of k3s. Every exported field is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	Version          pubsub.Reader[types.K3sVersionStatus]
	Override         pubsub.Reader[types.K3sOverrideStatus]
	Settings         pubsub.Reader[types.ConfigItemValueMap]
	Release          pubsub.Reader[types.K3sReleaseRequest]
	Retry            pubsub.Reader[types.K3sRetryRequest]
	Rollback         pubsub.Reader[types.K3sRollbackRequest]
	Info             pubsub.Reader[types.EdgeNodeInfo]
	Cluster          pubsub.Reader[types.EdgeNodeClusterStatus]
	Membership       pubsub.Reader[types.ClusterMembership]
	Nodes            pubsub.Reader[types.Node]
	AppPods          pubsub.Reader[types.Pod]
	Leases           pubsub.Reader[types.Lease]
	API              pubsub.Reader[types.APIStatus]
	DeviceOp, Update pubsub.Source[types.NodeDrainRequest]
	Operator         pubsub.Reader[types.NodeDrainRequest]
	Drain            pubsub.Reader[types.NodeDrainProgress]
	Parts            pubsub.Reader[types.KubeClusterUpdateStatus]
	Conditions       pubsub.Reader[types.KubeNodeConditions]
	Mounts           pubsub.Reader[types.MountRecovery]
	Kube             Kube
	K3s              K3s
	Disk             Disk
	Certificates     pubsub.Reader[types.K3sCertificates]
	Reset            pubsub.Reader[types.CertsResetRequest]
	LeafFiles        LeafFiles
	Operations       types.OperationLog

	Consent     Consent // where the setting k3s.consent says nothing
	HoldFile    string  // DefaultHoldFile, below the root
	JournalFile string  // of Journal
	BootID      string
	Hour        time.Duration        // how long an hour is, of the time that a change may take
	Uptime      func() time.Duration // since the boot, with the time asleep; no clock that anyone sets

	Lifecycle pubsub.Writer[types.KubeLifecycle]
	Journal   pubsub.Writer[types.KubeLifecycleJournal]

	pods      pubsub.Pick[types.Pod]
	calling   loop.Call[result]
	stamping  loop.Call[error]
	looking   loop.Call[gathered]
	holding   loop.Call[hold]
	preparing loop.Call[prepared]
	gathered  gathered
	hold      hold
	swaps     int // of the binary, begun and ended
	prepared  prepared
	acted     acted
	restarted time.Duration // uptime when k3s was
	refused   bool          // as in facts
	stamped   time.Duration // uptime when that was last tried
	began     time.Duration // uptime of the first step
	answered  time.Duration // when the API server last answered, or of the first step
	lacked    time.Duration // as in facts
	blocked   time.Duration // likewise
	ill       time.Duration // likewise
	checked   *checked
	tried     time.Duration // uptime of the last call
	listed    time.Duration // as in facts
	heardAt   time.Duration // likewise
	unlisted  error
	looked    string
	witnesses types.Witnesses
	stamps    types.HeardK3sStamps
}

// hold is what the disk said when it was last read: first of all the hold file.
type hold struct {
	at      time.Duration // uptime; 0 for never
	why     string
	journal bool      // there is a file of KubeLifecycleJournal
	reset   time.Time // a reset of certificates that was looked at, zero for none
	layout  string    // as in restartFacts
	kept    bool      // likewise
}

// result is what came of a call.
type result struct {
	call     call
	checked  *checked
	gathered *gathered
	err      error
}

// Run steps until ctx is done and returns after the calls under way have ended.
func (c *Component) Run(ctx context.Context) {
	defer c.looking.Cancel() // a disk that hangs is left behind: it only reads
	defer c.holding.Cancel()
	defer c.preparing.End()
	defer c.stamping.End()
	defer c.calling.End()
	loop.Run(ctx, c.Log, c.Pulse, period, loop.Throttled(c.Step, loop.Sparing), c.Version, c.Override, c.Settings, c.Release, c.Retry, c.Rollback, c.Info, c.Cluster, c.Membership, c.Nodes, &c.pods,
		c.Leases, c.API, c.DeviceOp, c.Update, c.Operator, c.Drain, c.Parts, c.Conditions, c.Mounts, c.Certificates, c.Reset, &c.calling, &c.stamping, &c.looking, &c.holding, &c.preparing)
}

// Step looks, decides and acts once.
func (c *Component) Step(ctx context.Context) error {
	var errs []error
	if r, ok := c.calling.Take(); ok {
		c.collect(r)
		errs = append(errs, r.err)
	}
	if err, ok := c.stamping.Take(); ok {
		errs = append(errs, err)
	}
	if g, ok := c.looking.Take(); ok && g.swaps == c.swaps { // else it may have seen the former binary
		c.gathered = g
	}
	if h, ok := c.holding.Take(); ok {
		c.hold = h
	}
	if p, ok := c.preparing.Take(); ok {
		c.prepared, c.gathered.at = p, 0 // it is looked at what came of it
		errs = append(errs, p.err)
	}
	f := c.look()
	a := decide(f)
	c.lacked, c.blocked, c.ill = a.lacked, a.blocked, a.ill
	if !reflect.DeepEqual(a.journal, f.journal) && !f.unread {
		if err := c.Journal.Publish(types.Global, a.journal); err != nil {
			return fmt.Errorf("publish KubeLifecycleJournal: %w", err) // nothing is begun that a later run would not know
		}
	}
	if s := &a.status; s.Phase != f.published.Phase || s.Reason != f.published.Reason {
		s.Since = f.now.UTC().Truncate(time.Second)
		c.Log.WithFields(logrus.Fields{"phase": s.Phase, "k3s_version": s.To}).Info(s.Reason)
	} else {
		s.Since = f.published.Since
	}
	if why := a.status.Restart.Reason; why != "" && why != f.published.Restart.Reason {
		c.Log.WithField("wish", a.status.Restart.Wish).Info(why)
	}
	if why := a.status.Override.Reason; why != "" && why != f.published.Override.Reason && why != a.status.Reason {
		c.Log.WithField("override", a.status.Override.Wanted).Info(why)
	}
	err := c.Lifecycle.Publish(types.Global, a.status)
	if err != nil {
		errs = append(errs, fmt.Errorf("publish KubeLifecycle: %w", err))
	}
	// A restart for volumes that are not mounted is published before it reads KubeLifecycle: one of the two sees the other.
	if now, _ := c.Mounts.Get(types.Global); a.call > take && (now.Last != f.recovery.Last || err != nil && f.published.LacksPods()) {
		a.call, a.again = noCall, soon
	}
	if a.call != noCall && !c.calling.Busy() {
		switch a.call {
		case install, restore:
			c.acted = acted{call: a.call, at: f.uptime}
			c.gathered.at = 0 // what was seen before it counts no longer
			c.swaps++
		case restart:
			c.restarted = f.uptime
		}
		by, why := types.SettingK3sVersion, a.status.Reason
		switch {
		case a.overrides:
			by, why = types.SettingK3sOverride, cmp.Or(a.status.Override.Reason, a.status.Reason)
		case a.renews:
			by, why = "", cmp.Or(a.status.Restart.Reason, a.status.Reason)
		}
		c.calling.Begin(types.Because(ctx, by, why), callTimeout, func(ctx context.Context) result { return c.call(ctx, a.call, f) })
	}
	c.gathers(ctx, f, a)
	if a.stamp != nil && !c.stamping.Busy() && (c.stamped == 0 || f.uptime >= c.stamped+again) {
		c.stamped = f.uptime
		c.stamping.Begin(ctx, stampTimeout, func(ctx context.Context) error { return c.Kube.StampK3s(ctx, f.own.Name, *a.stamp) })
	}
	return errors.Join(append(errs, loop.Again(a.again))...)
}

// gathers begins a look at the device, where the last one is too old, and what is to be prepared.
func (c *Component) gathers(ctx context.Context, f facts, a action) {
	if reset := f.reset(); !c.holding.Busy() && (c.hold.at == 0 || f.holdIsOld || !c.hold.reset.Equal(reset) || f.uptime >= c.hold.at+again) {
		c.holding.Begin(ctx, lookFor, func(context.Context) hold { return c.holds(reset, f.own.IsServer()) })
	}
	every, to := idleEvery, ""
	if a.status.To != "" || a.status.Restart.Wish != "" || a.status.Override.Wanted != "" {
		every, to = lookEvery, a.status.To
	}
	if g := c.gathered; !c.looking.Busy() && (g.at == 0 || g.to != to || f.uptime >= g.at+every) {
		swaps := c.swaps
		c.looking.Begin(ctx, lookFor, func(ctx context.Context) gathered {
			g := c.gather(ctx, g.found, to)
			g.swaps = swaps
			return g
		})
	}
	if last := c.prepared; a.prepare != noPreparation && !c.preparing.Busy() {
		c.preparing.Begin(types.Because(ctx, types.SettingK3sVersion, a.status.Reason), prepareFor, func(ctx context.Context) prepared {
			return c.prepare(ctx, a.prepare, to, f.sum, last)
		})
	}
}

// collect notes what a call has listed.
func (c *Component) collect(r result) {
	c.tried, c.checked = c.Uptime(), r.checked
	switch {
	case r.checked != nil:
		c.listed, c.unlisted = c.tried, nil
	case r.call == check:
		if c.unlisted = r.err; errors.As(r.err, new(volumesError)) {
			c.heardAt = c.tried
		}
	}
	if r.call == restart {
		c.refused = r.err != nil
	}
	if r.call == renew || r.call == putBack {
		c.hold.reset = time.Time{} // its files are looked at again
	}
	if r.gathered != nil {
		c.gathered, c.acted.err = *r.gathered, r.err
		c.swaps++
	}
	if r.checked != nil && r.checked.lock.Task != types.TaskK3sChange {
		c.looked = r.checked.lock.Version
	}
}

func (c *Component) look() facts {
	f := facts{
		now: time.Now(), uptime: c.Uptime(), boot: c.BootID, checked: c.checked, triedAt: c.tried, looked: c.looked,
		busy: c.calling.Busy(), lacked: c.lacked, blocked: c.blocked, ill: c.ill, acted: c.acted, restarted: c.restarted, refused: c.refused, found: c.gathered.found,
		requestsKnown: c.DeviceOp.Synced() && c.Update.Synced(), pods: map[string]bool{}, off: map[string]bool{},
	}
	if c.began == 0 {
		c.began = f.uptime
	}
	f.agent, f.hour, f.kubeInit = f.uptime-c.began, c.Hour, c.K3s.HasSupervisor()
	var there bool
	f.journal, there = c.Journal.Get(types.Global)
	f.unread, f.unlooked = !there && (c.hold.journal || c.hold.at == 0), c.hold.at == 0
	f.published, _ = c.Lifecycle.Get(types.Global)
	f.version, f.heard = c.Version.Get(types.Global)
	f.override, _ = c.Override.Get(types.Global)
	f.release, _ = c.Release.Get(types.Global)
	f.retry, _ = c.Retry.Get(types.Global)
	f.rollback, _ = c.Rollback.Get(types.Global)
	settings, _ := c.Settings.Get(types.Global)
	f.consent = cmp.Or(Consent(settings.GlobalSettings[types.SettingK3sConsent].StrValue), c.Consent)
	f.holdIsOld = c.checked != nil && c.hold.at < c.checked.at
	if f.hold = c.hold.why; c.hold.at == 0 || f.uptime >= c.hold.at+checkedFor {
		f.unheld = "it is not known whether the file " + DefaultHoldFile + " is there: the disk has not answered yet"
	}
	api, known := c.API.Get(types.Global)
	info, named := c.Info.Get(types.Global)
	nodes := c.Nodes.All()
	f.own, there = types.OwnNode(nodes, info)
	f.known = known && api.Answers() && api.Synced && named && there && f.own.BootID == c.BootID && c.BootID != ""
	if f.known || c.answered == 0 {
		c.answered = f.uptime
	}
	if !f.known { // nobody could be asked
		c.listed, c.unlisted = f.uptime, nil
	}
	f.listed, f.heardAt, f.unlisted = max(c.listed, c.began), c.heardAt, c.unlisted
	f.unanswered, f.runs = f.uptime-c.answered, c.K3s.Runs()
	f.nodes = types.NodesByName(nodes)
	f.watched = f.nodes
	f.order = order(f.nodes)
	f.lock, _ = c.Leases.Get(types.DrainLockName)
	c.stamps = c.stamps.Hear(nodes, f.known, f.uptime)
	f.stamps = c.stamps
	c.witnesses = c.witnesses.Hear(nodes, f.known, f.uptime)
	var lost []types.Node
	for _, n := range f.nodes {
		if n.Ready == types.ConditionUnknown && n.Name != f.own.Name {
			lost = append(lost, n)
		}
	}
	if f.known && len(lost) > 0 {
		observed := types.ObservedBy(nodes, c.witnesses.Seen(f.now, f.uptime), f.now)
		for _, n := range lost {
			f.off[n.Name], _ = observed.Gone(n)
		}
	}
	for _, p := range c.pods.Of(c.AppPods, f.own.Name, func(p types.Pod) bool { return p.NodeName == f.own.Name && p.App != "" && !p.Terminating() }) {
		f.pods[p.Key()] = p.Phase == types.PodRunning
	}
	_, device := c.DeviceOp.Get(types.Global)
	_, update := c.Update.Get(types.Global)
	f.deviceDrain = device || update
	_, f.operatorDrain = c.Operator.Get(types.Global)
	f.drain, _ = c.Drain.Get(types.Global)
	member, is := c.Membership.Get(types.Global)
	f.leaves = member.State == types.MembershipLeaving
	f.alone = is && !member.Belongs()
	if member.Belongs() && member.Config != nil {
		f.cluster, f.tie = member.Config.ClusterID.UUID.String(), member.Config.TieBreaker()
	}
	f.left = is && f.journal.Cluster != "" && f.journal.Cluster != f.cluster && (f.cluster != "" || !member.Belongs())
	parts, _ := c.Parts.Get(types.Global)
	f.component = component(parts)
	if parts.Status == types.KubeCompUpdateDownload || parts.Status == types.KubeCompUpdateInProgress {
		f.updating = f.component
	}
	conditions, _ := c.Conditions.Get(types.Global)
	f.conditions, f.prepared, f.sum = conditions.Conditions, c.prepared, settings.GlobalSettings[types.SettingK3sSum].StrValue
	if g := c.gathered; g.at != 0 && f.uptime < g.at+lookCounts {
		to := f.version.Wanted
		if f.journal.Step != types.K3sStepNone {
			to = f.journal.To
		}
		f.evidence = weigh(g, c.prepared, to, f.sum, conditions, f.now)
	}
	cluster, _ := c.Cluster.Get(types.Global)
	f.joined = cluster.BootstrapNode || cluster.JoinServerIP != nil && cluster.JoinServerIP.String() == f.own.InternalIP
	f.recovery, _ = c.Mounts.Get(types.Global)
	f.certs, _ = c.Certificates.Get(types.Global)
	f.request, _ = c.Reset.Get(types.Global)
	var err error
	if f.process, err = c.K3s.Find(); err != nil { // zero where only its supervisor knows it
		f.noRestart = "k3s cannot be restarted: " + phrase.Cut(err.Error(), 300)
	}
	f.layout, f.kept = c.hold.layout, c.hold.kept
	if f.filesUnseen = !f.reset().Equal(c.hold.reset); f.filesUnseen {
		f.layout = "the files of the certificates are looked at"
	}
	return f
}

// holds looks at what is only on the disk, which may hang.
func (c *Component) holds(reset time.Time, server bool) hold {
	h := hold{at: c.Uptime(), reset: reset}
	_, err := os.Lstat(c.JournalFile)
	h.journal = !errors.Is(err, os.ErrNotExist)
	if !reset.IsZero() {
		h.layout, h.kept = c.LeafFiles.Unknown(server), c.LeafFiles.Kept(reset)
	}
	h.why = c.held()
	return h
}

// held is what the hold file says. One that cannot be read holds, too.
func (c *Component) held() string {
	raw, err := safefile.Read(c.HoldFile, 4<<10)
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	why := strings.ToValidUTF8(phrase.Cut(strings.Join(strings.Fields(string(raw)), " "), 200), "")
	return strings.TrimSuffix("the file "+DefaultHoldFile+" is there: "+strings.TrimSuffix(why, "."), ": ")
}

// component says which component of Kubernetes is in the way, "" for none.
func component(parts types.KubeClusterUpdateStatus) string {
	switch parts.Status {
	case types.KubeCompUpdateDownload, types.KubeCompUpdateInProgress:
		return "component " + parts.Component.String() + " is updated on this node"
	case types.KubeCompUpdateDownloadFailed, types.KubeCompUpdateFailed:
		return "the update of component " + parts.Component.String() + " failed, and EVE begins no other one"
	}
	return ""
}
