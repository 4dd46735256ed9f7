package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/appscmd"
	"github.com/zedkube/zedkube/pkg/cli/auditcmd"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/draincmd"
	"github.com/zedkube/zedkube/pkg/cli/joincmd"
	"github.com/zedkube/zedkube/pkg/cli/membercmd"
	"github.com/zedkube/zedkube/pkg/cli/nodescmd"
	"github.com/zedkube/zedkube/pkg/cli/statuscmd"
	"github.com/zedkube/zedkube/pkg/cli/supportcmd"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/cli/topcmd"
	"github.com/zedkube/zedkube/pkg/cli/topicscmd"
	"github.com/zedkube/zedkube/pkg/cluster/statusserver"
	"github.com/zedkube/zedkube/pkg/workload/applogs"
)

// New is the command line of a version of the program: without a subcommand
// it runs the agent, as EVE's start script expects. Tests add flags that the program
// does not have.
func New(version string, agent func(context.Context, device.Options) error, more ...func(*cobra.Command, *device.Options)) *cobra.Command {
	o := device.Options{Version: version, Reports: statusserver.ReportsAuto}
	run := func(c *cobra.Command, _ []string) error { return agent(c.Context(), o) }
	root := device.NewRoot(&o,
		statuscmd.NewStatusCommand, statuscmd.NewDoctorCommand, nodescmd.NewNodesCommand, appscmd.NewAppsCommand, appscmd.NewVMIDetachCommand, appscmd.NewLogsCommand,
		draincmd.NewDrainCommand, membercmd.NewMembersCommand, membercmd.NewLeaveCommand, membercmd.NewK3sCommand, joincmd.NewJoinCommand, joincmd.NewWaitJoinCommand,
		topcmd.NewTopCommand, topicscmd.NewTopicsCommand, auditcmd.NewAuditCommand,
		supportcmd.NewUpdateStatusCommand, supportcmd.NewExportCommand, supportcmd.NewPageCommand,
	)
	root.RunE = run
	runCommand := &cobra.Command{Use: "run", Short: "Run the agent (the same as no command)", Args: terminal.Words(0), RunE: run}
	for _, c := range []*cobra.Command{root, runCommand} {
		c.Flags().Var(&o.Page, "page", "what is served on 127.0.0.1:12347: nothing (off), the metrics, or the page too, which asks for a token (on, or another port); default metrics, off with --root")
		c.Flags().BoolVar(&o.OnCluster, "page-on-cluster", false, "the same on the cluster address, for those who prove that they know the cluster token")
		c.Flags().Var(&o.Reports, "reports", "who gets reports on applications without a proof: nodes without a zedkube of this kind until every node has had one (auto), always or never")
		c.Flags().IntVar(&o.LogRecord, "log-record", applogs.DefaultMaxRecord, "bytes of a line of an application's log, as written to stderr, beyond which it is split; at most 263168")
	}
	runCommand.PersistentPreRunE = func(*cobra.Command, []string) error { return nil } // the agent makes its root
	for _, add := range more {
		add(root, &o)
	}
	whole := func() *cobra.Command { return New(version, agent) }
	root.AddCommand(runCommand, supportcmd.NewBundleCommand(&o, whole), supportcmd.NewVersionCommand(version), terminal.NewCompletionCommand())
	return root
}
