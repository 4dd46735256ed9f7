// Package kubeapi is the only place that speaks to Kubernetes. It decides
// nothing: it keeps tables of what the cluster looks like and offers verbs.
//
// The tables are written by client-go reflectors straight from list and watch.
// They stay as they are while the API server is silent, and are corrected, not
// emptied and refilled, when it answers again. How long it has been silent
// stands in the table of types.APIStatus.
//
//	client.go      what wire.go fills in; one connection at a time
//	kubeconfig.go  waits for the file and its changes
//	connection.go  kubeconfig -> client
//	transport.go   deadlines; every request is seen by the silence
//	silence.go     does the API server answer? probe.go asks it
//	views.go       which tables are wanted; view.go keeps one;
//	               rows.go and convert.go fill it
//	writes.go      how verbs that write fail; node.go and the others are verbs, by
//	               object
//	sightings.go   what is known of the Leases, and since when; leases.go asks
//	lease.go       the election: term.go sets electors to work, candidate.go says
//	               whether this node leads
//	repair.go      one node at a time repairs; right.go is the right to
//	storage.go     volumes, asked for afresh; storagejoin.go puts them together
//	dial.go        a Client for one command, without tables
package kubeapi
