// Package cluster groups what makes this node a member of its cluster: whether
// it is one (membership) and what a node does when it is alone (peers), the status
// that EVE's other agents read (clusterstatus), the join token (clustertoken), the
// configuration and the pinned version of k3s (k3sconfig), which other nodes are
// members (members), who reports for the cluster (leader), whether a lost device
// is off (witness), and the server that joining nodes ask (statusserver).
//
// Drains and applications are in workload; what is reported to the controller is
// in report.
package cluster
