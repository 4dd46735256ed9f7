// Package kubeapi is, with the packages below it, the only place that talks to
// Kubernetes. It decides nothing: it keeps tables of what the cluster looks like
// and offers verbs.
//
//	               kubeapi            the tables that are wanted; a Client has
//	                  |               all verbs
//	    +-------------+------------+
//	    v                          v
//	listwatch    nodes  pods  leases  storage  kubevirt  kubelet  network
//	    |                          |
//	    +-------------+------------+
//	                  v
//	               access             connection, liveness, audit, patches
//
// The packages in the middle share code only through access. A kind of object
// belongs to one of them: its verbs, and how it becomes a row. Which lists and watches
// fill which table is defined here.
//
// The tables are written by client-go reflectors straight from list and watch.
// They stay as they are while the API server is silent, and are corrected, not
// emptied and filled again, when it answers. How long it has been silent is in the
// table of types.APIStatus.
//
//	client.go  what wire.go fills in; one connection at a time; a Client for one
//	           command, without tables
//	views.go   which tables are wanted; reportviews.go says how those of a report
//	           are filled
package kubeapi
