// Command bench measures the agent on a real control plane and writes
// docs/performance.md. Everything that is compared is measured in the same
// run, several times, and reported as medians and ratios.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/zedkube/zedkube/test/devcluster"
	"github.com/zedkube/zedkube/test/player"
	"github.com/zedkube/zedkube/types"
)

func main() {
	program := flag.String("program", "bin/zedkube", "the zedkube program")
	out := flag.String("out", "docs/performance.md", "where the figures go")
	rounds := flag.Int("rounds", 3, "how often each drain is measured")
	only := flag.String("only", "", "pubsub (without a cluster), config, token, idle, change, conditions, apps, steady, restarts, failover, volumes, status, drains, writing, markers or logs: measure that alone and print it; scale, lost or started: and put it into the document")
	idling := flag.Duration("idle", time.Minute, "how long the idle agents are watched")
	role := flag.String("role", "", "what this process plays for another bench")
	release := flag.String("release", cmp.Or(os.Getenv("VERSION"), "devel"), "what the figures are of, in their history")
	root := flag.String("root", "", "where it plays it: a directory, or the address of a server")
	flag.Parse()
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	b := &bench{rounds: *rounds, idling: *idling}
	var err error
	switch {
	case *role != "":
		err = play(ctx, *role, *root)
	case *only == "pubsub":
		err = b.pubsub(ctx)
	case *only == "logs":
		err = b.logs(ctx, *program)
	case *only == "lost":
		err = b.lost(ctx, *program, *out)
	case *only == "started":
		err = b.started(ctx, *program, *out)
	case *only == "scale":
		err = b.scale(ctx, *program, *out)
	case *only != "":
		err = b.alone(ctx, *program, *only)
	default:
		err = b.run(ctx, *program, *out, *release)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// run measures everything, in an order in which each leaves the cluster as the
// next one needs it.
func (b *bench) run(ctx context.Context, program, out, release string) error {
	// First, while the machine and this process have nothing else to do.
	if err := b.pubsub(ctx); err != nil {
		return err
	}
	if err := b.onCluster(ctx, program, appsFor, b.warmUp, b.restarts, b.configToStatus, b.tokens, b.failover, b.status, b.drains, b.volumes); err != nil {
		return err
	}
	if err := b.onCluster(ctx, program, mixedApps, b.warmUp, b.idleFew, b.conditions, b.changeFew, b.phasesFew,
		b.grow, b.phasesMany, b.steadyMany, b.changeMany, b.idleMany, b.writing, b.markers); err != nil {
		return err
	}
	if err := b.logs(ctx, program); err != nil {
		return err
	}
	return b.write(out, release)
}

// alone takes one measure on a control plane and prints it.
func (b *bench) alone(ctx context.Context, program, name string) error {
	type measures []func(context.Context) error
	of, apps := measures(nil), appsFor
	switch name {
	case "idle":
		of, apps = measures{b.idleFew, b.grow, b.idleMany}, mixedApps
	case "change":
		of, apps = measures{b.changeFew, b.grow, b.changeMany}, mixedApps
	case "steady":
		of, apps = measures{b.grow, b.logged, b.steadyMany}, mixedApps
	case "conditions":
		of, apps = measures{b.conditions}, mixedApps
	case "apps":
		of, apps = measures{b.phasesFew, b.grow, b.phasesMany}, mixedApps
	default:
		one, known := map[string]func(context.Context) error{
			"config": b.configToStatus, "token": b.tokens, "restarts": b.restarts, "failover": b.failover, "volumes": b.volumes, "status": b.status, "drains": b.drains,
			"writing": b.writing, "markers": b.markers,
		}[name]
		if !known {
			return fmt.Errorf("cannot measure %q alone", name)
		}
		of = measures{one}
	}
	return b.onCluster(ctx, program, apps, append(measures{b.warmUp}, of...)...)
}

// onCluster measures with three devices on a control plane, to each of which the
// controller tells some applications.
func (b *bench) onCluster(ctx context.Context, program string, apps func(i int) []types.AppInstanceConfig, measures ...func(context.Context) error) error {
	return b.on(ctx, program, devcluster.Options{}, apps, measures...)
}

func (b *bench) on(ctx context.Context, program string, o devcluster.Options, apps func(i int) []types.AppInstanceConfig, measures ...func(context.Context) error) error {
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "zedkube-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	o.Log, o.Nodes, o.Audit = os.Stderr, 3, true
	cluster, err := devcluster.Start(ctx, o)
	if err != nil {
		return err
	}
	fleet, err := player.NewFleet(ctx, cluster, player.FleetOptions{Dir: dir, Program: []string{program}, Apps: apps})
	if err != nil {
		return errors.Join(err, cluster.Stop())
	}
	b.fleet, b.cluster, b.apps, b.logPorts = fleet, cluster, apps, nil
	var over context.CancelFunc
	b.measuring, over = context.WithCancel(ctx)
	defer over()
	if err := errors.Join(fleet.Configure(player.ShortWindow()), b.allowStreams()); err != nil {
		return errors.Join(err, fleet.Close(), cluster.Stop())
	}
	for _, measure := range measures {
		if err = measure(ctx); err != nil {
			break
		}
	}
	return errors.Join(err, fleet.Close(), cluster.Stop())
}
