// Package report groups what is reported about this node and its cluster: the
// report of the leader (clusterinfo), the users' services (services), the metrics
// of the node (nodemetrics), of the cluster (clustermetrics) and of edge nodes
// (edgemetrics), the conditions of this node (conditions), the states of updates (updatestatus), and EVE's own
// messages to the controller (evereport).
//
// What people at the device see is in operate.
package report
