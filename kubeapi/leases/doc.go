// Package leases has the election of the node that reports, the lease of the node
// that repairs, and the drain lock.
//
//	leases.go     what is known of the Leases, and since when
//	election.go   running electors, and whether this node leads
//	repair.go     one node at a time repairs
//	drainlock.go  one node at a time is drained
package leases
