package draincmd

import (
	"fmt"
	"slices"

	"github.com/zedkube/zedkube/pkg/cli/device"
	"github.com/zedkube/zedkube/types"
)

// advice is something that an operator may do now.
type advice struct {
	Command string
	Why     string
}

// adviseFor says what an operator may do about the record.
func adviseFor(r drainRecord, p device.Paths) []advice {
	var list []advice
	add := func(command, why string) { list = append(list, advice{command, why}) }
	if !r.Agent.Runs {
		add("grep -h zedkube /persist/newlog/collect/dev.log* | tail", "find out why the agent is not running; when it runs again, the drain continues where it stopped")
		add("zgrep zedkube /persist/newlog/keepSentQueue/dev.log.*.gz | tail", "the same, in the logs that were already sent to the controller")
	}
	switch {
	case r.Progress == nil:
		add("zedkube drain plan", "see what a drain would do now; changes nothing")
	case r.Progress.Left:
	case r.Progress.Phase == types.PhaseIdle:
		add("zedkube drain plan", "see what a drain would do now; changes nothing")
		add("zedkube drain request", "drain this node; it is not rebooted afterwards")
		switch r.Progress.Cordon {
		case "kept":
			add("kubectl uncordon "+nodeWord(r), "make this node schedulable again")
		case "operator":
			add("zedkube audit --op cordon,uncordon", "find out who cordoned this node, and ask them first")
			add("kubectl uncordon "+nodeWord(r), "make this node schedulable again, once they agree")
		}
	default:
		adviseDuring(r, p, add)
	}
	if r.Forced {
		add("rm "+p.ForceDrain[0]+" "+p.ForceDrain[1], "remove the force files: EVE sees the real drain status again")
	}
	return list
}

// adviseDuring is for a drain that runs or has just ended.
func adviseDuring(r drainRecord, p device.Paths, add func(command, why string)) {
	pr := r.Progress
	own := slices.Contains(pr.Requesters, "OPERATOR")
	if pr.Phase == types.PhaseGates && pr.Lock.Holder != "" && !pr.Lock.Mine {
		add("zedkube drain unlock "+shellWord(pr.Lock.Holder), "only if that node is powered off on purpose: it may have the only copy of data, or be needed for quorum")
	}
	switch {
	case r.failed():
		add("zedkube drain plan", "see what still blocks the drain; changes nothing")
		add("zedkube drain request", "try again; a new reboot, shutdown or update command does so too")
	case own:
		add("zedkube drain cancel", "withdraw your request; the node becomes schedulable again unless another request remains")
	case r.underWay():
		add("zedkube drain status --watch", "watch its progress")
	}
	if r.underWay() {
		add(fmt.Sprintf(`echo '{"Status":9,"RequestedBy":1}' > %s`, p.ForceDrain[0]),
			"report the drain as complete now: the remaining pods go down with the device, regardless of disruption budgets and replicas")
		add(fmt.Sprintf(`echo '{"Status":1,"RequestedBy":1}' > %s`, p.ForceDrain[0]),
			"stop the drain; while this file exists, the next reboot or update proceeds without a drain")
	}
	if pr.Phase == types.PhaseComplete && pr.Cordon == "zedkube" {
		add("zedkube drain keep-cordon", "keep this node unschedulable after the drain as well")
	}
}

// nodeWord is the own node's name in a command.
func nodeWord(r drainRecord) string {
	if r.Node == "" {
		return "<node>"
	}
	return shellWord(r.Node)
}

// shellWord is a name from a record in a command that somebody may paste: a
// name that is none of Kubernetes' is not repeated.
func shellWord(name string) string {
	if !types.IsObjectName(name) {
		return "<holder>"
	}
	return name
}
