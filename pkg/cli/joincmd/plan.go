// Package joincmd is zedkube join and wait-join: what a device that is to join a
// cluster can know before it does.
package joincmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/plan"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/operate/joinplan"
	"github.com/zedkube/zedkube/types"
)

// NewJoinCommand is the parent of what can be asked about a join.
func NewJoinCommand(o *device.Options) *cobra.Command {
	return terminal.Group("join", "Check whether a node can join its cluster, and what blocks it",
		"Check whether a node can join its cluster, and what blocks it. To wait until it may: zedkube join wait.\n"+
			"A join is configured at the controller, not by a command.\n\n"+plan.ExitCodes,
		newJoinPlanCommand(o))
}

type joinFlags struct {
	server, address, node, cluster, candidate, kubernetes, tokenFile string
	noListen, check                                                  bool
	apiPort                                                          int
	out                                                              terminal.Outputs
}

func newJoinPlanCommand(o *device.Options) *cobra.Command {
	var f joinFlags
	c := &cobra.Command{
		Use:   "plan [--server IP] [--candidate IP]",
		Short: "Show what would block a join, here and at the members; changes nothing",
		Long: "Show what would block a join: on a device that is to join, whether it can; on a member, whether there is capacity for\n" +
			"one more, and with --candidate whether that one fits. Addresses, ports both ways, clocks, names, versions, etcd.\n" +
			"It changes nothing. What is not given is read from the files of this device. For about three seconds a candidate\n" +
			"listens on the cluster's ports that are still free here, so that a member can test the reverse direction.\n\n" + plan.ExitCodes,
		Args: terminal.Words(0),
		RunE: func(c *cobra.Command, _ []string) error { return planJoin(c, o.Paths(), &f) },
	}
	flags := c.Flags()
	flags.StringVar(&f.server, "server", "", "address of the member to join through (default: JoinServerIP of EdgeNodeClusterStatus or EdgeNodeClusterConfig)")
	flags.StringVar(&f.address, "address", "", "address of this node in the cluster's network (default: ClusterIPPrefix of the same)")
	flags.StringVar(&f.node, "node", "", "name that the Node will have (default: from EdgeNodeInfo)")
	flags.StringVar(&f.cluster, "cluster", "", "UUID of this node's cluster (default: ClusterID of the same)")
	flags.StringVar(&f.tokenFile, "token-file", "", tokenFileUsage)
	flags.StringVar(&f.kubernetes, "kubernetes", "", "version of Kubernetes that the candidate is to run, such as v1.34.1+k3s1")
	flags.StringVar(&f.candidate, "candidate", "", "on a member: address of the node that is to join")
	flags.BoolVar(&f.noListen, "no-listen", false, "do not listen on free ports meanwhile, for example when k3s is about to start")
	flags.BoolVar(&f.check, "check", false, "exit with code 3 if something blocks")
	flags.IntVar(&f.apiPort, "api-port", types.PortAPI, "port of the members' API")
	_ = flags.MarkHidden("api-port") // k3s listens there on every device; test clusters do not
	f.out.Flag(c)
	return c
}

type joinGiven struct {
	joinTarget
	address, candidate netip.Addr
}

func (f *joinFlags) read() (g joinGiven, err error) {
	if g.joinTarget, err = parseTarget(f.server, f.cluster); err != nil {
		return g, terminal.ExitWith(terminal.ExitUsage, err)
	}
	for _, flag := range []struct {
		name, text string
		to         *netip.Addr
	}{{"address", f.address, &g.address}, {"candidate", f.candidate, &g.candidate}} {
		if flag.text == "" {
			continue
		}
		if *flag.to, err = netip.ParseAddr(flag.text); err != nil || flag.to.IsUnspecified() {
			return g, terminal.ExitWith(terminal.ExitUsage, fmt.Errorf("%s %q: want an address such as 10.0.0.2 or fd00::2", flag.name, terminal.Clean(flag.text)))
		}
	}
	if g.candidate.IsValid() && (f.server != "" || f.address != "" || f.node != "" || f.cluster != "") {
		return g, terminal.ExitWith(terminal.ExitUsage, errors.New("--candidate is for members; --server, --address, --node and --cluster are for the candidate itself"))
	}
	return g, nil
}

func planJoin(c *cobra.Command, p device.Paths, f *joinFlags) error {
	given, err := f.read()
	if err == nil {
		given.token, err = readToken(c.Context(), f.tokenFile, c.InOrStdin())
	}
	if err != nil {
		return err
	}
	return f.out.Show(c.Context(), terminal.Of(c.OutOrStdout()), time.Second, func(ctx context.Context) terminal.View {
		facts, title := lookAtJoin(ctx, p, *f, given)
		if ctx.Err() != nil {
			return terminal.View{Err: terminal.ExitWith(terminal.ExitUsage, errors.New("interrupted"))}
		}
		p := joinplan.Join(facts)
		s := terminal.View{Data: p, Draw: func(s *terminal.Screen) { putPlan(s, p, title) }}
		switch {
		case f.check && p.Verdict == joinplan.Blocks:
			s.Err = terminal.ExitWith(terminal.ExitFound, errors.New("something blocks the join"))
		case len(facts.Peers) == 0 && facts.Nodes == nil:
			s.Err = terminal.ExitWith(terminal.ExitNotPublished, errors.New("no node could be queried: "+cmp.Or(terminal.Clean(facts.NoNodes), "no member is known")))
		}
		return s
	})
}

func putPlan(s *terminal.Screen, p joinplan.Plan, title string) {
	what := "Plan for the join of this node"
	if p.Role == joinplan.Member {
		what = "Plan for the join of another node"
	}
	s.Put(0, terminal.Bold, what+", nothing is changed")
	s.Field("verdict", plan.VerdictLook(p.Verdict), terminal.Clean(p.Summary))
	s.Field("made at", terminal.Plain, terminal.Timestamp(p.Made))
	if p.Cluster != "" {
		if title != "" {
			title = " (" + terminal.Clean(title) + ")"
		}
		s.Field("cluster", terminal.Plain, p.Cluster+title)
	}
	if p.Node != "" || p.Address != "" {
		s.Field("node", terminal.Plain, cmp.Or(terminal.Clean(p.Node), "of an unknown name")+" at "+cmp.Or(p.Address, "an unknown address"))
	}
	if len(p.Peers) > 0 {
		s.Field("checked", terminal.Plain, terminal.Listed(p.Peers))
	}
	s.Gap()
	for _, f := range p.Findings {
		plan.PutFinding(s, f)
	}
}
