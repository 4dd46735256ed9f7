package cli

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/zedkube/zedkube/pkg/cli/appscmd"
	"github.com/zedkube/zedkube/pkg/cli/auditcmd"
	"github.com/zedkube/zedkube/pkg/cli/clustercmd"
	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/pkg/cli/draincmd"
	"github.com/zedkube/zedkube/pkg/cli/eventscmd"
	"github.com/zedkube/zedkube/pkg/cli/joincmd"
	"github.com/zedkube/zedkube/pkg/cli/kubeconfigcmd"
	"github.com/zedkube/zedkube/pkg/cli/membercmd"
	"github.com/zedkube/zedkube/pkg/cli/nodescmd"
	"github.com/zedkube/zedkube/pkg/cli/statuscmd"
	"github.com/zedkube/zedkube/pkg/cli/supportcmd"
	"github.com/zedkube/zedkube/pkg/cli/terminal"
	"github.com/zedkube/zedkube/pkg/cli/topcmd"
	"github.com/zedkube/zedkube/pkg/cli/topicscmd"
	"github.com/zedkube/zedkube/pkg/cli/volumescmd"
	"github.com/zedkube/zedkube/pkg/cluster/k3supdate"
	"github.com/zedkube/zedkube/pkg/cluster/statusserver"
	"github.com/zedkube/zedkube/pkg/workload/applogs"
)

// New is the command line of a version of the program: without a subcommand
// it runs the agent, as EVE's start script expects. Tests add flags that the program
// does not have.
func New(version string, agent func(context.Context, device.Options) error, more ...func(*cobra.Command, *device.Options)) *cobra.Command {
	o := device.Options{Version: version, Reports: statusserver.ReportsAuto, Consent: k3supdate.ConsentNone}
	run := func(c *cobra.Command, _ []string) error { return agent(c.Context(), o) }
	root := device.NewRoot(&o,
		statuscmd.NewStatusCommand, statuscmd.NewDoctorCommand, clustercmd.NewClusterCommand, appscmd.NewWorkloadsCommand, volumescmd.NewVolumesCommand, appscmd.NewLogsCommand,
		draincmd.NewDrainCommand, draincmd.NewUncordonCommand, membercmd.NewLeaveCommand, kubeconfigcmd.NewKubeconfigCommand,
		topcmd.NewTopCommand, topicscmd.NewTopicsCommand, auditcmd.NewAuditCommand, eventscmd.NewEventsCommand,
		joincmd.NewProbeCommand, supportcmd.NewUpdateStatusCommand, supportcmd.NewExportCommand, supportcmd.NewPageCommand, supportcmd.NewExplainCommand, supportcmd.NewEdgeCommand,
	)
	addMerged(root, &o)
	root.RunE = run
	root.Version = version
	root.InitDefaultVersionFlag()
	runCommand := &cobra.Command{Use: "run", Short: "Run the agent (the same as no command)", Args: terminal.Words(0), RunE: run, Hidden: true}
	for _, c := range []*cobra.Command{root, runCommand} {
		c.Flags().Var(&o.Page, "page", "what to serve on 127.0.0.1:12347: off (nothing), metrics, or on (also the page, which requires a token; or another port); default metrics, off with --root")
		c.Flags().BoolVar(&o.OnCluster, "page-on-cluster", false, "serve the same on the cluster address, to clients that prove that they know the cluster token")
		c.Flags().Var(&o.Reports, "reports", "whether nodes that run EVE's own zedkube, which cannot send a proof, get reports on applications: auto (until every node has run this zedkube), always or never")
		c.Flags().Var(&o.Consent, "k3s-consent", "which changes of the version of k3s wait for zedkube k3s release: none, commit (the one after which the cluster cannot return) or each node; the setting k3s.consent takes precedence")
		c.Flags().IntVar(&o.LogRecord, "log-record", applogs.DefaultMaxRecord, "maximum bytes of a line of an application's log on stderr; longer lines are split; at most 263168")
	}
	runCommand.PersistentPreRunE = func(*cobra.Command, []string) error { return nil } // the agent makes its root
	for _, add := range more {
		add(root, &o)
	}
	whole := func() *cobra.Command { return New(version, agent) }
	root.AddCommand(runCommand, supportcmd.NewBundleCommand(&o, whole), supportcmd.NewVersionCommand(version), terminal.NewCompletionCommand())
	addExamples(root)
	return root
}

// addMerged adds those that have others below them, which had names of their own before
// (docs/decisions/0045-commands.md).
func addMerged(root *cobra.Command, o *device.Options) {
	nodes, apps, k3s, join := nodescmd.NewNodesCommand(o), appscmd.NewAppsCommand(o), membercmd.NewK3sCommand(o), joincmd.NewJoinCommand(o)
	nodes.AddCommand(membercmd.NewForgetCommand(o), membercmd.NewRemoveCommand(o))
	apps.AddCommand(terminal.Called("detach", appscmd.NewVMIDetachCommand(o)))
	k3s.AddCommand(statuscmd.NewCertsCommand(o))
	join.AddCommand(terminal.Called("wait", joincmd.NewWaitJoinCommand(o)))
	root.AddCommand(nodes, apps, k3s, join,
		terminal.Known(appscmd.NewVMIDetachCommand(o), "apps detach"),
		terminal.Moved(membercmd.NewMembersCommand(o), "nodes"),
		terminal.Moved(statuscmd.NewCertsCommand(o), "k3s certs"),
		terminal.Moved(joincmd.NewWaitJoinCommand(o), "join wait"))
}

// Arguments are the words of a command line. Under the name of EVE's program that asks
// a status server it is that command (docs/wire.md, "Process").
func Arguments(argv []string) []string {
	if len(argv) == 0 {
		return []string{}
	}
	if filepath.Base(argv[0]) == joincmd.ProbeName {
		return append([]string{joincmd.ProbeName}, argv[1:]...)
	}
	return argv[1:]
}
