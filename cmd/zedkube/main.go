// Command zedkube joins an EVE device to its Kubernetes cluster: the agent on
// each node between EVE's pubsub and the cluster's API.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/cli"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
)

// version is set by the linker.
var version = "devel"

// run is the program, with what tests add to its command line.
func run(more ...func(*cobra.Command, *device.Options)) {
	// One allocation in 4 MiB is sampled, not one in 512 KiB: the samples of weeks take memory as
	// well. As early as can be, as the runtime asks.
	runtime.MemProfileRate = 4 << 20
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	kubeapi.LogTo(device.Silent()) // until the agent has a log; commands have none
	program := cli.New(version, runAgent, more...)
	program.SetArgs(cli.Arguments(os.Args))
	if err := program.ExecuteContext(ctx); err != nil {
		if complaint := terminal.Complaint(err); complaint != "" {
			fmt.Fprintln(os.Stderr, "zedkube:", complaint)
		}
		stop()
		os.Exit(terminal.ExitCode(err))
	}
}
