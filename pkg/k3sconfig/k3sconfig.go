// Package k3sconfig hands the kube container what the device's settings say of
// k3s: its version, when machines go home, and a configuration of the user's own.
//
//	reads:  ConfigItemValueMap
//	writes: KubeConfig
//	acts:   keeps the override file
package k3sconfig

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/keptfile"
	"github.com/zedkube/zedkube/pkg/loop"
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
	OverrideFile string // DefaultOverrideFile, below the root
	KubeConfig   pubsub.Writer[types.KubeConfig]
	Operations   types.OperationLog

	file    keptfile.Keeper
	refused string // what of the settings is not obeyed, as last logged
}

// Run steps until ctx is done and returns after the work on the file has
// ended, or when the disk does not let it end.
func (c *Component) Run(ctx context.Context) {
	defer c.letEnd()
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Settings, &c.file)
}

// Step looks, decides and acts once.
func (c *Component) Step(ctx context.Context) error {
	return c.apply(decide(c.look(ctx)))
}

func (c *Component) look(ctx context.Context) facts {
	f := facts{now: time.Now()}
	c.collect(ctx, f.now)
	f.file = c.file.State()
	f.settings, f.heard = c.Settings.Get(types.Global)
	f.published, _ = c.KubeConfig.Get(types.Global)
	return f
}

func (c *Component) apply(a action) error {
	c.logRefused(a.refused)
	var errs []error
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
	if a.keep != nil {
		c.file.Begin(keptfile.File{Path: c.OverrideFile, Name: "override file of k3s"}, *a.keep)
	}
	if a.stuck {
		errs = append(errs, errors.New("keep the override file of k3s: the disk does not answer"))
	}
	return errors.Join(append(errs, c.file.Err(), loop.After(a.again))...)
}

// logRefused logs what is not obeyed when that changes.
func (c *Component) logRefused(refused string) {
	switch {
	case refused == c.refused:
	case refused != "":
		c.Log.WithField("err", refused).Error("settings of k3s make no sense, the last good ones stay")
	default:
		c.Log.Info("settings of k3s make sense again")
	}
	c.refused = refused
}

// collect logs what came of the work on the file that has ended, if some has.
func (c *Component) collect(ctx context.Context, now time.Time) {
	was, is, ok := c.file.Collect(now)
	if !ok {
		return
	}
	ctx = types.Because(ctx, types.SettingK3sOverride, "the setting says so")
	if op := is.Act(); op != "" {
		types.Did(ctx, c.Operations, op, "file/"+c.OverrideFile, is.Err)
	}
	log := c.Log.WithField("file", c.OverrideFile)
	switch {
	case is.Waits() && !was.Waits():
		log.Warn("override file of k3s waits for its directory to be mounted")
	case is.Result == keptfile.Written && was.Stands(is.Wish):
		log.Warn("override file of k3s was changed or removed by somebody else: restored")
	case is.Result == keptfile.Written:
		log.Info("override file of k3s written")
	case is.Result == keptfile.Removed:
		log.Info("override file of k3s removed")
	}
}

// letEnd waits for the work on the file.
func (c *Component) letEnd() {
	if !c.file.End() {
		c.Log.WithField("file", c.OverrideFile).Error("override file of k3s: the disk does not answer, ending without it")
	}
}
