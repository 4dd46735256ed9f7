package console

import (
	"github.com/zedkube/zedkube/types"
)

// highestPort is what TCP has.
const highestPort = 1<<16 - 1

const (
	opening  = "it is being opened" // its file is about to be written
	unopened = "the kube container has not opened its port"
	unusable = "the console file cannot be used: " // and why
)

// absence says why an application's console cannot be open here whatever the
// file says; "" where it can.
func absence(cfg types.AppInstanceConfig, s types.ENClusterAppStatus) string {
	switch {
	case !cfg.IsVMI():
		return "it is not a virtual machine"
	case s.AppKubeStatus == types.AppKubeUnknown:
		return "where its virtual machine runs is not known yet"
	case s.AppKubeStatus == types.AppKubeAPIUnreachable:
		return "the state of the cluster is unknown, and so is where its virtual machine runs"
	case !cfg.Activate && s.AppKubeStatus != types.AppKubeRunning:
		return "it is switched off"
	case s.AppKubeStatus != types.AppKubeRunning:
		return "its virtual machine has not started"
	case !s.ScheduledOnThisNode:
		return "its virtual machine does not run on this node"
	case s.VMIName == "":
		return "the name of its virtual machine is not known yet"
	case s.VNCPort == 0 || s.VNCPort > highestPort:
		return "its configuration has no port for a console"
	}
	return ""
}

// state says whether the console of a is open, and why it is not.
func (f facts) state(a, chosen *app, v verdict) (open bool, why string) {
	switch {
	case a.why != "":
		return false, a.why
	case v.blocked != "":
		return false, v.blocked
	case a != chosen:
		return false, taken(f.configs[chosen.key])
	case !v.right && f.failed != "":
		return false, unusable + f.failed
	case !v.right && f.rewrittenFor != a.vmi:
		return false, opening
	case !v.right:
		return false, unopened
	case f.file.port != silent, f.rows[a.key].Open && f.quiet() < idleBetween:
		return true, ""
	}
	return false, unopened
}

// taken is for those who have to wait for the console of another application.
func taken(by types.AppInstanceConfig) string {
	return "the console of " + title(by) + " is open; there is one per node"
}

// title is what people call the application.
func title(cfg types.AppInstanceConfig) string {
	if cfg.DisplayName != "" {
		return cfg.DisplayName
	}
	return cfg.UUIDandVersion.UUID.String()
}
