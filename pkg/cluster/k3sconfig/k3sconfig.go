// Package k3sconfig hands the kube container what the device's settings say of
// k3s: its version, when machines go home, and a configuration of the user's own.
// The version stays at what runs until KubeLifecycle releases another, and so does the
// configuration of a member of a cluster.
//
//	reads:  ConfigItemValueMap, ClusterMembership, EdgeNodeInfo, nodes, KubeLifecycle, the k3s binary
//	writes: KubeConfig, K3sVersionStatus, K3sOverrideStatus
//	acts:   keeps the override file, and the former one beside it while it changes
package k3sconfig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/k3sbinary"
	"github.com/zedkube/zedkube/pkg/base/k3sprocess"
	"github.com/zedkube/zedkube/pkg/base/keptfile"
	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// DefaultOverrideFile is where the kube container looks for the user's own k3s
// configuration (docs/wire.md, "Files"). Its directory is a mount of others:
// nobody makes it here.
const DefaultOverrideFile = "/persist/vault/k3s-user-override.yaml"

// period is how often the override file is compared with the setting: the kube
// container looks every 15 s.
const period = 10 * time.Second

// Component is the settings of k3s. Every exported field is required.
type Component struct {
	Log          logrus.FieldLogger
	Pulse        *loop.Pulse
	Settings     pubsub.Reader[types.ConfigItemValueMap]
	Lifecycle    pubsub.Reader[types.KubeLifecycle]
	Membership   pubsub.Reader[types.ClusterMembership]
	Info         pubsub.Reader[types.EdgeNodeInfo]
	Nodes        pubsub.Reader[types.Node]
	BootID       string // of this boot
	OverrideFile string // DefaultOverrideFile, below the root
	Files        k3sbinary.Files
	KubeConfig   pubsub.Writer[types.KubeConfig]
	Status       pubsub.Writer[types.K3sVersionStatus]
	Override     pubsub.Writer[types.K3sOverrideStatus]
	Operations   types.OperationLog

	file      keptfile.Keeper
	aside     keptfile.Keeper // of the former file
	override  override
	current   onDisk
	former    onDisk
	reading   loop.Call[[2]onDisk]
	readAt    time.Time
	looking   loop.Call[k3sbinary.Ran]
	lookedAt  time.Time
	lookedFor string // what ran then
	binary    k3sbinary.Ran
	refused   string // which settings are refused, as last logged
}

// Run steps until ctx is done and returns after the work on the file has
// ended, or when the disk does not let it end.
func (c *Component) Run(ctx context.Context) {
	defer c.closeFile()
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Settings, c.Lifecycle, c.Membership, c.Info, &c.file, &c.aside, &c.looking, &c.reading)
}

// Step looks, decides and acts once.
func (c *Component) Step(ctx context.Context) error {
	return c.apply(ctx, decide(c.look(ctx)))
}

func (c *Component) look(ctx context.Context) facts {
	f := facts{now: time.Now()}
	c.collect(ctx, f.now)
	f.file = c.file.State()
	f.settings, f.heard = c.Settings.Get(types.Global)
	f.published, _ = c.KubeConfig.Get(types.Global)
	f.status, _ = c.Status.Get(types.Global)
	if lifecycle, decided := c.Lifecycle.Get(types.Global); decided {
		f.lifecycle = &lifecycle
	}
	f.node = c.lookNode(ctx, f.now)
	if item := f.settings.GlobalSettings[types.SettingK3sOverride]; !c.override.read || item != c.override.setting {
		c.override = readOverride(f.settings) // once for each setting: it is parsed
	}
	f.override = c.override
	f.overrideStatus, _ = c.Override.Get(types.Global)
	_, err := k3sprocess.ReadPID(c.Files.K3s.PID)
	f.neverRan = f.node.known && f.published.K3sVersion == "" && f.node.running == "" && errors.Is(err, fs.ErrNotExist)
	c.lookFiles(ctx, f.now, f.node.running != "")
	f.current, f.former, f.aside = c.current, c.former, c.aside.State()
	return f
}

