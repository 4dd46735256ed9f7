//go:build linux

package devcluster

import (
	"errors"
	"fmt"
	"io"
)

// maxNodes is what the address block and the pod networks leave room for.
const maxNodes = 60

// Options say what to start. The zero value is three nodes in a temporary
// directory.
type Options struct {
	Log    io.Writer // progress and processes that end unasked; nil is silent
	Nodes  int       // how many nodes; 0 is 3
	Audit  bool      // note every request, for Calls; not with Hosts
	Dir    string    // made by Start, removed by Stop; "" is a temporary one
	Source string    // directory of this package; "" finds it
	Seed   uint64    // of the chance that decides which requests meet a fault of a part of them; 0 is one of many

	Crowd bool // AddCrowd may be called, and no node is ever found lost; not with Hosts

	Answers bool // the kubelets answer for measurements and logs, on port 10250 of each node; both are made up; not with Hosts

	KubeVirt bool // virt-api and virt-controller run, and virtual machines are theirs

	Hosts bool     // every node is a host with a control plane of its own; takes CanHost
	Spare int      // with Hosts: the last so many have nothing yet, for StartControlPlane; at least one is left
	Wire  *Cluster // with Hosts: plug them into the switch of this one; nil makes one

	Release Release // with Hosts: what their control planes begin with

	Real       bool   // with Hosts: kubelets, containerd and runc are real, and so are containers; takes CanRunPods
	Edge       int    // with Real: the number of hosts without a control plane, behind routers of their own, and kube-proxy on the nodes; takes CanEdge
	LogMaxSize string // with Real: the size at which a container's log is rotated, as "100Ki"; "" is 10Mi
}

// complete fills in what is not said and says what cannot be had.
func (o *Options) complete() error {
	if o.Log == nil {
		o.Log = io.Discard
	}
	o.Log = &syncWriter{w: o.Log}
	if o.Nodes == 0 {
		o.Nodes = 3
	}
	if o.Nodes < 0 || o.Nodes > maxNodes {
		return fmt.Errorf("%d nodes, want 1 to %d", o.Nodes, maxNodes)
	}
	return errors.Join(o.checkHosts(), o.checkReal())
}

func (o Options) checkHosts() error {
	switch {
	case o.Hosts && o.Answers:
		return errors.New("kubelets that answer are not for hosts: take real ones")
	case o.Hosts && o.Crowd:
		return errors.New("a crowd is not for hosts")
	case !o.Hosts && (o.Spare != 0 || o.Wire != nil || o.Release != Usual):
		return errors.New("spare nodes, a wire and a release are for hosts only")
	case !o.Hosts:
		return nil
	case o.Audit:
		return errors.New("hosts keep no audit log")
	case o.Spare < 0 || o.Spare >= o.Nodes:
		return fmt.Errorf("%d of %d hosts are spare, want at least one that is not", o.Spare, o.Nodes)
	case o.Wire != nil && o.Wire.wire == nil:
		return errors.New("the other cluster has no wire")
	}
	return CanHost()
}

func (o Options) checkReal() error {
	switch {
	case !o.Real && o.LogMaxSize != "":
		return errors.New("only real nodes rotate logs")
	case !o.Real && o.Edge != 0:
		return errors.New("edge hosts are for clusters of real nodes only")
	case !o.Real:
		return nil
	case !o.Hosts:
		return errors.New("real nodes are on hosts only")
	}
	if o.Edge > 0 {
		return CanEdge()
	}
	return CanRunPods()
}
