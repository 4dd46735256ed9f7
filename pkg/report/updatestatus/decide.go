package updatestatus

import "github.com/zedkube/zedkube/types"

// facts is the last report since boot, if there was one.
type facts struct {
	reported bool
	report   types.KubeClusterUpdateStatus
}

// action is what becomes of the published status; the zero value leaves it.
type action struct {
	publish  bool
	withdraw bool
	status   types.KubeClusterUpdateStatus
}

// decide says what to publish. Without a report since boot, what a boot before
// left stands.
func decide(f facts) action {
	switch {
	case !f.reported:
		return action{}
	case Withdraws(f.report):
		return action{withdraw: true}
	default:
		return action{publish: true, status: f.report}
	}
}

// Withdraws reports whether a report takes the published one back: component
// and state are both unknown (docs/wire.md, "Process").
func Withdraws(r types.KubeClusterUpdateStatus) bool {
	return r.Component == types.KubeCompUnknown && r.Status == types.KubeCompUpdateUnknown
}
