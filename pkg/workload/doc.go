// Package workload groups what concerns the pods, virtual machines and volumes of
// this node: the drain with its cordon and the cluster's drain lock (drain),
// applications with failover, repair and failback (apps), their log lines (applogs)
// and console files (console), volumes that the kubelet does not mount (mounts),
// network ports passed through (passthrough, sriov), network instances for pods
// (networks, podnetworks) and their names (names), and Longhorn's settings (storage).
//
// Which nodes are members, and which are lost, is in cluster.
package workload
