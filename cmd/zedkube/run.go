package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/base/agentlog"
	"github.com/zedkube/zedkube/pkg/base/memory"
	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/pkg/base/watchdog"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// runAgent runs the daemon until ctx is done. After the sockets are open
// nothing ends it but ctx: every later fault is a component's to retry.
func runAgent(ctx context.Context, o device.Options) error {
	p := o.Paths()
	log, out, end := agentlog.Open(ctx, os.Stderr)
	defer end()
	kubeapi.LogTo(log)
	memory.Tune(log, "/")
	if err := os.MkdirAll(filepath.Dir(p.PID), 0o755); err != nil { //nolint:gosec // /run, which is everybody's
		return fmt.Errorf("make run directory: %w", err)
	}
	unlock, err := lockAgent(log, p.In(types.PathLock))
	if err != nil {
		return err
	}
	defer unlock()
	if !runsKubernetes(p.In(types.PathHypervisor)) {
		defer watchdog.WritePID(log, p.PID)()
		log.Info("this hypervisor does not run Kubernetes: only the watchdog is fed")
		watchdog.FeedOnly(ctx, log, p.Touch)
		return nil
	}
	if p.Boot, err = device.ReadBootID(p.BootID); err != nil {
		log.WithError(err).Error("boot ID unavailable: using uptime to recognize reboots")
	}
	bus, components := wire(ctx, p, log, out)
	// The sockets tell, too, whether an agent runs here already: one that could
	// not make the lock file. Only after them is the pid file ours to take over.
	if err := bus.Open(); errors.Is(err, pubsub.ErrInUse) {
		return anotherRuns(err)
	} else if err != nil {
		log.WithError(err).Error("some topics could not be opened, will try again")
	}
	defer watchdog.WritePID(log, p.PID)()
	log.WithField("version", p.Version).Info("zedkube started")
	defer time.AfterFunc(settled, func() { unmapStart(log) }).Stop()

	// Pubsub ends last, so that what the components say at their end is heard.
	busContext, stopBus := context.WithCancel(context.WithoutCancel(ctx))
	var serving, running sync.WaitGroup
	serving.Go(func() { bus.Run(busContext) })
	record := components["audit"] // it ends last as well
	delete(components, "audit")
	serving.Go(func() { record.Run(busContext) })
	for name, c := range components {
		running.Go(func() { c.Run(types.ActAs(ctx, name)) })
	}
	running.Wait()
	stopBus()
	serving.Wait()
	log.Info("zedkube stopped")
	return nil
}

// lockAgent takes the lock that one agent has as long as it runs: of two that start
// at the same moment, each may find the sockets free and take those of the other. A
// lock file that cannot be made, as on a full /run, keeps no agent from running.
func lockAgent(log logrus.FieldLogger, path string) (unlock func(), err error) {
	f, _, err := safefile.OpenFile(path, os.O_RDWR|os.O_CREATE|safefile.NoFollow, 0o600)
	if err != nil {
		log.WithError(err).Warn("cannot make the lock file: only the sockets tell whether another agent runs here")
		return func() {}, nil
	}
	// The file stays when it is unlocked: another agent may have opened it already.
	unlock = func() { _ = f.Close() }
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		unlock()
		return nil, fmt.Errorf("lock %s: %w: another agent runs here", path, pubsub.ErrInUse)
	}
	if err != nil {
		log.WithError(err).WithField("file", path).Warn("cannot lock the lock file: only the sockets tell whether another agent runs here")
	}
	return unlock, nil
}

// anotherRuns says in one line that the sockets are another agent's, of which
// there is one for each topic.
func anotherRuns(err error) error {
	taken := []error{err}
	var all interface{ Unwrap() []error }
	if errors.As(err, &all) {
		taken = slices.DeleteFunc(slices.Clone(all.Unwrap()), func(e error) bool { return !errors.Is(e, pubsub.ErrInUse) })
	}
	more := ""
	if n := len(taken) - 1; n > 0 {
		more = fmt.Sprintf(", as are %d more", n)
	}
	return fmt.Errorf("open pubsub: %w%s: another agent runs here", taken[0], more)
}

// runsKubernetes reads EVE's hypervisor type. A device that does not say, or not
// in a file that can be read, is taken for one that runs Kubernetes.
func runsKubernetes(path string) bool {
	content, err := safefile.Read(path, safefile.Small)
	if err != nil {
		return true
	}
	return types.HypervisorRunsKubernetes(strings.TrimSpace(string(content)))
}

// settled is after how long nothing of the start is used any more.
const settled = time.Minute

// unmapStart unmaps what of the program only its start has used.
func unmapStart(log logrus.FieldLogger) {
	if mapped, err := memory.Unmap("/"); err != nil {
		log.WithError(err).Warn("cannot unmap the pages of the start")
	} else {
		log.WithField("bytes", mapped).Debug("unmapped the pages of the start")
	}
}
