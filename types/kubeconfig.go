package types

// VmiDescheduleEvents says when virtual machines go back to their designated
// node.
type VmiDescheduleEvents struct {
	OnBoot bool
}

// KubeConfig tells the kube container what the settings ask of it, under key
// "global" of a persistent topic (docs/wire.md, "KubeConfig").
type KubeConfig struct {
	K3sVersion          string // "" is the kube container's own
	VmiDescheduleEvents VmiDescheduleEvents
}
