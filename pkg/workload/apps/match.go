package apps

import (
	"cmp"

	"github.com/zedkube/zedkube/types"
)

// choose finds the pod that speaks for an application: the one that runs here,
// else one that runs, else the newest. The order is total, so every step
// chooses the same one.
func choose(cfg types.AppInstanceConfig, pods []types.Pod, self string) (types.Pod, bool) {
	var best types.Pod
	found := false
	for _, p := range pods {
		if p.Terminating() || !cfg.Owns(p) {
			continue // what terminates leaves; its replacement speaks
		}
		if !found || better(p, best, self) {
			best, found = p, true
		}
	}
	return best, found
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
