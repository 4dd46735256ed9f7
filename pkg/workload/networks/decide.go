package networks

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	// grace is how long an attachment outlasts its network instance: a device that is
	// removed from the cluster loses both configurations at once, and hears of the
	// cluster's a moment later. It must not take the attachments from the others.
	grace = 10 * time.Second
	// maxRemoved bounds what a node remembers that never reports.
	maxRemoved = 1000
)

type facts struct {
	now      time.Time
	native   bool // this device is a member, Kubernetes orchestrates, and networks is all that zedrouter says
	leads    bool // this node reports, and sees the cluster
	networks map[string]types.NetworkInstanceStatus
	memory
}

// memory is what this process has seen. Losing it leaves an attachment that is no
// longer needed, and deletes none that is.
type memory struct {
	last    map[string]types.NetworkNAD    // of each network instance, by its key
	removed map[types.NetworkNAD]time.Time // when their instance was deleted or renamed
	done    map[types.NetworkNAD]bool      // those looked at since this node reports
}

type action struct {
	memory
	ensure, remove []types.NetworkNAD
	problems       []string
	again          time.Duration
}

// decide says which attachments to make and which to delete. Only the deletion or the
// renaming of an instance, seen as it happens, deletes one: after a restart or a
// reboot an instance that is absent may just not be published yet. Each is looked at
// once while this node reports: one that somebody else deletes stays deleted.
func decide(f facts) (a action) {
	if !f.native {
		return a
	}
	a.memory = memory{map[string]types.NetworkNAD{}, map[types.NetworkNAD]time.Time{}, map[types.NetworkNAD]bool{}}
	named := map[string][]types.NetworkNAD{}
	for key, status := range f.networks {
		nad, ok, err := status.NADOf(key)
		if err != nil {
			a.problems = append(a.problems, err.Error())
		}
		if was, had := f.last[key]; ok {
			a.last[key], named[nad.Name] = nad, append(named[nad.Name], nad)
		} else if had {
			a.last[key] = was // of another type now, which is no deletion
		}
	}
	maps.Copy(a.removed, f.removed)
	for key, was := range f.last {
		if a.last[key] != was && len(a.removed) < maxRemoved {
			a.removed[was] = f.now
		}
	}
	for name, nads := range named {
		if len(nads) > 1 {
			a.problems = append(a.problems, fmt.Sprintf("%d network instances have the name %s: it stays as it is until one of them is renamed", len(nads), name))
		} else if f.leads && f.done[nads[0]] {
			a.done[nads[0]] = true
		} else if f.leads {
			a.ensure = append(a.ensure, nads[0])
		}
	}
	for nad, since := range a.removed {
		owners := named[nad.Name]
		switch {
		case len(owners) == 1 || slices.Contains(owners, nad): // it is, or becomes, that of an instance
			delete(a.removed, nad)
		case !f.leads || len(owners) > 1:
		case f.now.Sub(since) < grace:
			a.again = grace
		default:
			a.remove = append(a.remove, nad)
		}
	}
	slices.Sort(a.problems)
	return a
}
