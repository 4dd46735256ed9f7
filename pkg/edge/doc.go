// Package edge is for what runs KubeEdge in the cluster. All of it belongs to the program zedkube-edge
// (docs/edge.md); the daemon links none of it.
//
// Here belong the settings, the objects of KubeEdge's cloud side and the commands for both. What concerns the
// members of the cluster does not belong here.
package edge