// lookFiles reads the files that a former run left, until they are known. Their directory may not
// be mounted yet, or not unlocked.
func (c *Component) lookFiles(ctx context.Context, now time.Time, runs bool) {
	if is, ok := c.reading.Take(); ok {
		for i, file := range []*onDisk{&c.current, &c.former} {
			if file.name == "" { // what was written meanwhile is known better
				*file = is[i]
			}
		}
	}
	if (c.current.name == "" || c.former.name == "") && !c.reading.Busy() && now.Sub(c.readAt) >= period {
		c.readAt = now
		c.reading.Begin(ctx, lookFor, func(context.Context) [2]onDisk {
			open := runs || c.unlocked() // before the files are looked for
			current := readOnDisk(c.OverrideFile, open)
			return [2]onDisk{current, readOnDisk(c.formerFile(), open || current.is.Do == keptfile.Write)}
		})
	}
}

// unlocked reports that the vault is, as the k3s of the kube container shows, which waits for that.
func (c *Component) unlocked() bool {
	_, err := c.Files.Base()
	return err == nil
}

func (c *Component) formerFile() string { return c.OverrideFile + ".former" }

// lookNode is what is known of the k3s of this device. The Node of a former boot tells the
// version of before.
func (c *Component) lookNode(ctx context.Context, now time.Time) node {
	member, known := c.Membership.Get(types.Global)
	n := node{known: known, alone: known && !member.Belongs()}
	info, named := c.Info.Get(types.Global)
	if own, seen := types.OwnNode(c.Nodes.All(), info); named && seen && c.BootID != "" && own.BootID == c.BootID {
		n.running = own.KubeletVersion
	}
	if _, err := types.ParseK3sVersion(n.running); err != nil {
		n.running = ""
	}
	if b, ok := c.looking.Take(); ok {
		if b.Err != nil && (c.binary.Err == nil || b.Err.Error() != c.binary.Err.Error()) {
			c.Log.WithError(b.Err).Error("the version of the k3s binary is unknown")
		}
		c.binary = b
	}
	wait := period
	if c.binary.Err != nil {
		wait = lookFor
	}
	if last := c.binary; !c.looking.Busy() && (n.running != c.lookedFor || now.Sub(c.lookedAt) >= wait) {
		c.lookedAt, c.lookedFor = now, n.running
		c.looking.Begin(ctx, lookFor, func(ctx context.Context) k3sbinary.Ran { return again(ctx, c.Files, last) })
	}
	n.binary = c.binary.Version
	return n
}

func (c *Component) apply(ctx context.Context, a action) error {
	c.logRefused(a.refused)
	var errs []error
	if a.status != nil {
		errs = append(errs, c.tell(ctx, *a.status))
	}
	if a.publish != nil {
		old, _ := c.KubeConfig.Get(types.Global)
		if err := c.KubeConfig.Publish(types.Global, *a.publish); err != nil {
			errs = append(errs, fmt.Errorf("publish k3s settings: %w", err))
		} else if old != *a.publish {
			c.Log.WithFields(logrus.Fields{
				"k3s_version": a.publish.K3sVersion, "deschedule_on_boot": a.publish.VmiDescheduleEvents.OnBoot,
			}).Info("settings of k3s published")
		}
	}
	if a.override != nil {
		errs = append(errs, c.tellOverride(ctx, *a.override))
	}
	if a.aside != nil {
		c.aside.Begin(ctx, keptfile.File{Path: c.formerFile(), Name: "former override file of k3s"}, *a.aside)
	}
	if a.keep != nil {
		c.file.Begin(ctx, keptfile.File{Path: c.OverrideFile, Name: "override file of k3s"}, *a.keep)
	}
	if a.stuck {
		errs = append(errs, errors.New("keep the override file of k3s: the disk does not answer"))
	}
	return errors.Join(append(errs, c.file.Err(), c.aside.Err(), loop.After(a.again))...)
}

