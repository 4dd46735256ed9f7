// Command bench measures the agent on a real control plane and writes
// docs/performance.md. Everything that is compared is measured in the same
// run, several times, and reported as medians and ratios.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
)

func main() {
	program := flag.String("program", "bin/zedkube", "the zedkube program")
	out := flag.String("out", "docs/performance.md", "where the figures go")
	rounds := flag.Int("rounds", 3, "how often each drain is measured")
	only := flag.String("only", "", "pubsub (without a cluster), config, token, idle, failover, status or drains: measure that alone and print it")
	role := flag.String("role", "", "what this process plays for another bench")
	root := flag.String("root", "", "where it plays it: a directory, or the address of a server")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case *role != "":
		err = play(ctx, *role, *root)
	case *only == "pubsub":
		err = (&bench{}).pubsub(ctx)
	case *only != "":
		err = alone(ctx, *program, *only, *rounds)
	default:
		err = run(ctx, *program, *out, *rounds)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// run measures everything, in an order in which each leaves the cluster as the
// next one needs it.
func run(ctx context.Context, program, out string, rounds int) error {
	// First, while the machine and this process have nothing else to do.
	b := &bench{rounds: rounds}
	if err := b.pubsub(ctx); err != nil {
		return err
	}
	if err := b.onCluster(ctx, program, b.warmUp, b.restarts, b.configToStatus, b.tokens, b.idle, b.failover, b.status, b.drains); err != nil {
		return err
	}
	return os.WriteFile(out, []byte(b.document()), 0o644)
}

// alone takes one measure on a control plane and prints it.
func alone(ctx context.Context, program, name string, rounds int) error {
	b := &bench{rounds: rounds}
	measure, known := map[string]func(context.Context) error{
		"config": b.configToStatus, "token": b.tokens, "idle": b.idle, "failover": b.failover, "status": b.status, "drains": b.drains,
	}[name]
	if !known {
		return fmt.Errorf("cannot measure %q alone", name)
	}
	return b.onCluster(ctx, program, b.warmUp, measure)
}

// onCluster measures with three devices on a control plane.
func (b *bench) onCluster(ctx context.Context, program string, measures ...func(context.Context) error) error {
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "zedkube-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cluster, err := devcluster.Start(ctx, devcluster.Options{Log: os.Stderr, Nodes: 3, Audit: true})
	if err != nil {
		return err
	}
	fleet, err := player.NewFleet(ctx, cluster, player.FleetOptions{Dir: dir, Program: []string{program}, Apps: appsFor})
	if err != nil {
		return errors.Join(err, cluster.Stop())
	}
	b.fleet, b.cluster = fleet, cluster
	for _, measure := range measures {
		if err = measure(ctx); err != nil {
			break
		}
	}
	return errors.Join(err, fleet.Close(), cluster.Stop())
}
