// Package console asks the kube container for the remote console of an
// application whose virtual machine runs on this node (docs/wire.md, "Console
// file").
//
//	reads:  AppInstanceConfig, ENClusterAppStatus, the console file, /proc
//	writes: AppConsoleStatus
//	acts:   keeps the console file, one for each node; never takes a live one of edgeview's away
package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

const (
	// DefaultFile is where the kube container looks for the console that it is to open.
	DefaultFile = "/run/edgeview/VncParams/vmiVNC.run"
	// DefaultOldFile is where kube containers of before February 2026 look.
	DefaultOldFile = "/run/zedkube/vmiVNC.run"
	// DefaultKubeInit is the directory of kube-init's topics. The kube containers
	// that have it read DefaultFile only.
	DefaultKubeInit = "/run/kube-init"
	// DefaultProc is where the kernel tells of processes and ports.
	DefaultProc = "/proc"
)

// period is in case an event was missed; what is due earlier is asked for.
const period = 10 * time.Second

// Component is the remote console of this node. Every exported field is
// required.
type Component struct {
	Log   logrus.FieldLogger
	Pulse *loop.Pulse

	Configs  pubsub.Source[types.AppInstanceConfig]
	Apps     pubsub.Reader[types.ENClusterAppStatus]
	File     string // DefaultFile, below the root
	OldFile  string // DefaultOldFile; written only where its directory is
	KubeInit string // DefaultKubeInit
	Proc     string // DefaultProc

	Status pubsub.Writer[types.AppConsoleStatus] // it reads back what a former run published

	Operations types.OperationLog

	// What this process remembers. Losing it costs a wait, never a session.
	asked map[string]time.Time
	file  memory
	older memory
	attempts
}

type attempts struct {
	rewrittenFor string // the machine whose file was rewritten because nobody opened its port
	rewrites     int    // how often, for nothing
	failed       string // why the file could not be kept, the last time; "" where it could
}

type memory struct {
	id          identity
	since       time.Time // the first look at it as it is; zero before any
	silentSince time.Time // the first look at its port's silence; zero while that is not silent
}

// Run steps until ctx is done. What stands then stays: the next run goes on
// with it.
func (c *Component) Run(ctx context.Context) {
	loop.Run(ctx, c.Log, c.Pulse, period, c.Step, c.Configs, c.Apps)
}

// Step looks, decides and acts once.
func (c *Component) Step(ctx context.Context) error { return c.apply(ctx, decide(c.look())) }

// apply tells first, since what is told proves later whose the file is.
func (c *Component) apply(ctx context.Context, a action) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(a.publish)) {
		errs = append(errs, c.publish(key, a.publish[key]))
	}
	errs = append(errs, c.keep(ctx, a))
	if err := c.keepOld(ctx, a.old); err != nil && !errors.Is(err, errChanged) {
		errs = append(errs, fmt.Errorf("keep the console file %s: %w", c.OldFile, err))
	}
	for _, key := range a.unpublish {
		if err := c.Status.Unpublish(key); err != nil {
			errs = append(errs, fmt.Errorf("unpublish console of app %s: %w", key, err))
		}
	}
	return errors.Join(append(errs, loop.After(a.again))...)
}

func (c *Component) publish(key string, row types.AppConsoleStatus) error {
	old, had := c.Status.Get(key)
	if err := c.Status.Publish(key, row); err != nil {
		return fmt.Errorf("publish console of app %s: %w", key, err)
	}
	switch log := c.Log.WithField("app", key); {
	case had && old.Open == row.Open && old.Why == row.Why:
	case row.Open:
		log.Info("console is open")
	default:
		log.WithField("why", row.Why).Info("console is not open")
	}
	return nil
}

// keep writes or removes the file. If another was faster, the next step sees it.
func (c *Component) keep(ctx context.Context, a action) error {
	var err error
	log := c.Log.WithField("file", c.File)
	again := c.rewrites > 0 && a.config.VMIName == c.rewrittenFor // and was told
	switch a.file {
	case leave:
		if a.config.VMIName == "" { // nobody waits for it
			c.failed = ""
		}
		return nil
	case write:
		if err = c.write(a.config); err == nil && !again {
			log.WithField("app", a.config.AppUUID).Info("console file written")
		}
	case remove:
		if err = take(c.File, c.file.id); err == nil && !again {
			log.WithField("why", a.because).Info("console file removed")
		}
	}
	c.failed = ""
	if !errors.Is(err, errChanged) {
		c.record(ctx, a.file == remove, c.File, a.because, err)
	}
	switch {
	case errors.Is(err, errChanged):
		return nil
	case err != nil:
		c.failed = err.Error()
		return fmt.Errorf("keep the console file: %w", err)
	case a.rewrite:
		c.rewrittenFor = a.config.VMIName
		c.rewrites++
	}
	return nil
}

func (c *Component) write(config types.VmiVNCConfig) error {
	raw, err := json.Marshal(config)
	if err != nil {
		return err
	}
	if err := makeDir(c.File); err != nil {
		return err
	}
	return put(c.File, string(raw))
}

func (c *Component) keepOld(ctx context.Context, o oldStep) error {
	var err error
	switch o.do {
	case leave:
		return nil
	case remove:
		err = take(c.OldFile, c.older.id)
	case write:
		if err = put(c.OldFile, o.text); errors.Is(err, fs.ErrNotExist) { // nobody reads there
			return nil
		}
	}
	if !errors.Is(err, errChanged) {
		c.record(ctx, o.do == remove, c.OldFile, "", err)
	}
	return err
}

// record puts on record what was done to a console file.
func (c *Component) record(ctx context.Context, removed bool, path, why string, err error) {
	op := "write file"
	if removed {
		op = "remove file"
	}
	ctx = types.Because(ctx, "CONTROLLER", cmp.Or(why, "the remote console of an application"))
	types.Did(ctx, c.Operations, op, "file/"+path, err)
}