// tell publishes at which version this node is kept. That a change is held, or a version
// released, is recorded.
func (c *Component) tell(ctx context.Context, s types.K3sVersionStatus) error {
	old, _ := c.Status.Get(types.Global)
	l, _ := c.Lifecycle.Get(types.Global)
	if err := c.Status.Publish(types.Global, s); err != nil {
		return fmt.Errorf("publish version of k3s: %w", err)
	}
	switch {
	case s.Held && (!old.Held || s.Wanted != old.Wanted):
		c.Log.WithFields(logrus.Fields{"k3s_version": s.Version, "wanted": s.Wanted}).Warn("version of k3s is held: " + s.Why)
		types.Did(types.Because(ctx, types.SettingK3sVersion, s.Why), c.Operations, "hold k3s version", "version/"+shortened(s.Wanted), nil)
	case l.Released != "" && l.Released == s.Version && s.Version != old.Version:
		types.Did(types.Because(ctx, types.SettingK3sVersion, l.Reason), c.Operations, "release k3s version", "version/"+s.Version, nil)
	}
	return nil
}

// tellOverride publishes what became of the override. That it is refused is
// recorded; that it is accepted shows when its file is written.
func (c *Component) tellOverride(ctx context.Context, s types.K3sOverrideStatus) error {
	old, _ := c.Override.Get(types.Global)
	if err := c.Override.Publish(types.Global, s); err != nil {
		return fmt.Errorf("publish what became of the override of k3s: %w", err)
	}
	if !s.Accepted && (old.Sum != s.Sum || !slices.Equal(old.Refused, s.Refused)) {
		why := fmt.Sprintf("SHA-256 %s: %v", cmp.Or(s.Sum, "unknown"), c.override.err())
		types.Did(types.Because(ctx, types.SettingK3sOverride, why), c.Operations, "refuse k3s override", "setting/"+types.SettingK3sOverride, nil)
	}
	return nil
}

// logRefused logs which settings are refused when that changes.
func (c *Component) logRefused(refused string) {
	switch {
	case refused == c.refused:
	case refused != "":
		c.Log.WithField("err", refused).Error("invalid k3s settings ignored, keeping the last valid ones")
	default:
		c.Log.Info("k3s settings are valid again")
	}
	c.refused = refused
}

// collect logs what came of the work on the file that has ended, if some has.
func (c *Component) collect(ctx context.Context, now time.Time) {
	if _, is, ok := c.aside.Collect(now); ok {
		if is.Stands(is.Desired) {
			c.former = onDisk{is.Desired, nameOf(is.Desired)}
		}
		if op := is.Act(); op != "" {
			types.Did(types.Because(ctx, types.SettingK3sOverride, "k3s may not come up with another one"), c.Operations, op, "file/"+c.formerFile(), is.Err)
		}
	}
	was, is, ok := c.file.Collect(now)
	if !ok {
		return
	}
	if is.Stands(is.Desired) {
		c.current = onDisk{is.Desired, nameOf(is.Desired)}
	}
	why := "the setting is empty"
	if is.Desired.Do == keptfile.Write {
		why = "the setting has SHA-256 " + nameOf(is.Desired)
	}
	if l, _ := c.Lifecycle.Get(types.Global); l.Override.Released == nameOf(is.Desired) && l.Override.Failed.To != "" {
		why = l.Override.Failed.Why
	}
	ctx = types.Because(ctx, types.SettingK3sOverride, why)
	if op := is.Act(); op != "" {
		types.Did(ctx, c.Operations, op, "file/"+c.OverrideFile, is.Err)
	}
	log := c.Log.WithField("file", c.OverrideFile)
	switch {
	case is.Waits() && !was.Waits():
		log.Warn("override file of k3s waits for its directory to be mounted")
	case is.Result == keptfile.Written && was.Stands(is.Desired):
		log.Warn("override file of k3s was changed or removed by someone else: restored")
	case is.Result == keptfile.Written:
		log.Info("override file of k3s written")
	case is.Result == keptfile.Removed:
		log.Info("override file of k3s removed")
	}
}

// closeFile waits for the work on the file. A look into the binary or the former
// file that hangs is left behind: it only reads.
func (c *Component) closeFile() {
	c.looking.Cancel()
	c.reading.Cancel()
	if ended := c.file.End(); !c.aside.End() || !ended {
		c.Log.WithField("file", c.OverrideFile).Error("override file of k3s: the disk does not answer, stopping without it")
	}
}
