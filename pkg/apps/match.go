package apps

import (
	"cmp"
	"strings"

	"github.com/zedkube/zedkube/types"
)

// vmiSuffix is how many characters KubeVirt appends, without a separator, to
// the name of the VMI replica set to name a VMI.
const vmiSuffix = 5

// choose finds the pod that speaks for an application: the one that runs here,
// else one that runs, else the newest. The order is total, so every step
// chooses the same one.
func choose(cfg types.AppInstanceConfig, pods []types.Pod, self string) (types.Pod, bool) {
	name, id := cfg.KubeName(), cfg.UUIDandVersion.UUID.String()
	var best types.Pod
	found := false
	for _, p := range pods {
		if p.Terminating() {
			continue // it leaves; its replacement speaks
		}
		if cfg.IsVMI() && !launches(p, name, id) || !cfg.IsVMI() && !native(p, name) {
			continue
		}
		if !found || better(p, best, self) {
			best, found = p, true
		}
	}
	return best, found
}

// native reports whether p belongs to the replica set called name. Names are
// compared whole: app-1 is not app-10 (docs/wire.md, "Names of app objects").
func native(p types.Pod, name string) bool {
	return p.App == name || p.Owner.Kind == "ReplicaSet" && p.Owner.Name == name
}

// launches reports whether p is the launcher pod of a virtual machine of the
// application id, and of the generation called name where that can be told.
func launches(p types.Pod, name, id string) bool {
	uuid, _, _ := strings.Cut(p.AppDomain, ".")
	if !strings.EqualFold(uuid, id) {
		return false
	}
	vmi := vmiName(p)
	return vmi == "" || strings.HasPrefix(vmi, name) && len(vmi) == len(name)+vmiSuffix
}

// vmiName is the virtual machine instance that p launches, or "".
func vmiName(p types.Pod) string {
	if p.VMI == "" && p.Owner.Kind == "VirtualMachineInstance" {
		return p.Owner.Name
	}
	return p.VMI
}

// better reports whether p speaks rather than q.
func better(p, q types.Pod, self string) bool {
	return cmp.Or(
		cmp.Compare(weight(p, self), weight(q, self)),
		p.Created.Compare(q.Created),
		cmp.Compare(p.Name, q.Name),
	) > 0
}

func weight(p types.Pod, self string) int {
	switch {
	case p.Phase != types.PodRunning:
		return 0
	case self == "" || p.NodeName != self:
		return 1
	}
	return 2
}
