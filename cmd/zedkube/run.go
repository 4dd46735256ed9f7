package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/base/printable"
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
	out, own, end := openLog(ctx, os.Stderr)
	defer end()
	log := newLogger(own)
	kubeapi.LogTo(log)
	if err := os.MkdirAll(filepath.Dir(p.PID), 0o755); err != nil {
		return fmt.Errorf("make run directory: %w", err)
	}
	if !runsKubernetes(p.Hypervisor) {
		defer watchdog.WritePID(log, p.PID)()
		log.Info("this hypervisor does not run Kubernetes: only the watchdog is fed")
		watchdog.FeedOnly(ctx, log, p.Touch)
		return nil
	}
	var err error
	if p.Boot, err = device.ReadBootID(p.BootID); err != nil {
		log.WithError(err).Error("boot ID unavailable: using uptime to recognize reboots")
	}
	bus, components := wire(p, log, out)
	// The sockets tell whether an agent runs here already. Only after them is
	// the pid file ours to take over.
	if err := bus.Open(); errors.Is(err, pubsub.ErrInUse) {
		return anotherRuns(err)
	} else if err != nil {
		log.WithError(err).Error("some topics could not be opened, will try again")
	}
	defer watchdog.WritePID(log, p.PID)()
	log.WithField("version", p.Version).Info("zedkube started")

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

// newLogger logs JSON lines with the field names of EVE's agents, which newlogd
// reads (docs/wire.md, "Log lines").
func newLogger(w io.Writer) *logrus.Logger {
	logrus.ErrorKey = "err" // one name for it, no matter who logs
	log := logrus.New()
	log.SetOutput(w)
	log.SetFormatter(&logrus.JSONFormatter{TimestampFormat: time.RFC3339Nano})
	log.AddHook(identity{"source": "zedkube", "pid": os.Getpid()})
	return log
}

// identity adds to each line which agent wrote it.
type identity logrus.Fields

// Levels implements logrus.Hook.
func (identity) Levels() []logrus.Level { return logrus.AllLevels }

// Fire implements logrus.Hook. What other programs wrote is in errors, too: a
// terminal that shows the device's log must not act upon it.
func (i identity) Fire(e *logrus.Entry) error {
	e.Message = shownLines(e.Message)
	for k, v := range e.Data {
		switch v := v.(type) {
		case string:
			e.Data[k] = shownLines(v)
		case error:
			e.Data[k] = shownLines(v.Error())
		}
	}
	for k, v := range i {
		e.Data[k] = v
	}
	return nil
}

// shownLines is printable.Escape for a text of lines.
func shownLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = printable.Escape(lines[i])
	}
	return strings.Join(lines, "\n")
}
