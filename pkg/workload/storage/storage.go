// Package storage keeps what the device's settings say of Longhorn as levels:
// what someone else changes is put back, within bounds (docs/wire.md,
// "KubeStorageStatus").
//
//	reads:  ConfigItemValueMap, EdgeNodeInfo, KubeLeaderElectInfo, nodes, Longhorn's
//	        node of this device, drain policy and snapshot job, how well they are seen
//	writes: KubeStorageStatus
//	acts:   reserves room on the own disks; as the elected node sets the drain
//	        policy and keeps the snapshot job
package storage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// period is in case an event was missed. A look costs no request.
const period = time.Minute

// writeTimeout bounds one write, its repetitions included.
const writeTimeout = 25 * time.Second

// Kube is what the component does to the cluster. Every verb ends when its
// context does. Their errors wrap types.ErrConflict where someone else was
// faster. Those that look before they write say whether there was anything to
// change.
type Kube interface {
	// SetReserved reserves that many bytes on every disk of this very node of
	// Longhorn, and writes where that is not so.
	SetReserved(ctx context.Context, node types.LonghornNode, bytes int64) (changed bool, err error)
	// SetLonghornSetting gives this very setting, in this version, the value.
	SetLonghornSetting(ctx context.Context, setting types.LonghornSetting, value string) error
	// EnsureSnapshotJob makes the job, or changes its schedule and nothing else.
	EnsureSnapshotJob(ctx context.Context, cron string) (changed bool, err error)
	// DeleteSnapshotJob deletes this very job in this version, if it is there.
	DeleteSnapshotJob(ctx context.Context, job types.SnapshotJob) (changed bool, err error)
}

// Component is the storage. Every exported field is required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	Settings pubsub.Source[types.ConfigItemValueMap]
	Info     pubsub.Reader[types.EdgeNodeInfo]
	Leader   pubsub.Reader[types.KubeLeaderElectInfo]
	Nodes    pubsub.Reader[types.Node]

	Tables           pubsub.Reader[types.TableStatus]
	OwnDisks         pubsub.Reader[types.LonghornNode]
	LonghornSettings pubsub.Reader[types.LonghornSetting]
	SnapshotJobs     pubsub.Reader[types.SnapshotJob]
	Kube             Kube

	Uptime func() time.Duration // since the boot, with the time asleep; no clock that anyone sets

	Status pubsub.Writer[types.KubeStorageStatus]

	// What this process remembers. Losing it costs a pause between two writes.
	keepers   [levels]levelKeeper
	writes    [levels]loop.Call[outcome] // under way, beside the steps
	calledOff [levels]bool
	told      [levels]string // the last warning, "" since it is not true any more
}

// Run steps until ctx is done and returns after the writes under way have ended.
func (c *Component) Run(ctx context.Context) {
	inputs := []loop.Input{c.Settings, c.Info, c.Leader, c.Nodes, c.Tables, c.OwnDisks, c.LonghornSettings, c.SnapshotJobs}
	for l := range c.writes {
		defer c.writes[l].End()
		inputs = append(inputs, &c.writes[l])
	}
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, inputs...)
}

// Step looks, decides and acts once.
func (c *Component) Step(ctx context.Context) error {
	c.collect()
	return c.apply(ctx, decide(c.look()))
}

// collect takes in the writes that have ended. It comes before the look: what
// they did may be in the tables by then.
func (c *Component) collect() {
	for l := range c.writes {
		o, ok := c.writes[l].Take()
		if !ok {
			continue
		}
		c.keepers[l].ended(o, c.calledOff[l])
		if o.err == nil && o.changed && !c.keepers[l].overwritten {
			c.Log.WithField("value", c.keepers[l].value).Infof("%s set", level(l))
		}
	}
}

func (c *Component) look() facts {
	f := facts{now: time.Now(), uptime: c.Uptime(), keepers: c.keepers, tables: c.Tables.All()}
	// Whether they are all known is asked first: they can only be more since.
	synced := c.Settings.Synced()
	f.settings, f.heard = c.Settings.Get(types.Global)
	f.heard = f.heard && synced
	info, _ := c.Info.Get(types.Global)
	f.own, f.joined = types.OwnNode(c.Nodes.All(), info)
	if n, ok := c.OwnDisks.Get(f.own.Name); ok {
		f.node = &n
	}
	if s, ok := c.LonghornSettings.Get(types.LonghornDrainPolicy); ok {
		f.policy = &s
	}
	if j, ok := c.SnapshotJobs.Get(types.SnapshotJobName); ok {
		f.job = &j
	}
	// Asked for last: the rows of a node that no longer leads are gone, not the objects.
	leader, _ := c.Leader.Get(types.Global)
	f.leads = leader.IsStatsLeader
	f.last, _ = c.Status.Get(types.Global)
	return f
}

func (c *Component) apply(ctx context.Context, a action) error {
	for l, m := range a.moves {
		c.keepers[l] = m.levelKeeper
		c.tell(level(l), m)
		switch {
		case m.cancel:
			c.calledOff[l] = true
			c.writes[l].Cancel()
		case m.begin:
			c.calledOff[l] = false
			c.writes[l].Begin(ctx, writeTimeout, func(ctx context.Context) outcome { return c.write(ctx, level(l), m.change) })
		}
	}
	err := c.Status.Publish(types.Global, a.status)
	if err != nil {
		err = fmt.Errorf("publish KubeStorageStatus: %w", err)
	}
	return errors.Join(err, loop.Again(a.again))
}

type outcome struct {
	changed bool // something; false where it was so already
	err     error
}

func (c *Component) write(ctx context.Context, l level, ch change) outcome {
	ctx = types.Because(ctx, settingOf[l], "the "+l.String()+" differs from the setting")
	var o outcome
	switch {
	case l == reservation:
		o.changed, o.err = c.Kube.SetReserved(ctx, ch.node, ch.bytes)
	case l == drainPolicy:
		o.changed, o.err = true, c.Kube.SetLonghornSetting(ctx, ch.setting, ch.policy)
	case ch.cron == "":
		o.changed, o.err = c.Kube.DeleteSnapshotJob(ctx, ch.job)
	default:
		o.changed, o.err = c.Kube.EnsureSnapshotJob(ctx, ch.cron)
	}
	return o
}

var settingOf = [levels]string{
	reservation: types.SettingDiskReserved, snapshots: types.SettingSnapshotCron, drainPolicy: types.SettingNodeDrainPolicy,
}

// tell logs what people have to know, when it begins and when it is over.
func (c *Component) tell(l level, m move) {
	if m.putBack {
		c.Log.Warnf("%s was changed by someone else: restoring it", l)
	}
	warning := ""
	if m.flaw {
		warning = m.why
	}
	switch {
	case warning == c.told[l]:
		return
	case warning != "":
		c.Log.WithField("err", warning).Warnf("%s does not match the settings", l)
	case m.why != "": // it is still not as it should be, or not seen
		return
	default:
		c.Log.Infof("%s matches the settings again", l)
	}
	c.told[l] = warning
}
