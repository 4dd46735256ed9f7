// Package cli is the command line: New makes all of it. Each family of commands has a
// package of its own, which builds on these three and imports no other family:
//
//	terminal    printing: screens, tables, -o, --watch, help, exit codes
//	device      the device's files, its agent, the API server; the root command
//	plan        what plans of a drain, a join and a leave share
//
//	draincmd    drain, uncordon
//	joincmd     join, cluster-status-probe
//	membercmd   leave, k3s, nodes forget and remove
//	kubeconfigcmd kubeconfig
//	clustercmd  cluster
//	nodescmd    nodes
//	statuscmd   status, doctor, k3s certs (it shows nodes, applications and the drain as their commands do)
//	appscmd     apps, logs, workloads
//	topcmd      top
//	topicscmd   topics
//	auditcmd    audit
//	eventscmd   events
//	supportcmd  support-bundle, export, page, version, pubKubeClusterUpdateStatus
//
// The agent, which the program runs without a command, is not here: cmd/zedkube.
package cli
