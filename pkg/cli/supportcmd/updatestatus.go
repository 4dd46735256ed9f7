package supportcmd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/report/updatestatus"
	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

// NewUpdateStatusCommand is the command by which the kube container reports
// how far the update of its components has come.
func NewUpdateStatusCommand(o *device.Options) *cobra.Command {
	return &cobra.Command{
		Use:               "pubKubeClusterUpdateStatus node component status destVersion [error]",
		Short:             "Report the update of a component of the kube container",
		Hidden:            true,
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil }, // whatever the root is
		Args:              terminal.Words(4, 5),
		RunE: func(c *cobra.Command, args []string) error {
			report, err := parseReport(args, time.Now())
			if err != nil {
				return terminal.ExitWith(terminal.ExitUsage, err)
			}
			if err := deliver(c.Context(), o.Paths(), report); err != nil {
				return terminal.ExitWith(terminal.ExitNotPublished, err)
			}
			return nil
		},
	}
}

// parseReport reads the command's words. Words that name no component or state
// stand for unknown, as they do in EVE.
func parseReport(args []string, now time.Time) (types.KubeClusterUpdateStatus, error) {
	version, err := strconv.ParseUint(args[3], 10, 32)
	if err != nil {
		return types.KubeClusterUpdateStatus{}, fmt.Errorf("destination version: %w", err)
	}
	report := types.KubeClusterUpdateStatus{
		CurrentNode:                  args[0],
		Component:                    types.ParseKubeComp(args[1]),
		Status:                       types.ParseKubeCompUpdateStatus(args[2]),
		DestinationKubeUpdateVersion: uint32(version),
	}
	if report.Status == types.KubeCompUpdateFailed {
		text := strings.Join(append([]string{device.Self, "pubKubeClusterUpdateStatus"}, args...), " ")
		if len(args) > 4 && args[4] != "" {
			text = args[4]
		}
		report.ErrorDescription = types.ErrorDescription{Error: text, ErrorTime: now.UTC(), ErrorSeverity: types.ErrorSeverityError}
	}
	return report, nil
}

// deliver hands the report to the running agent and waits until the agent has
// passed it on; where none runs it goes to disk, where the next one finds it.
func deliver(ctx context.Context, p device.Paths, report types.KubeClusterUpdateStatus) error {
	log := device.Silent()
	bus := pubsub.NewBus(p.Root, log)
	reported := pubsub.NewPublication[types.KubeClusterUpdateStatus](bus, device.CommandAgent, pubsub.FilesOnly())
	passedOn := pubsub.NewSubscription[types.KubeClusterUpdateStatus](bus, "zedagent", pubsub.Persistent(), pubsub.SocketOnly())
	if err := bus.Open(); err != nil {
		return fmt.Errorf("open pubsub: %w", err)
	}
	bell := make(chan struct{}, 1)
	passedOn.Notify(bell)
	serving, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { bus.Run(serving) })
	defer running.Wait()
	defer stop()
	if err := reported.Publish(types.Global, report); err != nil {
		return err
	}
	alive, late := time.After(device.GreetingTimeout), time.After(device.DeliveryTimeout)
	for !arrived(passedOn, report) {
		select {
		case <-bell:
		case <-alive:
			if !passedOn.Synced() {
				return store(p, log, report)
			}
		case <-late:
			return errors.New("the running agent did not forward the report")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// arrived reports whether the agent says what was reported.
func arrived(passedOn pubsub.Source[types.KubeClusterUpdateStatus], report types.KubeClusterUpdateStatus) bool {
	got, ok := passedOn.Get(types.Global)
	if updatestatus.Withdraws(report) {
		return !ok && passedOn.Synced()
	}
	return ok && got.CurrentNode == report.CurrentNode && got.Component == report.Component && got.Status == report.Status &&
		got.DestinationKubeUpdateVersion == report.DestinationKubeUpdateVersion && got.Error == report.Error && got.ErrorTime.Equal(report.ErrorTime)
}

// store writes the report where the agent would, without its socket.
func store(p device.Paths, log logrus.FieldLogger, report types.KubeClusterUpdateStatus) error {
	bus := pubsub.NewBus(p.Root, log)
	status := pubsub.NewPublication[types.KubeClusterUpdateStatus](bus, "zedagent", pubsub.Persistent(), pubsub.FilesOnly())
	if err := bus.Open(); err != nil {
		return fmt.Errorf("open pubsub: %w", err)
	}
	if updatestatus.Withdraws(report) {
		return status.Unpublish(types.Global)
	}
	return status.Publish(types.Global, report)
}
