// Package loglevel makes the log as talkative as the device's settings ask for.
//
//	reads:  ConfigItemValueMap
//	writes: nothing
//	acts:   sets the level of the program's logger
package loglevel

import (
	"cmp"
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	agent  = "zedkube"
	period = 5 * time.Minute // the bell does the work
)

// Component sets the level. Every exported field is required.
type Component struct {
	Log      logrus.FieldLogger
	Pulse    *loop.Pulse
	Settings pubsub.Reader[types.ConfigItemValueMap]
	Logger   *logrus.Logger

	unknown string // the setting last reported as no level
}

// Run steps until ctx is done.
func (c *Component) Run(ctx context.Context) {
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Settings)
}

// Step sets the level that the settings name. Before there are settings the
// level stays as the program was started with; settings that name none mean
// info, and a name that is no level changes nothing.
func (c *Component) Step(context.Context) error {
	settings, ok := c.Settings.Get(types.Global)
	if !ok {
		return nil
	}
	name := settings.LogLevel(agent)
	level, err := logrus.ParseLevel(cmp.Or(name, "info"))
	if err != nil {
		if name != c.unknown {
			c.unknown = name
			c.Log.WithField("level_set", name).Warn("unknown log level, keeping the current one")
		}
		return nil
	}
	c.unknown = ""
	if was := c.Logger.GetLevel(); was != level {
		c.Logger.SetLevel(level)
		c.Log.WithFields(logrus.Fields{"from": was.String(), "to": level.String()}).Info("log level changed")
	}
	return nil
}
