//go:build linux

// Command devcluster keeps a real Kubernetes control plane with simulated nodes
// running until it is told to end: build, up, status, kubeconfig, fault, node, down.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/test/devcluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		stop()
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var dir, node string
	var nodes int
	root := &cobra.Command{
		Use:          "devcluster",
		Short:        "A real Kubernetes control plane on loopback, with simulated nodes",
		SilenceUsage: true,
	}
	root.PersistentFlags().StringVar(&dir, "dir", filepath.Join(os.TempDir(), "zedkube-devcluster"),
		"directory of the cluster; up makes it, down removes it")

	up := &cobra.Command{Use: "up", Short: "Start a cluster and leave it running", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		return up(cmd.Context(), dir, nodes, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}}
	serve := &cobra.Command{Use: "serve", Hidden: true, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		return serve(cmd.Context(), dir, nodes)
	}}
	for _, cmd := range []*cobra.Command{up, serve} {
		cmd.Flags().IntVar(&nodes, "nodes", 3, "how many nodes")
	}
	down := &cobra.Command{Use: "down", Short: "End the cluster and remove its directory", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		return down(cmd.Context(), dir)
	}}
	status := &cobra.Command{Use: "status", Short: "Print the nodes and their faults", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		return ask(cmd.Context(), dir, "/status", "", "", cmd.OutOrStdout())
	}}
	kubeconfig := &cobra.Command{Use: "kubeconfig", Short: "Print the administrator's kubeconfig", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		return ask(cmd.Context(), dir, "/kubeconfig", node, "", cmd.OutOrStdout())
	}}
	kubeconfig.Flags().StringVar(&node, "node", "", "as this node sees the API server, faults included")
	fault := &cobra.Command{
		Use: "fault none|refused|hung|TERM,TERM", Short: "Change what nodes meet when they call the API server", Args: cobra.ExactArgs(1),
		Long: "The terms: slow=DURATION, STATUS[=PART], expired, reset[=BYTES], only=VERB+VERB, of=RESOURCE+RESOURCE",
		RunE: func(cmd *cobra.Command, args []string) error {
			return ask(cmd.Context(), dir, "/fault", node, args[0], cmd.OutOrStdout())
		},
	}
	fault.Flags().StringVar(&node, "node", "", "only this node")
	act := &cobra.Command{
		Use: "node NAME cut|heal|cut-watches|new-ca|skew=DURATION", Short: "Do something to a node", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return ask(cmd.Context(), dir, "/node", args[0], args[1], cmd.OutOrStdout())
		},
	}
	var all, releases, edge bool
	var source string
	build := &cobra.Command{Use: "build", Short: "Build the programs of the cluster, unless they are there", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		if all {
			return devcluster.BuildAll(cmd.Context(), source, cmd.ErrOrStderr())
		}
		if releases {
			return devcluster.BuildReleases(cmd.Context(), source, cmd.ErrOrStderr())
		}
		if edge {
			return devcluster.BuildEdge(cmd.Context(), source, cmd.ErrOrStderr())
		}
		_, err := devcluster.Build(cmd.Context(), source, cmd.ErrOrStderr())
		return err
	}}
	build.Flags().BoolVar(&all, "all", false, "kubelet, kubectl, KubeVirt and the next patch release too")
	build.Flags().BoolVar(&releases, "releases", false, "instead, the next minor release, and etcd 3.5")
	build.Flags().BoolVar(&edge, "edge", false, "instead, KubeEdge, kube-proxy and metrics-server")
	build.Flags().StringVar(&source, "source", "", "the folder test/devcluster, for a program built with -trimpath")
	root.AddCommand(build, up, serve, down, status, kubeconfig, fault, act)
	return root
}

// up starts serve as a process of its own and passes on what it says until the
// cluster is ready. Interrupted, it takes the process with it.
func up(ctx context.Context, dir string, nodes int, out, log io.Writer) error {
	if err := ask(ctx, dir, "/status", "", "", io.Discard); err == nil {
		return fmt.Errorf("a cluster already runs in %s", dir)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the own program: %w", err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make a pipe: %w", err)
	}
	defer read.Close()
	server := exec.Command(self, "serve", "--dir", dir, "--nodes", strconv.Itoa(nodes))
	server.ExtraFiles = []*os.File{write}
	server.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = server.Start()
	write.Close()
	if err != nil {
		return fmt.Errorf("start the cluster: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = server.Process.Kill() })()
	if _, err := io.Copy(log, read); err != nil {
		return fmt.Errorf("read the log of the cluster: %w", err)
	}
	if err := ask(ctx, dir, "/status", "", "", out); err != nil {
		return fmt.Errorf("the cluster did not start: %w", err)
	}
	return nil
}

// serve runs the cluster until it is told to end. Its log goes to descriptor 3
// until the cluster is ready, then to a file.
func serve(ctx context.Context, dir string, nodes int) error {
	const logDescriptor = 3
	syscall.CloseOnExec(logDescriptor) // up waits for its end
	log := &switchWriter{to: os.NewFile(logDescriptor, "log")}
	c, err := devcluster.Start(ctx, devcluster.Options{Log: log, Nodes: nodes, Dir: dir})
	if err != nil {
		fmt.Fprintln(log, "devcluster:", err)
		return err
	}
	if err := errors.Join(listen(ctx, c, log), c.Stop()); err != nil {
		fmt.Fprintln(log, "devcluster:", err)
		return err
	}
	return nil
}
