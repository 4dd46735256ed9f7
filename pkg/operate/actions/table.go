package actions

// action is one thing that the page can do: a command of this program, and those whose output is
// its plan.
type action struct {
	Name    string // in the path
	Title   string // on its button
	Command string // what it runs, without "zedkube"
	Effect  string // what it does, in sentences
	File    bool   // what it prints is a file

	plan []string // commands that change nothing
}

// table are all of them, in the order in which the page shows them.
var table = []action{
	{
		Name: "drain-request", Title: "Drain this node", Command: "drain request",
		Effect: "The node stays schedulable until its turn comes. Then it is cordoned and its pods are evicted. It stays cordoned until the request is withdrawn or the device reboots.",
		plan:   []string{"drain plan"},
	},
	{
		Name: "drain-cancel", Title: "Withdraw the drain request", Command: "drain cancel",
		Effect: "The request of an operator is withdrawn. The node becomes schedulable again, unless EVE requests the drain as well or the cordon is kept.",
		plan:   []string{"drain status"},
	},
	{
		Name: "keep-cordon", Title: "Keep the cordon", Command: "drain keep-cordon",
		Effect: "The node stays cordoned after its drain, even after a reboot, until zedkube uncordon or the start of the next drain.",
		plan:   []string{"drain status"},
	},
	{
		Name: "workloads-disable", Title: "Switch all workloads off", Command: "workloads disable",
		Effect: "Every application of the whole cluster stops, on every node, and all nodes are cordoned. Nothing is evicted. It lasts over reboots, until the workloads are switched on again.",
		plan:   []string{"workloads status", "apps"},
	},
	{
		Name: "workloads-enable", Title: "Switch all workloads on", Command: "workloads enable",
		Effect: "The cordons of workloads disable are removed, and every application is started as it was before, as soon as its volumes have a healthy replica on a Ready node.",
		plan:   []string{"workloads status", "apps"},
	},
	{
		Name: "bundle", Title: "Collect a support bundle", Command: "support-bundle", File: true,
		Effect: "An archive (tar.gz) of at most 64 MiB with what the agents publish, the audit trail, the output of commands and the ends of logs, without the secrets that are known. " +
			"It changes nothing on the device. Review it before you share it.",
	},
}
