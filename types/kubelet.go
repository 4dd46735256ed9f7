package types

import "time"

// KubeletStats is one answer of a kubelet about its node (docs/wire.md,
// "KubeNodeMetrics"). What it does not say, or says senselessly, is nil.
type KubeletStats struct {
	Node    NodeMetrics // without Cores
	Pods    []PodStats  // in the kubelet's order, each UID once
	Omitted int         // pods and containers left out, as there are too many
}

// PodStats is a pod as the kubelet measured it last.
type PodStats struct {
	Namespace  string
	Name       string
	UID        string
	Sample     PodSample
	Ephemeral  *FSMetrics
	Volumes    []VolumeMetrics // by name
	Containers []ContainerStats
}

// ContainerStats is a container as the kubelet measured it last.
type ContainerStats struct {
	Name    string
	Started time.Time // of this instance; zero for unknown
	Sample  ContainerSample
}

// ContainerID names a container of a pod; without Container the pod.
type ContainerID struct {
	Namespace string
	Pod       string
	Container string
}
