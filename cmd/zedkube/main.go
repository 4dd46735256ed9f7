// Command zedkube joins an EVE device to its Kubernetes cluster: the agent on
// each node between EVE's pubsub and the cluster's API.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/kubeapi"
)

// version is set by the linker.
var version = "devel"

func main() { run() }

// run is the program, with what tests add to its command line.
func run(more ...func(*cobra.Command, *options)) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	kubeapi.LogTo(silent()) // until the agent has a log; commands have none
	if err := newCommand(version, runAgent, more...).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "zedkube:", complaint(err))
		stop()
		os.Exit(exitCode(err))
	}
}
