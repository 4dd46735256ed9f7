// Package access is the way to the API server, and all that every request to it
// shares. It knows no kind of object and decides nothing.
//
//	session.go      how a verb runs: on the present connection, within a time,
//	                on record, with errors of known classes
//	connection.go   a kubeconfig in use: its clients and its transport
//	transport.go    deadlines; every request is seen by the liveness; streams
//	liveness.go     does the API server answer? with the probes that ask it
//	kubeconfig.go   waits for the file and its changes
//	credentials.go  certificates, versions and clocks, as they show on the way
//	operations.go   the record of what is written, and patches; requests.go counts
//	                requests
//	lists.go        lists that are whole or an error
//	rows.go         tables, and how the objects of a list and its watch become rows
//	objects.go      parts of objects that everybody reads
package access
