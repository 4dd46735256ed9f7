package types

import "time"

// SRIOVConfig is the ConfigMap of the SR-IOV device plug-in, which all nodes of
// the cluster share (docs/wire.md, "SR-IOV").
type SRIOVConfig struct {
	Version string            // resourceVersion; "" where there is no ConfigMap
	Data    map[string]string // text by key
}

// SRIOVPlugin is a pod of the SR-IOV device plug-in.
type SRIOVPlugin struct {
	Name        string
	UID         string
	Created     time.Time // by the API server's clock
	Terminating bool
	Part        string // what zedkube has written on it of the configuration it has read; "" for nothing
}

// SRIOVNetwork is a network attachment of eve-kube-app that is served by a
// device plug-in.
type SRIOVNetwork struct {
	Name     string
	UID      string
	Version  string // resourceVersion
	Resource string // the plug-in's resource: prefix/name
}
