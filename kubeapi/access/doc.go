// Package access is the way to the API server, and what all requests to it
// share. It knows no kind of object and decides nothing.
//
//	session.go      how a verb runs: on the current connection, with a timeout,
//	                audited, with errors of known classes
//	connection.go   a kubeconfig in use: its clients and its transport
//	transport.go    deadlines; every request counts for the liveness; streams
//	liveness.go     does the API server answer? with the probes that ask it
//	kubeconfig.go   waits for the file and its changes
//	credentials.go  certificates, versions and clocks, as connections show them
//	operations.go   audit records of writes, and patches; requests are counted
//	lists.go        lists that are complete or an error
//	rows.go         tables, how the objects of a list and its watch become rows, and
//	                the parts of objects that all packages read
package access
