// Package cli is the command line: New makes all of it. Each family of commands has a
// package of its own, which uses terminal and device, and no other but where it says so:
//
//	terminal    printing: screens, tables, -o, --watch, help, exit codes
//	device      the device's files, its agent, the API server; the root command
//	draincmd    drain
//	joincmd     join, wait-join
//	membercmd   leave, members, k3s (plans look at drains and joins as draincmd and joincmd do)
//	nodescmd    nodes; apps, drain, leave, members, status and support-bundle ask for the nodes here
//	statuscmd   status, doctor (nodes, applications and drains look as in nodescmd, appscmd and draincmd)
//	appscmd     apps, logs, vmiDetach
//	topcmd      top
//	topicscmd   topics
//	auditcmd    audit
//	supportcmd  support-bundle, export, page, version, pubKubeClusterUpdateStatus
//
// The agent, which the program runs without a command, is not here: cmd/zedkube.
package cli
