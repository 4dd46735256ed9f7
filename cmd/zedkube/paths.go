package main

import "path/filepath"

// options are what the command line says.
type options struct {
	root       string
	kubeconfig string
}

// paths are the files outside pubsub (docs/wire.md, "Files"), each below root.
type paths struct {
	root           string
	kubeconfig     string
	hypervisor     string
	pid            string
	touch          string
	forceDrain     string
	faultInjection string
}

func (o options) paths() paths {
	in := func(path string) string { return filepath.Join("/", o.root, path) }
	if o.root != "" && !filepath.IsAbs(o.root) {
		in = func(path string) string { return filepath.Join(o.root, path) }
	}
	p := paths{
		root:           o.root,
		kubeconfig:     o.kubeconfig,
		hypervisor:     in("/run/eve-hv-type"),
		pid:            in("/run/zedkube.pid"),
		touch:          in("/run/zedkube.touch"),
		forceDrain:     in("/tmp/force-NodeDrainStatus-global.json"),
		faultInjection: in("/tmp/DrainStatus_FaultInjection_Wait"),
	}
	if p.kubeconfig == "" {
		p.kubeconfig = in("/run/.kube/k3s/k3s.yaml")
	}
	return p
}
